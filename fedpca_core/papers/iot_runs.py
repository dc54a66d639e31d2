"""The experiments on network traffic as cells: learning curves, and one setting varied.

The data are public files; where they are missing a cell says so. A cell's seed draws the start,
the participants and what is random in a rival; the split of the records is that of the seed, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedpca_core.anomaly.autoencoder import FEDAE, FEDAE_2, parameters
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.metrics import admm as progress
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.papers.iot_readings import DATA
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.questions.anomaly.learning import Sweeps
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.anomaly.trained import run as ran
from fedpca_core.steps import Part, Step
from fedpca_core.study.here import named

#: A run has arrived when its subspace is this close to centralised PCA's (root mean square sine).
NEAR = 0.1
#: Values of the sweeps.
VALUES: Mapping[str, Sequence[float]] = {
    "penalty_factor": (0.3, 1.0, 4.0, 16.0, 64.0),
    "components": (1, 2, 4, 8, 16),
    "clients": (20, 100, 200, 300),
}
#: Features of UNSW-NB15, and ranks at which uploads are compared.
FEATURES, UPLOADED = 39, (2, 14)
#: Local solves of a client in a run that is followed to its end, whatever its participation.
SOLVES: Mapping[Size, int] = {"paper": 500, "live": 200}
#: FedPG with one thing as printed, and the same corrected.
PRINTED_VARIANTS: Mapping[str, Mapping[str, object]] = {
    "projection as printed": {"projection": "printed", "participation": 1.0},
    "projection corrected": {"projection": "stiefel", "participation": 1.0},
    "average as printed": {"average": "printed"},
    "average corrected": {"average": "mean"},
    "50 local steps": {"local_steps": 50, "participation": 1.0},
}
_WORDS = {"penalty_factor": "penalty factor", "components": "rank", "clients": "clients"}


class Learning(Experiment):
    """Rounds until FedPG and FedPE are near centralised PCA, from both starts."""

    key, title, source = "iot-learning", "Loss against rounds", "iot"
    x_title, y_title = "communication round", "distance to centralised PCA (mean sine)"
    measure, varied = "rounds", "start"

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell(start, method, seed, {"size": size, "start": start})
            for seed in range(seeds)
            for start in ("orthonormal", "uniform")
            for method in ("FedPG", "FedPE")
        ]

    def described(self, size: Size) -> str:
        c = self._settings(size, "orthonormal", "fedpg", 0)
        return f"{DATA.get(c.problem, 'synthetic traffic')}, {c.clients} clients, rank 2"

    def needs(self, size: Size) -> tuple[str, ...]:
        return named(self._settings(size, "orthonormal", "fedpg", 0))

    def live(self) -> AnomalySettings:
        return replace(self._settings("live", "orthonormal", "fedpg", 0), topic="learning")

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: reading the records")
        settings = self._settings(size, cell.part, cell.series.lower(), cell.seed)
        on, wire = task(settings), Channel(dtype="float32")
        trace = yield from ran(settings, settings.algorithm(), on.problem, wire, text=cell.name)
        distances = progress.approach(trace, on.problem)["distance"].to_numpy()
        near = np.flatnonzero(distances <= NEAR)
        numbers = [Number(cell.series, "distance", float(distances[-1]))]
        if len(near):
            numbers.append(Number(cell.series, "rounds", float(near[0])))
        if cell.seed == 0:
            kept = np.unique(np.linspace(0, len(distances) - 1, 50).round().astype(int))
            numbers += [
                Number(cell.series, self.y_title, float(distances[i]), float(i)) for i in kept
            ]
        return numbers

    @staticmethod
    def _settings(size: Size, start: str, method: str, seed: int) -> AnomalySettings:
        return AnomalySettings(
            problem="ton" if size == "paper" else "synthetic",
            clients=100 if size == "paper" else 40,
            components=2,
            rounds=500,
            method=method,
            initial=start,
            seed=seed,
        )


class OneVaried(Experiment):
    """FedPG with one setting varied, the centralised subspace and the record's length beside it."""

    source = "iot"
    measure = "auc"

    def __init__(self, name: str) -> None:
        self.key, self.title = f"iot-{_WORDS[name].split()[0]}", f"Effect of the {_WORDS[name]}"
        self.name = self.varied = name

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell(f"{value:g}", "", seed, {"size": size, "varied": self.name, "value": value})
            for seed in range(seeds)
            for value in VALUES[self.name]
        ]

    def described(self, size: Size) -> str:
        return f"{'TON-IoT' if size == 'paper' else 'synthetic traffic'}, logarithms, rank 4"

    def needs(self, size: Size) -> tuple[str, ...]:
        return named(self._settings(size))

    def live(self) -> AnomalySettings:
        return replace(self._settings("live"), topic="sweeps", sweep=self.name)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        value = float(cell.part)
        chosen = value if self.name == "penalty_factor" else int(value)
        settings = Sweeps().at(self._settings(size), chosen, cell.seed)
        found = yield from Sweeps().measure(settings, settings.seed, None)
        return [
            Number(series, measure, result)
            for series, measures in found.items()
            for measure, result in measures.items()
        ]

    def _settings(self, size: Size) -> AnomalySettings:
        problem = "ton" if size == "paper" else "synthetic"
        return AnomalySettings(problem=problem, components=4, rounds=300, sweep=self.name)


