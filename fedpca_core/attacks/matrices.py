"""The attacks on second-moment matrices, each with what it needs and what it takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import (
    Belief,
    Beliefs,
    Deployment,
    Effort,
    MatrixAttack,
    MatrixReading,
    Solved,
    arrived,
    unpacked,
)
from fedpca_core.attacks.differencing import joined
from fedpca_core.attacks.lattice.records import records
from fedpca_core.attacks.lattice.span import matrices_of_span
from fedpca_core.attacks.linear import LinearReading, completion, shrunk, smallest
from fedpca_core.attacks.low_rank import Factor, factor_of, from_answers, low_rank
from fedpca_core.attacks.personal import second_moment
from fedpca_core.attacks.pooled import mean_system, pooled_rounds
from fedpca_core.attacks.replay.attack import Replaying
from fedpca_core.attacks.stationary import fit_runs
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Target, lasting
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.settings import plural
from fedpca_core.steps import Step

#: Seconds that a floating-point operation takes in small products.
_SLOW = 1 / 8e9
#: A search that ends this close is handed on, and the certificate judges it: whole numbers need no
#: fit to rounding.
_CLOSE = 1e-6
#: An estimate that is this far from symmetric, relative to its size, is of no one matrix.
_NOISY = 1e-3


# ------------------------------------------------------------------------------- what each reads
def _listed(states: Iterator[Belief], rounds: int) -> Beliefs:
    found: list[Belief] = []
    for state in states:
        found.append(state)
        yield Step(min(len(found) / (rounds + 1), 1.0), "Reading the messages")
    return found


def _round_by_round(
    states: Callable[[Transcript, Deployment, int], Iterator[Belief]],
) -> MatrixReading:
    """A reading from what is believed after every round, and nothing before any message."""
    return lambda view, deployment, client, effort: _listed(
        chain([Belief.nothing(view.features)], states(view, deployment, client)),
        len(view.exchanges),
    )


def _after_each(made: Callable[[Deployment], LinearReading]) -> MatrixReading:
    """A reading that gives a matrix after every round, or the last one alone."""

    def read(view: Transcript, deployment: Deployment, client: int, effort: Effort) -> Beliefs:
        count, reading = len(view.exchanges), made(deployment)
        if effort.path:
            path = (
                _estimated(*one, deployment, client) for one in reading.after_each(view, client)
            )
            return (yield from _listed(path, count))
        yield Step(0.0, "Reading the messages")
        last = _estimated(*reading.last(view, client), deployment, client)
        return _at_the_end(last, count)

    return read


def _estimated(estimate: Array, rank: int, deployment: Deployment, client: int) -> Belief:
    """An estimate, which is the matrix itself once all directions were asked for.

    The matrix is symmetric, and what an estimate is not shows how far off it is. One that was made
    symmetric shows nothing.
    """
    masked = deployment.uploads is Uploads.UPDATE
    found = Belief(estimate, 0 if masked else rank, dense=True)
    error = float(np.abs(estimate - estimate.T).max())
    shown = 0.0 < error < _NOISY * float(np.abs(estimate).max(initial=0.0))
    if masked or deployment.upload_noise or rank < deployment.features or not shown:
        return found
    return replace(found, whole=factor_of(estimate, deployment.held(client), error=error))


def _at_the_end(last: Belief, rounds: int) -> list[Belief]:
    """What is known once all messages were read together, and nothing before."""
    return [*[Belief.nothing(len(last.given))] * rounds, last]


@_round_by_round
def _low_rank(view: Transcript, deployment: Deployment, client: int) -> Iterator[Belief]:
    """Answers that are products: a factor that is whole after a few rounds."""
    last = Belief.nothing(view.features)
    for count in range(1, len(view.exchanges) + 1):
        if last.whole is None:
            with suppress(InvalidInput):  # it has not taken part yet, or made several steps at once
                read = low_rank(view.until(count), client, noise=deployment.upload_noise)
                last = Belief.of_factor(read)
        yield last


@_round_by_round
def _model(view: Transcript, deployment: Deployment, client: int) -> Iterator[Belief]:
    """Uploads that are models of the client's data, or sums of them, read as they are."""
    last = Belief.nothing(view.features)
    for exchange in view.exchanges:
        last = _of_model(arrived(exchange, client), deployment, client) or last
        yield last


