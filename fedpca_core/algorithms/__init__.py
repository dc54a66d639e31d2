"""Algorithms: frozen dataclasses of parameters plus the pure steps of a round; see `registry`."""

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.fedpe_fedpg import FedPE, FedPG
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.one_round import Centralized, OneShot
from fedpca_core.algorithms.personal_rivals import GlobalAveraging, LocalTraining
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.ssi import SSI, DistributedPower, LocalPower
from fedpca_core.algorithms.variable_splitting import VariableSplitting
