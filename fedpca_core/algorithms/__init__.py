"""Algorithms: one file each, a frozen dataclass of parameters plus the steps of one round."""

from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.algorithms.global_averaging import GlobalAveraging
from fedpca_core.algorithms.local_training import LocalTraining
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.ssi import SSI

__all__ = ["SSI", "FedPE", "FedPG", "GlobalAveraging", "LocalTraining", "PersonalizedPCA"]