def _of_model(sent: dict[str, Array], deployment: Deployment, client: int) -> Belief | None:
    n, samples = deployment.features, deployment.held(client)
    for array in sent.values():
        if (matrix := unpacked(array, n)) is not None:
            return Belief.of_factor(factor_of(matrix, samples))
    for name, array in sent.items():
        if array.ndim == 2 and array.shape[0] == n:
            # Eigenvectors beyond the rank are any: they say nothing of the client.
            state = Belief.of_frame(array[:, : deployment.rank(client)])
            if name == "scaled_eigenvectors" and array.shape[1] >= samples:
                # As many directions as records, with their sizes: the matrix itself.
                error = float(np.finfo(float).eps * np.abs(array).max())
                return Belief.of_factor(Factor(state.factor[:, :samples], samples, error))
            return state
    return None


def _span(view: Transcript, deployment: Deployment, client: int, effort: Effort) -> Beliefs:
    """Eigenvectors without sizes: the first matrix behind them whose records are certified."""
    yield Step(0.0, "Looking for whole records in the span")
    samples, mean = int(view.samples[client]), deployment.mean
    total = None if deployment.records is None else deployment.records.records_total
    last = Belief.nothing(view.features)
    for exchange in view.exchanges:
        sent = arrived(exchange, client)
        if not sent:
            continue
        if "eigenvectors" not in sent:  # they came with their sizes
            read = _of_model(sent, deployment, client)
            return _at_the_end(read or last, len(view.exchanges))
        vectors = sent["eigenvectors"]
        last = Belief.of_frame(vectors[:, : deployment.rank(client)])
        spanned = vectors[:, :samples], deployment.steps
        for found in matrices_of_span(*spanned, mean=mean, trace=deployment.trace):
            whole = replace(Belief.of_factor(found), sure=False)
            if records(found, deployment.steps, mean, total, budget=effort.work).certified:
                return _at_the_end(whole, len(view.exchanges))
            last = last if last.whole else whole
    return _at_the_end(last, len(view.exchanges))


@_round_by_round
def _sums(view: Transcript, deployment: Deployment, client: int) -> Iterator[Belief]:
    """Sums of answers: the pooled matrix, or each client's where the participants change."""
    samples = deployment.held(client)
    rounding_only = deployment.dtype == "float64" and deployment.upload_noise == 0
    rounds = enumerate(pooled_rounds(view, client))
    next(rounds)
    for count, (estimate, rank) in rounds:
        if changing(view):
            found = factor_of(estimate, int(view.samples[client]))
            if rank < view.features:  # others explain the sums too; its records may decide
                yield Belief(estimate, rank, found, sure=False, dense=True)
            else:
                yield Belief.of_factor(found)
            continue
        determined, read = rank >= view.features, None
        if not (determined and rounding_only):
            system = mean_system(view.until(count), client)
            read = from_answers(system, samples, noise=deployment.upload_noise)
        if read is not None and read.complete:
            yield Belief.of_factor(read)
        elif determined:  # solved, more exactly than a factor of rounded answers is
            yield Belief.of_factor(factor_of(estimate, samples))
        else:
            yield Belief(estimate, rank, dense=True)


@_round_by_round
def _joined(view: Transcript, deployment: Deployment, client: int) -> Iterator[Belief]:
    """What changed between the earlier run and this one, after each round of both."""
    before = deployment.earlier
    assert before is not None
    last = Belief.nothing(view.features)
    rounds = min(len(before.exchanges), len(view.exchanges))
    for count in range(1, rounds + 1):
        if last.whole is None:
            try:
                parts = before.until(count), view.until(count)
                last = Belief.of_factor(joined(*parts, client, noise=deployment.upload_noise))
            except InvalidInput:
                if count == rounds and not last.read:
                    raise
        yield last


