"""What sums reveal: the attack on secure aggregation.

The server receives ``sum_i w_i S_i Z_i`` only, where Z_i is the frame client i answered last. With
all clients in every round these sums speak of S alone. With changing participants each is an
equation in *all* clients' matrices, and enough of them single out each client.

Clients that pass their own messages to the server are subtracted from the sums, and with all but
one client colluding what is left is that client's upload: a more telling transcript, which any
attack can read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.attacks.linear import Estimate, LinearSystem, completion, is_single_precision
from fedpca_core.errors import InvalidInput, check_client, require
from fedpca_core.protocol.transcript import Exchange, Transcript

#: A sum of answers, the frames that were answered by client, and everybody's weights in it.
_Sum = tuple[Array, dict[int, Array], Array]
#: A direction is a client's alone when so little of it belongs to the others.
_ALONE = 1e-8


def pooled(transcript: Transcript, client: int = 0) -> Array:
    """Reconstruct one client's S_i from sums over clients, (features, features), symmetric.

    Of all matrices ``S_1 .. S_d`` that explain the sums, take those with the least
    ``sum_i w_i ||S_i||_F^2``. While the same clients appear in every sum this makes them all equal
    to the mean over these clients, which is then completed symmetrically.

    Raises InvalidInput: single uploads, nothing recorded, or a client that is in no sum.
    """
    *_, everything = _growing(transcript, client)
    return _solved(*everything, transcript, client)[0]


def pooled_rounds(transcript: Transcript, client: int = 0) -> Iterator[Estimate]:
    """`pooled` after each round. Ranks count directions of S while only S is seen, and then those
    of the client's own matrix that the sums determine."""
    for stage in _growing(transcript, client):
        yield _solved(*stage, transcript, client)


def _sums(transcript: Transcript, client: int) -> Iterator[_Sum]:
    check_client(client, transcript.clients)
    weights = [exchange.sum_weights[client] for exchange in transcript.exchanges]
    require(
        not weights or max(weights) > 0,
        f"Client {client} is in none of the sums of the {len(transcript.exchanges)} rounds; "
        "choose another client or read more rounds.",
    )
    answered: dict[int, Array] = {}
    for exchange in transcript.exchanges:
        exchange.check_recorded()
        sums, downlink = exchange.sums, exchange.downlink
        if sums is None:
            raise InvalidInput(
                "This attack reads sums over clients, but the server received every client's own "
                "upload; use the linear or symmetric attack on those, or switch secure aggregation "
                "on."
            )
        require(
            "product" in sums and "frame" in downlink,
            "This attack needs sums of uploads called 'product' that answer a broadcast 'frame', "
            f"but round {exchange.round} carried {', '.join(sorted(sums))} for "
            f"{sorted(downlink)}; choose an attack made for this method.",
        )
        answered.update(dict.fromkeys(exchange.participants.tolist(), downlink["frame"]))
        members = np.flatnonzero(exchange.sum_weights > 0).tolist()
        frames = {member: answered[member] for member in members}
        yield sums["product"], frames, exchange.sum_weights


def _growing(transcript: Transcript, client: int) -> Iterator[tuple[LinearSystem, bool]]:
    """The equations after every round, and whether they are of all matrices side by side.

    While the sums are over the same clients they are of these clients' mean, then of all
    ``sqrt(w_i) S_i``.
    """
    sums: list[_Sum] = []
    system, joint = LinearSystem.empty(transcript.features), False
    yield system, joint
    for one in _sums(transcript, client):
        sums.append(one)
        value, frames, weights = one
        if not joint and client in sums[0][1] and _alike(one, sums[0]):
            system = system.with_pair(frames[client], value / weights.sum())
        elif joint:
            system = _with_sum(system, one, transcript.weights)
        else:
            rows = transcript.clients * transcript.features
            system, joint = LinearSystem(np.zeros((rows, 0)), np.zeros_like(value[:, :0])), True
            for earlier in sums:
                system = _with_sum(system, earlier, transcript.weights)
        yield system, joint


def _solved(system: LinearSystem, joint: bool, transcript: Transcript, client: int) -> Estimate:
    """The matrix of a client: the mean, or its part of the least solution for all clients."""
    if not joint:
        return completion().of(system)
    features = transcript.features
    left, sigma, right = np.linalg.svd(system.probes, full_matrices=False)
    kept = sigma > system.relative_cutoff * sigma[0]
    rows = left[client * features : (client + 1) * features, kept]
    step = (system.answers @ right[kept].T / sigma[kept]) @ rows.T
    step /= np.sqrt(transcript.weights[client])
    # Directions in which the equations single this client out from all others.
    told = np.linalg.svd(rows, compute_uv=False) > 1.0 - _ALONE
    return 0.5 * (step + step.T), int(told.sum())


