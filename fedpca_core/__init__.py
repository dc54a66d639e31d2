"""Federated PCA: algorithms, what crosses the wire, and what a curious server makes of it.

>>> import fedpca_core as fp
>>> problem = fp.problems.from_blocks(blocks)               # features x samples, one per client
>>> trace = fp.simulate(problem, fp.SSI(components=5), rounds=100, seed=0)
>>> fp.metrics.frame(trace, problem)
"""

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

__all__ = [
    "FAPS",
    "SSI",
    "BlockKrylov",
    "Centralized",
    "Channel",
    "DistributedPower",
    "FedPE",
    "FedPG",
    "FedPower",
    "GlobalAveraging",
    "InvalidInput",
    "LocalPower",
    "LocalTraining",
    "OneShot",
    "PersonalizedPCA",
    "Simulation",
    "VariableSplitting",
    "attacks",
    "consensus",
    "metrics",
    "personal_metrics",
    "privacy",
    "problems",
    "progress",
    "simulate",
    "stream",
]
