"""The reader: a client's whole S_i from a few of its answers, when it holds few records.

Stack what was asked and answered, ``Y = S_i Z``, and diagonalise ``K = sym(Z^T Y) = V L V^T``. A
symmetric matrix of rank r is determined by its action on a space on which it still has rank r:
``S_i = F F^T`` with ``F = Y V L^(-1/2)`` over the eigenvalues that are not rounding (the Nyström
formula; exact here, see Tropp, Yurtsever, Udell and Cevher, "Fixed-rank approximation of a
positive-semidefinite matrix from streaming data", 2017). As r is at most the number of records, ten
columns read a client of ten records, whatever the number of features, and no matrix of features x
features is formed.
"""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import LinearSystem, read
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript

#: Eigenvalues below this fraction of the largest count as rounding.
_CUTOFF = 20.0 * float(np.finfo(np.float64).eps)
#: Rounding of one entry of an answer, relative to the root mean square of the answer.
ROUNDING = {
    "float64": 8.0 * float(np.finfo(np.float64).eps),
    "float32": 0.5 * float(np.finfo(np.float32).eps),
}
#: An error of K turns its weakest direction, and with it F: by so much of the bound (measured).
_TURNED = 0.2
#: Answers of one symmetric matrix make K symmetric up to so many times their rounding.
_SYMMETRIC = 1e4


@dataclass(frozen=True)
class Factor:
    """A second-moment matrix as ``S = F F^T``."""

    #: (features, rank) float64: F, known up to an orthogonal matrix on the right.
    matrix: Array
    #: Records behind S, which is public: ``F sqrt(samples)`` are the records, rotated.
    samples: int
    #: Expected size of rounding and stated noise in an entry of F.
    error: float = 0.0
    #: Whether the messages determine S.
    complete: bool = True

    @property
    def rank(self) -> int:
        return self.matrix.shape[1]


def low_rank(transcript: Transcript, client: int = 0, *, noise: float = 0.0) -> Factor:
    """Read S_i off single products with it: SSI, block Krylov, LocalPower's rounds of one step.

    ``noise``: Stated relative standard deviation of noise on uploads.

    Raises InvalidInput: unknown client, missing messages, or no round at all.
    """
    require(noise >= 0, f"The stated noise must be at least 0, not {noise}.")
    system = read(transcript, client)
    require(
        system.probes.shape[1] > 0,
        f"No round of client {client} was read, so nothing is known of it; read at least 1 round.",
    )
    return from_answers(system, int(transcript.samples[client]), noise=noise)


def from_answers(
    system: LinearSystem, samples: int, *, noise: float = 0.0, magnified: float = 1.0
) -> Factor:
    """The factor of stacked questions and answers, of ``samples`` directions at most.

    ``magnified``: How many times their usual share rounding and noise have, in differences say.
    """
    probes, answers = system.probes, system.answers
    product = probes.T @ answers
    values, vectors = np.linalg.eigh(symmetric_part(product))
    rounding = ROUNDING["float32" if system.single_precision else "float64"]
    relative = float(np.hypot(rounding, noise))
    # Rounding and noise of one entry of an answer. Z has orthonormal blocks, so that an error of
    # this size in the answers is one of this size in K.
    entry = relative * float(np.sqrt((answers**2).mean()))
    columns = len(values)
    cutoff = max(3.0 * magnified * entry * np.sqrt(columns), _CUTOFF * float(values[-1]), 0.0)
    kept = (values > cutoff) & (np.arange(columns) >= columns - samples)
    size = float(np.linalg.norm(product))
    # Rounding where the answers belong to one symmetric matrix, large where they do not: uploads
    # that are no plain products.
    asymmetry = float(np.linalg.norm(product - product.T)) / size if size else 0.0
    roots = np.sqrt(values[kept])
    matrix = (answers @ (vectors[:, kept] / roots))[:, ::-1]
    error = unit = magnified * entry
    if kept.any():
        weakest = float(roots.min())
        size = float(np.sqrt((matrix**2).mean()))
        error = unit / weakest * (1.0 + _TURNED * size / weakest)
    # A rank below both says by itself that the answers leave nothing open.
    rank = int(kept.sum())
    complete = 0 < rank == samples or 0 < rank < probes.shape[1]
    complete &= asymmetry < max(_SYMMETRIC * magnified * relative, 4.0 * noise)
    return Factor(matrix, samples, error, complete)


def factor_of(matrix: Array, samples: int, *, error: float = 0.0) -> Factor:
    """The factor of a second-moment matrix, however the server came by it.

    ``matrix``, (features, features) float64: S; negative eigenvalues count as rounding.
    ``samples``: Records behind it; at most so many eigenvalues are kept.
    ``error``: Known size of the error of an entry of the matrix (rounding is allowed for anyway).
    """
    require(samples >= 1, f"There must be at least 1 record behind a matrix, not {samples}.")
    values, vectors = np.linalg.eigh(symmetric_part(np.asarray(matrix, dtype=float)))
    features = len(values)
    floor = max(_CUTOFF * float(values[-1]), 2.0 * error * np.sqrt(features))
    kept = values > max(floor, 0.0)
    kept &= np.arange(features) >= features - samples
    roots = np.sqrt(values[kept])
    unit = max(error, float(np.finfo(float).eps) * float(np.abs(values).max()))
    return Factor(
        matrix=(vectors[:, kept] * roots)[:, ::-1],
        samples=samples,
        error=unit / float(roots.min()) if kept.any() else unit,
    )


def recover_samples(estimate: Array, samples: int) -> Array:
    """Records of a client that holds fewer of them than features, up to a common rotation.

    ``S_i = A_i A_i^T / m_i`` determines ``A_i`` up to an orthogonal m_i x m_i matrix on the right;
    with one record it determines the record up to its sign.

    Returns (features, samples): orthogonal columns, largest first, the entries of each summing to
    no negative number. Negative eigenvalues of the estimate count as zero.
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
