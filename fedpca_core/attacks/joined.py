"""Several records that joined between two runs: what two second moments tell together.

With M records before and M + k after, ``(M + k) S' - M S = sum x x^T`` over the k that joined, a
matrix of rank k, however many records stand behind the sums. It is read wherever both runs have
been asked the same directions, so it takes no more than that the directions asked span k dimensions
in common; secure aggregation hides whose records they are, not the records. (One record:
`differencing`.)

Records keep what was subtracted from them when the mean was agreed on before. Where each run is
centred on its own announced mean, ``(M + k) mu' mu'^T - M mu mu^T`` is public and is added back:
what is left are the records themselves.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.differencing import records_behind
from fedpca_core.attacks.linear_system import LinearSystem, read
from fedpca_core.attacks.low_rank import Factor, from_answers
from fedpca_core.attacks.pooled import mean_system
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.transcript import Transcript

#: Directions are common to both runs when the cosine between them is this close to 1.
_COMMON = 1e-9
#: Directions asked with less than this share of the clearest magnify the rounding of the answers,
#: which the difference magnifies again.
_CLEAR = 1e-5


def joined(
    before: Transcript,
    after: Transcript,
    client: int = 0,
    *,
    means: tuple[Array, Array] | None = None,
    noise: float = 0.0,
) -> Factor:
    """The second moment of the records that joined (or left) between two runs, as a factor.

    Reads the client's own uploads where the server sees them and the sums where it does not.

    ``before``, ``after``: Two runs of the same method with single products (SSI, block Krylov,
        LocalPower's single steps). Rounds of one local step are read.
    ``client``: Whose uploads to compare; any client under secure aggregation.
    ``means``, pair of (features,) float64: The announced means, where each run subtracts its own
        from all records in the sums.
    ``noise``: Stated relative standard deviation of noise on uploads.

    Returns Factor: ``samples`` is k: ``attacks.records(factor, ...)`` goes on from here.

    Raises InvalidInput: as many records before as after, messages that cannot be read, or two runs
    that were not asked any direction in common.
    """
    counts = records_behind(before, client), records_behind(after, client)
    change = abs(counts[1] - counts[0])
    require(
        change > 0,
        f"Both runs stand for {counts[0]} records; compare two runs between which records joined "
        "or left.",
    )
    sign = 1.0 if counts[1] > counts[0] else -1.0
    runs = _system(before, client), _system(after, client)
    common, answers, size = _in_common(_answers(runs[0]), _answers(runs[1]), counts)
    if means is not None:
        for weight, count, mean in zip((-1.0, 1.0), counts, means, strict=True):
            centre = np.asarray(mean, dtype=float)
            answers += weight * count * np.outer(centre, centre @ common)
    single = all(run.single_precision for run in runs)
    system = LinearSystem(common, sign * answers / change, answers.size, 0.0, single)
    # What cancels in the difference leaves its rounding and its noise behind.
    left = float(np.sqrt((answers**2).mean()))
    return from_answers(system, change, noise=noise, magnified=size / left if left else 1.0)


def _system(run: Transcript, client: int) -> LinearSystem:
    if any(exchange.uploads is None for exchange in run.exchanges):
        return mean_system(run, client)
    return read(run, client)


def _answers(system: LinearSystem) -> tuple[Array, Array]:
    """Orthonormal directions that were asked clearly, and the answers to them."""
    left, sigma, right = np.linalg.svd(system.probes, full_matrices=False)
    kept = sigma > _CLEAR * sigma[0]
    return left[:, kept], system.answers @ right[kept].T / sigma[kept]


def _in_common(
    before: tuple[Array, Array], after: tuple[Array, Array], counts: tuple[int, int]
) -> tuple[Array, Array, float]:
    """Directions asked in both runs, ``(M + k) S' - M S`` applied to them, size of the parts."""
    turn, cosines, back = np.linalg.svd(before[0].T @ after[0], full_matrices=False)
    shared = cosines > 1.0 - _COMMON
    if not shared.any():
        raise InvalidInput(
            "The two runs were asked no direction in common, so their answers cannot be "
            "subtracted; read more rounds, or compare runs that start from the same frame."
        )
    first = counts[0] * (before[1] @ turn[:, shared])
    second = counts[1] * (after[1] @ back[shared].T)
    size = float(np.sqrt((first**2).mean() + (second**2).mean()))
    return before[0] @ turn[:, shared], second - first, size