def _alike(one: _Sum, first: _Sum) -> bool:
    """Whether a sum is over the same clients as the first, all of which answer one broadcast."""
    _, frames, weights = one
    return np.array_equal(weights, first[2]) and len({id(frame) for frame in frames.values()}) == 1


def mean_system(transcript: Transcript, client: int) -> LinearSystem:
    """Questions and answers of the mean over the clients in the sums, always the same ones.

    Raises InvalidInput: no sums, or sums over changing clients: `pooled` then singles each out.
    """
    *_, (system, joint) = _growing(transcript, client)
    if joint:
        raise InvalidInput(
            "The clients in the sums change from round to round, so they have no mean of their own "
            "to ask about; reconstruct each client with attacks.pooled."
        )
    return system


def _with_sum(system: LinearSystem, one: _Sum, weights: Array) -> LinearSystem:
    """One more sum, in the unknowns ``sqrt(w_i) S_i``."""
    value, frames, shares = one
    stack = np.zeros((len(weights), *value.shape))
    for member, frame in frames.items():
        stack[member] = shares[member] / np.sqrt(weights[member]) * frame
    grown = system.with_pair(stack.reshape(-1, value.shape[1]), value)
    # Seen from the frames: scaled by a weight they are no float32 numbers any more.
    single = all(map(is_single_precision, frames.values()))
    return replace(grown, single_precision=system.single_precision and single)


# ------------------------------------------------------------------ clients that tell the server
def collude(transcript: Transcript, told: Transcript, clients: Sequence[int]) -> Transcript:
    """The server's view once the uploads of colluding clients are subtracted from every sum.

    ``told`` has the colluders' uploads one by one: in a simulation, the same run without secure
    aggregation, because messages do not depend on how they are added up.

    Raises InvalidInput: a transcript without sums, a client that is named twice, a message missing
    from the record, or nobody left to attack.
    """
    require(
        len(set(clients)) == len(clients),
        f"Each colluding client counts once, but the clients were {sorted(clients)}.",
    )
    require(
        len(clients) < transcript.clients,
        f"All {transcript.clients} clients collude, so nobody is left to attack; "
        f"choose at most {transcript.clients - 1}.",
    )
    require(
        all(0 <= client < transcript.clients for client in clients),
        f"The colluding clients {sorted(clients)} are not all among the {transcript.clients} "
        f"clients; choose numbers from 0 to {transcript.clients - 1}.",
    )
    seen = {client: {one.round: (one, row) for one, row in told.seen(client)} for client in clients}
    latest: dict[int, Arrays] = {}
    exchanges = []
    for exchange in transcript.exchanges:
        for client in clients:
            if client not in exchange.participants:
                continue
            if exchange.round not in seen[client]:
                raise InvalidInput(
                    f"Client {client} took part in round {exchange.round} but tells nothing about "
                    "it; give its uploads of every round it took part in."
                )
            one, row = seen[client][exchange.round]
            latest[client] = {name: array[row] for name, array in (one.uploads or {}).items()}
        exchanges.append(_subtract(exchange, latest, clients))
    hidden = any(exchange.uploads is None for exchange in exchanges)
    return replace(transcript, exchanges=tuple(exchanges), secure_aggregation=hidden)


def _subtract(exchange: Exchange, latest: Mapping[int, Arrays], clients: Sequence[int]) -> Exchange:
    exchange.check_recorded()
    if exchange.sums is None:
        raise InvalidInput(
            "Collusion is about sums over clients, but the server received every client's own "
            "upload already; attack these, or switch secure aggregation on."
        )
    honest = ~np.isin(exchange.participants, clients)
    weights = exchange.sum_weights.copy()
    rest: dict[str, Array] = dict(exchange.sums)
    for client, statement in latest.items():
        for name, message in statement.items():
            rest[name] = rest[name] - weights[client] * message
        weights[client] = 0.0
    left = np.flatnonzero(weights > 0)
    participants = exchange.participants[honest]
    uploads = None
    if len(left) <= 1 and len(participants) <= 1:
        uploads = {
            name: array[None][: len(participants)] / (weights[left[0]] if len(left) else 1.0)
            for name, array in rest.items()
        }
    return replace(
        exchange,
        participants=participants,
        weights=exchange.weights[honest],
        uploads=uploads,
        sums=rest,
        sum_weights=weights,
    )
