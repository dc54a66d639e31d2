"""Truth, computed after the run from its trace and the problem."""

from fedpca_core.metrics.table import COLUMNS, frame, row_reached, subspace_errors
