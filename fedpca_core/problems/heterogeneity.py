"""The heterogeneity dial: one number in [0, 1] for every problem.

For records that exist (images, tables) it decides which client holds which record; for synthetic
spectra it turns each client's own spectrum (`fedpca_core.problems.rotation`).
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import IntArray
from fedpca_core.errors import require
from fedpca_core.streams import Streams

#: What the dial means, for tooltips and captions.
DIAL = (
    "At 0 every client holds a random share of one population, at 1 each holds classes of its own "
    "(synthetic data: a rotated spectrum of its own), and in between that share of the way, while "
    "the pooled data's second moments and the clients' sizes stay exactly the same."
)


def check_heterogeneity(value: float) -> None:
    """Refuse a dial outside [0, 1]."""
    require(
        0.0 <= value <= 1.0,
        f"Heterogeneity must lie between 0 (random shares) and 1 (every client its own), "
        f"not {value}.",
    )


def exchange(home: IntArray, sizes: tuple[int, ...], value: float, seed: int) -> list[IntArray]:
    """Deal records to clients, the share ``value`` of them staying at home.

    Parameters
    ----------
    home : (records,) int64
        Records in home order: the first ``sizes[0]`` belong to client 0, and so on.
    sizes : tuple of int
        Records of each client, summing to ``len(home)``.
    value : float
        The dial: 1 leaves every record at home, 0 sends each to a random position.
    seed : int
        Seed of the stream ``"heterogeneity"``.

    Returns
    -------
    list of (m_i,) int64
        The records of each client.

    Notes
    -----
    Every position has a fixed mark between 0 and 1; the positions whose mark is at least ``value``
    pass their records on along a fixed random ring. A small move of the dial therefore moves few
    records. Marks are spread evenly within each client, so that each keeps its share to within a
    record and the measured heterogeneity does not jitter.
    """
    check_heterogeneity(value)
    generator = Streams(seed).generator("heterogeneity")
    marks = np.concatenate(
        [(generator.permutation(size) + generator.uniform()) / size for size in sizes]
    )
    ring = generator.permutation(len(home))
    moving = ring[marks[ring] >= value]
    held = home.copy()
    held[moving] = home[np.roll(moving, 1)]
    return np.split(held, np.cumsum(sizes)[:-1])
