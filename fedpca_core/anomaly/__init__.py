"""Anomaly detection: scores, thresholds, metrics, yardsticks, baselines and poisoning.

A detector is anything that gives each record a number; large means unusual. Here nearly all of
them measure the distance of a record to a subspace learnt from normal traffic.
"""

from fedpca_core.anomaly.detectors import Detector, autoencoder_detector, subspace_detector
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
    "autoencoder_detector",
    "best_for_labels",
    "caught_by_type",
    "client_quantiles",
    "contributions",
    "curves",
    "evaluate",
    "histogram_quantile",
    "quantile",
    "reconstruct",
    "score",
    "subspace_detector",
]
