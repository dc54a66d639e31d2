"""From second moments to the very records.

Combinations of features that are unit vectors prove that no other whole records explain a matrix:
they would have to be unit vectors there too, so the rotation between both is a signed permutation.

We know of no published attack of this kind. The parts are known: lattice reduction (Lenstra,
Lenstra and Lovász, 1982), the recovery of Z^n from a rotation of it (Szydlo, 2003; Haviv and
Regev, 2014), and hidden-subset-sum attacks (Nguyen and Stern, 1999; Coron and Gini, 2020).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ParamSpec

import numpy as np

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.attacks.lattice.certificate import Certificate, certify
from fedpca_core.attacks.lattice.directions import Attempt, LatticeQuestion, attempts
from fedpca_core.attacks.lattice.polish import SUBTRACTED
from fedpca_core.attacks.lattice.reduction import sieve
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.errors import InvalidInput, require
from fedpca_core.settings import plural

P = ParamSpec("P")

#: Work of one attack, in units of which the lattice library does about 10^9 a second.
BUDGET = 1e10
#: A mean this close to a fraction of its denominator, in units of 1/total, is that fraction.
_FRACTION = 1e-3
#: No difference of records is this short, in grid units; a row that is says nothing.
_SHORTEST = 0.1


@dataclass(frozen=True)
class Records:
    """What an attack made of a second-moment matrix, or of those of a run round by round."""

    #: Whether the records below are the records.
    certified: bool
    #: One sentence on how it ended; empty where nothing was to be tried.
    note: str
    #: (features, samples) int64 or None: In grid units, in any order; None unless certified.
    whole: IntArray | None = None
    #: (features, samples) float64 or None: In units of the data, before anything was subtracted.
    values: Array | None = None
    #: Why to believe it; of the best candidate where nothing was certified, None without one.
    certificate: Certificate | None = None
    #: The reductions so far.
    attempts: tuple[Attempt, ...] = ()
    #: Whether nobody tells their mean, so that they are known up to what all of them have in common
    #: and up to one sign (`without_mean`).
    differences: bool = False
    #: The round after whose messages they are certified, where a run was read round by round.
    round: int | None = None
    #: The guessed step that led there, where no grid was announced.
    step: float | None = None


def record_stages(
    factor: Factor,
    grid: float | Array = 1.0,
    mean: Array | None = None,
    records_total: int | None = None,
    *,
    bounds: Array | None = None,
    unit_length: bool = False,
    budget: float = BUDGET,
) -> Iterator[Records]:
    """The records behind a second-moment matrix, or how far the attack came: first of all without
    any work, then after every reduction.

    ``factor``: Of `attacks.low_rank`, `attacks.factor_of` or `attacks.joined`.
    ``grid``, float or (features,) float64: Step of every feature, in the units of the data: 1 for
        whole numbers, 1/255 for pixels from 0 to 1, one over the public deviation for a
        standardised count.
    ``mean``, (features,) float64: What was subtracted from every record, in the units of the data.
    ``records_total``: How many records the mean is over, its denominator. Needed with a mean.
    ``bounds``, (features, 2) float64: Least and largest value of every feature, in the units of the
        data and before anything was subtracted. They decide where several sets of whole records
        explain the matrix.
    ``unit_length``: Whether every record was scaled to length 1 at the end. Its length is found
        then, and the record up to a common divisor of its entries.
    ``budget``: Most work; a count and not a time, so that results are the same everywhere.

    Raises InvalidInput: A grid or mean of the wrong shape, a mean without the number of records.
    """
    steps = _steps(grid, factor.matrix.shape[0])
    note = "no reduction was made."
    if factor.rank == 0:
        note = "the matrix is zero up to rounding and noise."
    elif not factor.complete:
        note = "the messages do not determine the matrix yet; read more rounds."
    state = Records(False, f"Not certified: {note}")
    yield state
    if not 0 < factor.rank <= factor.samples:
        return
    question = _question(factor, steps, mean, records_total, bounds, unit_length)
    if len(question.sieved.rows) < factor.rank:
        yield Records(False, "Not certified: noise buries so many features that too few are left.")
        return
    for attempt in attempts(question, budget):
        state = _after(state, attempt, question, steps)
        yield state
        if state.certified:
            return


def at_the_end(stages: Callable[P, Iterator[Records]]) -> Callable[P, Records]:
    """The last state of a search, from the same parameters."""

    def found(*given: P.args, **more: P.kwargs) -> Records:
        *_, last = stages(*given, **more)
        return last

    return found


#: The records behind a second-moment matrix, certified, or how far the attack came.
records = at_the_end(record_stages)


def _question(
    factor: Factor,
    steps: Array,
    mean: Array | None = None,
    records_total: int | None = None,
    bounds: Array | None = None,
    unit_length: bool = False,
) -> LatticeQuestion:
    """The rotated records in grid units."""
    centre, numerators, total = _mean(mean, records_total, steps)
    scale = np.sqrt(factor.samples) / steps
    rows = factor.matrix * scale[:, None]
    error = factor.error * float(np.median(scale))
    same = not unit_length and factor.rank == factor.samples
    sizes = np.linalg.norm(rows, axis=1)
    return LatticeQuestion(
        rows=rows,
        mean=centre,
        numerators=numerators,
        total=total,
        steps=steps if unit_length else None,
        samples=factor.samples,
        error=factor.error * scale + SUBTRACTED * (numerators is not None),
        noise=error,
        limits=None if bounds is None else bounds / steps[:, None],
        sieved=sieve(rows, error, _SHORTEST if same else 1e-6 * float(sizes.max(initial=0.0))),
        same_length=same,
    )


def _after(state: Records, attempt: Attempt, question: LatticeQuestion, steps: Array) -> Records:
    tried, others = (*state.attempts, attempt), ""
    if attempt.sets:
        attempt, others = _fitting(question, attempt)
        if attempt.directions is None:
            return Records(False, f"Not certified: {others}", attempts=tried)
    if attempt.directions is None:
        note = (
            f"Not certified: of {question.rows.shape[1]} directions {attempt.short} have the right "
            f"length after {plural(len(tried), 'reduction')}; {attempt.note}."
        )
        return Records(False, note, certificate=state.certificate, attempts=tried)
    certificate, whole = certify(question, attempt)
    if not certificate.valid:
        note = f"Not certified: {certificate.note}"
        return Records(False, note, certificate=certificate, attempts=tried)
    note = f"Certified: {certificate.note} {others}".strip()
    return Records(True, note, whole.astype(np.int64), whole * steps[:, None], certificate, tried)


def _fitting(question: LatticeQuestion, attempt: Attempt) -> tuple[Attempt, str]:
    """The one set that fits the grid, or the bounds, and a sentence on what else fits the grid."""
    fit: list[tuple[Array, set[tuple[float, ...]]]] = []
    possible: list[int] = []
    for directions in attempt.sets:
        one = replace(attempt, directions=directions)
        certificate, whole = certify(replace(question, limits=None), one)
        if certificate.valid:
            if certify(question, one)[0].valid:
                possible.append(len(fit))
            fit.append((directions, set(map(tuple, whole.T))))
    if len(possible) == 1:
        others = ""
        if len(fit) > 1:
            others = (
                f"Of {len(fit)} sets of whole records that explain the messages, the only one "
                "within the bounds of the features."
            )
        return replace(attempt, directions=fit[possible[0]][0], only=True), others
    left = [fit[k][1] for k in possible]
    shared = set.intersection(*left) if left else set()
    return attempt, (
        f"{len(left)} sets of whole records explain the messages equally well; {len(shared)} of "
        f"{question.samples} records are the same in all of them."
    )


def _steps(grid: float | Array, features: int) -> Array:
    steps = np.broadcast_to(np.asarray(grid, dtype=float), (features,)).copy()
    valid: BoolArray = np.isfinite(steps) & (steps > 0)
    require(
        bool(valid.all()),
        f"The grid must have a positive step for every feature; {int((~valid).sum())} of "
        f"{features} have none.",
    )
    return steps


def _mean(
    mean: Array | None, total: int | None, steps: Array
) -> tuple[Array, IntArray | None, int]:
    """The mean in grid units, exact where it is a fraction of its denominator; its numerators."""
    if mean is None:
        return np.zeros(len(steps)), None, 1
    given = np.asarray(mean, dtype=float)
    require(
        given.shape == steps.shape and bool(np.isfinite(given).all()),
        f"The mean must have one finite value for each of the {len(steps)} features, not shape "
        f"{given.shape}.",
    )
    if total is None or total < 1:
        raise InvalidInput(
            "A mean needs the number of records it is over, which makes it a fraction; give "
            f"records_total, not {total}."
        )
    numerators = np.rint(given / steps * total)
    # The fraction is exact where it is one; a denominator that is none of the mean's own only says
    # how fine the lattice must be.
    fraction = bool(np.abs(given / steps * total - numerators).max() < _FRACTION)
    centre = numerators / total if fraction else given / steps
    return centre, numerators.astype(np.int64), int(total)
