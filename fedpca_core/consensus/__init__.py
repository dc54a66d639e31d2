"""Deterministic federated learning: one minimiser agreed on by all clients, and what is proved.

Minimise ``sum_i f_i(x)`` by local work and averaging; the methods are inexact Uzawa iterations on
the consensus form. The factors that were proved, the ones that are false as
printed, and the exact ones on quadratics live side by side.
"""

from fedpca_core.consensus.methods import (
    ConsensusMethod,
    ConsensusTrace,
    FedAvg,
    InexactUzawa,
    JointUzawa,
    ProxSkip,
    State,
    run,
)
from fedpca_core.consensus.problems import (
    ConsensusProblem,
    Logistic,
    Quadratic,
    RandomProblem,
    scalar_pair,
)
