"""One malicious client: what it does to detection, and which server rule heals.

The attacker is a generous one: it knows the direction that hides its kind of attack and the other
uploads of the round, and sends whatever makes the plain average equal to its target. The honest
clients' duals absorb the lie, so ``sum_i Y_i`` no longer vanishes and the limit stays biased after
the attacker has left, until the duals are reset or the server's average forgets by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.anomaly.evaluation import area
from fedpca_core.anomaly.scores import score
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import polar
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.traffic import Detection
from fedpca_core.protocol.algorithm import Algorithm, Plan, Reply, ServerState, Setting
from fedpca_core.protocol.channel import Inbox
from fedpca_core.protocol.simulate import Simulation
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
class Poisoned(Algorithm):
    """An algorithm in which some clients lie for a while.

    Parameters
    ----------
    honest : ConsensusADMM
        What everybody else runs.
    malicious : tuple of int
        The lying clients.
    direction : (features,) float64
        Unit vector that shall enter the model in place of its weakest direction.
    first, last : int
        Rounds between which they lie, whenever they are drawn.
    """

    title: ClassVar[str] = "FedPG with malicious clients"
    reuses_uploads: ClassVar[bool] = False
    honest: ConsensusADMM
    malicious: tuple[int, ...]
    direction: Array
    first: int
    last: int
    components: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", self.honest.components)

    def start(
        self, client_data: ClientData, setting: Setting, streams: Streams
    ) -> tuple[ServerState, Arrays]:
        return self.honest.start(client_data, setting, streams)

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return self.honest.plan(server, round_, setting, streams)

    def client(
        self,
        client_data: ClientData,
        clients: Arrays,
        plan: Plan,
        downlink: Arrays,
        streams: Streams,
    ) -> tuple[Arrays, Arrays]:
        uplink, state = self.honest.client(client_data, clients, plan, downlink, streams)
        lying = np.isin(plan.participants, self.malicious)
        if not lying.any() or not self.first <= plan.round <= self.last:
            return uplink, state
        name, uploads = next(iter(uplink.items()))
        target = self.target(client_data.only(np.flatnonzero(lying)), polar(downlink["frame"]))
        forged = uploads.copy()
        missing = len(uploads) * target - uploads[~lying].sum(axis=0)
        forged[lying] = missing / int(lying.sum())
        return {name: forged}, state

    def target(self, client_data: ClientData, frame: Array) -> Array:
        """The frame with its direction of least energy, for the liars, replaced."""
        energy = np.mean(frame.T @ client_data.apply(frame), axis=0)
        weakest = np.linalg.eigh(energy)[1][:, 0]
        outside = self.direction - frame @ (frame.T @ self.direction)
        length = float(np.linalg.norm(outside))
        if length < 1e-3:  # it is in the model already
            return frame
        kept = frame - np.outer(frame @ weakest, weakest)
        return np.asarray(kept + np.outer(outside / length, weakest))

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return self.honest.server(server, inbox, plan)

    def finish(
        self, client_data: ClientData, clients: Arrays, plan: Plan, feedback: Arrays
    ) -> Arrays:
        return self.honest.finish(client_data, clients, plan, feedback)

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return self.honest.estimate(server, clients)

    def frames(self, server: ServerState, clients: Arrays) -> Array:
        return self.honest.frames(server, clients)


@dataclass(frozen=True, eq=False)
class Poisoning:
    """Detection of one attack type over a poisoned run.

    Attributes
    ----------
    rounds : (points,) int64
    auc : (points,) float64
        AUC of the hidden attack type against normal records.
    others : (points,) float64
        Mean AUC of the other attack types.
    dual_sum : (points,) float64
        ``||sum_i Y_i||_F`` (simulation only).
    """

    rounds: Array
    auc: Array
    others: Array
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
    groups = {name: _sample(detection, detection.types == name) for name in ("normal", *types)}
    direction = hiding_direction(groups[hidden], detection.problem.target(components))
    algorithm = Poisoned(honest, tuple(range(malicious)), direction, first, last)
    run = Simulation(
        detection.problem, algorithm, rounds=rounds, participation=participation, seed=seed
    )
    labels = {
        name: np.repeat([False, True], [len(groups["normal"]), len(groups[name])]) for name in types
    }
    duals = np.zeros((clients, detection.problem.features, components))
    was_reset = np.zeros(clients, dtype=bool)
    points: list[tuple[float, ...]] = []
    for entry in run:
        if entry.index:
            exchange = run.mailbox.exchanges[-1]
            present = exchange.participants
            assert exchange.feedback is not None and entry.frames is not None
            if honest.dual_reset and entry.index >= honest.dual_reset:
                duals[present[~was_reset[present]]] = 0.0
                was_reset[present] = True
            gap = entry.frames[present] - exchange.feedback["frame"]
            duals[present] += float(exchange.downlink["penalty"]) * gap
        if entry.index % every and entry.index != rounds:
            continue
        normal = score(groups["normal"], entry.estimate)
        auc = {
            name: area(labels[name], np.concatenate([normal, score(groups[name], entry.estimate)]))
            for name in types
        }
        # Clients not drawn since the reset still hold an old Y_i, which they will never use.
        current = duals[was_reset] if was_reset.any() else duals
        rest = [value for name, value in auc.items() if name != hidden]
        points.append(
            (
                entry.index,
                auc[hidden],
                float(np.mean(rest)) if rest else float("nan"),
                float(np.linalg.norm(current.sum(axis=0))),
            )
        )
    table = np.array(points)
    return Poisoning(rounds=table[:, 0], auc=table[:, 1], others=table[:, 2], dual_sum=table[:, 3])


def _sample(detection: Detection, chosen: np.ndarray) -> Array:
    """At most a few thousand records, evenly spaced, so that a curve costs little."""
    rows = np.flatnonzero(chosen)
    if len(rows) > _RECORDS:
        rows = rows[np.linspace(0, len(rows) - 1, _RECORDS).astype(int)]
    return detection.records[rows]
