"""Whether recovered records are the records: decided without the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.directions import Attempt
from fedpca_core.attacks.generators import Lattice
from fedpca_core.attacks.polish import TOLERANCE, Settled, chance, settle
from fedpca_core.attacks.sieve import Sieved

#: A wrong rotation must pass with a chance below this (decimal logarithm).
_CHANCE = -12.0
#: Distances from the grid below this count as this in the chance.
_CLOSEST = 0.01
#: Lengths of directions may differ so much from what they should be.
_LENGTH = 0.1
#: Passes that refine the lengths of records scaled to length 1.
_LENGTH_PASSES = 4
#: Whole numbers above these are not exact in the proof: in int64, and in float64.
_EXACT, _FLOAT = 2.0**62, 2.0**53


@dataclass(frozen=True)
class Certificate:
    """Why to believe a result, or why not.

    Attributes
    ----------
    valid : bool
        Every entry of every feature lies within 0.25 of the grid, the lengths are right, and a
        wrong rotation would hardly pass.
    largest_distance : float
        Of an unrounded entry from the grid, in grid units.
    log10_chance : float
        Decimal logarithm of the chance that a wrong rotation would come as close to the grid.
    unique : bool
        Whether no other whole records explain the matrix: whole combinations of the recovered
        records were checked, in whole numbers, to be unit vectors, or all unit vectors of the dual
        lattice were listed. Not claimed for records of free length and repeated ones.
    signs_decided : bool
        Whether the public mean decides the sign of every record. Without a mean (or with one whose
        double is whole) x and -x explain the matrix alike, and the one with the larger sum is
        taken.
    note : str
    """

    valid: bool
    largest_distance: float
    log10_chance: float
    unique: bool
    signs_decided: bool
    note: str


@dataclass(frozen=True)
class Question:
    """What is to be taken apart, in units of the grid.

    Attributes
    ----------
    rows : (features, rank) float64
        B, the rotated records.
    mean : (features,) float64
        What was subtracted from every record; zeros for nothing.
    numerators : (features,) int64 or None
        The mean times ``total``; None where nothing was subtracted.
    total : int
    steps : (features,) float64 or None
        The grid in units of the data, given where every record was scaled to length 1.
    samples : int
        Records that there must be.
    sieved : Sieved
    lattice : Lattice
        Of the sieved rows.
    """

    rows: Array
    mean: Array
    numerators: IntArray | None
    total: int
    steps: Array | None
    samples: int
    sieved: Sieved
    lattice: Lattice


def certify(question: Question, attempt: Attempt) -> tuple[Certificate, Array]:
    """Settle the directions of an attempt and judge the outcome.

    Returns
    -------
    Certificate
    whole : (features, samples) float64
        Meaningless unless the certificate is valid.
    """
    assert attempt.directions is not None
    lattice, samples = question.lattice, question.samples
    measured = np.linalg.norm(attempt.directions, axis=1)
    repeats = np.ones(len(measured), dtype=np.int64)
    lengths = np.ones(len(measured))
    if question.steps is not None:
        lengths = measured
    elif not lattice.same_length:
        repeats = np.maximum(np.rint(measured**2), 1.0).astype(np.int64)
        lengths = np.sqrt(repeats)
    stages = [(lattice.rows, lattice.shifts), (question.rows, question.mean)]
    settled = settle(stages, attempt.directions, lengths)
    expected = lengths
    if question.steps is not None:
        # The length of a whole record is known better than that of its direction.
        for _ in range(_LENGTH_PASSES):
            before, expected = expected, _unit_lengths(question, settled)
            if np.array_equal(before, expected):
                break
            settled = settle(stages, attempt.directions, expected)
    whole = _expanded(settled, repeats, samples, question.numerators is None)
    off = float(np.abs(measured / expected - 1.0).max())
    within = float(np.clip(2.0 * settled.largest, _CLOSEST, TOLERANCE))
    odds = chance(question.rows, question.mean, lengths, within)
    unique = attempt.only or _proved(question, attempt, settled.whole)
    note = _fault(question, settled, off, odds, whole.shape[1], repeats)
    valid = not note
    if valid:
        note = (
            f"{samples} record{'s' if samples > 1 else ''}; every entry within "
            f"{settled.largest:.1g} of the grid; a wrong rotation would come that close with a "
            f"chance of 10^{odds:.0f}."
        )
    certificate = Certificate(
        valid, settled.largest, odds, valid and unique, settled.signs_decided, note
    )
    return certificate, whole


def _unit_lengths(question: Question, settled: Settled) -> Array:
    """Lengths of the directions of records that were scaled to length 1."""
    assert question.steps is not None
    sent = (settled.whole - question.mean[:, None]) * question.steps[:, None]
    return 1.0 / np.maximum(np.linalg.norm(sent, axis=0), np.finfo(float).tiny)


def _fault(
    question: Question,
    settled: Settled,
    off: float,
    odds: float,
    found: int,
    repeats: IntArray,
) -> str:
    """What speaks against a result; nothing where it holds."""
    if not settled.largest < TOLERANCE:
        far = int((settled.distances.max(axis=1) >= TOLERANCE).sum())
        return (
            f"{far:,} of {len(settled.whole):,} features lie up to {settled.largest:.2f} from the "
            f"grid, beyond the {TOLERANCE} allowed."
        )
    if off > _LENGTH:
        return f"a direction is {off:.0%} longer or shorter than it should be."
    if found != question.samples:
        return f"{found} records were found where there must be {question.samples}."
    if question.numerators is None and int(repeats.max()) > 3:
        # 4 a a^T is also (2a)(2a)^T and three empty records.
        return "a record that occurs four times or more is not told from its multiples."
    if odds > _CHANCE:
        return (
            f"a wrong rotation would come as close with a chance of 10^{odds:.0f}; "
            "there are too few informative features."
        )
    return ""


def _expanded(settled: Settled, repeats: IntArray, samples: int, nothing_subtracted: bool) -> Array:
    """Records as often as they occur; where nothing was subtracted the rest of them are empty."""
    whole = np.repeat(settled.whole, repeats, axis=1)
    missing = samples - whole.shape[1]
    if missing > 0 and nothing_subtracted:
        whole = np.hstack([whole, np.zeros((len(whole), missing))])
    return whole


def _proved(question: Question, attempt: Attempt, whole: Array) -> bool:
    """Whether combinations of the records' rows are unit vectors, in whole numbers."""
    if attempt.combinations is None:
        return False
    chosen = question.sieved.chosen
    none = np.zeros(len(question.rows), dtype=np.int64)
    numerators = (none if question.numerators is None else question.numerators)[chosen]
    largest = max(float(np.abs(whole).max()), float(np.abs(numerators).max(initial=0)))
    made = question.sieved.combinations[attempt.chosen]
    exact = exact_combinations(attempt.combinations, made, largest)
    if exact is None:
        return False
    # The rows are x_k - mu_k 1, and c^T mu must be whole to leave whole vectors.
    shifts = exact @ numerators
    if (shifts % question.total).any():
        return False
    units = exact @ whole[chosen].astype(np.int64) - (shifts // question.total)[:, None]
    return unit_vectors(units)


def unit_vectors(rows: IntArray) -> bool:
    """Whether whole rows, (count, count) int64, are all unit vectors, whatever their signs."""
    sizes = np.abs(rows)
    return bool((sizes.sum(axis=1) == 1).all() and (sizes.sum(axis=0) == 1).all())


def exact_combinations(combinations: Array, made: IntArray, largest: float) -> IntArray | None:
    """Combinations of combinations, for exact products with whole numbers up to ``largest``.

    Returns
    -------
    (count, rows) int64 or None
        None where such products would not be exact.
    """
    sizes = np.abs(combinations) @ np.abs(made)
    if float(sizes.sum(axis=1).max()) * largest > _EXACT or float(sizes.max()) > _FLOAT:
        return None
    return (combinations @ made).astype(np.int64)
