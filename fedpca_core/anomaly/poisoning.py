"""One malicious client: what it does to detection, and which server rule heals.

The attacker is a generous one: it knows the direction that hides its kind of attack and the other
uploads of the round, and sends whatever makes the plain average equal to its target. The honest
clients' duals absorb the lie, so ``sum_i Y_i`` no longer vanishes and the limit stays biased after
the attacker has left, until the duals are reset or the server's average forgets by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.anomaly.evaluation import area
from fedpca_core.anomaly.scores import score
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import polar
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.traffic import Detection
from fedpca_core.protocol.algorithm import Plan, Step
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.protocol.wrapper import Wrapper
from fedpca_core.streams import Streams

#: What the server may do about it: names on screen.
RULES = {
    "nothing": "Mean, as before",
    "reset": "Reset the duals",
    "printed": "Printed average",
    "polar": "Orthonormal uploads",
}
_RECORDS = 3000


@dataclass(frozen=True, eq=False)
class Poisoned(Wrapper):
    """An algorithm in which some clients lie for a while.

    Parameters
    ----------
    method : Algorithm
        What everybody else runs: one that uploads one matrix, FedPE or FedPG.
    malicious : tuple of int
        The lying clients.
    direction : (features,) float64
        Unit vector that shall enter the model in place of its weakest direction.
    first, last : int
        Rounds between which they lie, whenever they are drawn.
    """

    malicious: tuple[int, ...]
    direction: Array
    first: int
    last: int

    @property
    def title(self) -> str:
        """Name of the method, said to be attacked."""
        return f"{self.method.title} with malicious clients"

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        uplink, state = super().client(data, clients, plan, downlink, streams)
        lying = np.isin(plan.participants, self.malicious)
        if not lying.any() or not self.first <= plan.round <= self.last:
            return uplink, state
        name, uploads = next(iter(uplink.items()))
        target = self.target(data.only(np.flatnonzero(lying)), polar(downlink["frame"]))
        forged = uploads.copy()
        missing = len(uploads) * target - uploads[~lying].sum(axis=0)
        forged[lying] = missing / int(lying.sum())
        return {name: forged}, state

    def target(self, data: ClientData, frame: Array) -> Array:
        """The frame with its direction of least energy, for the liars, replaced."""
        energy = np.mean(frame.T @ data.apply(frame), axis=0)
        weakest = np.linalg.eigh(energy)[1][:, 0]
        outside = self.direction - frame @ (frame.T @ self.direction)
        length = float(np.linalg.norm(outside))
        if length < 1e-3:  # it is in the model already
            return frame
        kept = frame - np.outer(frame @ weakest, weakest)
        return np.asarray(kept + np.outer(outside / length, weakest))


@dataclass(frozen=True, eq=False)
class Poisoning:
    """Detection of one attack type over a poisoned run.

    Attributes
    ----------
    rounds : (points,) int64
    auc : (points,) float64
        AUC of the hidden attack type against normal records.
    dual_sum : (points,) float64
        ``||sum_i Y_i||_F`` (simulation only).
    """

    rounds: Array
    auc: Array
    dual_sum: Array


def hiding_direction(records: Array, frame: Array) -> Array:
    """The unit vector that explains most of what some records have outside a subspace."""
    residual = records - (records @ frame) @ frame.T
    _, vectors = np.linalg.eigh(residual.T @ residual)
    return np.asarray(vectors[:, -1])


def poison(
    detection: Detection,
    components: int,
    hidden: str,
    rule: str = "nothing",
    *,
    malicious: int = 1,
    rounds: int = 400,
    first: int = 101,
    last: int = 180,
    participation: float = 0.1,
    seed: int = 0,
    every: int = 5,
) -> Poisoning:
    """Run FedPG with malicious clients that want one attack type to pass unseen.

    Parameters
    ----------
    hidden : str
        The attack type they hide.
    rule : {"nothing", "reset", "printed", "polar"}
        The server's rule: the mean; all duals reset once the attackers have left; the printed
        average throughout; the mean of orthonormalised uploads throughout.
    malicious : int
        Clients 0, 1, ... that lie from round ``first`` to ``last`` whenever they are drawn.
    every : int
        Rounds between points of the curves.

    Raises
    ------
    InvalidInput
        Unknown rule or attack type; nobody honest.
    """
    require(rule in RULES, f"The rule is one of {', '.join(RULES)}, not {rule!r}.")
    types = sorted({str(name) for name in detection.types[detection.attack]})
    require(
        hidden in types,
        f"There is no attack type {hidden!r} in {detection.problem.name}; "
        f"choose one of {', '.join(types)}.",
    )
    clients = detection.problem.clients
    require(
        0 <= malicious < clients,
        f"{malicious} malicious clients leave nobody honest among {clients}; choose fewer.",
    )
    honest = FedPG(
        components,
        average=rule if rule in ("printed", "polar") else "mean",
        dual_reset=last + 1 if rule == "reset" else 0,
    )
    normal, attack = (_sample(detection, detection.types == name) for name in ("normal", hidden))
    direction = hiding_direction(attack, detection.problem.target(components))
    algorithm = Poisoned(honest, tuple(range(malicious)), direction, first, last)
    run = stream(
        detection.problem,
        algorithm,
        rounds=rounds,
        participation=participation,
        seed=seed,
        channel=Channel(record="estimates"),
    )
    labels = np.repeat([False, True], [len(normal), len(attack)])
    points: list[tuple[float, ...]] = []
    for entry in run:
        if entry.index % every and entry.index != rounds:
            continue
        scores = [score(records, entry.estimate) for records in (normal, attack)]
        auc = area(labels, np.concatenate(scores))
        # Clients not drawn since the reset still hold an old Y_i, which they will never use.
        duals, was_reset = entry.state["dual"], entry.state["reset"] > 0
        current = duals[was_reset] if was_reset.any() else duals
        points.append((entry.index, auc, float(np.linalg.norm(current.sum(axis=0)))))
    rounds_, aucs, sums = np.array(points).T
    return Poisoning(rounds=rounds_, auc=aucs, dual_sum=sums)


def _sample(detection: Detection, chosen: np.ndarray) -> Array:
    """At most a few thousand records, evenly spaced, so that a curve costs little."""
    rows = np.flatnonzero(chosen)
    if len(rows) > _RECORDS:
        rows = rows[np.linspace(0, len(rows) - 1, _RECORDS).astype(int)]
    return detection.records[rows]
