"""Problems: where private data come from, and how they are split over clients."""

from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.fedpower_models import block_model, spiked_covariance
from fedpca_core.problems.heterogeneity import DIAL
from fedpca_core.problems.images import LIVE_RESOLUTION, images
from fedpca_core.problems.personal_model import PersonalProblem, personal
from fedpca_core.problems.perturbation import SourceRelease, Trust
from fedpca_core.problems.problem import Problem, without_record
from fedpca_core.problems.spectrum import decay_spectrum
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.problems.table import CleanTable, clean_table, from_records, from_table
from fedpca_core.problems.table_file import read_csv
