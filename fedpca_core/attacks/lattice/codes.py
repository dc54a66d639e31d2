"""Records of codes, whatever their number: their second moments are counts.

Of columns of zeros and ones ``m S`` counts: its diagonal how often each column is 1, its other
entries how often two are 1 together. Every set of records with the same counts is enumerated,
column by column: the records found so far fall into classes of equal ones, and the next column
gives each class a number of ones. Where one set alone is left, these are the records.

A public mean ``mu`` hides nothing: ``m S_kk = c_k (1 - 2 mu_k) + m mu_k^2`` gives the counts c.
"""

from collections.abc import Iterator

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.attack import Deployment
from fedpca_core.attacks.lattice.polish import FARTHEST
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.attacks.low_rank import Factor

#: Counts farther from whole numbers than this are none.
_WHOLE = 0.1
#: Numbers of ones that are tried at most, for each unit of the work of an attack.
_PER_WORK = 2e-5
#: Sets of records after which no more are looked for.
_SETS = 2


def are_codes(deployment: Deployment) -> bool:
    facts = deployment.records
    if facts is None or facts.bounds is None or not deployment.grid_known:
        return False
    within = np.array_equal(facts.bounds, np.tile([0.0, 1.0], (deployment.features, 1)))
    return within and bool((facts.grid == 1.0).all())


def counts_of(factor: Factor, mean: Array | None) -> Array:
    """How often two columns are 1 together, (features, features) float64, to rounding.

    ``mean``, (features,): What was subtracted; of a column whose mean is one half nothing follows.
    """
    moment = factor.samples * factor.matrix @ factor.matrix.T
    if mean is None:
        return np.asarray(moment)
    lost = 1.0 - 2.0 * mean
    known = np.abs(lost) > 1e-9
    own = np.diag(moment) - factor.samples * mean**2
    ones = np.divide(own, lost, out=np.full(len(mean), np.nan), where=known)
    outer = np.outer(ones, mean)
    return np.asarray(moment + outer + outer.T - factor.samples * np.outer(mean, mean))


def records_of_codes(factor: Factor, mean: Array | None, work: float) -> Records:
    """The records behind counts, certified where no others have the same."""
    counts = counts_of(factor, mean)
    exact = np.rint(counts)
    # An entry of F is known to ``error``, and an entry of m S to as much as its columns are long.
    longest = float(np.linalg.norm(factor.matrix, axis=1).max(initial=0.0))
    entry = 2.0 * longest * np.sqrt(factor.rank) * factor.error + factor.rank * factor.error**2
    known = FARTHEST * factor.samples * entry
    off = float(np.abs(counts - exact).max()) if np.isfinite(counts).all() else np.inf

    def failed(note: str) -> Records:
        return Records(False, f"Not certified: {note}")

    if factor.rank == 0 or not known < 0.5:
        return failed("the error of the matrix hides its counts.")
    if not off < _WHOLE:
        return failed("the second moments are no counts.")
    if not off <= known + 1e-9 * factor.samples:
        return failed("the counts are off by more than what the error of the matrix explains.")
    if float(np.diag(exact).max(initial=0.0)) > factor.samples or exact.min(initial=0.0) < 0:
        return failed("the second moments are no counts of so many records.")
    sets, whole = sets_of_records(exact.astype(np.int64), factor.samples, int(work * _PER_WORK))
    if not whole:
        return failed("too many sets of records have these counts to go through all of them.")
    if len(sets) != 1:
        many = "no set of records has" if not sets else "more than one set of records has"
        return failed(f"{many} these counts.")
    note = (
        f"Certified: {factor.samples} records of codes have exactly these counts, and no others "
        "do; all were gone through."
    )
    return Records(True, note, sets[0], sets[0].astype(float))


def sets_of_records(counts: IntArray, samples: int, work: int) -> tuple[list[IntArray], bool]:
    """Sets of records of zeros and ones with these counts, at most two of them.

    ``counts``, (features, features) int64. ``work``: Numbers of ones that are tried at most.

    Returns the sets, (features, samples) int64 each, and whether the search was brought to an end:
    all sets are listed, or two were found.
    """
    found: list[IntArray] = []
    left = work

    def spread(sizes: IntArray, classes: IntArray, wanted: IntArray) -> Iterator[IntArray]:
        """Numbers of ones for every class, with ``classes @ numbers`` as wanted."""
        nonlocal left
        numbers = np.zeros(len(sizes), dtype=np.int64)
        sizes = np.minimum(sizes, np.where(classes > 0, wanted[:, None], samples).min(axis=0))
        # The most that the classes from here on can still give to each equation.
        beyond = np.cumsum((classes * sizes)[:, ::-1], axis=1)[:, ::-1]
        beyond = np.hstack([beyond, np.zeros((len(wanted), 1), dtype=np.int64)])

        def place(at: int, rest: IntArray) -> Iterator[IntArray]:
            nonlocal left
            if at == len(sizes):
                yield numbers.copy()
                return
            inside = classes[:, at] > 0
            most = min(int(sizes[at]), int(rest[inside].min(initial=sizes[at])))
            least = max(0, int((rest - beyond[:, at + 1])[inside].max(initial=0)))
            for number in range(most, least - 1, -1):
                left -= 1
                if left < 0 or len(found) >= _SETS:
                    return
                after = rest - number * classes[:, at]
                if (after <= beyond[:, at + 1]).all():
                    numbers[at] = number
                    yield from place(at + 1, after)

        yield from place(0, wanted)

    def column(number: int, classes: IntArray, sizes: IntArray) -> None:
        """Go on from records that are known in the first columns."""
        if left < 0 or len(found) >= _SETS:
            return
        if number == len(counts):
            found.append(np.repeat(classes, sizes, axis=1))
            return
        equations = np.vstack([classes, np.ones((1, len(sizes)), dtype=np.int64)])
        wanted = np.append(counts[number, :number], counts[number, number])
        for ones in spread(sizes, equations, wanted):
            both = np.hstack([sizes - ones, ones])
            digits = np.repeat([[0, 1]], len(sizes), axis=1)
            grown = np.vstack([np.hstack([classes, classes]), digits])
            column(number + 1, grown[:, both > 0], both[both > 0])

    column(0, np.zeros((0, 1), dtype=np.int64), np.array([samples], dtype=np.int64))
    return found, left >= 0
