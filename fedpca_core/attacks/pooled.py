"""What sums reveal: the attack on secure aggregation.

The server receives ``sum_i w_i S_i Z_i`` only, where Z_i is the frame client i answered last. With
all clients in every round these sums speak of S alone, and the best guess at one client is S. With
changing participants, each sum is an equation in *all* clients' matrices with known coefficients,
and enough of them single out each client: varying subsets undo the protection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import Estimate
from fedpca_core.attacks.linear_system import LinearSystem, is_single_precision
from fedpca_core.attacks.symmetric import complete, symmetric_prior
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.transcript import Exchange, Transcript


def pooled(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
    *,
    trace: float | None = None,
    cutoff: float | None = None,
) -> Array:
    """Reconstruct one client's S_i from sums over clients.

    Of all matrices ``S_1 .. S_d`` that explain the sums, take those with the least
    ``sum_i w_i ||S_i - prior||_F^2``. While the same clients appear in every sum this makes them
    all equal to the mean over these clients, which is then completed symmetrically.

    Parameters
    ----------
    transcript, client, rounds, prior, cutoff
        As in `linear`; the prior is the same for every client.
    trace : float, optional
        Stated trace of the mean over the clients in the sums, used while these are always the same.

    Returns
    -------
    (features, features) float64, symmetric

    Raises
    ------
    InvalidInput
        The server received single uploads, nothing was recorded, or the client is in no sum.
    """
    chosen, start = transcript.until(rounds), _start(prior, transcript.features)
    return _solve(chosen, client, list(_sums(chosen, client)), start, trace, cutoff)[0]


def pooled_rounds(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
    *,
    trace: float | None = None,
    cutoff: float | None = None,
) -> Iterator[Estimate]:
    """`pooled` after each round. Ranks count directions of S while only S is seen."""
    chosen, start = transcript.until(rounds), _start(prior, transcript.features)
    sums = list(_sums(chosen, client))
    for count in range(len(sums) + 1):
        yield _solve(chosen, client, sums[:count], start, trace, cutoff)


@dataclass(frozen=True)
class _Sum:
    """One sum: its value, each contributor's frame, and whether all of these are the same."""

    value: Array
    frames: dict[int, Array]
    weights: Array


def _start(prior: Array | None, features: int) -> Array:
    known = symmetric_prior(prior, features)
    return np.zeros((features, features)) if known is None else known


def _sums(transcript: Transcript, client: int) -> Iterator[_Sum]:
    require(
        0 <= client < transcript.clients,
        f"There is no client {client}; choose one of 0 to {transcript.clients - 1}.",
    )
    require(
        not transcript.exchanges
        or any(exchange.sum_weights[client] > 0 for exchange in transcript.exchanges),
        f"Client {client} is in none of the sums of the {len(transcript.exchanges)} rounds; "
        "choose another client or read more rounds.",
    )
    answered: dict[int, Array] = {}
    for exchange in transcript.exchanges:
        value, frame = _message(exchange)
        answered.update(dict.fromkeys(exchange.participants.tolist(), frame))
        members = np.flatnonzero(exchange.sum_weights > 0).tolist()
        yield _Sum(value, {member: answered[member] for member in members}, exchange.sum_weights)


def _message(exchange: Exchange) -> tuple[Array, Array]:
    if not exchange.recorded:
        raise InvalidInput(
            f"The messages of round {exchange.round} were not recorded; "
            "run again with Channel(record='full') or a larger byte_limit."
        )
    if exchange.sums is None:
        raise InvalidInput(
            "This attack reads sums over clients, but the server received every client's own "
            "upload; use the linear or symmetric attack on those, or switch secure aggregation on."
        )
    if "product" not in exchange.sums or "frame" not in exchange.downlink:
        raise InvalidInput(
            "This attack needs sums of uploads called 'product' that answer a broadcast 'frame', "
            f"but round {exchange.round} carried {sorted(exchange.sums)} for "
            f"{sorted(exchange.downlink)}; choose an attack made for this method."
        )
    return exchange.sums["product"], exchange.downlink["frame"]


def _solve(
    transcript: Transcript,
    client: int,
    sums: list[_Sum],
    prior: Array,
    trace: float | None,
    cutoff: float | None,
) -> tuple[Array, int]:
    if not sums:
        return complete(LinearSystem.empty(transcript.features), prior, trace, cutoff)
    if _together(sums) and client in sums[0].frames:
        return complete(_stacked(transcript.features, sums, client), prior, trace, cutoff)
    return _separate(transcript, client, sums, prior, cutoff)


def mean_system(transcript: Transcript, client: int, rounds: int | None = None) -> LinearSystem:
    """Questions and answers of the mean over the clients in the sums, always the same ones.

    Raises
    ------
    InvalidInput
        No sums, or sums over changing clients: `pooled` then singles out each of them.
    """
    chosen = transcript.until(rounds)
    sums = list(_sums(chosen, client))
    require(
        _together(sums),
        "The clients in the sums change from round to round, so they have no mean of their own to "
        "ask about; reconstruct each client with attacks.pooled.",
    )
    return _stacked(transcript.features, sums, client)


def _together(sums: list[_Sum]) -> bool:
    """Whether all sums are over the same clients, each answering the broadcast of the round."""
    return all(
        np.array_equal(one.weights, sums[0].weights)
        and all(frame is one.frames[min(one.frames)] for frame in one.frames.values())
        for one in sums
    )


def _stacked(features: int, sums: list[_Sum], client: int) -> LinearSystem:
    system = LinearSystem.empty(features)
    for one in sums:
        system = system.with_pair(one.frames[client], one.value / one.weights.sum())
    return system


def _separate(
    transcript: Transcript, client: int, sums: list[_Sum], prior: Array, cutoff: float | None
) -> tuple[Array, int]:
    """Least-norm solution for all clients at once, in the unknowns ``sqrt(w_i) (S_i - prior)``."""
    features = transcript.features
    columns = sums[0].value.shape[1]
    stack = np.zeros((transcript.clients, features, len(sums) * columns))
    answers = np.zeros((features, len(sums) * columns))
    scale = np.sqrt(transcript.weights)
    for position, one in enumerate(sums):
        place = slice(position * columns, (position + 1) * columns)
        answers[:, place] = one.value
        for member, frame in one.frames.items():
            stack[member, :, place] = one.weights[member] / scale[member] * frame
            answers[:, place] -= one.weights[member] * (prior @ frame)
    probes = stack.reshape(transcript.clients * features, -1)
    single = all(is_single_precision(frame) for one in sums for frame in one.frames.values())
    left, sigma, right = np.linalg.svd(probes, full_matrices=False)
    limit = LinearSystem.relative_cutoff(single) if cutoff is None else cutoff
    kept = sigma > limit * sigma[0]
    rows = left[client * features : (client + 1) * features, kept]
    step = (answers @ right[kept].T / sigma[kept]) @ rows.T / scale[client]
    return prior + 0.5 * (step + step.T), int(np.linalg.matrix_rank(rows))
