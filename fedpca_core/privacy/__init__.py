"""Differential privacy of single records: clipping, calibration, accounting, guarantees."""

from fedpca_core.guarantee import Guarantee, Refusal, guarantee
from fedpca_core.privacy.accounting import (
    account,
    accountable,
    expected_releases,
    noisy,
    releases_made,
    spent,
)
from fedpca_core.privacy.calibration import (
    CALIBRATIONS,
    Calibration,
    exact_multiplier,
    exact_sensitivity,
    published_multiplier,
    published_sensitivity,
    renyi_multiplier,
    true_epsilon,
    warn_delta,
)
from fedpca_core.privacy.clipping import check_norms, clip, normalise, treated

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "Guarantee",
    "Refusal",
    "account",
    "accountable",
    "check_norms",
    "clip",
    "exact_multiplier",
    "exact_sensitivity",
    "expected_releases",
    "guarantee",
    "noisy",
    "normalise",
    "published_multiplier",
    "published_sensitivity",
    "releases_made",
    "renyi_multiplier",
    "spent",
    "treated",
    "true_epsilon",
    "warn_delta",
]
