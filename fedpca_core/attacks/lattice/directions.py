"""Which directions the records have: the lattice behind rotated whole numbers, taken apart.

``B = (X - mu 1^T) Q`` with whole X (features x records) and an unknown rotation Q. Whole
combinations c of rows with whole ``c^T mu`` are whole vectors seen through Q, and rather few rows
generate all of them: the lattice ``Z^m Q``, whose shortest vectors ``±e_j^T Q`` are the directions
of the records. The condition on c is one more coordinate ``w (mu_k mod 1)`` and one more generator
``(0, ..., 0, w)``: combinations in which it vanishes fulfil the condition.

Sizes are found by the attack itself. It starts from few short rows; it adds rows while
relations and lattice are not told apart, then rows that the lattice found so far does not contain;
and where all of them still generate less than ``Z^m Q``, the directions are the unit vectors of the
dual.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.attacks.lattice.polish import TOLERANCE
from fedpca_core.attacks.lattice.reduction import (
    Reduced,
    Sieved,
    reduce_basis,
    reduce_generators,
    short_vectors,
)

#: The extra coordinate in units of 1/total: longer than the vectors sought, which it must outlast.
_WEIGHT = 3.0
#: Lengths of tags, relative to the vectors sought, and generators in multiples of the dimension, to
#: try in turn. Data kept as float32 lie some 1e-5 off their grid, so the first tags are well above
#: that; shorter ones reach further where the data are exact, longer ones where they are noisy.
_LADDER = (
    (1e-3, 1.9),
    (1e-2, 3.0),
    (1e-3, 3.0),
    (1e-2, 5.0),
    (1e-3, 5.0),
    (1e-5, 5.0),
    (1e-7, 5.0),
    (1e-10, 5.0),
    (1e-1, 5.0),
    (1e-1, 8.0),
)
#: A row is independent of others when so much of it lies outside them.
_INDEPENDENT = 0.3
#: Above this gap relations and lattice are told apart for certain.
_CLEAR = 30.0
#: Cosines between directions stay below this before they are polished.
_OBLIQUE = 0.3
#: Noise may move the vectors of a basis by so much before it is useless.
_MOVED = 0.2
#: A row that is further than this from the lattice is not in it.
_OUTSIDE = 0.05
#: Vectors of the dual lattice may be off length 1 by so much: known exactly, and under noise.
_SHARP, _NOISY = 1e-3, 0.03
#: Where noise moves the basis by less, wrong unit vectors show on the rows themselves.
_EXACT = 1e-6
#: Most sets of directions that are listed, and most beginnings of one that are tried.
_SETS, _BEGINNINGS = 24, 20_000


@dataclass(frozen=True)
class LatticeQuestion:
    """What is to be taken apart, in units of the grid: rotated records and their short rows."""

    #: (features, rank) float64: B, the rotated records.
    rows: Array
    #: (features,) float64: What was subtracted from every record; zeros for nothing.
    mean: Array
    #: (features,) int64 or None: The mean times its denominator; None where nothing was subtracted.
    numerators: IntArray | None
    #: Denominator of the mean.
    total: int
    #: (features,) float64 or None: The grid in units of the data, given where every record was
    #: scaled to length 1.
    steps: Array | None
    #: Records that there must be.
    samples: int
    #: (features,) float64: Expected error of an entry of B, and in the middle of all features.
    error: Array
    noise: float
    #: (features, 2) float64 or None: Least and largest value of every feature before centring.
    limits: Array | None
    #: Short whole combinations of the rows.
    sieved: Sieved
    #: Whether the directions sought have length 1; otherwise they are orthogonal only (records
    #: scaled to length 1, or records that occur more than once).
    same_length: bool

    @cached_property
    def residues(self) -> IntArray | None:
        """``total mu`` of the short rows modulo ``total``, next to zero; None without a mean."""
        if self.numerators is None:
            return None
        found = (self.sieved.combinations @ self.numerators[self.sieved.chosen]) % self.total
        return np.where(2 * found > self.total, found - self.total, found)

    @property
    def shifts(self) -> Array:
        """The mean of every short row, next to zero; zeros without one."""
        if self.residues is None:
            return np.zeros(len(self.sieved.rows))
        return np.asarray(self.residues / self.total)

    def extended(self, chosen: IntArray) -> Array:
        rows = self.sieved.rows[chosen]
        if self.residues is None:
            return rows
        tall = np.hstack([rows, _WEIGHT * self.residues[chosen, None].astype(float)])
        return np.vstack([tall, np.eye(1, tall.shape[1], rows.shape[1]) * _WEIGHT * self.total])


@dataclass(frozen=True)
class Attempt:
    """One reduction, and the directions it suggests."""

    #: Directions of the right length; all of them are needed.
    short: int
    #: (rank, rank) float64 or None: Orthogonal rows, where they came out so; their lengths are
    #: those of the lattice.
    directions: Array | None
    #: (rank, rows) float64 or None: Whole numbers: how the chosen rows make them up, where they do.
    combinations: Array | None
    #: (rows,) int64: Rows of the lattice behind the generators.
    chosen: IntArray
    note: str
    #: Whether these are all directions that whole records can have.
    only: bool = False
    #: Whether nothing else is left to try.
    final: bool = False
    #: tuple of (rank, rank) float64: All sets of directions, where the lattice leaves several open.
    sets: tuple[Array, ...] = ()


def attempts(question: LatticeQuestion, budget: float) -> Iterator[Attempt]:
    """Try to find the directions, one reduction after the other, within a budget of work."""
    order = np.arange(len(question.sieved.rows), dtype=np.int64)
    rank = question.sieved.rows.shape[1]
    if len(order) < rank or rank == 0:
        return
    dimension = rank + (question.residues is not None)
    done: set[tuple[float, int]] = set()
    for epsilon, share in _LADDER:
        chosen = _first_rows(question.sieved.rows, order, int(share * dimension) + 8)
        if epsilon <= 3.0 * question.noise or (epsilon, len(chosen)) in done:
            continue
        done.add((epsilon, len(chosen)))
        more = chosen[:0]
        while True:
            chosen = np.concatenate([chosen, more])
            budget -= float(len(chosen)) * float(dimension) ** 4  # measured
            if budget < 0:
                return
            reduced = reduce_generators(question.extended(chosen), epsilon)
            attempt, more = _judge(question, reduced, chosen, order)
            yield attempt
            if attempt.final:
                return
            if not len(more):
                break


def _first_rows(rows: Array, order: IntArray, count: int) -> IntArray:
    """So many rows: short ones that span the space, and others of all lengths.

    Short rows alone would do for dense images. In sparse ones they are the pixels that a single
    record lights, and generate little.
    """
    if count >= len(order):
        return order
    basis = np.zeros((0, rows.shape[1]))
    sizes = np.linalg.norm(rows, axis=1)
    spanning: list[int] = []
    for row in order.tolist():
        rest = rows[row] - basis.T @ (basis @ rows[row])
        size = float(np.linalg.norm(rest))
        if size > _INDEPENDENT * sizes[row]:
            basis = np.vstack([basis, rest / size])
            spanning.append(row)
            if len(basis) == rows.shape[1]:
                break
    others = order[~np.isin(order, spanning)]
    places = np.linspace(0, len(others) - 1, max(count - len(spanning), 0))
    both = np.concatenate([spanning, others[places.astype(np.int64)]])
    return np.unique(both.astype(np.int64))


def _judge(
    question: LatticeQuestion, reduced: Reduced, chosen: IntArray, order: IntArray
) -> tuple[Attempt, IntArray]:
    """What a reduction says, and which rows to add before the next one."""
    rank = question.sieved.rows.shape[1]
    basis, combinations = _without_mean(question, reduced)
    short = int((np.abs(np.linalg.norm(basis, axis=1) - 1.0) < 0.2).sum())
    none = order[:0]

    def attempt(directions: Array | None, note: str, made_of: Array | None = None) -> Attempt:
        return Attempt(short, directions, made_of, chosen, note)

    orthogonal = len(basis) == rank and _orthogonal(basis)
    if orthogonal and question.same_length and short == rank:
        rows = combinations[:, : len(chosen)]
        return attempt(basis, "the lattice has an orthonormal basis", rows), none
    # How far noise can have moved each vector of the basis.
    moved = 3.0 * reduced.noise * np.linalg.norm(reduced.combinations, axis=1)
    if reduced.gap < _CLEAR or float(moved.max()) > _MOVED:
        return attempt(None, "relations and lattice are not told apart"), none
    more, undecided = _outside(question, reduced, order, chosen, moved)
    if len(more):
        return attempt(None, "further rows enlarge the lattice"), more
    if orthogonal and not question.same_length:
        return attempt(basis, "the lattice has an orthogonal basis"), none
    if len(basis) < rank:
        return attempt(None, "the mean does not fit the rows"), none
    # Under noise the certificate decides whether the units of what is known are directions.
    units = _dual_units(basis, _NOISY if undecided else _SHARP) if question.same_length else None
    if units is not None and float(moved.max()) < _EXACT and not undecided:
        units = _on_grid(question, units)
    sets = [] if units is None else _orthonormal_sets(units)
    if len(sets) == 1:
        found = attempt(sets[0], "unit vectors of the dual lattice")
        return replace(found, short=rank, only=not undecided), none
    if undecided:
        return attempt(None, "noise hides whether further rows belong to the lattice"), none
    last = attempt(None, "the features leave more than one set of records open")
    return replace(last, final=True, sets=tuple(sets)), none


def _without_mean(question: LatticeQuestion, reduced: Reduced) -> tuple[Array, Array]:
    """Basis of the part in which the extra coordinate vanishes, and its combinations."""
    basis, combinations = reduced.basis, reduced.combinations
    if question.residues is None:
        return basis, combinations
    last = np.rint(basis[:, -1] / _WEIGHT)
    if int((last != 0).sum()) > 1:
        heavy = np.hstack([basis[:, :-1], 1e6 * last[:, None]])
        again = reduce_generators(heavy, 1e-6).combinations
        combinations, basis = again @ combinations, again @ basis
        last = np.rint(basis[:, -1] / _WEIGHT)
    return basis[last == 0, :-1], combinations[last == 0]


def _orthogonal(basis: Array) -> bool:
    lengths = np.linalg.norm(basis, axis=1)
    cosines = basis @ basis.T / np.outer(lengths, lengths)
    return bool(np.abs(cosines - np.eye(len(basis))).max() < _OBLIQUE)


def _outside(
    question: LatticeQuestion, reduced: Reduced, order: IntArray, chosen: IntArray, moved: Array
) -> tuple[IntArray, int]:
    """Rows that are no whole combinations of the basis, small ones first, and how many may be."""
    rest = order[~np.isin(order, chosen)]
    if not len(rest):
        return rest, 0
    every = question.extended(rest)[: len(rest)]
    shares = np.linalg.lstsq(reduced.basis.T, every.T, rcond=None)[0].T
    allowed = _OUTSIDE + np.linalg.norm(shares * moved, axis=1)
    apart = np.abs(shares - np.rint(shares)).max(axis=1)
    found = rest[apart > np.minimum(allowed, 0.5)]
    undecided = int((allowed > 0.4).sum())
    return found[: max(question.sieved.rows.shape[1] // 2, 8)], undecided


def _dual_units(basis: Array, off: float) -> Array | None:
    """The vectors of length 1 (give or take ``off``) with whole products with a lattice.

    Every explanation of the rows by whole records has its directions among them, so one orthogonal
    set says that there is no other explanation.
    """
    try:
        dual = reduce_basis(np.asarray(np.linalg.inv(basis).T, dtype=float))
    except np.linalg.LinAlgError:
        return None
    found = short_vectors(dual, (1.0 + off) ** 2)
    return None if found is None else found[np.abs(np.linalg.norm(found, axis=1) - 1.0) < off]


def _on_grid(question: LatticeQuestion, units: Array) -> Array:
    """Those unit vectors under which every row, or its opposite, is whole."""
    shifts, seen = question.shifts[:, None], question.sieved.rows @ units.T
    both = np.stack([seen + shifts, shifts - seen])
    whole: BoolArray = (np.abs(both - np.rint(both)).max(axis=1) < TOLERANCE).any(axis=0)
    return units[whole]


def _orthonormal_sets(units: Array) -> list[Array]:
    """All ways to choose as many orthonormal rows as columns; none where they are too many."""
    rank, left_to_try = units.shape[1], _BEGINNINGS
    apart = np.abs(units @ units.T) < _OBLIQUE
    found: list[Array] = []

    def grow(chosen: list[int], left: IntArray) -> None:
        nonlocal left_to_try
        left_to_try -= 1
        if len(chosen) == rank:
            found.append(units[chosen])
            return
        for position, unit in enumerate(left):
            if len(found) > _SETS or left_to_try < 0 or len(chosen) + len(left) - position < rank:
                return
            rest = left[position + 1 :]
            grow([*chosen, int(unit)], rest[apart[unit, rest]])

    if len(units) <= 4 * rank:
        grow([], np.arange(len(units), dtype=np.int64))
    return found if len(found) <= _SETS and left_to_try >= 0 else []
