"""The best attack on one client in one run: every attack of ours that its messages allow.

Each reads the transcript and public facts alone; which of them came closest only the simulation
can tell.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core import attacks
from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.attacks import baselines, scores, simulation_only, stationary
from fedpca_core.attacks.low_rank import Factor, factor_of
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.studies.adversary import private_matrix, replaying, stated_trace
from fedpca_core.studies.frontier.runs import Made, made
from fedpca_core.studies.frontier.settings import FrontierSettings
from fedpca_core.studies.records.held import Held, held
from fedpca_core.studies.records.pictures import subtracted
from fedpca_core.studies.records.taken_apart import take_apart
from fedpca_core.studies.study import outcome

#: Attacks by their names in tables, in words.
NAMES = {
    "linear": "linear equations",
    "symmetric": "symmetric completion",
    "low rank": "low-rank reading",
    "model": "the model as it was sent",
    "sums": "sums only",
    "replay": "replay of the update",
    "fit": "fit of the local runs",
    "": "none beats a public guess",
}


@dataclass(frozen=True)
class Leak:
    """What the best attack gave.

    Attributes
    ----------
    attack : str
        Key of `NAMES`; empty where none beats the best guess that needs no message.
    error : float
        ``||S_hat - S_i||_F / ||S_i||_F`` of the best attack; NaN where one that belongs to this
        method has not been tried.
    linear : float
        The same of the attacks that solve linear equations alone; NaN where they do not apply.
    guess : float
        The same of the best public guess.
    sine : float
        Largest angle of the client's leading space, as the best attack has it.
    """

    attack: str
    error: float
    linear: float
    guess: float
    sine: float


def searched(method: str, settings: FrontierSettings) -> bool:
    """Whether an attack that searches belongs to this method on this channel."""
    by_search = {"replay", "stationary"} & set(METHODS[method].attacks)
    return bool(by_search) and not settings.secure_aggregation


def leak(run: Made, method: str, settings: FrontierSettings, rounds: int, *, search: bool) -> Leak:
    """Attack the first ``rounds`` rounds of a run in every way we have.

    Parameters
    ----------
    search : bool
        Also the attacks that take seconds.
    """
    return best_estimate(run, method, settings, rounds, search=search)[0]


def best_estimate(
    run: Made, method: str, settings: FrontierSettings, rounds: int, *, search: bool = True
) -> tuple[Leak, Array | None]:
    """`leak`, and the matrix that came closest; None where nothing could be read."""
    truth = private_matrix(run.problem, settings.client)
    stated = stated_trace(run.problem, settings.client)
    transcript = run.trace.transcript.until(rounds)
    tried: dict[str, Array] = {}
    for name, attack in _attacks(run, method, settings, transcript, stated, search):
        try:
            tried[name] = attack()
        except InvalidInput:  # these messages are not for this attack
            continue
    errors = {name: scores.relative_error(one, truth) for name, one in tried.items()}
    even = baselines.scaled_identity(len(truth), stated)
    guess = min(scores.relative_error(even, truth), 1.0)
    best = min(errors, key=lambda name: errors[name], default="")
    linear = min((errors[n] for n in ("linear", "symmetric") if n in errors), default=math.nan)
    open_question = searched(method, settings) and not search
    if open_question or not best:
        error = math.nan if open_question else guess
        return Leak("", error, linear, guess, math.nan), None
    sine = float(scores.top_space_sines(tried[best][None], truth, settings.components)[0])
    named = best if errors[best] < guess else ""
    return Leak(named, errors[best], linear, guess, sine), tried[best]


def _attacks(
    run: Made,
    method: str,
    settings: FrontierSettings,
    transcript: Transcript,
    stated: float,
    search: bool,
) -> Iterator[tuple[str, Callable[[], Array]]]:
    client = settings.client
    if transcript.secure_aggregation:
        yield "sums", lambda: attacks.pooled(transcript, client)
        return
    yield "linear", lambda: attacks.linear(transcript, client)
    yield "symmetric", lambda: attacks.symmetric(transcript, client, trace=stated)
    if int(transcript.samples[client]) < transcript.features and run.guarantee is None:
        yield (
            "low rank",
            lambda: _matrix(
                attacks.low_rank(transcript, client, noise=settings.upload_noise).matrix
            ),
        )
    if "linear" not in METHODS[method].attacks and method != "fedpower":
        yield "model", lambda: _matrix(_last(transcript, method, settings).factor)
    if search and isinstance(run.algorithm, FAPS):
        yield "replay", lambda: _replayed(run, settings, transcript).estimate
    if search and isinstance(run.algorithm, ConsensusADMM):
        yield "fit", lambda: stationary.fit_runs(transcript, run.algorithm, client)


def _replayed(run: Made, settings: FrontierSettings, transcript: Transcript) -> attacks.Replay:
    search = replaying(run.problem, transcript, settings)
    deque(search, maxlen=0)
    return search.result


def _last(transcript: Transcript, method: str, settings: FrontierSettings) -> Held:
    *_, last = held(transcript, METHODS[method], settings.client, noise=settings.upload_noise)
    return last


def _matrix(factor: Array) -> Array:
    return factor @ factor.T


@dataclass(frozen=True)
class Summed:
    """What sums over all clients still give away; NaN where the method's sums cannot be read.

    Attributes
    ----------
    error : float
        Relative error of the attacked client's matrix from sums alone.
    pooled : float
        The same of the pooled matrix S, which is all that sums of equal participants can hold.
    newcomer : float
        Sine of the angle between the record that joined between two runs and what the server
        reads of it.
    """

    error: float = math.nan
    pooled: float = math.nan
    newcomer: float = math.nan


def summed(
    method: str,
    settings: FrontierSettings,
    problem: Problem,
    *,
    hidden: bool = True,
    rounds: int | None = None,
) -> Summed:
    """The same method under secure sums, once more without one record of the attacked client.

    Parameters
    ----------
    hidden : bool
        False compares two runs with single uploads.
    """
    truth, client = problem.unperturbed, settings.client
    chosen = replace(settings, secure_aggregation=hidden)
    if truth.blocks is None:
        return Summed()
    record = truth.blocks[client][:, 0]
    try:
        after = made(method, chosen, truth, rounds).trace.transcript
        read = attacks.pooled(after, client) if hidden else None
        earlier = without_record(truth, client, 0)
        before = made(method, chosen, earlier, rounds).trace.transcript
        found = attacks.joined(before, after, client, noise=settings.upload_noise).matrix
    except InvalidInput:  # its server needs single uploads, or its sums are no products
        return Summed()
    private, data = private_matrix(truth, client), truth.client_data
    sine = math.nan
    if found.shape[1] and record.any():
        unit, seen = record / np.linalg.norm(record), found[:, 0] / np.linalg.norm(found[:, 0])
        sine = float(np.linalg.norm(seen - unit * (unit @ seen)))
    pooled = simulation_only.pooled_mean(data.dense(), data.weights)
    error = math.nan if read is None else scores.relative_error(read, private)
    return Summed(error, scores.relative_error(pooled, private), sine)


def exact_records(run: Made, method: str, settings: FrontierSettings, rounds: int) -> float:
    """How many records of the attacked client come back to the last digit; NaN off any grid."""
    truth = run.problem.unperturbed
    if truth.blocks is None or truth.announced is None:
        return math.nan
    private = truth.blocks[settings.client]
    if private.shape[1] >= truth.features or settings.secure_aggregation:
        return 0.0
    transcript = run.trace.transcript.until(rounds)
    try:
        whole = whole_factor(run, method, settings, transcript)
    except InvalidInput:
        return 0.0
    if whole is None:
        return 0.0
    state = Held(whole.matrix, whole, "whole")
    taken = outcome(take_apart([state], truth.announced, guarantee=run.guarantee))
    if taken is None or taken.found is None or taken.found.values is None or taken.round is None:
        return 0.0
    full = private + subtracted(truth)[:, None]
    return float(scores.recovered_records(taken.found.values, full, truth.announced.grid))


def whole_factor(
    run: Made, method: str, settings: FrontierSettings, transcript: Transcript
) -> Factor | None:
    """The client's matrix as a factor, where the messages give all of it."""
    client, noise = settings.client, settings.upload_noise
    if "linear" in METHODS[method].attacks and not isinstance(run.algorithm, FAPS):
        read = attacks.low_rank(transcript, client, noise=noise)
        return read if read.complete else None
    if isinstance(run.algorithm, FAPS):
        found = _replayed(run, settings, transcript)
        samples = int(transcript.samples[client])
        size = float(np.linalg.norm(found.estimate)) / transcript.features
        return factor_of(found.estimate, samples, error=size * found.residual)
    return _last(transcript, method, settings).whole
