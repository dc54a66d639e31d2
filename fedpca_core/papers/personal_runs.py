"""PerPCA's figures as cells: personalised PCA in three variants, training alone, one shared model.

A cell's seed draws its data set. The number that the captions print as a variance is read as a
standard deviation, unless an experiment says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from fedpca_core.algorithms.personal_rivals import LocalTraining
from fedpca_core.metrics import personal as metrics
from fedpca_core.papers.experiment import Cell, Experiment, Number, Piece, Size
from fedpca_core.papers.presets import FIGURES, OTHERWISE
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import data_scale
from fedpca_core.protocol import Setting, Start
from fedpca_core.questions.personalise.settings import ALONE, SHARED, PersonaliseSettings
from fedpca_core.questions.personalise.study import until_settled
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams

PERSONAL_PCA, ALONE_WORDS, SHARED_WORDS = "Personalised PCA", "Training alone", "One shared model"
#: Variants of personalised PCA: what is changed in the settings.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    PERSONAL_PCA: {},
    f"{PERSONAL_PCA}, gradient as printed": {"gradient": "printed"},
    f"{PERSONAL_PCA}, calibrated prior": {"prior": "calibrated"},
}
BASELINES: Mapping[str, str] = {ALONE_WORDS: ALONE, SHARED_WORDS: SHARED}
#: Values at live size, and the most clients there.
LIVE: Mapping[str, tuple[float, ...]] = {
    "round": (0.2,),
    "heterogeneity": (0.03, 0.15, 0.25, 0.5, 1.0),
    "samples": (5, 20, 80, 320),
    "clients": (5, 20, 50),
}
LIVE_CLIENTS = 30
#: Rounds of a run over rounds, and the most of one that is run until it settles.
LONG, LONGEST = 600, 400
#: Rounds over which a run must have settled.
OVER = 20
#: Arrived: so much of the way from the first error to the last is left. A share of the way, since
#: small errors with a slow tail stay far from their end by a share of themselves.
NEAR = 0.01


@dataclass(frozen=True)
class FixedRate(LocalTraining):
    """Training alone with steps of ``step``, whatever the curvature."""

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, clients = super().start(data, setting, streams)
        return server, {**clients, "step": np.full(setting.clients, self.step)}


class Collaborating(Experiment):
    """One figure, or one that is run otherwise: errors by round, or where runs end."""

    source = "perpca"
    x_title, y_title = "communication round", "error over the unavoidable noise"

    def __init__(self, figure: str, reading: str = "std", word: str = "") -> None:
        self.figure, self.reading = FIGURES[figure], reading
        self.other = OTHERWISE.get(word, {})
        literal = reading == "literal"
        self.key = figure + f"-{word}" * bool(word) + "-literal" * literal
        titles = self.figure.title, self.other.get("title", ""), "read literally" * literal
        self.title = ", ".join(filter(None, titles))
        self.varied = "heterogeneity" if self.figure.axis == "round" else self.figure.axis
        self.measure = self.figure.settings.error_on

    def pieces(self, size: Size) -> Iterable[Piece]:
        names = ("features", "components", "clients", "samples", "heterogeneity", "reading")
        for value in self._values(size):
            settings = self._settings(size, value, 0)
            for series in (*VARIANTS, *BASELINES):
                on = {name: getattr(settings, name) for name in names}
                yield f"{value:g}", series, on | dict(self.other)

    def described(self, size: Size) -> str:
        c = self._settings(size, self._values(size)[0], 0)
        return (
            f"{c.features} features, {c.components} components, {c.clients} clients with "
            f"{c.samples} records, heterogeneity {c.heterogeneity:g} as a "
            f"{'variance' if self.reading == 'literal' else 'standard deviation'}; {self.varied} "
            f"from {min(self._values(size)):g} to {max(self._values(size)):g}"
        )

    def live(self) -> PersonaliseSettings:
        return replace(self.figure.settings, reading=self.reading)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: drawing the clients")
        settings = self._settings(size, float(cell.part), cell.seed)
        problem, rounds = settings.build(), self.figure.axis == "round"
        if cell.series in BASELINES and not rounds:
            best = metrics.oracles(problem)["local" if cell.series == ALONE_WORDS else "global"]
            fresh = float(metrics.fresh_ratios(best, problem).mean())
            training = float(metrics.training_ratios(best, problem).mean())
            return Number.each(cell.series, {"fresh": fresh, "training": training})
        lengths = self.other.get("lengths", [LONG if rounds else LONGEST])
        over = lengths[-1] + 1 if rounds else OVER
        tried = {}
        for rate in self.other.get("rates", {}).get(cell.part, [0.0]):
            curves: dict[str, list[float]] = {"fresh": [], "training": []}
            algorithm = self._at(rate, settings, cell.series, problem.client_data)
            for entry, fresh in until_settled(problem, algorithm, lengths[-1], cell.seed, over):
                curves["fresh"].append(fresh)
                errors_there = metrics.training_ratios(entry.estimate, problem)
                curves["training"].append(float(errors_there.mean()))
                if entry.index % 10 == 0:
                    yield Step(entry.index / lengths[-1], f"{cell.name}: round {entry.index}")
            tried[rate] = curves
        ends = {rate: one["training"][-1] for rate, one in tried.items()}
        rate = max(one for one, end in ends.items() if end <= min(ends.values()) + NEAR)
        numbers = [Number(cell.series, f"rate, {cell.part}", rate)] if len(tried) > 1 else []
        for (measure, errors), length in product(tried[rate].items(), lengths):
            some, words = errors[: length + 1], f", {length} rounds" * (len(lengths) > 1)
            left = np.abs(np.asarray(some) - some[-1])
            arrived = int(np.argmax(left <= NEAR * left[0]))
            found = {measure + words: some[-1], f"{measure}_rounds{words}": float(arrived)}
            numbers += Number.each(cell.series, found)
        if cell.seed == 0 and rounds:
            numbers += Number.curve(cell.series, self.y_title, tried[rate][self.measure], 60)
        return numbers

    def _at(self, rate: float, settings: PersonaliseSettings, series: str, data: ClientData) -> Any:
        """A method at a learning rate; 0 stands for steps of ours."""
        start = self.other.get("start", "independent" if self.figure.axis == "round" else "pooled")
        if series in VARIANTS:
            chosen = _beyond(settings, **{"start_from": start, **VARIANTS[series]}).personalised()
            return replace(chosen, step=rate, centre_step=rate) if rate else chosen
        step = rate * float(data_scale(data.samples, settings.noise_variance)[0, 0, 0])
        if series == ALONE_WORDS:
            kind = FixedRate if rate else LocalTraining
            return kind(settings.components, step=step or 1.0, alike=start == "common")
        algorithm: Any = settings.methods()[BASELINES[series]]
        return replace(algorithm, step=step * data.pooled_norm()) if rate else algorithm

    def _values(self, size: Size) -> tuple[float, ...]:
        if size == "live" and self.figure.axis != "round":
            return LIVE[self.figure.axis]
        return self.other.get("values", self.figure.values)

    def _settings(self, size: Size, value: float, seed: int) -> PersonaliseSettings:
        """The settings of one value; the paper's clients are beyond what a page offers."""
        base = replace(self.figure.settings, reading=self.reading, seed=seed)
        if size == "live":
            base = replace(base, clients=min(base.clients, LIVE_CLIENTS))
        else:
            base = _beyond(base, clients=self.figure.paper_clients or base.clients)
        whole = int(value) if self.varied in ("samples", "clients") else value
        return _beyond(base, **{self.varied: whole})


def _beyond(settings: PersonaliseSettings, **values: object) -> PersonaliseSettings:
    """The same settings with values that the page's own limits would not allow."""
    changed = copy(settings)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed
