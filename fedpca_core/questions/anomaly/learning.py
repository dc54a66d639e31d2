"""How near the rules come to centralised PCA, round by round and along one setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.anomaly.evaluation import area, score
from fedpca_core.metrics import admm as progress
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task
from fedpca_core.questions.anomaly.trained import LEARNING, Topic, detector, run
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, Measured, OwnData, Sweep, Swept, stacked

#: Every client's state of every round is held for the Lagrangian, so long runs are cut there.
FULL_ROUNDS = 300
_POINTS = 60


@dataclass(frozen=True, eq=False)
class Learnt:
    """Convergence of the variants, and the progress measure of the configured method."""

    facts: TaskFacts
    #: Ratio of the eigenvalues of S at the cut (simulation only).
    gap: float
    #: method, round, excess_loss, distance (simulation only).
    approach: pd.DataFrame
    #: Columns of `fedpca_core.metrics.admm.frame` (simulation only); None until it is there, or
    #: where the run is too large to be held.
    progress: pd.DataFrame | None = None


class Learning(Topic[Learnt]):
    """The corrected and the printed rules from the same start."""

    key = "learning"
    title = "Learning"
    opened_by = ("view", "learning")
    runs = 2
    recorded = True

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Learnt]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        values, k = on.problem.eigenvalues, settings.components
        facts, gap = TaskFacts.of(on), float(values[k - 1] / max(values[k], 1e-300))
        approach = pd.DataFrame()
        for (name, algorithm), share in in_turn(variants(settings).items(), 0.0, 0.8):
            one = run(settings, algorithm, on.problem, Channel(), text=f"Running {name}")
            trace = yield from part(one, *share)
            found = progress.approach(trace, on.problem)[["round", "excess_loss", "distance"]]
            approach = stacked([approach, {"method": name, **found}])
            yield Step(share[1], "Running the next", Learnt(facts, gap, approach))
        rounds, text = min(settings.rounds, FULL_ROUNDS), "Reading the augmented Lagrangian"
        kept: dict[str, Any] = {"rounds": rounds, "record": "full", "text": text}
        last = run(settings, settings.algorithm(), on.problem, Channel(), **kept)
        trace = yield from part(last, 0.8, 0.95)
        if trace.states is None:
            return Learnt(facts, gap, approach)
        yield Step(0.95, text)
        every = max(1, trace.rounds // _POINTS)
        return Learnt(facts, gap, approach, progress.frame(trace, on.problem, every=every))


def variants(settings: AnomalySettings) -> dict[str, ConsensusADMM]:
    """The corrected and the printed rules with the settings' parameters, by name."""
    fedpg = replace(settings, method="fedpg", average="mean", projection="stiefel")
    return {
        "FedPG, corrected": fedpg.algorithm(),
        "FedPE, corrected": replace(fedpg, method="fedpe").algorithm(),
        "FedPG, printed average": replace(fedpg, average="printed").algorithm(),
        "FedPG, printed projection": replace(fedpg, projection="printed").algorithm(),
    }


class Sweeps(Sweep[AnomalySettings]):
    """AUC of the federated and the centralised subspace and of the length, distance, and time.

    Series ``federated`` (``auc distance excess_loss seconds``), ``centralised`` and ``norm``
    (``auc``); no AUC without labels.
    """

    key = "detection-sweep"
    title = "Sweep"
    opened_by = ("view", "sweeps")
    axes: ClassVar[Mapping[str, Sequence[Value]]] = {
        "penalty_factor": (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
        "components": (1, 2, 3, 4, 6, 8, 10, 12, 16, 20),
        "clients": (20, 40, 60, 100, 140, 200, 300),
        "local_steps": (1, 2, 5, 10, 20, 30, 50),
    }
    reads = TASK | LEARNING | NOISE | {"sweep", "seeds"}
    seconds = 300.0

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        points = [self.at(settings, value, settings.seed) for value in self.values(settings)]
        every = [costs.detection(one, data, runs=len(self.seeds(settings))) for one in points]
        return Cost(max(one.megabytes for one in every), sum(one.seconds for one in every))

    def seeds(self, settings: AnomalySettings) -> Sequence[int]:
        return range(settings.seed, settings.seed + settings.seeds)

    def measure(self, settings: AnomalySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        on = noisy_task(settings, data)
        trace = yield from run(settings, settings.algorithm(), on.problem, Channel(dtype="float32"))
        near = progress.approach(trace, on.problem).iloc[-1]
        federated = {
            "distance": float(near["distance"]),
            "excess_loss": float(near["excess_loss"]),
            "seconds": float(trace.seconds[-1]),
        }
        if not on.source.labelled:
            return {"federated": federated}
        found = {
            "federated": {"auc": area(on.attack, score(on.records, trace.estimate))} | federated
        }
        for name in ("centralised", "norm"):
            baseline = yield from detector(name, settings, data)
            found[name] = {"auc": area(on.attack, baseline.scores)}
        return found


def best(swept: Swept, measure: str, *, lowest: bool = False) -> tuple[float, float]:
    """Where the federated method's median is highest (or lowest), and that median."""
    band = swept.band("federated", measure)
    at = int(np.nanargmin(band.middle) if lowest else np.nanargmax(band.middle))
    return float(band.x[at]), float(band.middle[at])
