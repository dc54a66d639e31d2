"""A problem at the size at which it is run, and one run of one candidate on it.

That size is what was asked for, or has fewer clients, which is said."""

from __future__ import annotations

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
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.simulate import Simulation, setting_of
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.costs import ProblemSize
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.remembered import Remembered
from fedpca_core.settings import plural
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.build import before_noise, build_channel, build_problem, with_noise
from fedpca_core.study.deployed import deployment_of, truth_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import words
from fedpca_core.study.pca_settings import IMAGES
from fedpca_core.trial import Trial, Truth, trial

# ---------------------------------------------------------------------- the size that is run
#: Entries of all clients' matrices together, up to which every candidate answers while one waits.
LIVE = 4_000_000
#: Fewer clients than these are no federation.
FEWEST = 4


def most_clients(features: int) -> int:
    """How many clients are run, at most, with so many features."""
    return max(FEWEST, LIVE // features**2)


def drawn(settings: FrontierSettings) -> int:
    """How many records of a client are drawn where they must be kept; at least its features."""
    c = settings
    if not c.problem.startswith("decay"):
        return c.samples
    most = LIVE // (c.features * c.clients)
    values = c.parameters()["samples"].grid
    return c.samples if c.samples <= most else int(max(one for one in values if one <= most))


def sized(
    settings: FrontierSettings, data: OwnData | None = None
) -> tuple[FrontierSettings, OwnData | None]:
    """The settings, and the table, of as many clients as are run.

    A table keeps some of its clients, drawn by the seed; where nobody says who they are it keeps a
    share of its rows.
    """
    size = ProblemSize.of(settings, data)
    most, column = most_clients(size.features), settings.client_column
    if settings.problem != "table":
        return replace(settings, clients=min(settings.clients, most)), data
    if data is None or (size.clients <= most and not column):
        return settings, data
    draw, table = Streams(settings.seed).generator("some clients"), data.table
    if column in table.columns:
        names = table[column].dropna().unique()
        if len(names) <= most:
            return settings, data
        kept = table[table[column].isin(draw.permutation(names)[:most])]
    else:
        rows = len(table) * most // settings.clients
        kept = table.iloc[np.sort(draw.permutation(len(table))[:rows])]
        settings = replace(settings, clients=most)
    # Its content says of which table these rows are, and which.
    some = OwnData(data.name, f"{data.digest} {len(kept)} rows of {settings.seed}".encode())
    some.__dict__.update(table=kept.reset_index(drop=True), shape=kept.shape)
    return settings, some


def smaller(settings: FrontierSettings, data: OwnData | None, clients: int) -> str:
    """What it means for an answer that so few ``clients`` were run; empty where all were."""
    c, asked, table = settings, settings.clients, settings.problem == "table"
    if table and c.client_column and data is not None:
        asked = int(data.table[c.client_column].nunique()) if clients else 0
    if asked <= clients:
        return ""
    told = words("which-rows" if table else "which-clients", clients=clients, asked=asked)
    more = ", who hold more images each" if c.problem in IMAGES else ""
    noise = "" if math.isinf(c.needed_epsilon) else " " + words("which-weighs-more")
    return f"{told}{more}; a client's features, records, bytes and messages are as asked.{noise}"


# ---------------------------------------------------------------------- a run of it
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
    trust = SHARED if settings.shared_noise else None
    return _counting(with_noise(_counting(honest, counts), settings, trust=trust), counts)


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

    Raises InvalidInput: the method does not run on this channel, or has no ε there.
    """
    length = settings.rounds if rounds is None else rounds
    if METHODS[method].plans_products:
        return _planned(method, settings, problem, length)
    run = _run(METHODS[method].make(settings), settings, problem, length)
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
        raise InvalidInput(words("which-own-noise"))
    clipped = replace(problem, client_data=problem.source.clipped, source=None)
    # What the records were clipped at, which need not be what the settings say of other problems.
    bound = problem.source.guarantee.clip_norm
    public = replace(setting_of(clipped, settings.participation), record_norm=bound)
    # Its paper's number, fixed before: of several runs, the one that the data like best, each
    # would be a release.
    plain = replace(made_for, products=min(made_for.products, length))
    noisy = within(plain, public, settings.epsilon, settings.delta, clip_norm=bound)
    said = account(noisy, public, delta=settings.delta, clip_norm=bound).stated()
    run = _run(noisy, settings, clipped, noisy.rounds)
    note = f"{plural(noisy.products, 'product')}, a number fixed before the run"
    return replace(run, guarantee=said, note=note)


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

    ``earlier``: Of the run before the attacked client's first record was there.
    ``truth``: By default that of the run's problem.
    """
    client = settings.client
    deployment = deployment_of(
        *(run.problem, run.algorithm, settings, client),
        rounds=rounds,
        earlier=earlier,
        centring=centring,
    )
    blocks, others = run.problem.unperturbed.blocks, {}
    if earlier is not None and blocks is not None:
        others = {"newcomer": blocks[client][:, 0], "strangers": blocks[client - 1][:, :_STRANGERS]}
    truth = truth or truth_of(run.problem, client, settings.components, **others)
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
