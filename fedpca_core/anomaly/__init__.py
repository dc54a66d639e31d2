"""Anomaly detection: scores, thresholds, metrics, baselines, baselines and poisoning.

A detector is anything that gives each record a number; large means unusual. Here nearly all of
them measure the distance of a record to a subspace learnt from normal traffic.
"""

from fedpca_core.anomaly.detectors import (
    Detector,
    SelfLearning,
    autoencoder_detector,
    centralised,
    federated,
    norm_only,
    one_shot_covariance,
    random_subspace,
    self_learning,
    subspace_detector,
)
from fedpca_core.anomaly.evaluation import Curves, Evaluation, caught_by_type, curves, evaluate
from fedpca_core.anomaly.scores import contributions, reconstruct, score
from fedpca_core.anomaly.thresholds import (
    best_for_labels,
    client_quantiles,
    histogram_quantile,
    quantile,
)

__all__ = [
    "Curves",
    "Detector",
    "Evaluation",
    "SelfLearning",
    "autoencoder_detector",
    "best_for_labels",
    "caught_by_type",
    "centralised",
    "client_quantiles",
    "contributions",
    "curves",
    "evaluate",
    "federated",
    "histogram_quantile",
    "norm_only",
    "one_shot_covariance",
    "quantile",
    "random_subspace",
    "reconstruct",
    "score",
    "self_learning",
    "subspace_detector",
]
