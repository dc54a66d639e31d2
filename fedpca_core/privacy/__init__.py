"""Differential privacy of single records: calibration, accounting, audits, guarantees."""

from fedpca_core.guarantee import CLIENT, RECORD, Guarantee, Refusal, Unit, together
from fedpca_core.privacy.accounting import account, noisy, releases_made, spent, unbounded, within
from fedpca_core.privacy.audit import Audit, gaussian_audit, plain_audit, ranking_audit
from fedpca_core.privacy.calibration import CALIBRATIONS, product_noise
