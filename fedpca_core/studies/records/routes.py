"""Every way in which a server comes by a second-moment matrix, method by method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core import attacks
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.attacks.low_rank import factor_of
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.studies.adversary import Onlooker, observed, replaying
from fedpca_core.studies.build import build_problem, with_noise
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.studies.records.held import Held, held, unpacked
from fedpca_core.studies.study import Part, Step, part

#: A search that ends this close is handed on, and the certificate judges it: whole numbers need no
#: fit to rounding.
_CLOSE = 1e-6


@dataclass(frozen=True, eq=False)
class Watched:
    """What a server received of one client and what it made of it.

    Attributes
    ----------
    received : sequence of (features, columns) float64
        The upload of every round, or the sum; no columns where there was none. Of a symmetric
        matrix that came as its triangle, the whole.
    states : sequence of Held
        After every round, the start first.
    answer : float
        Sine of the largest angle between the method's answer and the truth (simulation only).
    """

    received: Sequence[Array]
    states: Sequence[Held]
    answer: float


def watched(
    problem: Problem,
    method: str,
    settings: AttackSettings,
    by: Onlooker,
    earlier: Problem | None,
    masked: Sequence[Held] = (),
) -> Part[Watched]:
    """Run a method, read its messages, and come by a matrix where they lead to one.

    Parameters
    ----------
    problem, method, settings, by
    earlier : Problem or None
        The same before some records joined: then the server compares two runs.
    masked : sequence of Held
        What a reading of masked messages as products has made of them, where that is known.
    """
    share = 0.3 if replays(method, settings) else 0.8
    running = observed(problem, method, settings, by)
    _, view, table = yield from part(running, 0.0, 0.5 * share)
    received = [_received(view, settings.client, k) for k in range(len(view.exchanges) + 1)]
    before = None
    if earlier is not None:
        _, before, _ = yield from part(observed(earlier, method, settings, by), 0.5 * share, share)
    states = yield from part(made_of(problem, view, method, settings, before, masked), share, 1.0)
    return Watched(received, states, float(table["sin_theta"].iloc[-1]))


def replays(method: str, settings: ConvergeSettings) -> bool:
    """Whether the server reruns the method's public update until it fits."""
    return method == "faps" and settings.unmask and not settings.secure_aggregation


def made_of(
    problem: Problem,
    view: Transcript,
    method: str,
    settings: ConvergeSettings,
    before: Transcript | None = None,
    masked: Sequence[Held] = (),
) -> Part[list[Held]]:
    """What the server makes of the messages of a run, after each round, the start first.

    Parameters
    ----------
    problem
        Only what its clients state is read.
    view : Transcript
    method, settings
    before : Transcript, optional
        Of an earlier run, before some records joined: then the two are compared.
    masked : sequence of Held
        As in `watched`.
    """
    if before is not None:
        return (yield from _compared(before, view, settings))
    if replays(method, settings):
        search = replaying(problem, view, settings)
        return (yield from replayed(search, view, settings.client, settings.budget, masked))
    reading = held(view, METHODS[method], settings.client, noise=settings.upload_noise)
    return (yield from _listed(reading, len(view.exchanges) + 1))


def problems(
    settings: ConvergeSettings, data: OwnData | None = None
) -> tuple[Problem, Problem | None]:
    """The problem, and the same before some records joined where some did.

    Each run releases once, with noise of its own.

    Raises
    ------
    InvalidInput
        More newcomers than the client holds.
    """
    honest = build_problem(replace(settings, epsilon=math.inf), data)
    earlier = _before(honest, settings)
    if math.isinf(settings.epsilon):
        return honest, earlier
    if earlier is None:
        return build_problem(settings, data), None
    return with_noise(honest, settings, release=1), with_noise(earlier, settings)


def _before(problem: Problem, settings: ConvergeSettings) -> Problem | None:
    """The problem before the last of the client's records joined; None where none did."""
    if settings.joined == 0:
        return None
    assert problem.blocks is not None
    held = problem.blocks[settings.client].shape[1]
    require(
        settings.joined < held,
        f"{settings.joined} records cannot have joined a client that holds {held} now; choose at "
        f"most {held - 1}, or more records per client.",
    )
    for number in range(held - 1, held - 1 - settings.joined, -1):
        problem = without_record(problem, settings.client, number)
    return problem


def _listed(reading: Iterator[Held], rounds: int) -> Part[list[Held]]:
    states = []
    for state in reading:
        states.append(state)
        yield Step(len(states) / rounds, "Reading the messages")
    return states


def _received(view: Transcript, client: int, number: int) -> Array:
    """What a round brought of the client: its upload, or the sum that it is in."""
    nothing = np.zeros((view.features, 0))
    if number == 0:
        return nothing
    exchange = view.exchanges[number - 1]
    rows = np.flatnonzero(exchange.participants == client)
    if exchange.uploads is None:
        arrays = list((exchange.sums or {}).values())
    elif len(rows):
        arrays = [array[rows[0]] for array in exchange.uploads.values()]
    else:
        return nothing
    for array in arrays:
        if (matrix := unpacked(array, view.features)) is not None:
            return matrix
        if array.ndim == 2 and array.shape[0] == view.features:
            return array
    return nothing


def _compared(
    before: Transcript, after: Transcript, settings: ConvergeSettings
) -> Part[list[Held]]:
    """Two runs between which records joined, after each round of both."""
    rounds = min(len(before.exchanges), len(after.exchanges))
    states = [Held.nothing(after.features)]
    for number in range(1, rounds + 1):
        last = states[-1]
        if last.whole is None:
            try:
                read = attacks.joined(
                    before, after, settings.client, number, noise=settings.upload_noise
                )
                last = Held(read.matrix, read if read.complete else None, "two runs")
            except InvalidInput as refusal:
                if number == rounds and len(states[-1].factor.T) == 0:
                    raise InvalidInput(str(refusal)) from refusal
        states.append(last)
        yield Step(number / rounds, "Comparing the two runs")
    return states


def replayed(
    search: attacks.Replaying,
    view: Transcript,
    client: int,
    budget: int,
    masked: Sequence[Held] = (),
) -> Part[list[Held]]:
    """FAPS's public update rerun until it fits; the masked messages until then."""
    best = np.inf
    for count, stage in enumerate(search, 1):
        if stage.start > 0 and best <= _CLOSE:
            break
        best = min(best, stage.residual)
        yield Step(count / budget, f"Replaying FAPS: residual {stage.residual:.1e}")
    states = list(masked or held(view, METHODS["faps"], client))
    found = search.result
    # The certificate tells by itself whether the fit was close enough.
    size = float(np.linalg.norm(found.estimate)) / view.features
    error = size * (found.uncertainty if np.isfinite(found.uncertainty) else found.residual)
    factor = factor_of(found.estimate, int(view.samples[client]), error=error)
    states[-1] = Held(factor.matrix, factor, "replay")
    return states
