"""What two runs tell that neither tells alone: records that joined or left between them.

With M records before and M + k after, ``(M + k) S' - M S = sum x x^T`` over the k that joined, or
left at somebody's request. M counts the client's own records, or those of everybody whose upload is
in the sum: secure aggregation hides whose records they are, not the records. (FedPG, attack
surface, for one record of a retrained client; sums, several records and the other methods are
ours.)

`differencing` subtracts two reconstructions. `joined` reads the difference wherever both runs have
been asked the same directions, so it takes no more than that these span k dimensions in common.
Where each run is centred on its own announced mean, ``(M + k) mu' mu'^T - M mu mu^T`` is public and
is added back.
"""

from typing import NamedTuple

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import LinearSystem, read
from fedpca_core.attacks.low_rank import Factor, from_answers
from fedpca_core.attacks.pooled import mean_system
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript

#: Directions are common to both runs when the cosine between them is this close to 1.
_COMMON = 1e-9
#: Directions asked with less than this share of the clearest magnify the rounding of the answers,
#: which the difference magnifies again.
_CLEAR = 1e-5


class Differencing(NamedTuple):
    """The record that came or went, as the server reads it."""

    #: (..., features) float64: The record; its sign is chosen so that the entries sum to no
    #: negative number.
    records: Array
    #: (...) float64: Share of the leading eigenvalue in the difference (sum of magnitudes), 1 for
    #: exactly one record: the server sees for itself whether to believe it.
    purity: Array


def records_behind(transcript: Transcript, client: int) -> int:
    """How many records the matrix stands for that an attack makes of these messages.

    The client's own where its uploads are seen, or where the clients in the sums change and
    `attacks.pooled` singles out each; all those in the sums where they are always the same.

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

    ``before``, ``after``, (..., features, features) float64: Of both runs, or their paths.
    ``records_before``, ``records_after``: Public counts (`records_behind`).

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


def joined(
    before: Transcript,
    after: Transcript,
    client: int = 0,
    *,
    means: tuple[Array, Array] | None = None,
    noise: float = 0.0,
) -> Factor:
    """The second moment of the records that joined (or left) between two runs, as a factor.

    Reads the client's own uploads where the server sees them and the sums where it does not, of
    rounds with one local step. ``samples`` of the factor is k: ``attacks.records(factor, ...)``
    goes on from here.

    ``before``, ``after``: Two runs of the same method with single products (SSI, block Krylov,
        LocalPower's single steps).
    ``client``: Whose uploads to compare; any client under secure aggregation.
    ``means``, pair of (features,) float64: The announced means, where each run subtracts its own
        from all records in the sums.
    ``noise``: Stated relative standard deviation of noise on uploads.

    Raises InvalidInput: as many records before as after, messages that cannot be read, or two runs
    that were not asked any direction in common.
    """
    counts = records_behind(before, client), records_behind(after, client)
    change = abs(counts[1] - counts[0])
    require(
        change > 0,
        f"Both runs stand for {counts[0]} records; compare two runs between which records joined "
        "or left.",
    )
    runs = _system(before, client), _system(after, client)
    common, answers, size = _in_common(_answers(runs[0]), _answers(runs[1]), counts)
    if means is not None:
        for weight, count, mean in zip((-1.0, 1.0), counts, means, strict=True):
            centre = np.asarray(mean, dtype=float)
            answers += weight * count * np.outer(centre, centre @ common)
    single = all(run.single_precision for run in runs)
    per_record = np.sign(counts[1] - counts[0]) * answers / change
    system = LinearSystem(common, per_record, answers.size, 0.0, single)
    # What cancels in the difference leaves its rounding and its noise behind.
    left = float(np.sqrt((answers**2).mean()))
    return from_answers(system, change, noise=noise, magnified=size / left if left else 1.0)


def _system(run: Transcript, client: int) -> LinearSystem:
    hidden = any(exchange.uploads is None for exchange in run.exchanges)
    return mean_system(run, client) if hidden else read(run, client)


def _answers(system: LinearSystem) -> tuple[Array, Array]:
    """Orthonormal directions that were asked clearly, and the answers to them."""
    left, sigma, right = np.linalg.svd(system.probes, full_matrices=False)
    kept = sigma > _CLEAR * sigma[0]
    return left[:, kept], system.answers @ right[kept].T / sigma[kept]


def _in_common(
    before: tuple[Array, Array], after: tuple[Array, Array], counts: tuple[int, int]
) -> tuple[Array, Array, float]:
    """Directions asked in both runs, ``(M + k) S' - M S`` applied to them, size of the parts."""
    turn, cosines, back = np.linalg.svd(before[0].T @ after[0], full_matrices=False)
    shared = cosines > 1.0 - _COMMON
    if not shared.any():
        raise InvalidInput(
            "The two runs were asked no direction in common, so their answers cannot be "
            "subtracted; read more rounds, or compare runs that start from the same frame."
        )
    first = counts[0] * (before[1] @ turn[:, shared])
    second = counts[1] * (after[1] @ back[shared].T)
    size = float(np.sqrt((first**2).mean() + (second**2).mean()))
    return before[0] @ turn[:, shared], second - first, size