def changing(view: Transcript) -> bool:
    """Whether other clients stand behind some sums than behind the first."""
    first = view.exchanges[0].sum_weights > 0
    return any(not np.array_equal(one.sum_weights > 0, first) for one in view.exchanges)


def _replayed(view: Transcript, deployment: Deployment, client: int, effort: Effort) -> Beliefs:
    """The public update rerun until it fits; nothing is believed of the messages until then."""
    search = Replaying(
        view,
        deployment.algorithm,
        client,
        trace=deployment.trace,
        seeded=effort.seeded,
        noise=deployment.upload_noise,
        evaluations=effort.evaluations,
    )
    # Of real numbers nothing but the fit tells.
    best, close = np.inf, _CLOSE if deployment.records else 0.0
    clock = time.monotonic()
    for count, stage in enumerate(search, 1):
        took, clock = time.monotonic() - clock, time.monotonic()
        if stage.start > 0 and best <= close:
            break
        best = min(best, stage.residual)
        left = lasting(took * (effort.evaluations - count))
        so_far = f"residual {stage.residual:.1e}; at most {left} more"
        yield Step(count / effort.evaluations, f"Replaying the update: {so_far}")
    found = search.result
    # The certificate tells by itself whether the fit was close enough.
    size = float(np.linalg.norm(found.estimate)) / view.features
    error = size * (found.uncertainty if np.isfinite(found.uncertainty) else found.residual)
    factor = factor_of(found.estimate, int(view.samples[client]), error=error)
    if found.succeeded or best <= close:
        last = Belief(found.estimate, factor.rank, factor, found.succeeded, dense=True)
    else:  # nothing that the messages tell
        last = Belief(found.estimate, dense=True)
    return _at_the_end(last, len(view.exchanges))


def _solved(solve: Callable[[Transcript, Any, int], Solved]) -> MatrixReading:
    """A reading that solves all messages at once; uploads say what its method must be."""

    def read(view: Transcript, deployment: Deployment, client: int, effort: Effort) -> Beliefs:
        yield Step(0.0, "Solving the messages for the client's matrix")
        found = solve(view, deployment.algorithm, client)
        factor = factor_of(found.matrix, int(view.samples[client]), error=found.error)
        last = Belief(found.matrix, factor.rank, factor, sure=False, dense=True)
        return _at_the_end(last, len(view.exchanges))

    return read


# ------------------------------------------------------------------------------------- conditions
def _sends(*kinds: Uploads, added: bool = False) -> Callable[[Deployment, int], str]:
    """Uploads of some kind that arrive one by one, or added up."""

    def fits(deployment: Deployment, client: int) -> str:
        if deployment.sums != added:
            return "every upload arrives by itself" if added else "only sums cross the wire"
        if deployment.uploads not in kinds:
            return f"{'sums are of' if added else 'uploads are'} {deployment.uploads}"
        return ""

    return fits


def _spanned(deployment: Deployment, client: int) -> str:
    d = deployment
    if refused := _sends(Uploads.EIGENVECTORS)(d, client):
        return refused
    if d.records is None or not d.grid_known:
        return "the records are on no announced grid, which tells them from their span"
    if d.centring not in ("none", "announced"):
        return "the mean that was subtracted is not told, and the records lie beside the span"
    if not d.held(client) <= min(d.components, d.features - 1):
        sent, held = plural(d.components, "eigenvector"), plural(d.held(client), "record")
        return f"{sent} cannot be the span of {held}"
    return ""


def _noisy(deployment: Deployment, client: int) -> str:
    if deployment.upload_noise == 0:
        return "the uploads carry no noise to be averaged out"
    refused = _sends(Uploads.PRODUCTS, Uploads.UPDATE)(deployment, client)
    return refused or ("" if deployment.trace is not None else "no trace is stated")


