"""Clients that pass their own messages to the server.

The server subtracts them from the sums of secure aggregation, and with all but one client colluding
what is left is that client's upload: a more telling transcript, which any attack can read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.transcript import Exchange, Transcript


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
    kept = {client: _uploads(told, client) for client in clients}
    latest: dict[int, Arrays] = {}
    exchanges = []
    for exchange in transcript.exchanges:
        for client in clients:
            if client not in exchange.participants:
                continue
            if exchange.round not in kept[client]:
                raise InvalidInput(
                    f"Client {client} took part in round {exchange.round} but tells nothing about "
                    "it; give its uploads of every round it took part in."
                )
            latest[client] = kept[client][exchange.round]
        exchanges.append(_subtract(exchange, latest, clients))
    hidden = any(exchange.uploads is None for exchange in exchanges)
    return replace(transcript, exchanges=tuple(exchanges), secure_aggregation=hidden)


def _uploads(told: Transcript, client: int) -> dict[int, Arrays]:
    return {
        exchange.round: {name: array[row] for name, array in (exchange.uploads or {}).items()}
        for exchange, row in told.seen(client)
    }


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
