"""Records whose mean is kept back: all but one picture that is common to them.

Rows are ``(x_k - mu_k 1)^T Q`` with unknown mu_k. A mean over M records makes them generate
``Z^m + (1/M) 1 Z`` seen through Q, whether or not the server knows mu or M. The vector of ones over
M is very short; across it lie the projections of the unit vectors, of length ``sqrt(1 - 1/m)`` and
with products -1/m among each other (the dual of the root lattice A_(m-1)), and what is orthogonal
to these is the direction of ones. Together they give Q, up to a sign that is common to all records.
What stays open is one whole number for each feature and that sign: the server has every difference
between two records, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.lattice import advice, reduce_generators
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.attacks.polish import chance
from fedpca_core.attacks.sieve import sieve
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import polar

#: Lengths of tags to try: for data kept as float32, then for exact ones.
_TAGS = (1e-3, 1e-2, 1e-5, 1e-7)
#: Products of projected unit vectors may be off by so much before they are polished.
_OFF = 0.1
#: Farthest from the grid that an entry may lie, in grid units. Each row has an offset of its own,
#: which can hide a misread entry at 0.2; true differences lie within 1e-3.
_NEAREST = 0.02
#: A wrong rotation must come as close with a chance below this (decimal logarithm).
_CHANCE = -12.0
#: Refits, and the root mean square distance from the grid at which more rows join; 0.29 is chance.
_ROUNDS, _NEAR = 25, 0.15


@dataclass(frozen=True)
class Differences:
    """What is left of the records when nobody tells their mean.

    Attributes
    ----------
    certified : bool
        Whether the differences between the records below are the true ones, up to a common sign.
    whole : (features, samples) int64 or None
        Records in grid units above their smallest value in each feature, in an order of their own.
        The negative explains the matrix as well; the one with the smaller sum is given.
    largest_distance : float
        Of an unrounded entry from the grid; infinite where no rotation was found.
    note : str
    log10_chance : float
        Decimal logarithm of the chance that a wrong rotation would come as close; 0 without one.
    """

    certified: bool
    whole: IntArray | None
    largest_distance: float
    note: str
    log10_chance: float = 0.0


def records_without_mean(factor: Factor, grid: float | Array = 1.0) -> Differences:
    """Differences between a client's records from its second moment alone.

    Parameters
    ----------
    factor : Factor
        Of at least 3 records that were centred on a mean over many.
    grid : float or (features,) float64
        As in `attacks.records`.
    """
    rank = factor.rank
    require(
        factor.samples >= 3,
        f"Differences need at least 3 records, not {factor.samples}; choose another client.",
    )
    steps = np.broadcast_to(np.asarray(grid, dtype=float), (len(factor.matrix),))
    rows = factor.matrix * (np.sqrt(factor.samples) / steps)[:, None]
    short = sieve(rows, factor.error * float(np.sqrt(rank) / np.median(steps)), 0.1).rows
    if rank < factor.samples or len(short) <= rank:
        return Differences(False, None, np.inf, "Not certified: the matrix has too small a rank.")
    count = min(len(short), 4 * rank + 10)
    chosen = short[np.linspace(0, len(short) - 1, count).astype(np.int64)]
    closest = np.inf
    for epsilon in _TAGS:
        reduced = reduce_generators(chosen, epsilon)
        turn = None if reduced is None else _rotation(reduced.basis)
        if turn is None:
            continue
        for stage in (short, rows):
            whole, distances, turn = _polished(stage, turn)
        largest = float(distances.max())
        closest = min(closest, largest)
        # One entry of every row went into its offset.
        odds = chance(rows, np.zeros(len(rows)), np.ones(rank)) * (rank - 1) / rank
        if largest < _NEAREST and odds < _CHANCE:
            return _certified(whole, largest, odds)
    return Differences(
        False, None, closest, f"Not certified: no rotation fits the grid. {advice()}".strip()
    )


def _rotation(basis: Array) -> Array | None:
    """Q up to a common sign, from projected unit vectors and what is orthogonal to them."""
    size = len(basis)
    across = basis[1:]  # the shortest is the vector of ones, or noise
    ones = np.linalg.svd(across)[2][-1]
    signs = np.where(across @ across[0] > 0, -1.0, 1.0)
    signs[0] = 1.0
    across = across * signs[:, None]
    across = np.vstack([across, -across.sum(axis=0)])
    if np.abs(across @ across.T - (np.eye(size) - 1.0 / size)).max() > _OFF:
        return None
    return polar(across + ones / np.sqrt(size))


def _polished(rows: Array, turn: Array) -> tuple[Array, Array, Array]:
    """Whole numbers up to one offset a row, their distances from the grid, and the refitted Q."""
    order = np.argsort(np.linalg.norm(rows, axis=1), kind="stable")
    trusted = min(2 * rows.shape[1], len(order))
    for _ in range(_ROUNDS):
        values = rows @ turn.T
        # The part behind the point that the entries of a row have in common.
        offset = np.angle(np.exp(2j * np.pi * values).mean(axis=1)) / (2.0 * np.pi)
        whole = np.rint(values - offset[:, None])
        offset = (values - whole).mean(axis=1)
        distances = np.abs(values - whole - offset[:, None])
        use = order[:trusted]
        # What few rows leave open stays as it was.
        turn = polar((whole + offset[:, None])[use].T @ rows[use] + turn)
        if np.sqrt((distances[use] ** 2).mean()) < _NEAR:
            trusted = min(2 * trusted, len(order))
    return whole, distances, turn


def _certified(whole: Array, largest: float, odds: float) -> Differences:
    darkest = whole - whole.min(axis=1, keepdims=True)
    negative = whole.max(axis=1, keepdims=True) - whole
    best = darkest if darkest.sum() <= negative.sum() else negative
    note = (
        f"Certified: all differences between {whole.shape[1]} records, within {largest:.1g} of the "
        f"grid; a wrong rotation would pass with a chance of 10^{odds:.0f}."
    )
    return Differences(True, best.astype(np.int64), largest, note, odds)
