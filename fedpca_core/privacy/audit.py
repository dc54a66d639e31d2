"""Audits: what many runs prove about epsilon, as a lower bound with a stated confidence.

A guarantee is an upper bound. The scores of the best test known, from runs with a record and runs
with its neighbour, give a lower bound: no mechanism with a smaller epsilon errs so rarely. A formal
bound below the empirical one is wrong; a wide gap says that the test is weak or the bound loose.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import beta, rankdata
from scipy.stats import t as student

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.arrays import Array
from fedpca_core.errors import require


@dataclass(frozen=True)
class Audit:
    #: At least this, with the stated confidence.
    epsilon: float
    delta: float
    confidence: float
    #: Runs it rests on.
    runs: int
    #: How the bound was found.
    way: str


def rate_bound(count: int, trials: int, confidence: float) -> float:
    """Upper confidence bound of Clopper and Pearson on a probability."""
    require(
        0 <= count <= trials and trials >= 1,
        f"{count} errors among {trials} runs are no rate; give at least 1 run.",
    )
    return 1.0 if count == trials else float(beta.ppf(confidence, count + 1, trials - count))


def error_bounds(first: Array, second: Array, confidence: float) -> tuple[float, float]:
    """Upper bounds that hold together on the rates of misses and of false alarms, decided at 0."""
    _check(first, second, confidence)
    each = 1.0 - (1.0 - confidence) / 2.0
    misses = rate_bound(int((first <= 0).sum()), len(first), each)
    return misses, rate_bound(int((second > 0).sum()), len(second), each)


def gaussian_audit(first: Array, second: Array, delta: float, *, confidence: float = 0.95) -> Audit:
    """Audit of a mechanism that is Gaussian: both error rates bound mu, and mu gives epsilon.

    ``mu >= Phi^-1(1 - alarms) - Phi^-1(misses)`` (Dong, Roth and Su, Definition 2.6; Nasr et al.,
    "Tight auditing of differentially private machine learning", 2023).

    ``first``, ``second``, (runs,) float64: Scores of runs with the record and with its neighbour;
        larger speaks for the first. Each run has noise of its own.
    """
    misses, alarms = error_bounds(first, second, confidence)
    mu = max(0.0, -float(ndtri(alarms)) - float(ndtri(misses)))
    epsilon = float(gaussian.epsilon_of(mu, delta))
    way = "Gaussian differential privacy, rates by Clopper and Pearson"
    return Audit(epsilon, delta, confidence, len(first) + len(second), way)


def plain_audit(first: Array, second: Array, delta: float, *, confidence: float = 0.95) -> Audit:
    """Audit that assumes nothing: ``1 - misses <= exp(epsilon) alarms + delta``, and vice versa."""
    misses, alarms = error_bounds(first, second, confidence)
    best = 0.0
    for hits, wrong in ((1.0 - misses, alarms), (1.0 - alarms, misses)):
        if hits > delta:
            best = max(best, float(np.log((hits - delta) / wrong)))
    way = "any mechanism, rates by Clopper and Pearson"
    return Audit(best, delta, confidence, len(first) + len(second), way)


def ranking_audit(first: Array, second: Array, delta: float, *, confidence: float = 0.95) -> Audit:
    """Audit by the area under the curve: every pair of runs counts, not only one threshold.

    A Gaussian mechanism has an area of at most ``Phi(mu/sqrt(2))``. The lower bound on the area is
    that of DeLong, DeLong and Clarke-Pearson (1988) for its log-odds, with a quantile of Student's
    t; on the area itself it is below the truth in 90 to 94% of cases where 95% are stated, from
    20 to 200 runs. From equally many runs it proves about half as much again as one threshold.
    """
    _check(first, second, confidence)
    ones, twos = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    everybody = rankdata(np.concatenate([ones, twos]))
    above = (everybody[: len(ones)] - rankdata(ones)) / len(twos)
    below = 1.0 - (everybody[len(ones) :] - rankdata(twos)) / len(ones)
    area = float(above.mean())
    enough = min(len(ones), len(twos)) > 1
    variance = sum(one.var(ddof=1) / len(one) for one in (above, below)) if enough else np.inf
    # Perfect separation says no more than that one pair in all would be the first to fail.
    area = min(area, 1.0 - 1.0 / (len(ones) * len(twos)))
    lowest = 0.0
    if area > 0.5 and np.isfinite(variance):
        spread = np.sqrt(variance) / (area * (1.0 - area))
        widened = float(student.ppf(confidence, min(len(ones), len(twos)) - 1))
        lowest = float(expit(logit(area) - widened * spread))
    mu = np.sqrt(2.0) * float(ndtri(lowest)) if lowest > 0.5 else 0.0
    epsilon = float(gaussian.epsilon_of(mu, delta))
    way = "Gaussian differential privacy, log-odds of the area under the curve by DeLong"
    return Audit(epsilon, delta, confidence, len(ones) + len(twos), way)


def _check(first: Array, second: Array, confidence: float) -> None:
    require(
        len(first) > 0 and len(second) > 0,
        f"An audit needs runs of both kinds, not {len(first)} and {len(second)}.",
    )
    require(
        0 < confidence < 1, f"The confidence lies between 0 and 1, not {confidence}; 0.95 is usual."
    )
