"""PerPCA's Figures 1(a)-(d) and 2(a)-(b): presets, and the values to expect.

Each figure exists at paper size and at a live size that answers at once. The paper does not print
its values; ``expected`` holds what these settings gave at paper size (spread read as a standard
deviation, 0.001 to 0.003 over data sets), so that a changed program is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from fedpca_core.algorithms.global_averaging import GlobalAveraging
from fedpca_core.algorithms.local_training import LocalTraining
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.metrics.personal import fresh_ratios, oracles, training_ratios
from fedpca_core.problems.personal import PersonalProblem, personal
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation

#: Methods of the figures, in the order of their legends.
METHODS = ("PersonalizedPCA", "LocalTraining", "GlobalAveraging")
_CONVERGED = 1e-6


@dataclass(frozen=True)
class Size:
    """How large a figure is run: clients, rounds of personalised PCA, data sets, axis values.

    ``pace`` multiplies the safe steps of personalised PCA; the live sizes hurry.
    """

    clients: int
    rounds: int
    datasets: int
    values: tuple[float, ...] = ()
    pace: float = 1.0


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    Attributes
    ----------
    axis : {"round", "spread", "samples", "clients"}
        What runs along the horizontal axis.
    measure : {"fresh", "training"}
    expected : mapping of method to values
        At the axis values of the paper size (for "round": the plateau); "calibrated" and "printed"
        are variants of personalised PCA.
    """

    name: str
    title: str
    axis: str
    features: int
    components: int
    samples: int
    spread: float
    paper: Size
    live: Size
    measure: str = "fresh"
    expected: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def size(self, name: str) -> Size:
        """The ``"paper"`` or ``"live"`` size."""
        require(
            name in ("paper", "live"), f"A figure has a 'paper' and a 'live' size, not {name!r}."
        )
        return self.paper if name == "paper" else self.live


_SPREADS = (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)
_SAMPLES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
_CLIENTS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0)

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure(
            "1a",
            "Error against rounds",
            "round",
            30,
            10,
            10,
            0.2,
            paper=Size(200, 600, 10),
            live=Size(200, 300, 1, pace=2.0),
            expected={
                "PersonalizedPCA": (1.351,),
                "printed": (1.325,),
                "calibrated": (1.325,),
                "LocalTraining": (1.505,),
                "GlobalAveraging": (1.371,),
            },
        ),
        Figure(
            "1b",
            "Error against the clients' heterogeneity",
            "spread",
            30,
            10,
            20,
            0.2,
            paper=Size(200, 400, 10, _SPREADS),
            live=Size(50, 150, 1, (0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0)),
            expected={
                "LocalTraining": (
                    1.421,
                    1.421,
                    1.421,
                    1.421,
                    1.421,
                    1.420,
                    1.421,
                    1.421,
                    1.421,
                    1.421,
                ),
                "GlobalAveraging": (
                    1.021,
                    1.050,
                    1.155,
                    1.268,
                    1.366,
                    1.445,
                    1.508,
                    1.602,
                    1.643,
                    1.628,
                ),
                "PersonalizedPCA": (
                    1.021,
                    1.048,
                    1.136,
                    1.232,
                    1.328,
                    1.378,
                    1.400,
                    1.417,
                    1.421,
                    1.421,
                ),
                "printed": (
                    1.021,
                    1.048,
                    1.136,
                    1.217,
                    1.284,
                    1.345,
                    1.385,
                    1.416,
                    1.422,
                    1.421,
                ),
                "calibrated": (
                    1.021,
                    1.048,
                    1.135,
                    1.216,
                    1.282,
                    1.335,
                    1.374,
                    1.430,
                    1.449,
                    1.437,
                ),
            },
        ),
        Figure(
            "1c",
            "Error against samples per client",
            "samples",
            100,
            20,
            10,
            0.1,
            paper=Size(100, 400, 20, _SAMPLES),
            live=Size(30, 60, 1, (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)),
            expected={
                "LocalTraining": (1.376, 1.358, 1.320, 1.282, 1.231, 1.165, 1.091),
                "GlobalAveraging": (1.284, 1.246, 1.222, 1.210, 1.203, 1.200, 1.198),
                "PersonalizedPCA": (1.282, 1.243, 1.218, 1.201, 1.173, 1.127, 1.077),
                "calibrated": (1.280, 1.238, 1.205, 1.178, 1.148, 1.112, 1.072),
            },
        ),
        Figure(
            "1d",
            "Error against the number of clients",
            "clients",
            100,
            20,
            10,
            0.1,
            paper=Size(0, 400, 5, _CLIENTS),
            live=Size(0, 60, 1, (5.0, 10.0, 20.0, 50.0, 100.0)),
            expected={
                "LocalTraining": (1.358,) * 7,
                "GlobalAveraging": (1.348, 1.337, 1.318, 1.285, 1.244, 1.223, 1.211),
                "PersonalizedPCA": (1.343, 1.330, 1.312, 1.281, 1.241, 1.220, 1.208),
            },
        ),
        Figure(
            "2a",
            "Training error against rounds, three levels of heterogeneity",
            "round",
            30,
            10,
            20,
            0.2,
            paper=Size(50, 600, 20, (0.1, 0.2, 0.4)),
            live=Size(50, 200, 1, (0.1, 0.2, 0.4)),
            measure="training",
            expected={"PersonalizedPCA": (0.799, 0.456, 0.350)},
        ),
        Figure(
            "2b",
            "Fresh error against rounds, three levels of heterogeneity",
            "round",
            30,
            10,
            20,
            0.2,
            paper=Size(50, 600, 20, (0.1, 0.2, 0.4)),
            live=Size(50, 200, 1, (0.1, 0.2, 0.4)),
            expected={"PersonalizedPCA": (1.148, 1.343, 1.424)},
        ),
    )
}


