"""FedPower's Figures 3 and 4 as presets, with the verdict our runs support.

Figure 3 (Model I) reproduces. Figure 4 (Model II) does not: at the noise the paper's own theorem
asks for, every curve stays at distance 1. A variant with many networks a machine and the exact
calibration shows the published picture, and is offered beside it. Rows left unnormalised would
also give similar curves, but then the noise protects nothing; that variant is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.privacy.calibration import Calibration
from fedpca_core.problems.block_model import block_model
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.spiked import spiked_covariance
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.studies.private.error_budget import communication_times

#: Common to all panels (the paper): T, delta, and the values swept one at a time.
PRODUCTS, DELTA = 10, 1e-4
PERIODS, EPSILONS, DRAWS = (1, 2, 4), (10.0, 1.0, 0.5), (20, 12, 8)
CLIENTS = 20

#: Told how far a computation has come; answers whether to go on.
Progress = Callable[[float, str], bool]


@dataclass(frozen=True)
class Model:
    """A model at paper size and at a size that answers at once with the same picture.

    Live sizes keep the ratio of averaged noise to eigengap, which decides where curves end.
    """

    title: str
    components: int
    columns: int
    paper: Callable[[int], Problem]
    live: Callable[[int], Problem]


MODELS: Mapping[str, Model] = {
    "spiked": Model(
        "Model I: spiked covariance",
        4,
        5,
        paper=lambda seed: spiked_covariance(seed=seed),
        live=lambda seed: spiked_covariance(features=40, samples=30_000, seed=seed),
    ),
    "blocks": Model(
        "Model II: block model, one network a machine",
        2,
        2,
        paper=lambda seed: block_model(seed=seed),
        live=lambda seed: block_model(nodes=300, networks=2, seed=seed),
    ),
    "many blocks": Model(
        "Model II: block model, many networks a machine",
        2,
        2,
        paper=lambda seed: block_model(networks=64, seed=seed),
        live=lambda seed: block_model(nodes=150, networks=164, seed=seed),
    ),
}


@dataclass(frozen=True)
class Setting:
    """One curve of a panel: what is varied, everything else at the paper's default."""

    label: str
    period: int = 2
    epsilon: float | None = 0.5
    draws: int | None = None


@dataclass(frozen=True)
class Figure:
    """One panel of Figure 3 or 4.

    Attributes
    ----------
    key, title : str
    model : str
        Key of `MODELS`.
    settings : tuple of Setting
    calibration : {"published", "exact"}
    verdict : str
        What our runs say about it.
    """

    key: str
    title: str
    model: str
    settings: tuple[Setting, ...]
    calibration: str
    verdict: str


_BY_PERIOD = tuple(Setting(f"p = {p}", period=p) for p in PERIODS)
_BY_EPSILON = tuple(Setting(f"ε = {e:g}", epsilon=e) for e in EPSILONS)
_BY_DRAWS = (
    Setting("all machines"),
    *(Setting(f"K = {k} with replacement", draws=k) for k in DRAWS),
)
_QUIET = tuple(Setting(f"p = {p}, no noise", period=p, epsilon=None) for p in PERIODS)

_FAILS = (
    "**Does not reproduce as described.** With rows normalised and the noise of Theorem 6 the "
    "averaged noise is 2.4 (ε = 10) to 49 (ε = 0.5) times the signal σ₂ at the paper's size, so "
    "every curve stays near 1 whatever p, ε and K. No reading of the text gave the orderly curves "
    "that the paper reports."
)

FIGURES: tuple[Figure, ...] = (
    Figure(
        "3a",
        "Figure 3(a): local products p",
        "spiked",
        _BY_PERIOD,
        "published",
        "**Reproduces.** At equal round numbers p = 4 is lowest, then p = 2, then p = 1; all "
        "three end on one plateau near 0.2, because the decaying schedule ends with single "
        "products.",
    ),
    Figure(
        "3b",
        "Figure 3(b): budget ε",
        "spiked",
        _BY_EPSILON,
        "published",
        "**Reproduces.** Plateaus near 0.01, 0.1 and 0.2, almost in proportion to 1/ε.",
    ),
    Figure(
        "3c",
        "Figure 3(c): machines drawn K",
        "spiked",
        _BY_DRAWS,
        "published",
        "**Reproduces, with a distinction.** Plateaus rise as K falls, about as 1/√m_eff. Drawing "
        "K = m with replacement is not full participation: about 36% of the machines are left "
        "out of a round and others count twice.",
    ),
    Figure(
        "3d",
        "Model I with exact noise (ours)",
        "spiked",
        _BY_EPSILON,
        "exact",
        "**Same guarantee, less noise.** Exact sensitivity and accounting lower the plateau "
        "about nine times at ε = 0.5.",
    ),
    Figure("4a", "Figure 4(a): local products p", "blocks", _BY_PERIOD, "published", _FAILS),
    Figure("4b", "Figure 4(b): budget ε", "blocks", _BY_EPSILON, "published", _FAILS),
    Figure("4c", "Figure 4(c): machines drawn K", "blocks", _BY_DRAWS, "published", _FAILS),
    Figure(
        "4d",
        "Model II without noise (ours)",
        "blocks",
        _QUIET,
        "published",
        "**The method works here when nothing is private.** p = 4 shows a shelf near 2e-3 at the "
        "paper's size while gaps are above 1: two kinds of machines, hence true local drift.",
    ),
    Figure(
        "4e",
        "Model II that works: many networks, exact noise (ours)",
        "many blocks",
        _BY_EPSILON,
        "exact",
        "**The published picture returns** with 64 networks of 1000 nodes a machine (64 000 rows "
        "instead of 1000) and the exact calibration: plateaus near 0.01, 0.07 and 0.13.",
    ),
)


