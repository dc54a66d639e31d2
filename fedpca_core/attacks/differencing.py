"""One record: what two runs tell that neither tells alone.

Between two runs a single record joins a client, or leaves it at somebody's request. Whoever has
the second moments before and after subtracts: ``(n + 1) S' - n S = x x^T``, the record that joined
up to its sign. n counts the records behind the matrix: the client's own, or those of everybody
whose upload is in the sum. Secure aggregation therefore hides whose record it is, not the record.
(FedPG, attack surface, for retrained clients; sums and the other methods are ours.)
"""

from typing import NamedTuple

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript


class Differencing(NamedTuple):
    """The record that came or went, as the server reads it."""

    #: (..., features) float64: The record; its sign is chosen so that the entries sum to no
    #: negative number.
    records: Array
    #: (...) float64: Share of the leading eigenvalue in the difference (sum of magnitudes), between
    #: 0 and 1. A difference of exactly one record has 1, so the server sees for itself whether to
    #: believe it.
    purity: Array


def records_behind(transcript: Transcript, client: int) -> int:
    """How many records the matrix stands for that an attack makes of these messages.

    The client's own where its uploads are seen; all those in the sums where only sums are, and
    always of the same clients. (Where the clients in the sums change, `attacks.pooled` singles out
    each of them, and the client's own count again.)

    Raises InvalidInput: sums over clients that do not count by their records: the difference is
    then no single record.
    """
    own = int(transcript.samples[client])
    sums = [exchange for exchange in transcript.exchanges if exchange.uploads is None]
    if not sums:
        return own
    weights = sums[0].sum_weights
    if any(not np.array_equal(exchange.sum_weights, weights) for exchange in sums):
        return own
    members = weights > 0
    share = weights[members] / weights[members].sum()
    counts = transcript.samples[members]
    require(
        bool(np.allclose(share, counts / counts.sum(), rtol=1e-9)),
        "The clients in the sums do not count by their records, so the difference of two runs is "
        "no single record; weigh clients by their records or switch secure aggregation off.",
    )
    return int(counts.sum())


def differencing(
    before: Array, after: Array, records_before: int, records_after: int
) -> Differencing:
    """The one record by which two reconstructions of a second-moment matrix differ.

    ``before``, ``after``, (..., features, features) float64: Reconstructions of the matrix in the
        first and in the second run, for instance of `attacks.symmetric` or `attacks.pooled`, or
        their paths over the rounds.
    ``records_before``, ``records_after``: Public counts of the records behind them; see
        `records_behind`.

    Raises InvalidInput: counts that do not differ by exactly one.
    """
    require(
        abs(records_after - records_before) == 1,
        f"Between the runs exactly one record must have come or gone, but the counts are "
        f"{records_before} and {records_after}; compare two runs that differ by one record.",
    )
    if before.shape != after.shape:
        raise InvalidInput(
            f"The two reconstructions have shapes {before.shape} and {after.shape}; read as many "
            "rounds of both runs."
        )
    sign = records_after - records_before
    difference = sign * (records_after * after - records_before * before)
    values, vectors = np.linalg.eigh(symmetric_part(difference))
    total = np.abs(values).sum(axis=-1)
    leading = np.clip(values[..., -1], 0.0, None)
    records = vectors[..., -1] * np.sqrt(leading)[..., None]
    records = records * np.where(records.sum(axis=-1) < 0, -1.0, 1.0)[..., None]
    purity = np.divide(leading, total, out=np.zeros_like(leading), where=total > 0)
    return Differencing(np.asarray(records), np.asarray(purity))
