"""From rough directions to whole numbers: signs, rounding, and what a certificate needs.

``B = (X - mu 1^T) D Q`` with D the lengths of the directions (ones, as a rule). Small rows are
rounded first, because an error of a direction moves a row by its own size; the rotation is refitted
to what was rounded (Procrustes), and ever more rows follow. A wrong sign turns x into 2 mu - x,
which lies on the grid only where 2 mu is whole, so signs are decided over all features, again
after each refit.

What the known error of a matrix leaves open: a factor ``B = X Q`` is known up to rounding and
stated noise, so whole records X' explain it when ``X' - B R^T`` is no larger than that error, entry
by entry, for a rotation R. Two explanations differ by a rotation that is near a signed permutation
P as soon as few whole combinations show it roughly. Rows of X' that are short then have to be those
of X P, because whole vectors that are less than 1 apart are equal; these rows bind the rotation
more tightly, and longer rows follow. Where this reaches all rows, no other whole records explain
the matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import polar

#: Farthest from the grid that an entry of a certified record may lie, in grid units.
TOLERANCE = 0.25
#: Refits, and the rows of the first one, in multiples of the rank.
_ROUNDS, _BEGIN = 40, 2
#: Root mean square distance from the grid of a row that can be rounded; 0.29 is pure chance.
_NEAR = 0.2
#: Farthest that an entry may lie off, in multiples of its expected error.
FARTHEST = 5.0
#: Subtracting a mean rounds by its size: records are below two million steps of the grid.
SUBTRACTED = 2e6 * float(np.finfo(float).eps)
#: Rounding of a product, relative to the length of a row.
_ROUNDING = 4.0 * float(np.finfo(float).eps)
#: Weight of the rotation itself in a refit.
_HELD = 1e-6


@dataclass(frozen=True)
class Settled:
    #: (features, rank) float64: Whole numbers, in units of the grid.
    whole: Array
    #: (features, rank) float64: Of the unrounded entries from the grid, at most 0.5.
    distances: Array
    #: (rank,) bool: Whether the mean alone decides the sign; else the larger sum is taken.
    decided: BoolArray
    #: (rank,) float64.
    lengths: Array

    @property
    def largest(self) -> float:
        return float(self.distances.max(initial=0.0))


def settle(
    stages: Sequence[tuple[Array, Array]], directions: Array, lengths: Array, error: Array
) -> Settled:
    """Round, refit and choose signs until nothing changes.

    ``stages``: Pairs of B, (rows, rank), and the mean, (rows,), in units of the grid; the last one
        holds the features themselves, those before it shorter combinations of them, which rough
        directions can round already.
    ``directions``, (rank, rank): Rows e_j^T Q, roughly. ``lengths``, (rank,): Theirs, D.
    ``error``, (features,): Expected error of an entry of B.
    """
    turn = polar(directions / np.linalg.norm(directions, axis=1, keepdims=True))
    for rows, mean in stages:
        settled, turn = _settle(rows, mean, turn, directions, lengths)
    # Rough directions bend the rotation, so at the end it is refitted without them.
    sent = settled.whole - mean[:, None]
    turn = refitted(sent * lengths, rows, turn, error)
    return replace(settled, distances=np.abs(rows @ turn.T / lengths - sent))


def _settle(
    rows: Array, mean: Array, turn: Array, directions: Array, lengths: Array
) -> tuple[Settled, Array]:
    """One stage: ever more rows, small ones first."""
    # The directions are rows too, of the whole vectors e_j, and hold what few rows leave open.
    held = directions * lengths[:, None]
    held = held * np.where((held * turn).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    centre = mean[:, None]
    sizes = np.linalg.norm(rows, axis=1)
    order = np.argsort(sizes, kind="stable")
    # Rows that vanish say nothing, and the smallest others tell the signs before all can.
    trusted = min(int((sizes < TOLERANCE).sum()) + _BEGIN * rows.shape[1], len(order))
    decided = np.zeros(len(lengths), dtype=bool)
    values = rows @ turn.T / lengths
    whole = np.full_like(values, np.nan)
    refitted = False  # to all rows
    for _ in range(_ROUNDS):
        use = order[:trusted]
        signs, decided = _signs(values[use], centre[use])
        turn, held, values = turn * signs[:, None], held * signs[:, None], values * signs
        before, whole = whole, np.rint(values + centre)
        if refitted and np.array_equal(before, whole):
            break
        off = np.sqrt(((values + centre - whole)[use] ** 2).mean(axis=1))
        near = use[off < _NEAR] if int((off < _NEAR).sum()) >= rows.shape[1] else use
        turn = polar(((whole - centre)[near] * lengths).T @ rows[near] + held)
        values = rows @ turn.T / lengths
        refitted = trusted == len(order)
        if float(np.median(off)) < _NEAR or np.array_equal(before, whole):
            trusted = min(2 * trusted, len(order))
    distances = np.abs(values + centre - whole)
    return Settled(whole, distances, decided, lengths), turn


def _signs(values: Array, centre: Array) -> tuple[Array, BoolArray]:
    """The sign of every record that brings it closer to the grid, and whether that decides it."""
    ahead = ((values + centre - np.rint(values + centre)) ** 2).sum(axis=0)
    back = ((centre - values - np.rint(centre - values)) ** 2).sum(axis=0)
    # A wrong sign is an eighth of a grid step off somewhere, or the signs are not told apart.
    twice = float(np.abs(2.0 * centre - np.rint(2.0 * centre)).max())
    decided = (np.abs(ahead - back) > 0.25 * (ahead + back)) & (twice > 0.25)
    brighter = (values + centre).sum(axis=0) >= (centre - values).sum(axis=0)
    forward = np.where(decided, ahead < back, brighter)
    return np.where(forward, 1.0, -1.0), decided


def chance(rows: Array, mean: Array, lengths: Array, within: float) -> float:
    """Decimal logarithm of the chance that a wrong rotation lands as close to the grid.

    Each entry of a wrongly rotated row is about normal with the row's size over the root of the
    rank; the chance that it lies ``within`` so much of the grid is twice that for large rows and
    more for small ones. As many of the most telling entries as a rotation has degrees of freedom
    are not counted: they could have been fitted.
    """
    rank = rows.shape[1]
    offset = mean - np.rint(mean)
    each = np.sort(_inside(rows, offset, float(np.median(lengths)), within))
    return float(rank * each[int(np.ceil((rank - 1) / 2)) :].sum())  # the most telling come first


def chance_of_window(rows: Array, window: float) -> float:
    """The same where each row has an unknown offset: all differences within ``window`` of the grid.

    The parts behind the point of m entries then lie in one window of that width. It begins at one
    of them, and holds each other one with at most the chance of a window around 0, where such a
    part is likeliest: m times that to the power m - 1, for every row. A row tells m - 1 numbers, so
    m/2 of them are not counted.
    """
    rank = rows.shape[1]
    inside = _inside(rows, np.zeros(len(rows)), 1.0, 0.5 * window)
    each = np.sort(np.minimum(np.log10(rank) + (rank - 1) * inside, 0.0))
    return float(each[int(np.ceil(rank / 2)) :].sum())


def _inside(rows: Array, offset: Array, length: float, within: float) -> Array:
    """Decimal logarithm of the chance of one entry, by row."""
    spread = np.linalg.norm(rows, axis=1) / np.sqrt(max(rows.shape[1], 1)) / length
    spread = np.maximum(spread, 1e-12)
    reach = np.arange(-12, 13)
    upper = ndtr((reach + within - offset[:, None]) / spread[:, None])
    lower = ndtr((reach - within - offset[:, None]) / spread[:, None])
    inside = np.where(spread > 3.0, 2.0 * within, (upper - lower).sum(axis=1))
    return np.log10(np.clip(inside, 1e-12, 1.0))


# ---------------------------------------------------------------- what the known error leaves open
def refitted(whole: Array, rows: Array, turn: Array, error: Array) -> Array:
    """R refitted to rows of unequal sizes and errors: each counts by what is known of it.

    ``whole``, (features, size): What the rows turn into, less what was subtracted.
    ``rows``, (features, rank): B. ``error``, (features,): Expected error of an entry of each row.
    ``turn``, (size, rank): R so far, which holds what all rows leave open.
    """
    weights = _weights(rows, error)[:, None]
    for _ in range(2):
        turn = polar((whole * weights).T @ (rows * weights) + _HELD * turn)
    return turn


def farthest(rows: Array, error: Array) -> Array:
    """How far entries of B R^T may lie from whole numbers, R being fitted to them, (features,)."""
    weights, sizes = _weights(rows, error), np.linalg.norm(rows, axis=1)
    every = error + _ROUNDING * sizes
    values = np.linalg.svd(rows * weights[:, None], compute_uv=False)
    smallest = max(float(values[-1]), float(np.finfo(float).tiny))
    # The refit squares the rows, and rounds by the size of the longest.
    squared = _ROUNDING * (float(values[0]) / smallest) ** 2
    turned = float(np.linalg.norm(every * weights)) / smallest
    return FARTHEST * (every + sizes * (turned + squared))


def apart_by(distances: Array, rows: Array, error: Array) -> Array:
    """How far the rows of two explanations of B may lie apart, turned as they are, (features,).

    One explanation lies off B by its ``distances``, (features, size) float64; the other by no more
    than the known error of an entry, in each of as many entries.
    """
    known = error + _ROUNDING * np.linalg.norm(rows, axis=1)
    other = FARTHEST * known * np.sqrt(distances.shape[1])
    return np.asarray(np.linalg.norm(distances, axis=1) + other)


def is_exact(rows: Array, error: Array) -> bool:
    """Whether the moments of whole records, which are whole too, are known to less than a half.

    Then records that are nearly right do not explain them.
    """
    sizes = np.linalg.norm(rows, axis=1)
    known = FARTHEST * (error + _ROUNDING * sizes)
    return bool(2.0 * float(known.max(initial=0.0)) * float(sizes.max(initial=0.0)) < 0.5)


def _weights(rows: Array, error: Array) -> Array:
    known = error + _ROUNDING * np.linalg.norm(rows, axis=1)
    return np.asarray(known[known > 0].min(initial=1.0) / np.maximum(known, np.finfo(float).tiny))


def nothing_else_fits(rows: Array, off: Array, apart: float) -> bool:
    """Whether every explanation whose rotation is near is this one, up to order and signs.

    ``rows``, (features, rank): What explains B: whole records, less what was subtracted, times
        their lengths. ``off``, (features,): `apart_by` of the rows.
    ``apart``: Norm of the difference between the other rotation and a signed permutation, at most.
    """
    sizes = np.linalg.norm(rows, axis=1)
    while True:
        same: BoolArray = sizes * apart + off < 1.0
        if same.all():
            return True
        smallest = 0.0
        if int(same.sum()) >= rows.shape[1]:
            smallest = float(np.linalg.svd(rows[same], compute_uv=False)[-1])
        if smallest <= 0.0:
            return False
        tighter = float(np.linalg.norm(off[same])) / smallest
        if not tighter < 0.9 * apart:
            return False
        apart = tighter
