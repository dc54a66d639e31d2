"""One run of one candidate on the problem that is set, without or with an ε."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms import FedPower
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import Guarantee
from fedpca_core.privacy import account
from fedpca_core.privacy.accounting import within
from fedpca_core.problems import Problem
from fedpca_core.problems.perturbation import Trust
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.streams import Streams
from fedpca_core.study.build import before_noise, build_algorithm, build_channel, build_problem
from fedpca_core.study.own_data import OwnData


@dataclass(frozen=True, eq=False)
class Made:
    """A finished run and what stands behind it.

    Attributes
    ----------
    problem : Problem
        As the method saw it.
    algorithm : Algorithm
    trace : Trace
    table : pandas.DataFrame
        Metrics of every round.
    guarantee : Guarantee or None
    note : str
        What was chosen for this run, where something was.
    """

    problem: Problem
    algorithm: Algorithm
    trace: Trace
    table: pd.DataFrame
    guarantee: Guarantee | None = None
    note: str = ""


def problem_of(settings: FrontierSettings, data: OwnData | None = None) -> Problem:
    """The problem of the settings, its clients' noise shared where they share it."""
    if math.isinf(settings.epsilon) or not settings.shared_noise:
        return build_problem(settings, data)
    honest = before_noise(settings, data)
    return honest.private(
        settings.epsilon,
        settings.delta,
        settings.clip_norm,
        Streams(settings.seed),
        trust=Trust(0),
        mean_share=0.0 if honest.own_mean is None else settings.mean_share,
    )


def made(
    method: str, settings: FrontierSettings, problem: Problem, rounds: int | None = None
) -> Made:
    """Run a candidate.

    Parameters
    ----------
    method : str
    settings : FrontierSettings
    problem : Problem
        Of `problem_of`, or one that differs from it by records.
    rounds : int, optional
        Other than the settings'.

    Raises
    ------
    InvalidInput
        The method does not run on this channel, or has no ε there.
    """
    length = settings.rounds if rounds is None else rounds
    if method == "fedpower":
        return _fedpower(settings, problem, length)
    run = _run(build_algorithm(method, settings), settings, problem, length)
    return replace(run, guarantee=problem.guarantee)


def _run(algorithm: Algorithm, settings: FrontierSettings, problem: Problem, rounds: int) -> Made:
    run = Simulation(
        problem,
        algorithm,
        rounds=rounds,
        seed=settings.seed,
        participation=settings.participation,
        absent=settings.absent,
        channel=build_channel(settings),
    )
    trace = run.finish()
    return Made(problem, algorithm, trace, metrics.frame(trace, problem))


def _fedpower(settings: FrontierSettings, problem: Problem, length: int) -> Made:
    """FedPower with noise on every product, calibrated exactly."""
    made_for = METHODS["fedpower"].make(settings)
    assert isinstance(made_for, FedPower)
    if problem.source is None:
        long = replace(made_for, products=length)
        return _run(long, settings, problem, long.rounds)
    if settings.shared_noise or problem.truth is None or problem.truth.own_mean is not None:
        raise InvalidInput(
            "FedPower's own noise is each client's, on products with records that nobody centred; "
            "switch shared noise off, and choose data without a mean of their own."
        )
    clipped = replace(problem, client_data=problem.source.clipped, source=None)
    # What the records were clipped at, which need not be what the settings say of other problems.
    bound = problem.source.guarantee.clip_norm
    public = _public(settings, clipped, bound)
    # Its paper's number, fixed before: of several runs, the one that the data like best, each
    # would be a release.
    plain = replace(made_for, products=min(made_for.products, length))
    noisy = within(plain, public, settings.epsilon, settings.delta, clip_norm=bound)
    assert isinstance(noisy, FedPower)
    said = account(noisy, public, delta=settings.delta, clip_norm=bound)
    assert isinstance(said, Guarantee)
    run = _run(noisy, settings, clipped, noisy.rounds)
    note = f"{noisy.products} products, a number fixed before the run"
    return replace(run, guarantee=said, note=note)


def _public(settings: FrontierSettings, problem: Problem, bound: float) -> Setting:
    data = problem.client_data
    return Setting(
        problem.features,
        problem.clients,
        data.samples,
        data.weights,
        participation=settings.participation,
        record_norm=bound,
        public=problem.public,
    )
