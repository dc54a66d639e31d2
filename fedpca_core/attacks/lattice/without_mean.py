"""Records whose mean is kept back: all but one picture that is common to them.

Rows are ``(x_k - mu_k 1)^T Q`` with unknown mu_k. A mean over M records makes them generate
``Z^m + (1/M) 1 Z`` seen through Q, whether or not the server knows mu or M. The vector of ones over
M is very short; across it lie the projections of the unit vectors, of length ``sqrt(1 - 1/m)`` and
with products -1/m among each other (the dual of the root lattice A_(m-1)), and what is orthogonal
to these is the direction of ones. Together they give Q, up to a sign that is common to all records.
What stays open is one whole number for each feature and that sign: the server has every difference
between two records, exactly. Records centred on their own mean generate the projections alone, in
one dimension less, and the direction of ones is what is orthogonal to all rows.

A certificate needs no truth, and no value of mu. Differences ``b_k (q_j - q_l)`` are whole, so the
entries of a row, behind the point, lie in one window; those of a wrong rotation lie anywhere.
That nothing else explains the matrix is checked in whole numbers. A combination of rows that
is a short multiple of ones, ``t 1`` with ``|t 1| < sqrt(1 - 1/m)``, must be one in every other
explanation, whose vectors off that direction are projected whole ones and no shorter: so the
rotation R between both keeps the direction of ones. Combinations that are unit vectors up to
multiples of ones are then turned into vectors of the least length, which are unit vectors again,
and of one sign because their products are all -1/m: R is a permutation up to a sign.
"""

from dataclasses import replace

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.lattice.certificate import Certificate, exact_combinations, unit_vectors
from fedpca_core.attacks.lattice.polish import (
    SUBTRACTED,
    TOLERANCE,
    apart_by,
    chance_of_window,
    farthest,
    is_exact,
    nothing_else_fits,
    refitted,
)
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.attacks.lattice.reduction import Reduced, Sieved, reduce_generators, sieve
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import polar

#: Lengths of tags to try: for data kept as float32, then for exact ones.
_TAGS = (1e-3, 1e-2, 1e-5, 1e-7)
#: Products of projected unit vectors may be off by so much before they are polished.
_OFF = 0.1
#: A wrong rotation must come as close with a chance below this (decimal logarithm).
_CHANCE = -12.0
#: Windows below this count as this in the chance.
_CLOSEST = 0.01
#: A combination is no multiple of ones but noise when it is shorter than so many times the noise.
_CLEAR = 5.0
#: Projected unit vectors differ in length by more than this from all other vectors.
_APART = 0.1
#: Refits, and the root mean square distance from the grid at which more rows join; 0.29 is chance.
_ROUNDS, _NEAR = 25, 0.15

#: Where no rotation was found.
_NONE = Certificate(False, np.inf, np.inf, 0.0, False, "", "no rotation fits the grid.")


def records_without_mean(factor: Factor, grid: float | Array = 1.0) -> Records:
    """Differences between a client's records from its second moment alone.

    The records that are returned stand above their smallest value in each feature; the negative
    explains the matrix as well, and the one with the smaller sum is given. Certified differences
    give the matrix back to its known error, all of them lie within 0.25 of the grid, those of each
    feature also when the rotation is fitted without that feature, and no others do.

    ``factor``: Of at least 3 records that were centred on a mean over many, or on their own.
    ``grid``: As in `attacks.records`.
    """
    rank = factor.rank
    require(
        factor.samples >= 3,
        f"Differences need at least 3 records, not {factor.samples}; choose another client.",
    )
    steps = np.broadcast_to(np.asarray(grid, dtype=float), (len(factor.matrix),))
    scale = np.sqrt(factor.samples) / steps
    turned = factor.matrix * scale[:, None]
    error = factor.error * scale + SUBTRACTED
    sieved = sieve(turned, factor.error * float(np.sqrt(rank) / np.median(steps)), 0.1)
    short = sieved.rows
    own = rank == factor.samples - 1
    if not (own or rank == factor.samples) or len(short) <= rank:
        return _failed(replace(_NONE, note="the matrix has too small a rank."))
    count = min(len(short), 4 * rank + 10)
    chosen = np.linspace(0, len(short) - 1, count).astype(np.int64)
    # Records centred on their own mean leave the direction of ones out; it becomes the last axis.
    rows, small = (np.hstack([one, np.zeros((len(one), int(own)))]) for one in (turned, short))
    allowed = farthest(turned, error)
    best = _NONE
    for epsilon in _TAGS:
        reduced = reduce_generators(short[chosen], epsilon)
        turn = _rotation(reduced.basis, own)
        if turn is None:
            continue
        for stage in (small, rows):
            whole, turn = _polished(stage, turn)
        offset = (rows @ turn.T - whole).mean(axis=1, keepdims=True)
        turn = refitted(whole + offset, rows, turn, error)
        here = rows @ turn.T - whole
        off = apart_by(here - here.mean(axis=1, keepdims=True), rows, error)
        proved = _proved(sieved, chosen, reduced, whole, off, own)
        found = _judged(rows, whole, here, allowed, proved, is_exact(turned, error))
        if found.valid:
            darkest = whole - whole.min(axis=1, keepdims=True)
            negative = whole.max(axis=1, keepdims=True) - whole
            one = (darkest if darkest.sum() <= negative.sum() else negative).astype(np.int64)
            note = f"Certified: {found.note}"
            return Records(True, note, one, certificate=found, differences=True)
        if found.largest_distance < best.largest_distance:
            best = found
    return _failed(best)


