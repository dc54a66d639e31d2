"""FedPower's experiments as cells: its figures, local steps, and its theorem's noise.

A cell's seed draws data, start and noise: the paper does not say how many data sets it used.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.papers.experiment import Cell, Experiment, Number, Piece, Size
from fedpca_core.papers.fedpower import (
    CLIENTS,
    DELTA,
    EPSILONS,
    FIGURES,
    MODELS,
    PRODUCTS,
    FigurePanel,
    Model,
    Variant,
    algorithm,
)
from fedpca_core.privacy import product_noise
from fedpca_core.privacy.calibration import exact_multiplier, published_multiplier, true_epsilon
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.privacy.build import traced
from fedpca_core.questions.privacy.error_budget import largest_drift
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.steps import Part, Step

#: Communications whose geometric mean error says which curve falls first.
EARLY = slice(1, 4)
#: Local products of the runs with fixed gaps, and the gaps.
FIXED_PRODUCTS, GAPS = 12, (1, 2, 4, 12)


@lru_cache(maxsize=1)  # the cells of one seed follow each other
def _drawn(model: str, size: Size, seed: int) -> Problem:
    return MODELS[model].draw(MODELS[model].sizes[size], seed)


def _ran(problem: Problem, run: FedPower, cell: Cell) -> Part[tuple[Trace, np.ndarray]]:
    """One run, and the sine of its largest angle after each communication."""
    wire = Channel(record="estimates")
    trace = yield from traced(problem, run, run.rounds, cell.seed, wire, cell.name)
    return trace, largest_sine(trace.estimates, problem.target(run.components))


def _words(model: Model, size: Size, products: int = PRODUCTS) -> str:
    chosen = model.sizes[size]
    return (
        f"{CLIENTS} clients with {chosen.samples:,} records of {chosen.features} features each, "
        f"{model.components} components, T = {products} local products, δ = {DELTA:g}"
    )


class Panels(Experiment):
    """Panels of Figure 3 or 4: where each curve ends, and how fast it falls."""

    source = "fedpower"
    x_title = "communication"
    y_title = "sine of the largest angle"
    measure, varied = "plateau", "panel"
    seed_by_seed = True

    def __init__(self, key: str, title: str, panels: Iterable[FigurePanel]) -> None:
        self.key, self.title, self.panels = key, title, tuple(panels)
        self.model = self.panels[0].model

    def pieces(self, size: Size) -> Iterable[Piece]:
        given = {"model": self.model, "size": str(MODELS[self.model].sizes[size])}
        for panel in self.panels:
            for variant in panel.variants:
                yield panel.key, variant.label, given | {"calibration": panel.calibration}

    def described(self, size: Size) -> str:
        return _words(MODELS[self.model], size)

    def live(self) -> PrivacySettings | None:
        first = self.panels[0]
        return PrivacySettings(view="figures", figure=first.key) if first in FIGURES else None

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: drawing the data")
        problem = _drawn(self.model, size, cell.seed)
        panel = next(one for one in self.panels if one.key == cell.part)
        variant = next(one for one in panel.variants if one.label == cell.series)
        run = algorithm(panel, variant, MODELS[self.model].sizes[size].samples)
        _, sines = yield from _ran(problem, run, cell)
        early = float(np.exp(np.log(sines[EARLY]).mean()))
        numbers = Number.each(cell.series, {"plateau": float(sines[-1]), "early": early})
        if cell.seed == 0:
            numbers += Number.curve(cell.series, self.y_title, sines.tolist(), len(sines))
        return numbers


class FixedGaps(Experiment):
    """Fixed gaps between communications, with and without alignment: where runs end, and drift."""

    key, title, source = "fedpower-gaps", "Local steps p = 1 … 12 and alignment", "fedpower"
    measure, varied = "final", "period"
    seed_by_seed = True

    def pieces(self, size: Size) -> Iterable[Piece]:
        given = {"size": str(MODELS["spiked"].sizes[size]), "products": FIXED_PRODUCTS}
        for period, epsilon in product(GAPS, (*EPSILONS[::2], float("inf"))):
            for words in ("aligned", "not aligned"):
                yield str(period), f"ε = {epsilon:g}, {words}", given

    def described(self, size: Size) -> str:
        return _words(MODELS["spiked"], size, FIXED_PRODUCTS)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: drawing the data")
        problem, samples = _drawn("spiked", size, cell.seed), MODELS["spiked"].sizes[size].samples
        budget, words = cell.series.split(", ")
        variant = Variant(budget, int(cell.part), float(budget.removeprefix("ε = ")))
        # As Figure 3 runs, but for these.
        run = algorithm(FIGURES[0], variant, samples, FIXED_PRODUCTS)
        run = replace(run, decay=False, alignment=words == "aligned")
        trace, sines = yield from _ran(problem, run, cell)
        drift = largest_drift(problem, trace)
        found = {"final": float(sines[-1]), "drift": drift}
        return Number.each(cell.series, found | {"drift_over_eta": drift / problem.heterogeneity})


class Noise(Experiment):
    """The noise of Theorem 6 beside the least that the same guarantee takes; nothing is drawn."""

    key, title, source = "fedpower-noise", "The noise of Theorem 6", "fedpower"
    measure, varied = "times_exact", "epsilon"
    sizes, exact = ("paper",), True

    def pieces(self, size: Size) -> Iterable[Piece]:
        require(size == "paper", "The noise does not depend on the size; use --paper-size.")
        for words, model in (("Model I", "spiked"), ("Model II", "blocks")):
            for epsilon in EPSILONS:
                yield f"{epsilon:g}", words, {"model": model, "epsilon": epsilon}

    def described(self, size: Size) -> str:
        return f"both models at the paper's size, T = {PRODUCTS} local products, δ = {DELTA:g}"

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, cell.name)
        model, epsilon = MODELS[str(cell.configuration["model"])], float(cell.part)
        samples = model.sizes["paper"].samples
        bought = epsilon, DELTA, PRODUCTS, model.columns, samples
        published, exact = (float(product_noise(kind, *bought)) for kind in ("published", "exact"))
        true = float(true_epsilon(published, DELTA, PRODUCTS, model.columns, samples))
        composed = published_multiplier(epsilon, DELTA, PRODUCTS)
        found = {
            "nu": published,
            "times_exact": published / exact,
            "times_composed": composed / exact_multiplier(epsilon, DELTA, PRODUCTS),
            "true_over_stated": true / epsilon,
        }
        return Number.each(cell.series, found)
