"""Deterministic federated learning: one minimiser agreed on by all clients, and what is proved.

Minimise ``sum_i f_i(x)`` by local work and averaging; the methods are inexact Uzawa iterations on
the consensus form. The factors that were proved, the ones that are false as
printed, and the exact ones on quadratics live side by side.
"""

from fedpca_core.consensus.generators import RandomProblem, scalar_pair
from fedpca_core.consensus.methods import (
    ConsensusMethod,
    FedAvg,
    InexactUzawa,
    JointUzawa,
    ProxSkip,
    State,
)
from fedpca_core.consensus.problems import ConsensusProblem, Logistic, Quadratic
from fedpca_core.consensus.run import ConsensusTrace, run
