"""Problems: where private data come from, and how they are split over clients."""

from fedpca_core.problems.block_model import block_model
from fedpca_core.problems.cohort import Cohort
from fedpca_core.problems.heterogeneity import DIAL
from fedpca_core.problems.personal import PersonalProblem, personal
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.spectrum import decay_spectrum
from fedpca_core.problems.spiked import spiked_covariance
from fedpca_core.problems.splits import samples_per_client

__all__ = [
    "DIAL",
    "Cohort",
    "PersonalProblem",
    "Problem",
    "block_model",
    "decay_spectrum",
    "from_blocks",
    "personal",
    "samples_per_client",
    "spiked_covariance",
]
