"""From a reconstructed S_i to the client's records themselves."""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import symmetric_part


def recover_samples(estimate: Array, samples: int) -> Array:
    """Records of a client that holds fewer of them than features, up to a common rotation.

    ``S_i = A_i A_i^T / m_i`` determines ``A_i`` up to an orthogonal m_i x m_i matrix on the right;
    with one record it determines the record up to its sign.

    ``estimate``, (features, features) float64: Reconstruction of S_i; negative eigenvalues count as
        zero.
    ``samples``: m_i, which is public.

    Returns (features, samples) float64: orthogonal columns, largest first; the sum of each one's
    entries is not negative.
    """
    features = len(estimate)
    require(
        1 <= samples < features,
        f"Records can be read off a matrix of {features} features only when the client holds "
        f"between 1 and {features - 1} of them, not {samples}.",
    )
    values, vectors = np.linalg.eigh(symmetric_part(estimate))
    leading = np.sqrt(samples * np.clip(values[::-1][:samples], 0.0, None))
    records = vectors[:, ::-1][:, :samples] * leading
    return np.asarray(records * np.where(records.sum(axis=0) < 0, -1.0, 1.0))