def methods(
    components: int, spread: float, noise_variance: float, *, prior: str = "std", **options: object
) -> dict[str, Algorithm]:
    """Personalised PCA and its two baselines with the same parameters, by title."""
    personalised = PersonalizedPCA(
        components=components, spread=spread, noise_variance=noise_variance, prior=prior,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return {
        "PersonalizedPCA": personalised,
        "LocalTraining": LocalTraining(components=components),
        "GlobalAveraging": GlobalAveraging(components=components, noise_variance=noise_variance),
    }


def curve(
    problem: PersonalProblem,
    algorithm: Algorithm,
    *,
    rounds: int,
    seed: int = 0,
    channel: Channel | None = None,
    measure: Callable[[Array, PersonalProblem], Array] = fresh_ratios,
    tolerance: float = 0.0,
    wanted: Callable[[float], bool] = lambda _: True,
) -> tuple[Array, Array]:
    """Each client's error round by round, without keeping the models.

    ``wanted`` is told the share of rounds done and answers whether to go on.

    Returns
    -------
    ratios : (rounds + 1, clients) float64, or what ``measure`` gives for each round
        Fewer rows when the mean moved by less than ``tolerance`` in ten rounds, or when nobody
        wanted more.
    estimate : the last model(s)
    """
    run = Simulation(
        problem,
        algorithm,
        rounds=rounds,
        seed=seed,
        channel=channel or Channel(record="estimates"),
        keep_rounds=False,
    )
    rows: list[Array] = []
    estimate = problem.centre
    for step in run:
        estimate = step.estimate
        rows.append(measure(estimate, problem))
        if not wanted((len(rows) - 1) / rounds):
            break
        if tolerance and len(rows) > 10 and abs(rows[-1].mean() - rows[-11].mean()) < tolerance:
            break
    return np.stack(rows), estimate


def settled(
    problem: PersonalProblem,
    algorithm: PersonalizedPCA,
    rounds: int,
    tolerance: float = _CONVERGED,
) -> Array:
    """Per-client fresh error of personalised PCA after it has settled (at most ``rounds``)."""
    ratios, _ = curve(problem, algorithm, rounds=rounds, tolerance=tolerance)
    return ratios[-1]


@dataclass(frozen=True)
class Point:
    """One point of a sweep: mean error of every method over clients and data sets."""

    value: float
    ratios: Mapping[str, float]


def sweep(
    figure: Figure,
    size: str = "live",
    *,
    prior: str = "std",
    gradient: str = "exact",
    seed: int = 0,
) -> Iterator[Point]:
    """Points of Figures 1(b), 1(c), 1(d), one by one.

    Baselines are their closed-form limits; personalised PCA starts from the pooled answer and runs
    until it settles.
    """
    chosen = figure.size(size)
    require(figure.axis != "round", f"Figure {figure.name} runs over rounds; use `rounds` for it.")
    for value in chosen.values:
        spread = value if figure.axis == "spread" else figure.spread
        totals: dict[str, list[float]] = {name: [] for name in METHODS}
        for dataset in range(chosen.datasets):
            problem = personal(
                features=figure.features,
                components=figure.components,
                clients=int(value) if figure.axis == "clients" else chosen.clients,
                samples=int(value) if figure.axis == "samples" else figure.samples,
                spread=spread,
                seed=seed + dataset,
            )
            best = oracles(problem)
            algorithm = PersonalizedPCA(
                components=figure.components,
                spread=spread,
                prior=prior,
                gradient=gradient,
                pace=chosen.pace,
                start_from="pooled",
            )
            ratios = settled(problem, algorithm, chosen.rounds)
            totals["PersonalizedPCA"].append(float(ratios.mean()))
            totals["LocalTraining"].append(float(fresh_ratios(best["local"], problem).mean()))
            totals["GlobalAveraging"].append(float(fresh_ratios(best["global"], problem).mean()))
        yield Point(value, {name: float(np.mean(found)) for name, found in totals.items()})


def rounds(
    figure: Figure,
    size: str = "live",
    *,
    prior: str = "std",
    gradient: str = "exact",
    seed: int = 0,
) -> Iterator[tuple[str, Array]]:
    """Curves of Figures 1(a), 2(a), 2(b): a label and the mean error of each round."""
    chosen = figure.size(size)
    require(figure.axis == "round", f"Figure {figure.name} is a sweep; use `sweep` for it.")
    measure = fresh_ratios if figure.measure == "fresh" else training_ratios
    for spread in chosen.values or (figure.spread,):
        names = ("PersonalizedPCA",) if chosen.values else METHODS
        for name in names:
            total = np.zeros(chosen.rounds + 1)
            for dataset in range(chosen.datasets):
                problem = personal(
                    features=figure.features,
                    components=figure.components,
                    clients=chosen.clients,
                    samples=figure.samples,
                    spread=spread,
                    seed=seed + dataset,
                )
                algorithm = methods(
                    figure.components,
                    spread,
                    problem.noise_variance,
                    prior=prior,
                    gradient=gradient,
                    pace=chosen.pace,
                )[name]
                found, _ = curve(
                    problem, algorithm, rounds=chosen.rounds, seed=seed + dataset, measure=measure
                )
                total += found.mean(axis=1) / chosen.datasets
            yield (f"spread {spread:g}" if chosen.values else name), total
