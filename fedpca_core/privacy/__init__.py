"""Differential privacy of single records: calibration, accounting, audits, guarantees."""

from fedpca_core.guarantee import (
    CLIENT,
    RECORD,
    Guarantee,
    Refusal,
    Unit,
    guarantee,
    together,
)
from fedpca_core.privacy.accounting import (
    account,
    accountable,
    noisy,
    releases_made,
    spent,
    unbounded,
    within,
)
from fedpca_core.privacy.audit import (
    Audit,
    gaussian_audit,
    plain_audit,
    ranking_audit,
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

__all__ = [
    "CALIBRATIONS",
    "CLIENT",
    "RECORD",
    "Audit",
    "Calibration",
    "Guarantee",
    "Refusal",
    "Unit",
    "account",
    "accountable",
    "exact_multiplier",
    "exact_sensitivity",
    "gaussian_audit",
    "guarantee",
    "noisy",
    "plain_audit",
    "published_multiplier",
    "published_sensitivity",
    "ranking_audit",
    "releases_made",
    "renyi_multiplier",
    "spent",
    "together",
    "true_epsilon",
    "unbounded",
    "warn_delta",
    "within",
]
