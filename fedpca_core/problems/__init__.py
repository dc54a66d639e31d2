"""Problems: where private data come from, and how they are split over clients."""

from fedpca_core.problems.block_model import block_model
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.csv_file import read_csv
from fedpca_core.problems.heterogeneity import DIAL
from fedpca_core.problems.images import LIVE_RESOLUTION, images
from fedpca_core.problems.personal import PersonalProblem, personal
from fedpca_core.problems.perturbation import SourceRelease, Trust
from fedpca_core.problems.problem import Problem, without_record
from fedpca_core.problems.rows import from_records
from fedpca_core.problems.spectrum import decay_spectrum
from fedpca_core.problems.spiked import spiked_covariance
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.problems.table import from_table
from fedpca_core.problems.table_cleaning import TableReport, clean_table
