"""Problems: where private data come from, and how they are split over clients."""

from fedpca_core.problems.cohort import Cohort
from fedpca_core.problems.personal import PersonalProblem, personal
from fedpca_core.problems.problem import Problem, from_blocks

__all__ = ["Cohort", "PersonalProblem", "Problem", "from_blocks", "personal"]
