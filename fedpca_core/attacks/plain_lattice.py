"""Lattice reduction in plain numpy: what answers where no lattice library is installed.

The algorithm of Lenstra, Lenstra and Lovász ("Factoring polynomials with rational coefficients",
1982) in floating point, with size reduction repeated until it changes nothing (Schnorr and Euchner,
1994). It is deterministic and stops after a given number of steps.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array

#: Of the Lovász condition: close to 1 reduces well and takes longer.
DELTA = 0.99
#: Size reduction is repeated at most so often; two passes are the rule.
_PASSES = 10


def reduce_plainly(rows: Array, steps: int) -> Array | None:
    """The reduced rows of a lattice basis.

    Parameters
    ----------
    rows : (count, dimension) float64
        Independent; whole numbers below 2^53 stay exact.
    steps : int
        Most visits of a row.

    Returns
    -------
    (count, dimension) float64 or None
        None where the steps did not suffice.
    """
    basis = np.array(rows, dtype=float)
    count = len(basis)
    star = np.zeros_like(basis)  # the rows' parts outside the rows before them
    squares = np.zeros(count)
    ratios = np.zeros((count, count))

    def orthogonalise(row: int) -> None:
        rest = basis[row].copy()
        ratios[row, :row] = 0.0
        for _ in range(2):  # twice is enough for orthogonality up to rounding
            share = (star[:row] @ rest) / squares[:row]
            rest -= share @ star[:row]
            ratios[row, :row] += share
        star[row], squares[row] = rest, float(rest @ rest)

    orthogonalise(0)
    row = 1
    while row < count:
        steps -= 1
        if steps < 0:
            return None
        orthogonalise(row)
        for _ in range(_PASSES):
            if not _size_reduce(basis, ratios, row):
                break
            orthogonalise(row)
        swap = squares[row] < (DELTA - ratios[row, row - 1] ** 2) * squares[row - 1]
        if not swap:
            row += 1
            continue
        basis[[row - 1, row]] = basis[[row, row - 1]]
        orthogonalise(row - 1)
        row = max(row - 1, 1)
    return basis


def _size_reduce(basis: Array, ratios: Array, row: int) -> bool:
    """Subtract whole multiples of the rows before; whether anything changed."""
    share = ratios[row, :row].copy()
    whole = np.zeros(row)
    for before in range(row - 1, -1, -1):
        times = np.rint(share[before])
        if abs(share[before]) > 0.51 and times:
            whole[before] = times
            share[:before] -= times * ratios[before, :before]
            share[before] -= times
    if not whole.any():
        return False
    basis[row] -= whole @ basis[:row]
    return True
