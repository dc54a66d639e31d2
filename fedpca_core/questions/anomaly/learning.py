"""How near the corrected and the printed rules come to centralised PCA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.metrics import admm as progress
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task
from fedpca_core.questions.anomaly.topic import LEARNING, Topic
from fedpca_core.questions.anomaly.trained import run
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

#: Every client's state of every round is held for the Lagrangian, so long runs are cut there.
FULL_ROUNDS = 300
_POINTS = 60


@dataclass(frozen=True, eq=False)
class Learnt:
    """Convergence of the variants, and the progress measure of the configured method.

    Attributes
    ----------
    facts : TaskFacts
    gap : float
        Ratio of the eigenvalues of S at the cut (simulation only).
    approach : mapping of variant to a table with columns ``round excess_loss distance``
        Simulation only.
    progress : pandas.DataFrame or None
        Columns of `fedpca_core.metrics.admm.frame` (simulation only); None until it is there, or
        where the run is too large to be held.
    """

    facts: TaskFacts
    gap: float
    approach: Mapping[str, pd.DataFrame]
    progress: pd.DataFrame | None = None


class Learning(Topic[Learnt]):
    """The corrected and the printed rules from the same start."""

    key: ClassVar[str] = "learning"
    title: ClassVar[str] = "Learning"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "learning")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=2, recorded=True)

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Learnt]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        values, k = on.problem.eigenvalues, settings.components
        facts, gap = TaskFacts.of(on), float(values[k - 1] / max(values[k], 1e-300))
        works = variants(settings)
        tables: dict[str, pd.DataFrame] = {}
        for index, (name, algorithm) in enumerate(works.items()):
            share = index / (len(works) + 1), (index + 1) / (len(works) + 1)
            one = run(settings, algorithm, on.problem, Channel(), text=f"Running {name}")
            trace = yield from part(one, *share)
            tables[name] = progress.approach(trace, on.problem)
            yield Step(share[1], "Running the next", Learnt(facts, gap, dict(tables)))
        rounds = min(settings.rounds, FULL_ROUNDS)
        last = run(
            settings,
            settings.algorithm(),
            on.problem,
            Channel(),
            rounds=rounds,
            record="full",
            text="Reading the augmented Lagrangian",
        )
        trace = yield from part(last, len(works) / (len(works) + 1), 0.95)
        if trace.states is None:
            return Learnt(facts, gap, tables)
        yield Step(0.95, "Reading the augmented Lagrangian")
        every = max(1, trace.rounds // _POINTS)
        return Learnt(facts, gap, tables, progress.frame(trace, on.problem, every=every))

    def tables(self, result: Learnt, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        parts = [table.assign(method=name) for name, table in result.approach.items()]
        approach = pd.concat(parts, ignore_index=True)
        found = {"approach": approach[["method", "round", "excess_loss", "distance"]]}
        return found if result.progress is None else found | {"progress": result.progress}


def variants(settings: AnomalySettings) -> dict[str, ConsensusADMM]:
    """The corrected and the printed rules with the settings' parameters, by name."""
    fedpg = replace(settings, method="fedpg", average="mean", projection="stiefel")
    return {
        "FedPG, corrected": fedpg.algorithm(),
        "FedPE, corrected": replace(fedpg, method="fedpe").algorithm(),
        "FedPG, printed average": replace(fedpg, average="printed").algorithm(),
        "FedPG, printed projection": replace(fedpg, projection="printed").algorithm(),
    }
