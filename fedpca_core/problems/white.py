"""White shares: the random part of every synthetic problem, generated in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dsygst

from fedpca_core.arrays import Array
from fedpca_core.remembered import Remembered
from fedpca_core.streams import Streams

#: Moments below this are kept for many seeds, since every visitor may have one; the rest for few.
_SMALL_BYTES = 1024**2
#: From so many records a feature on, raw entries of all clients have a condition number below 1.7,
#: so that a second pass improves nothing. Data smaller than these bytes make it all the same.
_WIDE, _LARGE_BYTES = 16, 32 * 1024**2


@dataclass
class WhiteShares:
    """Blocks W_i with ``sum_i W_i W_i^T = m I``: data without any principal direction."""

    samples: tuple[int, ...]
    #: list of (features, m_i) float64, or None.
    blocks: list[Array] | None
    #: (clients, features, features) float64, or None: W_i W_i^T / m_i.
    moments: Array | None
    #: Whether others may be given the same arrays later, so that they must not be changed.
    remembered: bool = False


def white_shares(
    features: int,
    samples: tuple[int, ...],
    seed: int,
    *,
    blocks: bool,
    moments: bool,
    remember: bool,
    drawn: int = 0,
) -> WhiteShares:
    """Draw uniform [-1, 1] entries and orthonormalise them over all clients together.

    ``W_i = sqrt(m) V_i^T`` with V = [V_1; V_2; ...] of orthonormal columns: FAPS's V, found by two
    passes of Cholesky QR. Each pass over large data draws the entries anew from their stream, so
    only what is asked for is ever held. The pooled data do not depend on how they are split over
    clients. With ``remember`` the result is kept, as a move of a parameter wants it; ``drawn``
    says of how many features these are the leading ones, as a triangular division leaves them.
    """
    asked = features, samples, seed, blocks, moments, remember, max(drawn, features)

    def made() -> WhiteShares:
        entries = max(drawn, features), samples, seed, features
        records = sum(samples)
        large = 8 * features * records > _LARGE_BYTES
        if records >= _WIDE * features and large:
            whole = _made_at_once(_drawn(*entries), features, samples, blocks, moments)
            return replace(whole, remembered=remember)
        if large:
            first = cholesky(_pooled(_drawn(*entries)), lower=True)
            second = cholesky(_pooled(_divided(_drawn(*entries), first)), lower=True)
            stream = _divided(_divided(_drawn(*entries), first), second)
        else:  # held: drawing and dividing again costs twice as much
            held = list(_drawn(*entries))
            for _ in range(2):
                held = list(_divided(iter(held), cholesky(_pooled(iter(held)), lower=True)))
            stream = iter(held)
        kept: list[Array] = []
        squares = np.empty((len(samples), features, features)) if moments else None
        for client, block in enumerate(stream):
            block *= np.sqrt(records)
            if squares is not None:
                np.matmul(block, block.T, out=squares[client])
                squares[client] /= samples[client]
            if blocks:
                kept.append(block)
        return WhiteShares(samples, kept if blocks else None, squares, remembered=remember)

    if not remember:
        return made()
    small = not blocks and 8 * len(samples) * features**2 <= _SMALL_BYTES
    return (_many if small else _few).get(asked, made)


def _made_at_once(
    drawn: Iterator[Array], features: int, samples: tuple[int, ...], blocks: bool, moments: bool
) -> WhiteShares:
    """One pass over entries that are drawn once; moments are divided in place of the blocks."""
    total = np.zeros((features, features))
    kept: list[Array] = []
    squares = np.empty((len(samples), features, features)) if moments else None
    for client, block in enumerate(drawn):
        gram = block @ block.T
        total += gram
        if squares is not None:
            squares[client] = gram
        if blocks:
            kept.append(block)
    lower = np.asfortranarray(cholesky(total, lower=True))
    records = sum(samples)
    for client, size in enumerate(samples):
        if squares is not None:  # L^(-1) G L^(-T), of which LAPACK writes the lower triangle
            half = np.tril(dsygst(squares[client].T, lower, lower=1, overwrite_a=1)[0])
            np.fill_diagonal(half, 0.5 * half.diagonal())
            np.add(half, half.T, out=squares[client])
            squares[client] *= records / size
        if blocks:
            kept[client] = dtrsm(np.sqrt(records), lower, kept[client], lower=1, overwrite_b=1)
    return WhiteShares(samples, kept if blocks else None, squares)


_few: Remembered[WhiteShares] = Remembered(4)
_many: Remembered[WhiteShares] = Remembered(64)


def _drawn(features: int, samples: tuple[int, ...], seed: int, leading: int) -> Iterator[Array]:
    """One client's raw entries after the other, record by record, (leading, m_i)."""
    generator = Streams(seed).generator("data")
    for size in samples:
        yield np.ascontiguousarray(generator.uniform(-1.0, 1.0, (size, features))[:, :leading]).T


def _divided(blocks: Iterator[Array], lower: Array) -> Iterator[Array]:
    """L^(-1) times every block, in place."""
    triangle = np.asfortranarray(lower)
    for block in blocks:
        yield dtrsm(1.0, triangle, block, lower=1, overwrite_b=1)


def _pooled(blocks: Iterator[Array]) -> Array:
    """Sum of B_i B_i^T."""
    first = next(blocks)
    total: Array = first @ first.T
    for block in blocks:
        total += block @ block.T
    return total
