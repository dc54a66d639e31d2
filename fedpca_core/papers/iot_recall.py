"""Table I once more: at the printed recall, and as the authors' public scripts have FedPG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.evaluation import area_pair, evaluate
from fedpca_core.anomaly.scores import score
from fedpca_core.anomaly.thresholds import best_for_labels
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.papers.iot import TABLE_I
from fedpca_core.papers.iot_runs import DATA, READINGS
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.anomaly.topic import told
from fedpca_core.questions.anomaly.trained import detector
from fedpca_core.steps import Part, Step

#: What the authors' public scripts have where the paper names nothing: rank, rounds and the length
#: of a step; the first basis is uniform, every client standardises by its own moments. The penalty
#: is the paper's, and so are its clients.
SCRIPTS = "public scripts"
SCRIPT_RANK, SCRIPT_ROUNDS, SCRIPT_STEP, PENALTY = 2, 20, 1e-4, 1.0
_ENCODERS = {"FedAE": "fedae", "FedAE-2": "fedae-2"}
_ALONE = "Self-learning PCA, own quantile"


class AtRecall(Experiment):
    """Table I where our threshold gives the printed recall, and FedPG as the scripts have it.

    A row of the table is one point of a method's ROC curve: the printed one lies on ours where the
    precision agrees at the printed recall.
    """

    source = "iot"
    measure, varied = "precision_at_recall", "setting"
    sizes = ("paper",)

    def __init__(self, data: str) -> None:
        self.data = data
        self.key = f"iot-recall-{data}"
        self.title = f"Table I on {DATA[data]} at the printed recall"

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        converged, fields = next(iter(READINGS[self.data].items()))
        script = {
            "rank": SCRIPT_RANK, "rounds": SCRIPT_ROUNDS, "step": SCRIPT_STEP, "penalty": PENALTY
        }  # fmt: skip
        return [
            Cell(part, series, seed, {"data": self.data, **given})
            for seed in range(seeds)
            for part, series, given in (
                (SCRIPTS, "FedPG", script),
                *(
                    (converged, name, fields)
                    for name in ("Norm only", "FedPE", "FedPG", *_ENCODERS)
                ),
                (converged, _ALONE, fields),
            )
        ]

    def described(self, size: Size) -> str:
        return (
            "100 clients of whom 10% take part in a round; public scripts: rank "
            f"{SCRIPT_RANK}, {SCRIPT_ROUNDS} rounds of ten steps of {SCRIPT_STEP:g}, a uniform "
            "start, every client standardised by its own moments"
        )

    def needs(self, size: Size) -> tuple[str, ...]:
        return (self.data,)

    def live(self) -> AnomalySettings:
        return self._settings(0)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: reading the records")
        settings = self._settings(cell.seed)
        if cell.part == SCRIPTS:
            on = task(replace(settings, standardising="local"))
            basis = as_in_the_scripts(on, cell.seed)
            away = float(np.linalg.norm(remove_span(basis, on.problem.target(SCRIPT_RANK))))
            distance = Number(cell.series, "distance", away / SCRIPT_RANK**0.5)
            return [*self._rates(on, cell.series, score(on.records, basis)), distance]
        on = task(settings)
        if cell.series == _ALONE:
            alone = detectors.self_learning(on, settings.components, clients=settings.clients)
            found = yield from told(alone, cell.name)
            return [Number(_ALONE, name, 100 * rate) for name, rate in found.own_quantile.items()]
        if cell.series == "Norm only":
            return self._rates(on, cell.series, detectors.norm_only(on).scores)
        key = cell.series.lower()
        method = replace(settings, method=key) if key not in _ENCODERS.values() else settings
        one = yield from detector(_ENCODERS.get(cell.series, "federated"), method)
        return self._rates(on, cell.series, one.scores)

    def _rates(self, on: DetectionTask, series: str, scores: Array) -> list[Number]:
        """At the threshold that suits the labels best, and precision at the printed recall."""
        printed = TABLE_I[self.data].get(series, TABLE_I[self.data]["FedPG"])
        areas = area_pair(on.attack, scores)
        best = evaluate(on.attack, scores, best_for_labels(on.attack, scores), areas)
        level = float(np.quantile(scores[on.attack == 1], 1 - printed.recall / 100))
        there = evaluate(on.attack, scores, level, areas)
        return [
            Number(series, "auc", areas[0]),
            Number(series, "average_precision", areas[1]),
            *(Number(series, name, 100 * rate) for name, rate in best.rates().items()),
            Number(series, "precision_at_recall", 100 * there.precision),
        ]

    def _settings(self, seed: int) -> AnomalySettings:
        fields = dict(next(iter(READINGS[self.data].values())))
        return AnomalySettings(problem=self.data, rule="oracle", seed=seed, **fields)  # type: ignore[arg-type]


def as_in_the_scripts(on: DetectionTask, seed: int) -> Array:
    """The basis that FedPG ends with at the settings of the authors' public scripts.

    Returns
    -------
    (features, components) float64
    """
    largest = float(on.problem.client_data.spectral_norms().mean())
    method = FedPG(
        SCRIPT_RANK,
        penalty_factor=PENALTY / largest,
        step_factor=SCRIPT_STEP * (2 * largest + PENALTY),
        initial="uniform",
    )
    run = simulate(
        on.problem,
        method,
        rounds=SCRIPT_ROUNDS,
        participation=0.1,
        seed=seed,
        channel=Channel(dtype="float32", record="estimates"),
    )
    return run.estimate
