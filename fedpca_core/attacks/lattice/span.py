"""Eigenvectors without their sizes: the matrix behind them, where records are few whole numbers.

A client of m records that sends m eigenvectors V and no eigenvalue tells the span of its records X,
and whole numbers tell the rest:

1. The whole vectors in the span form a lattice. Reduction of ``[I | K (I - V V^T)]`` with a large K
   gives a basis B of it; the records are whole combinations of B.
2. ``X X^T = B G B^T`` with whole symmetric G, and V are its eigenvectors: the entries of
   ``V^T B G B^T V`` off the diagonal vanish, which are linear equations in G. Reduction again gives
   their whole solutions.
   Records centred on a public mean mu lie in the span of V and mu, each with one mu in it, and G
   has one more row.
3. Small combinations of these whose eigenvalues are positive and fall as V is ordered are what may
   be behind the message. Where the trace is stated it singles one out; else they are tried by size.

The matrix that is found has the eigenvectors that were sent, by construction. That it is the
client's the certificate of its records says (`records`). Source: our own.
"""

from collections.abc import Iterator

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import mirrored
from fedpca_core.attacks.lattice.reduction import reduce_whole
from fedpca_core.attacks.linear import is_single_precision
from fedpca_core.attacks.low_rank import ROUNDING, Factor
from fedpca_core.linalg.stiefel import orthonormalise

#: Features on which the lattice is looked for; the others follow.
_FEATURES = 70
#: A whole vector this far from the span is not in it, however long.
_OUTSIDE = 0.05
#: Solutions of the equations for G that are combined, and their largest coefficient.
_COMBINED, _LARGEST = 8, 2
#: Stated and found traces agree to this.
_SAME = 1e-6
#: Candidates that are handed on.
_CANDIDATES = 8


def matrices_of_span(
    vectors: Array, steps: Array, *, mean: Array | None = None, trace: float | None = None
) -> Iterator[Factor]:
    """Matrices of few whole-number records that have these eigenvectors, likely ones first.

    ``vectors``, (features, samples) float64: As many leading eigenvectors as the client has
        records, the largest eigenvalue first.
    ``steps``, ``mean``, (features,) float64: The grid, and what was subtracted from every record.
    ``trace``: Stated trace of the client's matrix; without it records and their multiples send the
        same.
    """
    error = ROUNDING["float32" if is_single_precision(vectors) else "float64"]
    count = vectors.shape[1]
    plane = vectors if mean is None else np.column_stack([vectors, mean])
    lengths = np.linalg.norm(plane / steps[:, None], axis=1)
    # Rows of the span that vanish say nothing.
    alive = np.flatnonzero(lengths > 1e-6 * float(lengths.max(initial=1.0)))
    places = np.linspace(0, len(alive) - 1, min(len(alive), _FEATURES))
    rows = alive[places.astype(np.int64)]
    basis = _whole_vectors(plane[rows] / steps[rows, None], error)
    if basis is None:
        return
    inside: Array = np.asarray(
        np.linalg.lstsq(plane[rows], basis * steps[rows, None], rcond=None)[0], dtype=float
    )
    sizes = _diagonals(inside[:count], inside[count:], error)
    if sizes is None:
        return
    if trace is not None:
        # A whole multiple of G is whole too, and the trace tells which it is.
        times = count * trace / sizes.sum(axis=1)
        near = np.maximum(np.rint(times), 1.0)
        sizes = (sizes * near[:, None])[np.abs(times / near - 1.0) < max(_SAME, 1e3 * error)]
    for one in sizes[np.argsort(sizes.sum(axis=1), kind="stable")][:_CANDIDATES]:
        roots = np.sqrt(one / count)
        # An entry of V is rounded by its own size.
        off_by = error / np.sqrt(len(vectors)) * float(roots.max())
        yield Factor(vectors * roots, count, off_by)


def _whole_vectors(span: Array, error: float) -> Array | None:
    """A reduced basis of the whole vectors in a span, (features, size) float64, or None."""
    features, size = span.shape
    if features <= size:
        return None
    frame = orthonormalise(span[None])[0]
    across = np.eye(features) - frame @ frame.T
    # Whole vectors of some thousand steps lie in the span to rounding.
    scale = 2.0 ** np.floor(np.log2(1e-4 / error))
    reduced = reduce_whole(np.hstack([np.eye(features), np.rint(scale * across)]))
    vectors = reduced[:, :features]
    lengths = np.linalg.norm(vectors, axis=1)
    out = np.linalg.norm(vectors @ across, axis=1)
    inside = out < np.minimum(_OUTSIDE, 1e3 * error * np.maximum(lengths, 1.0))
    if int(inside.sum()) != size:
        return None
    return np.asarray(vectors[inside].T)


def _diagonals(inside: Array, shares: Array, error: float) -> Array | None:
    """Eigenvalues of the records' moments that whole G allow, (candidates, records), each falling.

    ``inside``, (records, size) float64: Coordinates of the basis in the eigenvectors.
    ``shares``, (0 or 1, size) float64: Of the mean in the basis, where something was subtracted.
    """
    records, size = inside.shape
    upper = np.triu_indices(size)
    # Column (i, j) of G, with its mirror, in the coordinates of the span.
    left, right = inside[:, upper[0]], inside[:, upper[1]]
    both = np.einsum("an,bn->abn", left, right)
    both = both + np.where(upper[0] == upper[1], 0.0, 1.0) * both.swapaxes(0, 1)
    apart = np.triu_indices(records, 1)
    equations, diagonal = both[apart].T, both[np.diag_indices(records)].T
    unknowns = len(upper[0])
    largest = float(np.abs(equations).max(initial=1.0))
    scale = 2.0 ** np.floor(np.log2(1e-3 / (error * largest)))
    reduced = reduce_whole(np.hstack([np.eye(unknowns), np.rint(scale * equations)]))
    solutions = reduced[:, :unknowns]
    sizes = np.abs(solutions).max(axis=1)
    solves = np.abs(solutions @ equations).max(axis=1, initial=0.0)
    kept = solutions[solves < 1e3 * error * largest * np.maximum(sizes, 1.0) * unknowns]
    kept = kept[np.argsort(np.linalg.norm(kept, axis=1), kind="stable")][:_COMBINED]
    if not len(kept):
        return None
    numbers = np.arange(-_LARGEST, _LARGEST + 1)
    combined = np.stack(np.meshgrid(*[numbers] * len(kept), indexing="ij"), axis=-1)
    combined = combined.reshape(-1, len(kept))
    values = combined @ (kept @ diagonal)
    falling = (values > 0).all(axis=1) & (np.diff(values, axis=1) <= 1e-9 * values[:, :1]).all(1)
    if len(shares):  # every record holds the mean once
        twice = np.where(upper[0] == upper[1], 1.0, 2.0) * shares[0, upper[0]] * shares[0, upper[1]]
        falling &= np.abs(combined @ (kept @ twice) - records) < 0.1
    if not falling.any():
        return None
    if len(shares):
        return np.asarray(values[falling])
    found = combined[falling] @ kept
    # X = B A with whole square A, so det G is a square.
    root = np.sqrt(np.abs(np.linalg.det(mirrored(found, size, upper))))
    square = np.abs(root - np.rint(root)) < 1e-6 * np.maximum(root, 1.0)
    return np.asarray(values[falling][square])
