"""FedPower's Figures 3 and 4 as presets, with the verdict our runs support.

Figure 3 (Model I) reproduces. Figure 4 (Model II) does not: at the noise the paper's own theorem
asks for, every curve stays at distance 1. A variant with many networks a machine and the exact
calibration shows the published picture, and is offered beside it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.errors import require_known
from fedpca_core.privacy import product_noise
from fedpca_core.problems.fedpower_models import block_model, spiked_covariance
from fedpca_core.problems.problem import Problem
from fedpca_core.settings import said_in

#: Common to all panels (the paper): T, delta, and the values swept one at a time.
PRODUCTS, DELTA = 10, 1e-4
PERIODS, EPSILONS, DRAWS = (1, 2, 4), (10.0, 1.0, 0.5), (20, 12, 8)
CLIENTS = 20


@dataclass(frozen=True)
class Size:
    """Features, and records of each client."""

    features: int
    samples: int


@dataclass(frozen=True)
class Model:
    """A model at the paper's size and at one that answers at once with the same picture.

    Live sizes keep the ratio of averaged noise to eigengap, which decides where curves end.
    """

    title: str
    #: components, columns: k and r.
    components: int
    columns: int
    #: mapping of {"paper", "live"} to Size.
    sizes: Mapping[str, Size]
    #: The problem of a size and a seed.
    draw: Callable[[Size, int], Problem]
    #: What one record is, where that needs saying beside an epsilon.
    record: str = ""


def _spiked(size: Size, seed: int) -> Problem:
    return spiked_covariance(features=size.features, samples=size.samples, seed=seed)


#: What a record of Model II is.
ROW_OF_A_NETWORK = (
    "A record is one row of a network's adjacency matrix. An undirected edge sits in two rows and "
    "changes the norms of both, so this ε protects rows: neither edges nor nodes."
)


def _of_blocks(words: str, networks: int, live: Size, **how: bool) -> Model:
    """Model II with so many networks a machine at the paper's size."""

    def draw(size: Size, seed: int) -> Problem:
        each = size.samples // size.features
        return block_model(size.features, networks=each, seed=seed, **how)

    sizes = {"paper": Size(1000, 1000 * networks), "live": live}
    return Model(f"Model II: block model, {words}", 2, 2, sizes, draw, ROW_OF_A_NETWORK)


#: Model II without the normalisation that its noise is calibrated to: a reading of Figure 4 with
#: similar curves, which the Papers page judges; nothing is private in it, so no page runs it.
RAW = "raw blocks"
#: Model II with a fair coin for every node's community, another reading.
COIN = "blocks by coin"
_SIZES_OF_MODEL_I = {"paper": Size(100, 100_000), "live": Size(40, 30_000)}
MODELS: Mapping[str, Model] = {
    "spiked": Model("Model I: spiked covariance", 4, 5, _SIZES_OF_MODEL_I, _spiked),
    "blocks": _of_blocks("one network a machine", 1, Size(300, 2 * 300)),
    "many blocks": _of_blocks("many networks a machine", 64, Size(150, 164 * 150)),
    RAW: _of_blocks("rows as they are", 1, Size(300, 2 * 300), normalised=False),
    COIN: _of_blocks("communities by coin", 1, Size(300, 2 * 300), coin=True),
}


@dataclass(frozen=True)
class Variant:
    """One curve of a panel: what is varied, everything else at the paper's default.

    An infinite epsilon is a run without noise.
    """

    label: str
    period: int = 2
    epsilon: float = 0.5
    draws: int | None = None
    alignment: bool = True


@dataclass(frozen=True)
class FigurePanel:
    #: key, title, menu: ``menu`` is its name in the list of figures, and in links.
    key: str
    title: str
    menu: str
    #: Key of `MODELS`.
    model: str
    variants: tuple[Variant, ...]
    #: {"published", "exact"}.
    calibration: str
    #: What our runs say about it.
    verdict: str


#: Curves of a panel, by what they vary.
_VARIED: Mapping[str, tuple[Variant, ...]] = {
    "period": tuple(Variant(f"p = {p}", period=p) for p in PERIODS),
    "epsilon": tuple(Variant(f"ε = {e:g}", epsilon=e) for e in EPSILONS),
    "draws": (
        Variant("all machines"),
        *(Variant(f"K = {k} with replacement", draws=k) for k in DRAWS),
    ),
    "quiet": tuple(Variant(f"p = {p}, no noise", period=p, epsilon=math.inf) for p in PERIODS),
}


def _read() -> Iterator[FigurePanel]:
    file = said_in("papers/fedpower_figures")
    for key, said in file.items():
        one = {"verdict_of": key, **said}
        verdict = " ".join(file[one.pop("verdict_of")]["verdict"].split())
        yield FigurePanel(key, variants=_VARIED[one.pop("vary")], **one | {"verdict": verdict})


FIGURES: tuple[FigurePanel, ...] = tuple(_read())


def figure(key: str) -> FigurePanel:
    """The preset with this key ("3a" to "4e")."""
    known = {entry.key: entry for entry in FIGURES}
    require_known("figure", key, known)
    return known[key]


#: The panels of Figure 4 that the paper has.
MODEL_II = ("4a", "4b", "4c")


def panels(word: str, *keys: str, model: str = "", **changed: Any) -> Iterator[FigurePanel]:
    """Panels under a reading, ``word``: on another model, or with every curve changed."""
    for one in map(figure, keys):
        curves = tuple(replace(curve, **changed) for curve in one.variants)
        named = replace(one, key=f"{one.key} {word}", variants=curves, verdict="")
        yield replace(named, model=model or one.model)


def algorithm(
    entry: FigurePanel, variant: Variant, samples: int, products: int = PRODUCTS
) -> FedPower:
    """FedPower as one curve of a panel runs it, with clients of so many records."""
    model = MODELS[entry.model]
    noise = 0.0
    if math.isfinite(variant.epsilon):
        budget = variant.epsilon, DELTA, products
        noise = float(product_noise(entry.calibration, *budget, model.columns, samples))
    return FedPower(
        components=model.components,
        columns=model.columns,
        products=products,
        period=variant.period,
        noise=noise,
        draws=variant.draws,
        alignment=variant.alignment,
    )
