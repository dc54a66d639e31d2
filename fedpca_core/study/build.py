"""From settings to a problem, an algorithm, a channel and a run: what the studies share."""

import math
from collections.abc import Hashable

import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.guarantee import given
from fedpca_core.problems import Problem, Trust, decay_spectrum
from fedpca_core.problems.images import LIVE_RESOLUTION, images
from fedpca_core.problems.images import PUBLIC as IMAGES_PUBLIC
from fedpca_core.problems.problem import check_components
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.remembered import Remembered
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.pca_settings import IMAGES, ConvergeSettings
from fedpca_core.study.study import content_key

#: Fields that a problem depends on; the others do not invalidate one that is remembered.
PROBLEM_FIELDS = (
    *("problem", "features", "clients", "samples", "records_per_client", "resolution", "sizes"),
    *("decay", "condition", "heterogeneity", "seed", *TABLE_FIELDS),
)
#: Fields that noise at the source depends on besides.
NOISE_FIELDS = ("epsilon", "delta", "clip_norm", "mean_share")
#: Problems kept for the next study on the same data.
_PROBLEMS: Remembered[Problem] = Remembered(8)


def build_problem(settings: ConvergeSettings, data: OwnData | None = None) -> Problem:
    """The problem that settings describe; remembered, since several studies ask for it.

    With a finite ε its clients hold noisy second moments (`Problem.private`); the target, against
    which errors are measured, stays the honest one. The problem "table" is of the file ``data``.

    Raises InvalidInput: sizes that do not fit, data that are not there.
    """
    problem = before_noise(settings, data)
    if math.isinf(settings.epsilon):
        return problem
    key = _key(settings, data, *NOISE_FIELDS)
    return _PROBLEMS.get(key, lambda: with_noise(problem, settings))


def before_noise(settings: ConvergeSettings, data: OwnData | None = None) -> Problem:
    """The problem without noise, but prepared so that the settings' ε can cover it.

    Raises InvalidInput: as `build_problem`.
    """
    problem = _PROBLEMS.get(_key(settings, data), lambda: _built(settings, data))
    check_components(settings.components, problem.features)
    return problem


def _key(settings: ConvergeSettings, data: OwnData | None, *noise: str) -> tuple[Hashable, ...]:
    own = settings.problem == "table"
    prepared = own and math.isfinite(settings.epsilon)
    return prepared, *content_key(settings, PROBLEM_FIELDS + noise, data if own else None)


def beside_epsilon(settings: ConvergeSettings) -> str:
    """What must be said beside every ε of these settings, besides its own terms."""
    return given(public_of(settings))


def public_of(settings: ConvergeSettings) -> tuple[str, ...]:
    """What an ε of these settings takes as public besides the clients' sizes."""
    if settings.problem == "table":
        return ("the named columns", "whose record each row is")
    return IMAGES_PUBLIC if settings.problem in IMAGES else ()


def with_noise(
    problem: Problem, settings: ConvergeSettings, release: int = 0, trust: Trust | None = None
) -> Problem:
    """The problem with the settings' noise at the source; another release draws other noise."""
    return problem.private(
        settings.epsilon,
        settings.delta,
        settings.clip_norm,
        Streams(settings.seed),
        trust=trust,
        mean_share=0.0 if problem.own_mean is None else settings.mean_share,
        release=release,
    )


def _built(settings: ConvergeSettings, data: OwnData | None) -> Problem:
    c = settings
    if c.problem == "table":
        problem = own_problem(
            c, data, heterogeneity=None if c.client_column else c.heterogeneity, split=c.sizes
        )
    elif c.problem in IMAGES:
        limit = c.clients * c.records_per_client
        problem = images(
            c.problem,
            max_samples=None if math.isinf(limit) else int(limit),
            clients=c.clients,
            heterogeneity=c.heterogeneity,
            seed=c.seed,
            split=c.sizes,
            nested=c.problem == "digits",  # results on other images are stored as they were dealt
            resolution=c.resolution or LIVE_RESOLUTION[c.problem],
        )
    else:
        geometric = c.problem == "decay_geometric"
        problem = decay_spectrum(
            features=c.features,
            samples=samples_per_client(c.sizes, c.clients, c.clients * c.samples, seed=c.seed),
            decay=c.decay if geometric else None,
            condition=None if geometric else c.condition,
            heterogeneity=c.heterogeneity,
            seed=c.seed,
        )
    # What every reader needs, formed with the problem rather than at the first reader.
    _ = problem.eigenvalues, problem.heterogeneity
    return problem


def build_channel(settings: ConvergeSettings, record: str = "full") -> Channel:
    return Channel(
        dtype=settings.dtype,
        secure_aggregation=settings.secure_aggregation,
        upload_noise=settings.upload_noise,
        record=record,
    )


def simulation(
    problem: Problem,
    method: str,
    settings: ConvergeSettings,
    *,
    start: int = 0,
    record: str = "full",
) -> Simulation:
    """A run of one method from the ``start``-th random start, ready to iterate."""
    return Simulation(
        problem,
        METHODS[method].make(settings),
        rounds=settings.rounds,
        # From the random start of this number; the data keep the settings' own seed.
        seed=settings.seed + 1_000_003 * start,
        participation=settings.participation,
        absent=settings.absent,
        channel=build_channel(settings, record),
    )


def attacked_run(
    problem: Problem, method: str, settings: ConvergeSettings, start: int = 0
) -> Part[tuple[Trace, pd.DataFrame]]:
    """A run of one method with everything the server saw, and its metrics."""
    run = simulation(problem, method, settings, start=start)
    for entry in run:
        yield Step(entry.index / settings.rounds, METHODS[method].title)
    return (trace := run.trace()), metrics.frame(trace, problem)
