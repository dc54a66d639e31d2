"""Table I of the paper on FedPE and FedPG, at every setting and threshold that it leaves open.

Every method is run with the same settings and read at the same thresholds, so that none is granted
what another is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.anomaly.autoencoder import FEDAE, FEDAE_2, RATE, Network, training
from fedpca_core.anomaly.autoencoder import score as reconstruction_error
from fedpca_core.anomaly.bigan import BiGAN
from fedpca_core.anomaly.evaluation import area_pair, evaluate
from fedpca_core.anomaly.scores import for_labels, score
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import InvalidInput
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.papers.files import paper
from fedpca_core.papers.iot import TABLE_I
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.anomaly.trained import detector, told
from fedpca_core.steps import Part, Step

DATA = {"unsw": "UNSW-NB15", "ton": "TON-IoT"}
#: Settings by name. The public scripts have rank 2, steps of 1e-4 from a uniform start, and every
#: client standardises by its own moments; penalty and clients are the paper's.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "rank 2": {"transform": "none", "components": 2, "rounds": 1500},
    "rank 11": {"transform": "none", "components": 11, "rounds": 500},
    "public scripts": {
        "transform": "none", "components": 2, "rounds": 20, "standardising": "local"
    },
    "public scripts, 200 rounds": {
        "transform": "none", "components": 2, "rounds": 200, "standardising": "local"
    },
    "logarithms": {"transform": "log", "components": 6, "rounds": 300},
    "rank 11, own z-scores": {
        "transform": "none", "components": 11, "rounds": 500, "standardising": "local"
    },
    "rank 11, shuffled clients": {
        "transform": "none", "components": 11, "rounds": 500, "split": "iid"
    },
}  # fmt: skip
#: What else is tried of networks by name: readings that say what is changed in the training, and
#: the hidden layers of those with two and with four.
TRAININGS: Mapping[str, Mapping[str, Any]] = {
    one.name: one.changes
    for one in paper("iot").readings["table-1"]
    if one.reads.get("part") == one.name and one.name not in SETTINGS
}
SCRIPT_STEP, PENALTY = 1e-4, 1.0
#: Clients whose own subspaces are scored.
ALONE = 20
#: Kind of the networks, and which of two widths they have.
NETWORKS: Mapping[str, tuple[type[Network], int]] = {
    "FedAE": (Network, 0), "FedAE-2": (Network, 1), "FedBiGAN": (BiGAN, 0), "FedBiGAN-2": (BiGAN, 1)
}  # fmt: skip
_SUBSPACES = ("FedPE", "FedPG")


@dataclass(frozen=True)
class FixedStep(FedPE):
    """FedPE with steps of ``step_factor``, whatever the curvature."""

    def curvature(self, frames: Array, clients: Arrays) -> Array:
        """1 for every client."""
        return np.ones(len(frames))


class TableReadings(Experiment):
    """The methods of Table I that run here, at every setting, read at every threshold.

    Measures: the areas, and every rate "rate, threshold". Rates of clients' own subspaces are
    averaged, each at its own threshold.
    """

    source = "iot"
    sizes = ("paper",)

    def __init__(self, data: str) -> None:
        self.data = data
        self.key, self.title = f"iot-readings-{data}", f"Table I on {DATA[data]}, every reading"
        self.varied = "setting"

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell(part, series, seed, {"data": self.data, **fields})
            for seed in range(seeds)
            for part, fields in {**SETTINGS, **TRAININGS}.items()
            for series in (*_SUBSPACES, "Self-learning PCA", "Norm only", *NETWORKS)
            if (series in NETWORKS or part in SETTINGS)
            and (series in _SUBSPACES or "scripts" not in part)
        ]

    def described(self, size: Size) -> str:
        return (
            "100 clients of whom 10% take part in a round; of the clients' own subspaces "
            f"{ALONE}, evenly spaced"
        )

    def needs(self, size: Size) -> tuple[str, ...]:
        return (self.data,)

    def live(self) -> AnomalySettings:
        return self._settings(next(iter(SETTINGS)), 0)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: reading the records")
        settings = self._settings(cell.part, cell.seed)
        on = task(settings)
        if cell.series == "Self-learning PCA":
            _, frames = on.problem.client_data.top_eigenvectors(settings.components)
            chosen = np.unique(np.linspace(0, len(frames) - 1, ALONE).astype(int))
            found = []
            for position, client in enumerate(chosen):
                found.append(self._rates(on, cell.series, score(on.records, frames[client])))
                yield Step(position / len(chosen), f"{cell.name}: client {client}")
            rates = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        elif cell.series in _SUBSPACES and "scripts" in cell.part:
            try:
                basis = as_in_the_scripts(on, cell.series, settings.rounds, cell.seed)
            except InvalidInput:  # its fixed steps are too long for these data
                return [Number(cell.series, "diverged", 1.0)]
            rates = self._rates(on, cell.series, score(on.records, basis))
        elif cell.series in NETWORKS:
            kind, width = NETWORKS[cell.series]
            how = dict(TRAININGS.get(cell.part, {}))
            hidden = how.pop("hidden", (FEDAE, FEDAE_2))[width]
            network = kind(on.problem.features, hidden, how.pop("rate", RATE))
            run = training(on.problem, network, seed=cell.seed, **how)
            model = yield from told(run, cell.name)
            rates = self._rates(on, cell.series, reconstruction_error(model, on.records))
        elif cell.series == "Norm only":
            rates = self._rates(on, cell.series, score(on.records, None))
        else:
            one = yield from detector("federated", replace(settings, method=cell.series.lower()))
            rates = self._rates(on, cell.series, one.scores)
        return Number.each(cell.series, rates)

    def _rates(self, on: DetectionTask, series: str, scores: Array) -> dict[str, float]:
        areas = area_pair(on.attack, scores)
        printed = TABLE_I[self.data].get(series, TABLE_I[self.data]["FedPG"])
        found = {"auc": areas[0], "average_precision": areas[1]}
        for rule, level in for_labels(on.attack, scores, printed.recall).items():
            judged = evaluate(on.attack, scores, level, areas)
            found |= {f"{name}, {rule}": 100 * rate for name, rate in judged.rates().items()}
        return found

    def _settings(self, part: str, seed: int) -> AnomalySettings:
        fields = SETTINGS.get(part, SETTINGS["rank 2"])
        return AnomalySettings(problem=self.data, rule="oracle", seed=seed, **fields)


def as_in_the_scripts(on: DetectionTask, series: str, rounds: int, seed: int) -> Array:
    """The basis that a method ends with at the settings of the authors' public scripts.

    Returns (features, components) float64.
    """
    largest = float(on.problem.client_data.spectral_norms().mean())
    shared: dict[str, Any] = {"penalty_factor": PENALTY / largest, "initial": "uniform"}
    components = int(SETTINGS["public scripts"]["components"])
    method = (
        FixedStep(components, step_factor=SCRIPT_STEP, **shared)
        if series == "FedPE"
        else FedPG(components, step_factor=SCRIPT_STEP * (2 * largest + PENALTY), **shared)
    )
    run = simulate(
        on.problem,
        method,
        rounds=rounds,
        participation=0.1,
        seed=seed,
        channel=Channel(dtype="float32", record="estimates"),
    )
    return run.estimate
