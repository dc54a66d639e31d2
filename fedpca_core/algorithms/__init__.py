"""Algorithms: one file each, a frozen dataclass of parameters plus the steps of one round."""

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.centralized import Centralized
from fedpca_core.algorithms.distributed_power import DistributedPower
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.global_averaging import GlobalAveraging
from fedpca_core.algorithms.local_power import LocalPower
from fedpca_core.algorithms.local_training import LocalTraining
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.one_shot import OneShot
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.algorithms.variable_splitting import VariableSplitting