class Bytes(Experiment):
    """Numbers in one upload of an autoencoder over those of FedPG. Arithmetic, no run."""

    key, title, source = "iot-bytes", "Numbers in one upload", "iot"
    measure, varied = "ratio", "rank"
    sizes = ("paper",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell(f"k = {rank}", rival, 0, {"rank": rank, "features": FEATURES, "hidden": hidden})
            for rank in UPLOADED
            for rival, hidden in (("FedAE", list(FEDAE)), ("FedAE-2", list(FEDAE_2)))
        ]

    def described(self, size: Size) -> str:
        return f"UNSW-NB15's {FEATURES} features, float32 on both sides"

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, cell.name)
        layers = (FEATURES, *cell.configuration["hidden"], FEATURES)
        subspace = FEATURES * int(cell.configuration["rank"])
        return [Number(cell.series, "ratio", parameters(layers) / subspace)]


class Printed(Experiment):
    """FedPG as printed and corrected: how far from centralised PCA it ends, and after how many
    rounds it is near.

    The paper states neither rounds nor a rule that ends them. Every client solves `SOLVES` times
    here, so that runs with few clients a round are followed as far as those with all.
    """

    key, title, source = "iot-printed", "FedPG as printed, and corrected", "iot"
    measure, varied = "distance", "variant"

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell("", name, seed, {"size": size, "solves": SOLVES[size], **fields})
            for seed in range(seeds)
            for name, fields in PRINTED_VARIANTS.items()
        ]

    def described(self, size: Size) -> str:
        return f"{Learning().described(size)}, {SOLVES[size]} local solves of every client"

    def live(self) -> AnomalySettings:
        return replace(
            Learning._settings("live", "orthonormal", "fedpg", 0), topic="learning",
            **PRINTED_VARIANTS["projection as printed"],  # type: ignore[arg-type]
        )  # fmt: skip

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        base = Learning._settings(size, "orthonormal", "fedpg", cell.seed)
        settings = replace(base, **PRINTED_VARIANTS[cell.series])  # type: ignore[arg-type]
        problem = task(settings).problem
        target = problem.target(settings.components)
        rounds = round(SOLVES[size] / settings.participation)
        run = stream(
            problem,
            settings.algorithm(),
            rounds=rounds,
            participation=settings.participation,
            seed=settings.seed,
            channel=Channel(dtype="float32", record="estimates"),
        )
        away = []
        for entry in run:
            away.append(float(np.linalg.norm(remove_span(entry.estimate, target))))
            if entry.index % 10 == 0:
                yield Step(entry.index / rounds, f"{cell.name}: round {entry.index}")
        distances = np.array(away) / settings.components**0.5
        numbers = [
            Number(cell.series, "distance", float(distances[-1])),
            Number(cell.series, "farthest", float(distances[len(distances) // 2 :].max())),
            Number(cell.series, "nearest", float(distances.min())),
        ]
        near = np.flatnonzero(distances <= NEAR)
        if len(near):
            numbers.append(Number(cell.series, "rounds", float(near[0])))
        return numbers
