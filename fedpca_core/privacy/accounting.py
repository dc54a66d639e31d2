"""Which methods can be accounted, how, and the sentence for those that cannot.

A method is accounted when all it learns from a client are products ``S_i Q + N`` with orthonormal
Q: each is a Gaussian release whose sensitivity is bounded whatever Q is, so adaptive composition
applies; averaging, rotating, orthonormalising and sampling on the server are post-processing.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.distributed_power import DistributedPower
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput
from fedpca_core.privacy.calibration import exact_sensitivity, true_epsilon
from fedpca_core.privacy.guarantee import (
    FULL,
    WITH_REPLACEMENT,
    WITHOUT_REPLACEMENT,
    Guarantee,
    Refusal,
    guarantee,
)
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.trace import Trace

#: Why the noise of a method has no epsilon, by the class name of the method.
REFUSALS = {
    "FAPS": "FAPS multiplies Sᵢ several times a round inside an eigenvalue problem whose "
    "multiplier and shift are made of the client's own Sᵢ without noise; their sensitivity has no "
    "bound, so noise on the upload gives no ε.",
    "FedPE": "The inner solver of FedPE reads Sᵢ in gradient steps on frames that are not "
    "orthonormal and carries a dual variable of unbounded size, so one record may change an upload "
    "by any amount and noise gives no ε.",
    "FedPG": "The inner solver of FedPG reads Sᵢ in gradient steps whose number depends on the "
    "data, and its dual variable has no bounded size, so noise on the upload gives no ε.",
    "PersonalizedPCA": "Personalised PCA solves a local problem in each round (local components "
    "included) from the raw data; the solution's sensitivity is not bounded without an eigengap, "
    "so noise on the upload gives no ε.",
    "LocalPower": "The hidden local products of LocalPower carry no noise, and orthonormalising "
    "has no bounded sensitivity, so noise on the upload gives no ε; FedPower is LocalPower with "
    "noise on every product.",
    "OneShot": "One-shot averaging uploads local eigenvectors, which one record can turn by any "
    "angle where the client's spectrum has no gap, so noise on the upload gives no ε.",
}
_OTHER = (
    "{title} does more with a client's data than products with orthonormal frames, so the "
    "sensitivity of its uploads is not bounded and noise on them gives no ε; choose FedPower, "
    "SSI or block Krylov."
)


def account(
    algorithm: Algorithm,
    setting: Setting,
    *,
    delta: float,
    clip_norm: float = 1.0,
    client: int = 0,
) -> Guarantee | Refusal:
    """What a run of ``algorithm`` guarantees a client, before it starts, or why nothing.

    Parameters
    ----------
    delta : float
        Failure probability, total over the run.
    clip_norm : float
        Norm that every record was clipped to; see `clipping.check_norms`.
    client : int
        Sizes may differ; noise is in proportion to sensitivity, so epsilon does not.
    """
    spread = float(setting.samples.mean() / setting.samples[client])
    samples = int(setting.samples[client])
    if isinstance(algorithm, FedPower):
        drawn = algorithm.drawn(setting)
        return guarantee(
            algorithm.noise * spread,
            delta,
            algorithm.products,
            float(exact_sensitivity(algorithm.width, samples, clip_norm)),
            clip_norm,
            sampling=FULL if drawn is None else f"{drawn} {WITH_REPLACEMENT}",
        )
    subset = f"{setting.participants_per_round} {WITHOUT_REPLACEMENT}"
    sampling = FULL if setting.participation == 1 else subset
    if isinstance(algorithm, Noisy) and accountable(algorithm.method):
        orthogonal = mutually_orthogonal(algorithm.method, algorithm.products)
        columns = algorithm.components if not orthogonal else 2
        return guarantee(
            algorithm.noise * spread,
            delta,
            algorithm.products,
            float(exact_sensitivity(columns, samples, clip_norm)),
            clip_norm,
            composition=1.0 if orthogonal else None,
            sampling=sampling,
        )
    if accountable(algorithm):
        columns = algorithm.components
        size = float(exact_sensitivity(columns, samples, clip_norm))
        return guarantee(0.0, delta, 1, size, clip_norm, sampling=sampling)
    method = algorithm.method if isinstance(algorithm, Noisy) else algorithm
    return Refusal(REFUSALS.get(type(method).__name__, _OTHER.format(title=method.title)))


def accountable(method: Algorithm) -> bool:
    """Whether the method's only use of the data is one product a round with orthonormal frames."""
    return isinstance(method, SSI | DistributedPower | BlockKrylov)


def noisy(method: Algorithm, noise: float, products: int) -> Noisy:
    """The method with accounted noise on each of its products.

    Raises
    ------
    InvalidInput
        The method cannot be accounted; the sentence says why.
    """
    if not accountable(method):
        raise InvalidInput(REFUSALS.get(type(method).__name__, _OTHER.format(title=method.title)))
    return Noisy(method, noise, products)


def mutually_orthogonal(method: Algorithm, products: int) -> bool:
    """Whether all probes of the run are orthogonal to each other (block Krylov before a restart).

    Then ``sum_j ||(S - S') Q_j||_F^2 = ||(S - S') [Q_1 ... Q_T]||_F^2 <= 2 C^4/m_i^2`` for every
    pair of neighbours and every outcome. Budgets of Gaussian releases add in squares even where
    each depends on all answers before (Smith and Thakurta, "Fully Adaptive Composition for Gaussian
    Differential Privacy", arXiv:2210.17520), so the whole run costs what a single product costs
    (our addition; the tests audit it by the likelihood ratios of many runs). The probe made just
    before a restart is still orthogonal to all, later ones to the kept Ritz vectors only: a longer
    run counts every product in full.
    """
    return isinstance(method, BlockKrylov) and products <= method.blocks + 1


def releases_made(trace: Trace) -> IntArray:
    """Products each client released in a finished run, (clients,).

    A round in which a machine does not upload releases nothing about it, and the broadcast
    overwrites its state: its true cost is the sum of the gaps of the rounds it uploaded in
    (corrected here; not in the paper). Which rounds these are depends on the server's draws
    alone, never on the data.
    """
    made = np.zeros(trace.setting.clients, dtype=np.int64)
    for exchange in trace.transcript.exchanges:
        made[exchange.participants] += exchange.local_steps
    return made


def expected_releases(algorithm: FedPower, setting: Setting) -> Array:
    """Expected products each client releases under the algorithm's sampling, (clients,).

    ``T (1 - (1 - w_i)^K)`` for draws with replacement; the reference machine always makes all T.
    Exact when the run ends with a communication.
    """
    drawn = algorithm.drawn(setting)
    if drawn is None:
        return np.full(setting.clients, float(algorithm.products))
    share = 1.0 - (1.0 - setting.weights) ** drawn
    share[0] = 1.0
    return algorithm.products * share


def spent(trace: Trace, algorithm: FedPower, *, delta: float, clip_norm: float = 1.0) -> Array:
    """Epsilon each client has really spent in a finished run, (clients,); well below 1 ms."""
    setting = trace.setting
    return true_epsilon(
        algorithm.noise * setting.samples.mean() / setting.samples,
        delta,
        releases_made(trace),
        algorithm.width,
        setting.samples,
        clip_norm,
    )