def _failed(certificate: Certificate) -> Records:
    note = f"Not certified: {certificate.note}"
    return Records(False, note, certificate=certificate, differences=True)


def _judged(
    rows: Array, whole: Array, here: Array, allowed: Array, proved: bool, exact: bool
) -> Certificate:
    """Whether the differences hold; ``here`` is how far the turned rows lie off ``whole``."""
    largest = _largest(rows, whole, here)
    off = np.abs(here - here.mean(axis=1, keepdims=True))
    misfit = float((off / allowed[:, None]).max())
    odds = chance_of_window(rows, float(np.clip(2.0 * largest, _CLOSEST, TOLERANCE)))
    note = ""
    if not largest < TOLERANCE:
        note = _NONE.note
    elif not misfit <= 1.0:
        note = (
            "the differences do not give the matrix back: an entry is off by "
            f"{misfit:.2g} times what its known error explains."
        )
    elif not proved and not exact:
        note = "the error of the matrix leaves room for other differences."
    elif not proved and odds > _CHANCE:
        note = f"a wrong rotation would come as close with a chance of up to 10^{odds:.0f}."
    valid = not note
    if valid:
        alone = (
            "no others do, as was checked in whole numbers, but for their common sign"
            if proved
            else f"if entries were independent, others would with a chance below 10^{odds:.0f}"
        )
        note = (
            f"all differences between {whole.shape[1]} records give the matrix back within "
            f"{misfit:.1g} of its known error; {alone}."
        )
    return Certificate(valid, largest, misfit, odds, valid and proved, "", note)


def _rotation(basis: Array, own: bool) -> Array | None:
    """Q up to a common sign, from projected unit vectors and what is orthogonal to them."""
    size = len(basis) + own
    # Else the shortest is the vector of ones, or noise.
    across = np.hstack([basis, np.zeros((len(basis), 1))]) if own else basis[1:]
    ones = np.linalg.svd(across)[2][-1]
    signs = np.where(across @ across[0] > 0, -1.0, 1.0)
    signs[0] = 1.0
    across = across * signs[:, None]
    across = np.vstack([across, -across.sum(axis=0)])
    if np.abs(across @ across.T - (np.eye(size) - 1.0 / size)).max() > _OFF:
        return None
    return polar(across + ones / np.sqrt(size))


def _polished(rows: Array, turn: Array) -> tuple[Array, Array]:
    """Whole numbers up to one offset a row, and the refitted Q."""
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
    return whole, turn


def _largest(rows: Array, whole: Array, here: Array) -> float:
    """Farthest from the grid that a difference lies, under Q and without the row's own part in it.

    A row that is much larger than all others could bend the rotation to fit whatever it was
    misread as. So each is also predicted from a fit to the others (leave one out, in closed form).
    """
    across = whole - whole.mean(axis=1, keepdims=True)
    left = np.linalg.svd(rows, full_matrices=False)[0]
    own = (left**2).sum(axis=1)
    predicted = (across - left @ (left.T @ across)) / np.maximum(1.0 - own, 1e-12)[:, None]
    return float(max(np.ptp(here, axis=1).max(), np.ptp(predicted, axis=1).max()))


def _proved(
    sieved: Sieved, chosen: IntArray, reduced: Reduced, whole: Array, off: Array, own: bool
) -> bool:
    """Whether no other differences explain the matrix; see the top of this module."""
    size = whole.shape[1]
    if not own:
        ones = float(np.linalg.norm(reduced.basis[0]))
        noise = reduced.noise * float(np.linalg.norm(reduced.combinations[0]))
        if not _CLEAR * noise < ones < np.sqrt(1.0 - 1.0 / size):
            return False
    made = sieved.combinations[chosen]
    exact = exact_combinations(reduced.combinations, made, float(np.abs(whole).max()))
    if exact is None:
        return False
    rows = exact @ whole[sieved.chosen].astype(np.int64)
    # Units up to a sign and multiples of ones, which two entries tell: the others are all equal.
    rows = rows - np.median(rows, axis=1, keepdims=True).astype(np.int64)
    first = 0 if own else 1
    last = np.where(np.abs(rows[first:]).sum(axis=0) == 0, 1, 0)  # the ones less all the others
    if rows[:first].any() or not unit_vectors(np.vstack([rows[first:], last])):
        return False
    apart = float(np.linalg.norm(exact[first:].astype(float) * off[sieved.chosen]))
    # Two entries of a row move by up to sqrt(2) times what the row does.
    aside = np.linalg.svd(np.ones((1, size)))[2][1:].T  # a basis of what is orthogonal to ones
    across = np.sqrt(2.0) * (whole - whole.mean(axis=1, keepdims=True)) @ aside
    return apart < _APART and nothing_else_fits(across, np.sqrt(2.0) * off, apart)
