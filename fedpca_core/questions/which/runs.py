"""One run of one candidate on the problem that is set, without or with an ε."""

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms import FedPower
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.attack import Effort
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import Guarantee
from fedpca_core.privacy import account
from fedpca_core.privacy.accounting import within
from fedpca_core.problems import Problem, without_record
from fedpca_core.problems.perturbation import Trust
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.questions.which.sizes import drawn, sized
from fedpca_core.remembered import Remembered
from fedpca_core.settings import plural
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.build import before_noise, build_algorithm, build_channel, build_problem
from fedpca_core.study.deployed import deployment_of, truth_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.trial import Trial, Truth, trial

#: Seconds up to which an attack that searches is tried; of others the price is told.
SEARCH = 20.0
#: Records of another client that one that joined is told from.
_STRANGERS = 50

#: Whom clients who share their noise rely on: one that is curious knows its own.
SHARED = Trust()

#: What the leading spaces of the clients explain, by problem.
_BEST: Remembered[Array] = Remembered(8)


@dataclass(frozen=True, eq=False)
class Made:
    """A finished run and what stands behind it."""

    #: As the method saw it.
    problem: Problem
    algorithm: Algorithm
    trace: Trace
    #: Metrics of every round.
    table: pd.DataFrame
    guarantee: Guarantee | None = None
    #: What was chosen for this run, where something was.
    note: str = ""


def problem_of(settings: FrontierSettings, data: OwnData | None = None) -> Problem:
    """The problem of the settings at the size that is run, its clients' noise shared where they
    share it.

    An ε needs the records, to clip them. Where there are too many to be kept, fewer are drawn, and
    the noise is that of all.
    """
    settings, data = sized(settings, data)
    if math.isinf(settings.epsilon):
        return build_problem(settings, data)
    kept = drawn(settings)
    if kept == settings.samples and not settings.shared_noise:
        return build_problem(settings, data)
    honest = before_noise(replace(settings, samples=kept), data)
    counts = honest.client_data.samples * settings.samples // kept
    private = _counting(honest, counts).private(
        settings.epsilon,
        settings.delta,
        settings.clip_norm,
        Streams(settings.seed),
        trust=SHARED if settings.shared_noise else None,
        mean_share=0.0 if honest.own_mean is None else settings.mean_share,
    )
    return _counting(private, counts)


def _counting(problem: Problem, counts: IntArray) -> Problem:
    """The same problem, of clients who state so many records."""
    data, source = problem.client_data, problem.source
    if np.array_equal(data.samples, counts):
        return problem
    if source is not None:
        source = replace(source, clipped=replace(source.clipped, samples=counts))
    return replace(problem, client_data=replace(data, samples=counts), source=source)


def made(
    method: str, settings: FrontierSettings, problem: Problem, rounds: int | None = None
) -> Made:
    """Run a candidate.

    ``problem``: Of `problem_of`, or one that differs from it by records.
    ``rounds``: Other than the settings'.

    Raises InvalidInput: the method does not run on this channel, or has no ε there.
    """
    length = settings.rounds if rounds is None else rounds
    if METHODS[method].plans_products:
        return _planned(method, settings, problem, length)
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


def _planned(method: str, settings: FrontierSettings, problem: Problem, length: int) -> Made:
    """FedPower with noise on every product, calibrated exactly."""
    made_for = cast(FedPower, METHODS[method].make(settings))
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
    said = account(noisy, public, delta=settings.delta, clip_norm=bound).stated()
    run = _run(noisy, settings, clipped, noisy.rounds)
    note = f"{plural(noisy.products, 'product')}, a number fixed before the run"
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


# ---------------------------------------------------------------------- what it gives away
def attempt(
    run: Made,
    settings: FrontierSettings,
    rounds: int,
    effort: Effort,
    *,
    earlier: Transcript | None = None,
    centring: str = "",
    truth: Truth | None = None,
) -> Trial:
    """Attack the first rounds of a run.

    ``effort``: What searches for longer is left waiting.
    ``earlier``: Of the run before the attacked client's first record was there.
    ``centring``: As of `deployment_of`.
    ``truth``: By default that of the run's problem.
    """
    client = settings.client
    deployment = deployment_of(
        *(run.problem, run.algorithm, settings, client),
        rounds=rounds,
        earlier=earlier,
        centring=centring,
    )
    blocks = run.problem.unperturbed.blocks if earlier is not None else None
    truth = truth or truth_of(
        run.problem,
        client,
        settings.components,
        newcomer=None if blocks is None else blocks[client][:, 0],
        strangers=None if blocks is None else blocks[client - 1][:, :_STRANGERS],
    )
    view = run.trace.transcript.until(rounds)
    public = replace(deployment, guarantee=run.guarantee)
    found = outcome(trial(view, public, client, truth=truth, effort=effort))
    assert found is not None
    return found


def in_sums(method: str, settings: FrontierSettings, problem: Problem) -> Trial | None:
    """The same method under secure sums, and once more without one record of the client.

    None where its server needs single uploads, or the records are not kept.
    """
    truth, client = problem.unperturbed, settings.client
    chosen = replace(settings, secure_aggregation=True)
    if truth.blocks is None:
        return None
    try:
        after = made(method, chosen, truth)
        before = made(method, chosen, without_record(truth, client, 0)).trace.transcript
    except InvalidInput:  # its server needs single uploads
        return None
    return attempt(after, chosen, after.trace.rounds, Effort(longest=0.0), earlier=before)


def losses(run: Made, rounds: int) -> Array:
    """Share of what a client's own best space explains that the answer misses, of the client that
    misses most, (rounds + 1,), float64 (simulation only)."""
    data, components = run.problem.unperturbed.client_data.metered(), run.algorithm.components
    best = _BEST.get(
        (run.problem.unperturbed.digest, components),
        lambda: data.top_eigenvectors(components)[0].sum(axis=1),
    )
    frames = np.linalg.qr(run.trace.estimates[: rounds + 1])[0]
    # All rounds side by side, so that a client's data are read once.
    whole = frames.transpose(1, 0, 2).reshape(frames.shape[1], -1)
    found = np.full(rounds + 1, -np.inf)
    for client, most in enumerate(best):
        squares = whole * data.only(np.array([client])).multiply(whole)[0]
        explained = squares.sum(axis=0).reshape(rounds + 1, -1).sum(axis=1)
        found = np.maximum(found, 1.0 - explained / most)
    return found