def figure(key: str) -> Figure:
    """The preset with this key ("3a" to "4e")."""
    found = [entry for entry in FIGURES if entry.key == key]
    known = ", ".join(entry.key for entry in FIGURES)
    require(bool(found), f"There is no figure “{key}”; choose one of {known}.")
    return found[0]


def algorithm(entry: Figure, setting: Setting, samples: int) -> FedPower:
    """FedPower as one curve of a panel runs it, with clients of so many records."""
    model = MODELS[entry.model]
    noise = 0.0
    if setting.epsilon is not None:
        calibration = Calibration(
            entry.calibration, setting.epsilon, DELTA, PRODUCTS, model.columns
        )
        noise = float(calibration.noise(samples))
    return FedPower(
        components=model.components,
        columns=model.columns,
        products=PRODUCTS,
        period=setting.period,
        noise=noise,
        draws=setting.draws,
    )


@dataclass(frozen=True)
class Band:
    """Angles of repeated runs.

    Attributes
    ----------
    label : str
    times : (communications + 1,)
        Local products finished at each communication.
    sines : (repetitions, communications + 1) float64
    """

    label: str
    times: Array
    sines: Array

    @property
    def median(self) -> Array:
        """Median over the repetitions."""
        return np.asarray(np.median(self.sines, axis=0), dtype=float)

    @property
    def quartiles(self) -> tuple[Array, Array]:
        """Lower and upper quartile over the repetitions."""
        low, high = np.quantile(self.sines, [0.25, 0.75], axis=0)
        return low, high

    @property
    def plateau(self) -> float:
        """Median of the final angle."""
        return float(self.median[-1])


def angles(problem: Problem, run: FedPower, seeds: Sequence[int]) -> Array:
    """sin(theta_k) after every communication, one row for each seed."""
    from fedpca_core.linalg.stiefel import largest_sine

    target, quiet = problem.target(run.components), Channel(record="estimates")
    return np.stack(
        [
            largest_sine(
                simulate(problem, run, rounds=run.rounds, seed=seed, channel=quiet).estimates,
                target,
            )
            for seed in seeds
        ]
    )


def curves(
    entry: Figure,
    *,
    size: str = "live",
    data_seeds: Sequence[int] = (0,),
    repetitions: int = 10,
    progress: Progress = lambda fraction, text: True,
) -> Iterator[Band]:
    """The curves of a panel, one after the other.

    Parameters
    ----------
    size : {"live", "paper"}
    data_seeds : sequence of int
        Data sets; the paper does not say how many it used.
    repetitions : int
        Starts and noise draws on each data set.
    progress : callable
        Gets the fraction done and a text; answers False to stop.

    Raises
    ------
    InvalidInput
        Unknown size, no repetition.
    """
    require(size in ("live", "paper"), f"A figure has a live and a paper size, not {size!r}.")
    require(repetitions >= 1, f"At least 1 repetition is needed, not {repetitions}.")
    model = MODELS[entry.model]
    make = model.live if size == "live" else model.paper
    parts: dict[str, list[Array]] = {setting.label: [] for setting in entry.settings}
    total, done = len(data_seeds) * (1 + len(entry.settings)), 0
    for data_seed in data_seeds:
        if not progress(done / total, "Drawing the data"):
            return
        problem = make(data_seed)
        done += 1
        for setting in entry.settings:
            if not progress(done / total, setting.label):
                return
            run = algorithm(entry, setting, int(problem.client_data.samples[0]))
            seeds = [1000 * data_seed + index for index in range(repetitions)]
            parts[setting.label].append(angles(problem, run, seeds))
            done += 1
            if data_seed == data_seeds[-1]:
                times = communication_times(run).astype(float)
                yield Band(setting.label, times, np.concatenate(parts[setting.label]))


def utility(
    problem: Problem,
    run: FedPower,
    *,
    calibration: str,
    epsilons: Sequence[float],
    delta: float,
    clip_norm: float,
    seeds: Sequence[int],
    progress: Progress = lambda fraction, text: True,
) -> Array:
    """Final angle against the budget, (budgets, seeds); NaN where it was stopped."""
    finals = np.full((len(epsilons), len(seeds)), np.nan)
    fewest = float(problem.client_data.samples.mean())
    for index, epsilon in enumerate(epsilons):
        if not progress(index / len(epsilons), f"ε = {epsilon:g}, {calibration}"):
            break
        noise = Calibration(calibration, epsilon, delta, run.products, run.width, clip_norm).noise(
            fewest
        )
        finals[index] = angles(problem, replace(run, noise=float(noise)), seeds)[:, -1]
    return finals
