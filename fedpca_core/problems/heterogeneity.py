"""The heterogeneity dial: one number in [0, 1] for every problem.

For records that exist (images, tables) it decides which client holds which record; for synthetic
spectra it turns each client's own spectrum (`fedpca_core.problems.rotation`).
"""

from __future__ import annotations

import hashlib

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.problems.remembered import Remembered
from fedpca_core.streams import Streams

#: What the dial means, for tooltips and captions.
DIAL = (
    "At 0 every client holds a random share of one population, at 1 each holds classes of its own "
    "(synthetic data: a rotated spectrum of its own), and in between that share of the way, while "
    "the pooled data's second moments and the clients' sizes stay exactly the same."
)

#: Leading directions in which draws are compared; where clients differ most is among them.
_DIRECTIONS = 24
#: Positions of the dial at which draws are compared: the ticks of a slider.
_POSITIONS = tuple(position / 20 for position in range(21))
#: Choices made, so that a move of the dial costs no measurement.
_chosen: Remembered[int] = Remembered(64)


def check_heterogeneity(value: float) -> None:
    """Refuse a dial outside [0, 1]."""
    require(
        0.0 <= value <= 1.0,
        f"Heterogeneity must lie between 0 (random shares) and 1 (every client its own), "
        f"not {value}.",
    )


def exchange(
    home: IntArray, sizes: tuple[int, ...], value: float, seed: int, attempt: int = 0
) -> list[IntArray]:
    """Deal records to clients, the share ``value`` of them staying at home.

    Parameters
    ----------
    home : (records,) int64
        Records in home order: the first ``sizes[0]`` belong to client 0, and so on.
    sizes : tuple of int
        Records of each client, summing to ``len(home)``.
    value : float
        The dial: 1 leaves every record at home, 0 sends each to a random position.
    seed, attempt : int
        Seed of the stream ``"heterogeneity"``, and which of its draws.

    Returns
    -------
    list of (m_i,) int64
        The records of each client.

    Notes
    -----
    Every position has a fixed mark between 0 and 1; the positions whose mark is at least ``value``
    pass their records on along a fixed random ring. A small move of the dial therefore moves few
    records. Marks are spread evenly within each client, so that each keeps its share to within a
    record.
    """
    check_heterogeneity(value)
    generator = Streams(seed).generator("heterogeneity", attempt)
    marks = np.concatenate(
        [(generator.permutation(size) + generator.uniform()) / size for size in sizes]
    )
    ring = generator.permutation(len(home))
    moving = ring[marks[ring] >= value]
    held = home.copy()
    held[moving] = home[np.roll(moving, 1)]
    return np.split(held, np.cumsum(sizes)[:-1])


def steadiest_attempt(records: Array, home: IntArray, sizes: tuple[int, ...], seed: int) -> int:
    """The draw of `exchange` along which the measured heterogeneity falls least.

    Random shares of few records differ by accident, and bringing some records home may undo such
    an accident: the dial would first go down. Draws are compared by measurement and the first one
    that rises throughout is taken; with many records a client that is nearly always draw 0. Where
    clients at home differ hardly more than random shares do, no draw can rise.

    Parameters
    ----------
    records : (records, features) float64
        Scaled as the clients will hold them.
    home, sizes, seed
        As for `exchange`.
    """
    state = hashlib.sha256(np.ascontiguousarray(records).data)
    state.update(np.ascontiguousarray(home).data)
    key = (state.digest(), sizes, seed)
    return _chosen.get(key, lambda: _least_drop(records, home, sizes, seed))


def _least_drop(records: Array, home: IntArray, sizes: tuple[int, ...], seed: int) -> int:
    scores = leading_scores(records, _DIRECTIONS)
    pooled = scores[home].T @ scores[home] / len(home)
    best, smallest = 0, np.inf
    for attempt in range(int(np.clip(320 // len(sizes), 4, 32))):  # a second at most
        highest = drop = 0.0
        for value in _POSITIONS:
            held = [scores[own] for own in exchange(home, sizes, value, seed, attempt)]
            gaps = np.stack([own.T @ own / len(own) for own in held]) - pooled
            eta = float(np.abs(np.linalg.eigvalsh(gaps)).max())
            highest = max(highest, eta)
            drop = max(drop, (highest - eta) / max(highest, np.finfo(float).tiny))
            if drop >= smallest:
                break
        if drop < smallest:
            best, smallest = attempt, drop
        if smallest <= 1e-3:
            break
    return best


def leading_scores(records: Array, directions: int) -> Array:
    """Coordinates of records (rows) along their leading principal directions.

    Returns
    -------
    (records, min(features, directions)) float64
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import svds

    count, features = records.shape
    if features <= directions:
        return records
    if features <= 1024:
        span = (features - directions, features - 1)
        vectors = eigh(records.T @ records, subset_by_index=span, check_finite=False)[1]
        return records @ vectors[:, ::-1]
    start = np.cos(np.arange(min(count, features)) * 1.7)  # fixed, so that it is repeatable
    kept = min(directions, min(count, features) - 1)
    _, _, rows = svds(records, k=kept, v0=start)
    return records @ rows[::-1].T
