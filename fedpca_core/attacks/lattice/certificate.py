"""Whether recovered records are the records: decided without the truth.

They are if they give back the matrix that they were taken from, to its known error, and if nothing
else does. The first is checked entry by entry. The second is proved in whole numbers where the
lattice allows it; elsewhere a bound on the chance of a wrong rotation stands for it, which takes
the entries for independent of each other. What is open all the same is named: the signs where no
mean and no bounds decide them, divisors of records that were scaled to one length.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.lattice.directions import Attempt, LatticeQuestion
from fedpca_core.attacks.lattice.polish import (
    TOLERANCE,
    Settled,
    apart_by,
    chance,
    farthest,
    is_exact,
    nothing_else_fits,
    settle,
)
from fedpca_core.settings import plural

#: A wrong rotation must pass with a chance below this (decimal logarithm).
_CHANCE = -12.0
#: Distances from the grid below this count as this in the chance.
_CLOSEST = 0.01
#: Lengths of directions may differ so much from what they should be.
_LENGTH = 0.1
#: Accuracy to which all directions are listed; see `directions`.
_LISTED = 0.03
#: Passes that refine the lengths of records scaled to length 1.
_LENGTH_PASSES = 4
#: Whole numbers above these are not exact in the proof: in int64, and in float64.
_EXACT, _FLOAT = 2.0**62, 2.0**53


@dataclass(frozen=True)
class Certificate:
    #: The records give the matrix back to its known error, every entry of every feature lies within
    #: 0.25 of the grid, the lengths are right, and nothing else does: proved (``unique`` but for
    #: the signs), or, of a matrix that is known exactly, with a small chance.
    valid: bool
    #: Of an unrounded entry from the grid, in grid units.
    largest_distance: float
    #: The same as a share of what the known error of the matrix explains; at most 1 if valid.
    misfit: float
    #: Decimal logarithm of a bound on the chance that a wrong rotation would come as close to the
    #: grid, if the entries were independent of each other, which those of real records are not.
    log10_chance: float
    #: Whether no other whole records explain the matrix, given how many there are. Whole
    #: combinations of the recovered records were checked, in whole numbers, to be unit vectors, or
    #: all unit vectors of the dual lattice were listed, and the error of the matrix leaves no room
    #: beside them.
    unique: bool
    #: What else explains the matrix, in words; empty where nothing does. Signs are open where
    #: neither the public mean nor the bounds decide them: without a mean (or with one whose double
    #: is whole) x and -x explain the matrix alike, and the one with the larger sum is taken.
    ambiguity: str
    note: str


def certify(question: LatticeQuestion, attempt: Attempt) -> tuple[Certificate, Array]:
    """The certificate of an attempt, and its whole records (features, samples) if that is valid."""
    assert attempt.directions is not None
    samples = question.samples
    measured = np.linalg.norm(attempt.directions, axis=1)
    repeats = np.ones(len(measured), dtype=np.int64)
    lengths = np.ones(len(measured))
    if question.steps is not None:
        lengths = measured
    elif not question.same_length:
        # More repetitions than records are wrong, however many they are.
        repeats = np.clip(np.rint(measured**2), 1, samples + 1).astype(np.int64)
        lengths = np.sqrt(repeats)
    stages = [(question.sieved.rows, question.shifts), (question.rows, question.mean)]
    settled = settle(stages, attempt.directions, lengths, question.error)
    expected = lengths
    if question.steps is not None:
        # The length of a whole record is known better than that of its direction.
        for _ in range(_LENGTH_PASSES):
            sent = (settled.whole - question.mean[:, None]) * question.steps[:, None]
            sizes = np.maximum(np.linalg.norm(sent, axis=0), np.finfo(float).tiny)
            before, expected = expected, 1.0 / sizes
            if np.array_equal(before, expected):
                break
            settled = settle(stages, attempt.directions, expected, question.error)
    settled = _within_limits(question, settled)
    whole = np.repeat(settled.whole, repeats, axis=1)
    if question.numerators is None:  # nothing was subtracted, and the rest of them are empty
        whole = np.pad(whole, ((0, 0), (0, max(samples - whole.shape[1], 0))))
    off = float(np.abs(measured / expected - 1.0).max())
    within = float(np.clip(2.0 * settled.largest, _CLOSEST, TOLERANCE))
    odds = chance(question.rows, question.mean, lengths, within)
    allowed = farthest(question.rows, question.error)
    misfit = float((settled.distances * lengths / allowed[:, None]).max(initial=0.0))
    proved = _proved(question, attempt, settled)
    note = _fault(question, settled, off, misfit, whole.shape[1], repeats)
    if not note and not proved and not is_exact(question.rows, question.error):
        note = "the error of the matrix leaves room for other whole records."
    elif not note and not proved and odds > _CHANCE:
        note = (
            "a wrong rotation would come as close to the grid with a chance of up to "
            f"10^{odds:.0f}; there are too few informative features."
        )
    valid = not note
    ambiguity = _open(question, bool(settled.decided.all()), int(np.gcd.reduce(repeats)))
    if valid:
        alone = (
            "no other whole records do, as was checked in whole numbers"
            if proved
            else f"if entries were independent, others would with a chance below 10^{odds:.0f}"
        )
        but = f", but {ambiguity}" if ambiguity else ""
        note = (
            f"{plural(samples, 'record')} give the matrix back within {misfit:.1g} of its known "
            f"error, every entry within {settled.largest:.1g} of the grid; {alone}{but}."
        )
    unique = valid and proved and not ambiguity
    return Certificate(valid, settled.largest, misfit, odds, unique, ambiguity, note), whole


def _open(question: LatticeQuestion, signs: bool, times: int) -> str:
    """What else explains the matrix, in words."""
    if question.steps is not None:
        return "each record is known up to a common divisor of its entries"
    found = []
    if not signs:
        twice = "" if question.numerators is None else ", plus twice what was subtracted"
        found.append(f"each record may be its negative{twice}")
    if times > 1:
        found.append(f"if there were {times} times fewer records, each of them once would do")
    return "; ".join(found)


def _within_limits(question: LatticeQuestion, settled: Settled) -> Settled:
    """Signs that the mean leaves open, decided by the bounds of the features."""
    if question.limits is None or settled.decided.all():
        return settled
    low, high = question.limits.T[..., None]
    mirrored = np.rint(2.0 * question.mean)[:, None] - settled.whole
    here, there = (
        ((low - 0.5 < one) & (one < high + 0.5)).all(axis=0) for one in (settled.whole, mirrored)
    )
    turned = ~settled.decided & there & ~here
    whole = np.where(turned, mirrored, settled.whole)
    return replace(settled, whole=whole, decided=settled.decided | (here != there))


def _fault(
    question: LatticeQuestion,
    settled: Settled,
    off: float,
    misfit: float,
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
    if not misfit <= 1.0:
        return (
            f"the records do not give the matrix back: an entry is off by {misfit:.2g} times what "
            "its known error explains."
        )
    often = int((repeats > 1).sum())
    if question.numerators is None and int(repeats.max()) > 3:
        # 4 a a^T is also (2a)(2a)^T and three empty records.
        return "a record that occurs four times or more is not told from its multiples."
    if question.numerators is None and often > 1:
        # Without a mean 2 x x^T + 2 y y^T is also (x + y)(x + y)^T + (x - y)(x - y)^T.
        return (
            f"{often} records occur more than once, which other sets explain as "
            "well: x, x, y, y and x + y, x - y, 0, 0 give the same matrix."
        )
    if question.limits is not None:
        low, high = question.limits.T[..., None]
        beyond = int(((settled.whole < low - 0.5) | (settled.whole > high + 0.5)).any(0).sum())
        if beyond:
            return f"{beyond} of the records lie outside the bounds of the features."
    return ""


def _proved(question: LatticeQuestion, attempt: Attempt, settled: Settled) -> bool:
    """Whether no other whole records explain the matrix, up to their order and signs."""
    if question.steps is not None:
        return False
    rank = question.rows.shape[1]
    off = apart_by(settled.distances * settled.lengths, question.rows, question.error)
    if attempt.only or not question.same_length:
        # All directions were listed, or the lattice has an orthogonal basis: to this accuracy.
        apart = _LISTED * np.sqrt(rank)
    else:
        apart = _shown(question, attempt, settled.whole, off)
    rows = (settled.whole - question.mean[:, None]) * settled.lengths
    return apart < 0.5 and nothing_else_fits(rows, off, apart)


def _shown(question: LatticeQuestion, attempt: Attempt, whole: Array, off: Array) -> float:
    """How far the rotation to any other explanation is from a signed permutation, at most.

    Whole combinations of the records' rows are unit vectors, in whole numbers; in another
    explanation the same combinations are whole and, up to the error, of length 1.
    """
    if attempt.combinations is None:
        return np.inf
    chosen = question.sieved.chosen
    none = np.zeros(len(question.rows), dtype=np.int64)
    numerators = (none if question.numerators is None else question.numerators)[chosen]
    largest = max(float(np.abs(whole).max()), float(np.abs(numerators).max(initial=0)))
    made = question.sieved.combinations[attempt.chosen]
    exact = exact_combinations(attempt.combinations, made, largest)
    if exact is None:
        return np.inf
    # The rows are x_k - mu_k 1, and c^T mu must be whole to leave whole vectors.
    shifts = exact @ numerators
    turns, rest = np.divmod(shifts, question.total)
    if rest.any():
        return np.inf
    units = exact @ whole[chosen].astype(np.int64) - turns[:, None]
    if not unit_vectors(units):
        return np.inf
    return float(np.linalg.norm(exact.astype(float) * off[chosen]))


def unit_vectors(rows: IntArray) -> bool:
    """Whether whole rows, (count, count) int64, are all unit vectors, whatever their signs."""
    sizes = np.abs(rows)
    return bool((sizes.sum(axis=1) == 1).all() and (sizes.sum(axis=0) == 1).all())


def exact_combinations(combinations: Array, made: IntArray, largest: float) -> IntArray | None:
    """Combinations of combinations; None where products up to ``largest`` would not be exact."""
    sizes = np.abs(combinations) @ np.abs(made)
    if float(sizes.sum(axis=1).max()) * largest > _EXACT or float(sizes.max()) > _FLOAT:
        return None
    return (combinations @ made).astype(np.int64)