def _replayable(deployment: Deployment, client: int) -> str:
    if not deployment.algorithm.replayable:
        return "the method has no masked update to be rerun"
    return _sends(Uploads.UPDATE)(deployment, client)


def _twice(deployment: Deployment, client: int) -> str:
    if deployment.earlier is None:
        return "there is no earlier run to compare with"
    if deployment.uploads is not Uploads.PRODUCTS:
        return f"uploads are {deployment.uploads}"
    return ""


# ------------------------------------------------------------------------------------------- cost
def _solving(deployment: Deployment, client: int) -> float:
    return 1e-3 + (deployment.rounds + 1) * 40 * deployment.features**3 * _SLOW / 3


def _at_once(deployment: Deployment, client: int) -> float:
    return 0.05


def _reducing(deployment: Deployment, client: int) -> float:
    """Of some dozen features, and of the pairs of records; see `span`."""
    return 0.1 + 3e-6 * deployment.held(client) ** 5


def _fitting(deployment: Deployment, client: int) -> float:
    """A fit of all entries: the square of their number for every equation, some 40 times."""
    d = deployment
    unknown = d.features * (d.features + 1) / 2
    return 40 * (2 * d.rounds * d.features * d.components * unknown**2 + 4 * unknown**3) * _SLOW


def _replaying(deployment: Deployment, client: int) -> float:
    """As `_fitting`, within what few records span where the messages tell it."""
    d = deployment
    rank = d.rank(client)
    asked = d.components * -(-rank // d.components)
    few = d.exact and asked + rank < d.features
    n = asked + rank if few else d.features
    unknown, answers = n * (n + 1) / 2, d.rounds * n * d.components
    work = 16 * (2 * answers * unknown**2 + 4 * unknown**3)
    # Most of it is done on few rounds where the records are few; the two rates are measured.
    return 1.0 + work * _SLOW / (38 if few else 2.5)


_ANSWERS = _sends(Uploads.PRODUCTS, Uploads.UPDATE)
_MODELS = _sends(Uploads.EIGENVECTORS, Uploads.MATRIX, Uploads.FRAMES)
_ADDED = Uploads.MATRIX, Uploads.FRAMES, Uploads.CENTRES, Uploads.GRADIENTS
_ADDED_MODELS = _sends(*_ADDED, added=True)
_FRAMES, _CENTRES = _sends(Uploads.FRAMES), _sends(Uploads.CENTRES)
_ADDED_ANSWERS = _sends(Uploads.PRODUCTS, Uploads.UPDATE, added=True)
_LINEAR = _after_each(lambda d: smallest())
_SYMMETRIC = _after_each(lambda d: completion(d.trace))
_RIDGE = _after_each(lambda d: shrunk(d.features, trace=d.trace))
_search = partial(MatrixAttack, searches=True)
#: Of those that fit a deployment, the first is what pages show.
MATRIX_ATTACKS = (
    MatrixAttack("low_rank", "low-rank reading", _sends(Uploads.PRODUCTS), _at_once, _low_rank),
    MatrixAttack("span", "whole numbers in the span", _spanned, _reducing, _span),
    MatrixAttack("linear", "linear equations", _ANSWERS, _solving, _LINEAR),
    MatrixAttack("symmetric", "symmetric completion", _ANSWERS, _solving, _SYMMETRIC),
    MatrixAttack("ridge", "ridge", _noisy, _solving, _RIDGE),
    MatrixAttack("model", "the model as it was sent", _MODELS, _at_once, _model),
    MatrixAttack("sums", "sums over the clients", _ADDED_ANSWERS, _solving, _sums),
    MatrixAttack("summed_model", "the mean of the models", _ADDED_MODELS, _at_once, _model),
    _search("replay", "replay of the update", _replayable, _replaying, _replayed),
    _search("fit", "fit of the local runs", _FRAMES, _fitting, _solved(fit_runs)),
    _search("frames", "the private frames", _CENTRES, _fitting, _solved(second_moment)),
    MatrixAttack("two_runs", "comparison of two runs", _twice, _at_once, _joined, Target.NEWCOMER),
)
