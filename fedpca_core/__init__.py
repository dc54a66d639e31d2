"""Federated PCA: algorithms, what crosses the wire, and what a curious server makes of it.

>>> import fedpca_core as fp
>>> fp.FederatedPCA(n_components=5).fit(X, groups=site)  # rows are records
>>> problem = fp.problems.from_records(X, site)
>>> trace = fp.simulate(problem, fp.SSI(components=5), rounds=100, seed=0)
>>> fp.metrics.frame(trace, problem)
"""

from typing import TYPE_CHECKING, Any

from fedpca_core import attacks, consensus, metrics, privacy, problems
from fedpca_core.algorithms import (
    FAPS,
    SSI,
    BlockKrylov,
    Centralized,
    DistributedPower,
    FedPE,
    FedPG,
    FedPower,
    GlobalAveraging,
    LocalPower,
    LocalTraining,
    OneShot,
    PersonalizedPCA,
    VariableSplitting,
)
from fedpca_core.errors import InvalidInput
from fedpca_core.metrics import admm as progress
from fedpca_core.metrics import personal as personal_metrics
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation, simulate, stream
from fedpca_core.version import __version__

if TYPE_CHECKING:
    from fedpca_core.estimator import FederatedPCA
    from fedpca_core.own_messages import attack_arrays


def __getattr__(name: str) -> Any:
    """What needs scikit-learn and the studies is imported when it is asked for."""
    if name == "FederatedPCA":
        from fedpca_core.estimator import FederatedPCA

        return FederatedPCA
    if name == "attack_arrays":
        from fedpca_core.own_messages import attack_arrays

        return attack_arrays
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
