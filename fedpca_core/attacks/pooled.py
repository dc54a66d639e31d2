"""What sums reveal: the attack on secure aggregation.

The server receives ``sum_i w_i S_i Z_i`` only, where Z_i is the frame client i answered last. With
all clients in every round these sums speak of S alone, and the best guess at one client is S. With
changing participants, each sum is an equation in *all* clients' matrices with known coefficients,
and enough of them single out each client: varying subsets undo the protection.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import Estimate, completion
from fedpca_core.attacks.linear_system import LinearSystem, is_single_precision
from fedpca_core.errors import InvalidInput, check_client, require
from fedpca_core.protocol.transcript import Exchange, Transcript

#: A direction is a client's alone when so little of it belongs to the others.
_ALONE = 1e-8


def pooled(transcript: Transcript, client: int = 0) -> Array:
    """Reconstruct one client's S_i from sums over clients, (features, features), symmetric.

    Of all matrices ``S_1 .. S_d`` that explain the sums, take those with the least
    ``sum_i w_i ||S_i||_F^2``. While the same clients appear in every sum this makes them all equal
    to the mean over these clients, which is then completed symmetrically.

    Raises InvalidInput: the server received single uploads, nothing was recorded, or the client is
    in no sum.
    """
    *_, everything = _growing(transcript, client)
    return everything.solve(transcript, client)[0]


def pooled_rounds(transcript: Transcript, client: int = 0) -> Iterator[Estimate]:
    """`pooled` after each round. Ranks count directions of S while only S is seen, and then those
    of the client's own matrix that the sums determine."""
    for stage in _growing(transcript, client):
        yield stage.solve(transcript, client)


@dataclass(frozen=True)
class _Sum:
    """One sum: its value, each contributor's frame, and whether all of these are the same."""

    value: Array
    frames: dict[int, Array]
    weights: Array


def _sums(transcript: Transcript, client: int) -> Iterator[_Sum]:
    check_client(client, transcript.clients)
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
    exchange.check_recorded()
    if exchange.sums is None:
        raise InvalidInput(
            "This attack reads sums over clients, but the server received every client's own "
            "upload; use the linear or symmetric attack on those, or switch secure aggregation on."
        )
    if "product" not in exchange.sums or "frame" not in exchange.downlink:
        raise InvalidInput(
            "This attack needs sums of uploads called 'product' that answer a broadcast 'frame', "
            f"but round {exchange.round} carried {', '.join(sorted(exchange.sums))} for "
            f"{sorted(exchange.downlink)}; choose an attack made for this method."
        )
    return exchange.sums["product"], exchange.downlink["frame"]


@dataclass(frozen=True)
class _Stage:
    """The equations of the sums so far.

    ``mean`` are those of the mean over the clients in the sums, where these are always the same.
    ``joint`` are those of all matrices side by side, ``sqrt(w_i) S_i``, elsewhere.
    """

    mean: LinearSystem | None
    joint: LinearSystem | None = None

    def solve(self, transcript: Transcript, client: int) -> Estimate:
        if self.mean is not None:
            return completion().of(self.mean)
        assert self.joint is not None
        return _least(self.joint, transcript, client)


def _growing(transcript: Transcript, client: int) -> Iterator[_Stage]:
    """The equations after round 0, 1, 2, ..."""
    sums: list[_Sum] = []
    mean, joint = LinearSystem.empty(transcript.features), None
    yield _Stage(mean)
    for one in _sums(transcript, client):
        sums.append(one)
        if joint is None and client in sums[0].frames and _alike(one, sums[0]):
            mean = mean.with_pair(one.frames[client], one.value / one.weights.sum())
            yield _Stage(mean)
            continue
        if joint is None:
            rows = transcript.clients * transcript.features
            joint = LinearSystem(np.zeros((rows, 0)), np.zeros((transcript.features, 0)))
            for earlier in sums[:-1]:
                joint = _with_sum(joint, earlier, transcript.weights)
        joint = _with_sum(joint, one, transcript.weights)
        yield _Stage(None, joint)


def _alike(one: _Sum, first: _Sum) -> bool:
    """Whether a sum is over the same clients as the first, all of which answer one broadcast."""
    frames = list(one.frames.values())
    same = np.array_equal(one.weights, first.weights)
    return same and all(frame is frames[0] for frame in frames)


def mean_system(transcript: Transcript, client: int) -> LinearSystem:
    """Questions and answers of the mean over the clients in the sums, always the same ones.

    Raises InvalidInput: no sums, or sums over changing clients: `pooled` then singles out each of
    them.
    """
    *_, everything = _growing(transcript, client)
    require(
        everything.mean is not None,
        "The clients in the sums change from round to round, so they have no mean of their own to "
        "ask about; reconstruct each client with attacks.pooled.",
    )
    assert everything.mean is not None
    return everything.mean


def _with_sum(system: LinearSystem, one: _Sum, weights: Array) -> LinearSystem:
    """One more sum, in the unknowns ``sqrt(w_i) S_i``."""
    features, columns = one.value.shape
    stack = np.zeros((len(weights), features, columns))
    for member, frame in one.frames.items():
        stack[member] = one.weights[member] / np.sqrt(weights[member]) * frame
    grown = system.with_pair(stack.reshape(-1, columns), one.value)
    # Seen from the frames: scaled by a weight they are no float32 numbers any more.
    single = all(is_single_precision(frame) for frame in one.frames.values())
    return replace(grown, single_precision=system.single_precision and single)


def _least(system: LinearSystem, transcript: Transcript, client: int) -> Estimate:
    """One client's part of the least-norm solution for all clients at once."""
    features = transcript.features
    left, sigma, right = np.linalg.svd(system.probes, full_matrices=False)
    kept = sigma > system.relative_cutoff * sigma[0]
    rows = left[client * features : (client + 1) * features, kept]
    step = (system.answers @ right[kept].T / sigma[kept]) @ rows.T
    step /= np.sqrt(transcript.weights[client])
    # Directions in which the equations single this client out from all others.
    told = np.linalg.svd(rows, compute_uv=False) > 1.0 - _ALONE
    return 0.5 * (step + step.T), int(told.sum())
