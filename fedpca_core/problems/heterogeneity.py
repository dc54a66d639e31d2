"""The heterogeneity parameter: one number in [0, 1] for every problem.

For records that exist (images, tables) it decides which client holds which record; for synthetic
spectra it turns each client's own spectrum (`fedpca_core.problems.spectrum`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.linalg.lanczos import fixed_vector
from fedpca_core.remembered import Remembered
from fedpca_core.streams import Streams

#: What the parameter means, for tooltips and captions.
DIAL = (
    "At 0 every client holds a random share of one population, at 1 each holds classes of its own "
    "(synthetic data: a rotated spectrum of its own), and in between that share of the way, while "
    "the pooled data's second moments and the clients' sizes stay exactly the same."
)

#: What an epsilon takes as public where records were dealt by what they are.
DEALT = "how the records were dealt to the clients"

#: Leading directions in which positions of the parameter are compared; where clients differ most is
#: among them.
_DIRECTIONS = 40
#: Positions of the parameter at which it must rise: the ticks of a slider.
_POSITIONS = tuple(position / 20 for position in range(21))
#: A way along which the measured heterogeneity never falls by more than this share is taken.
_STEADY = 1e-3
#: Room for rounding in a bound, relative to it.
_ROUNDING = 1e-3
#: Rings that are tried, and orders that are tried between two positions of the parameter.
_RINGS, _ORDERS = 6, 48
#: Ways found, so that a move of the parameter costs no measurement.
_found: Remembered[ExchangeOrder] = Remembered(16)


def check_heterogeneity(value: float) -> None:
    require(
        0.0 <= value <= 1.0,
        f"Heterogeneity must lie between 0 (random shares) and 1 (every client its own), "
        f"not {value}.",
    )


@dataclass(frozen=True, eq=False)
class ExchangeOrder:
    """How records come home as the parameter goes from 0 to 1; (records,) arrays."""

    #: The value of the parameter, in [0, 1), from which on a position holds its own record.
    marks: Array
    #: The order in which the other positions pass their records on.
    ring: IntArray
    #: For every place of the ring the circle it belongs to: the last passes its record on to the
    #: first. A ring that was drawn is one circle.
    circle: IntArray

    @classmethod
    def drawn(cls, sizes: tuple[int, ...], seed: int, attempt: int = 0) -> ExchangeOrder:
        """A random way, from the stream ``"heterogeneity"``.

        Marks are spread evenly within each client, so that each keeps its share to within a record.
        """
        generator = Streams(seed).generator("heterogeneity", attempt)
        marks = np.concatenate(
            [(generator.permutation(size) + generator.uniform()) / size for size in sizes]
        )
        return cls(marks, generator.permutation(len(marks)), np.zeros(len(marks), dtype=np.int64))

    @staticmethod
    def circles(home: IntArray, shares: IntArray) -> tuple[IntArray, IntArray]:
        """`ring` and `circle` of a way that holds records as in ``home`` at 1, ``shares`` at 0."""
        place = np.empty(len(home), dtype=np.int64)
        place[home] = np.arange(len(home))
        giver = place[shares]  # of every position, who passes a record on to it at 0
        ring, circle = np.empty_like(giver), np.empty_like(giver)
        free, filled = np.ones(len(giver), dtype=bool), 0
        for first in range(len(giver)):
            begin, at = filled, first
            while free[at]:
                free[at], ring[filled], circle[filled] = False, at, first
                filled, at = filled + 1, giver[at]
            ring[begin:filled] = ring[begin:filled][::-1]
        return ring, circle

    def shuffled(
        self, sizes: tuple[int, ...], beyond: float, generator: np.random.Generator
    ) -> ExchangeOrder:
        """Another order, within each client, for the positions marked ``beyond`` and later."""
        marks = self.marks.copy()
        for own in np.split(np.arange(len(marks)), np.cumsum(sizes)[:-1]):
            waiting = own[marks[own] >= beyond]
            marks[waiting] = marks[generator.permutation(waiting)]
        return replace(self, marks=marks)


def exchange(
    home: IntArray, sizes: tuple[int, ...], value: float, way: ExchangeOrder
) -> list[IntArray]:
    """Deal records to clients, the share ``value`` of them staying at home; (m_i,) int64 each.

    The first ``sizes[0]`` records of ``home`` belong to client 0, and so on. The positions marked
    ``value`` and later pass their records on along the ring, so that a small move of the parameter
    moves few records: 1 leaves all at home, 0 sends each to a random position.
    """
    check_heterogeneity(value)
    return np.split(_exchanged(home, value, way), np.cumsum(sizes)[:-1])


def _exchanged(home: IntArray, value: float, way: ExchangeOrder) -> IntArray:
    """The records of all clients, one client after the other."""
    moves = way.marks[way.ring] >= value
    moving, circle = way.ring[moves], way.circle[moves]
    held = home.copy()
    if len(moving):
        begins = np.flatnonzero(np.diff(circle, prepend=-1))
        before = np.arange(-1, len(moving) - 1)
        before[begins] = [*(begins[1:] - 1), len(moving) - 1]
        held[moving] = home[moving[before]]
    return held


def steady_way(
    records: Array,
    home: IntArray,
    sizes: tuple[int, ...],
    seed: int,
    shares: IntArray | None = None,
) -> ExchangeOrder:
    """A way along which the measured heterogeneity rises with the parameter.

    Random shares of few records differ by accident, and bringing some records home may undo such
    an accident: the parameter would go down. With many records a client that is rare, and the
    first way drawn is taken. Otherwise the way is laid from one position of the parameter to the
    next: of several orders in which further records may come home, one is taken that raises the
    measured value, and no further than leaves room for the rest. Where clients at home differ less
    than random shares do, no way can rise, and the one that falls least is taken.

    ``records``, (records, features) float64, are scaled as the clients will hold them; ``shares``
    are to be held where the parameter is 0, and by default drawn.
    """
    state = hashlib.sha256(np.ascontiguousarray(records).data)
    state.update(np.ascontiguousarray(home).data)
    key = (state.digest(), sizes, seed, None if shares is None else shares.tobytes())
    return _found.get(key, lambda: _steadiest(records, home, sizes, seed, shares))


def _steadiest(
    records: Array, home: IntArray, sizes: tuple[int, ...], seed: int, shares: IntArray | None
) -> ExchangeOrder:
    scores = leading_scores(records, _DIRECTIONS)
    pooled = scores[home].T @ scores[home] / len(home)
    ends = np.cumsum(sizes).tolist()
    # Where each client's records stand: splitting anew would take as long as the measurement.
    places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def eta(way: ExchangeOrder, value: float) -> float:
        """Largest ||S_i - S||_2 within the leading directions."""
        held = scores[_exchanged(home, value, way)]
        if len(set(sizes)) == 1:
            own = held.reshape(len(sizes), sizes[0], -1)
            return largest_norm(own.swapaxes(1, 2) @ own / sizes[0] - pooled)
        parts = [held[place] for place in places]
        return largest_norm(np.stack([own.T @ own / len(own) for own in parts]) - pooled)

    drawn = [ExchangeOrder.drawn(sizes, seed, attempt) for attempt in range(_RINGS)]
    if shares is not None:
        ring, circle = ExchangeOrder.circles(home, shares)
        drawn = [replace(way, ring=ring, circle=circle) for way in drawn]
    first = drawn[0]
    if drop((eta(first, value) for value in _POSITIONS), _STEADY) <= _STEADY:
        return first
    # The most even random shares first: they leave most room to rise.
    starts = [eta(each, 0.0) for each in drawn]
    found: list[tuple[float, ExchangeOrder]] = []
    for attempt in np.argsort(starts, kind="stable"):
        generator = Streams(seed).generator("heterogeneity", int(attempt), 1)
        way, etas = _laid(drawn[attempt], sizes, eta, starts[attempt], generator)
        found.append((drop(etas), way))
        if found[-1][0] <= _STEADY:
            return way
    found.insert(0, (drop(eta(first, value) for value in _POSITIONS), first))
    return min(found, key=lambda one: one[0])[1]


def _laid(
    way: ExchangeOrder,
    sizes: tuple[int, ...],
    eta: Callable[[ExchangeOrder, float], float],
    start: float,
    generator: np.random.Generator,
) -> tuple[ExchangeOrder, list[float]]:
    """The way with its order chosen from position to position, and the values measured there.

    What is chosen later leaves the earlier ones as they are.
    """
    etas, reached, end = [start], start, eta(way, 1.0)
    for step in range(1, len(_POSITIONS) - 1):
        # Twice the even pace at most, so that the last steps need not go down.
        ceiling = reached + (end - reached) * min(2 / (len(_POSITIONS) - step), 1.0)
        chosen, found, smallest = way, reached, np.inf
        for order in range(_ORDERS):
            tried = way.shuffled(sizes, _POSITIONS[step - 1], generator) if order else way
            value = eta(tried, _POSITIONS[step])
            miss = max(2 * (reached - value), value - ceiling, 0.0)  # falling is worse
            if miss < smallest:
                chosen, found, smallest = tried, value, miss
            if miss == 0.0:
                break
        way, reached = chosen, max(reached, found)
        etas.append(found)
    return way, [*etas, end]


def drop(etas: Iterable[float], most: float = np.inf, *, relative: bool = True) -> float:
    """How far values fall below an earlier one, relative to that; no longer than until ``most``."""
    highest = found = 0.0
    for eta in etas:
        highest = max(highest, eta)
        unit = max(highest, np.finfo(float).tiny) if relative else 1.0
        found = max(found, (highest - eta) / unit)
        if found > most:
            break
    return found


def largest_norm(matrices: Array) -> float:
    """The largest spectral norm among symmetric matrices, (matrices, n, n).

    Two squarings bound every norm by ||G^4||_F^(1/4), tight enough that only a few matrices need
    their eigenvalues.
    """
    scale = np.abs(matrices).max()
    if scale == 0.0:
        return 0.0
    # In single precision: half the work, and the bound need not be sharp.
    scaled = (matrices / scale).astype(np.float32)
    squares = scaled @ scaled
    bounds = scale * np.linalg.norm(squares @ squares, axis=(1, 2)).astype(float) ** 0.25
    first = int(np.argmax(bounds))
    largest = np.abs(np.linalg.eigvalsh(matrices[first])).max()
    others = bounds * (1 + _ROUNDING) >= largest
    others[first] = False
    if others.any():
        largest = max(largest, np.abs(np.linalg.eigvalsh(matrices[others])).max())
    return float(largest)


def leading_scores(records: Array, directions: int) -> Array:
    """Records (rows) along leading principal directions, (records, min(features, directions))."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import svds

    count, features = records.shape
    if features <= directions:
        return records
    if features <= 1024:
        span = (features - directions, features - 1)
        vectors = eigh(records.T @ records, subset_by_index=span, check_finite=False)[1]
        return records @ vectors[:, ::-1]
    kept = min(directions, min(count, features) - 1)
    _, _, rows = svds(records, k=kept, v0=fixed_vector(min(count, features)))
    return records @ rows[::-1].T
