"""Detectors by name: the paper's methods, its baselines, and the baselines it leaves out."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpca_core.anomaly import autoencoder, evaluation
from fedpca_core.anomaly.evaluation import RATES, Evaluation, evaluate, quantile, score
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams


@dataclass(frozen=True, eq=False)
class Detector:
    """A method that has been trained, and its scores."""

    name: str
    #: (tested,) float64: Scores of the test records.
    scores: Array
    #: (records,) float64: Scores of the clients' normal training records.
    training_scores: Array
    #: Measured here, scoring in batches.
    microseconds_per_record: float
    #: (features, components) float64, or None: The subspace, for methods that have one.
    frame: Array | None = None
    #: Numbers one participant sends in a round (once, for one-shot methods).
    upload_floats: int = 0
    #: Bytes up and down over all clients and rounds.
    bytes_total: int = 0
    #: Of all clients together, measured here.
    training_seconds: float = 0.0


def subspace_detector(
    name: str, detection: DetectionTask, frame: Array | None, **costs: Any
) -> Detector:
    """Detector that scores the distance to ``frame`` (None: the length of the record)."""
    return _scored(name, detection, lambda records: score(records, frame), frame=frame, **costs)


def from_run(detection: DetectionTask, trace: Trace) -> Detector:
    """What a finished run of one of the project's algorithms has learnt, with its cost."""
    algorithm = trace.algorithm
    require(
        trace.estimate.ndim == 2,
        f"{algorithm.title} gives every client a model of its own; "
        "choose a method with one common model.",
    )
    return subspace_detector(
        algorithm.title,
        detection,
        trace.estimate,
        upload_floats=detection.problem.features * algorithm.components,
        bytes_total=int(trace.bytes_up[-1] + trace.bytes_down[-1]),
        training_seconds=float(trace.seconds[-1]),
    )


def centralised(detection: DetectionTask, components: int) -> Detector:
    """The leading eigenvectors of the mean covariance: what the federated methods aim at."""
    began = time.perf_counter()
    frame = detection.problem.target(components)
    return subspace_detector(
        "Centralised PCA", detection, frame, training_seconds=time.perf_counter() - began
    )


def one_shot_covariance(detection: DetectionTask, components: int) -> Detector:
    """Every client sends S_i once; a secure sum gives the exact answer for every rank.

    Wire: ``features (features + 1)/2`` float32 numbers up and the frame down, once. The honest
    competitor of the iterative methods: they save bytes only while
    (participations) * components stays below (features + 1)/2.
    """
    features, clients = detection.problem.features, detection.problem.clients
    floats = features * (features + 1) // 2
    return replace(
        centralised(detection, components),
        name="One-shot covariance",
        upload_floats=floats,
        bytes_total=4 * clients * (floats + features * components),
    )


def norm_only(detection: DetectionTask) -> Detector:
    """Baseline: the squared length of the standardised record. Nothing is learnt."""
    return subspace_detector("Norm only", detection, None)


def random_subspace(detection: DetectionTask, components: int, seed: int = 0) -> Detector:
    """Baseline: distance to a random subspace of the same rank."""
    generator = Streams(seed).generator("baseline")
    frame = uniform_frame(generator, detection.problem.features, components)
    return subspace_detector("Random subspace", detection, frame)


def autoencoder_detector(
    detection: DetectionTask, name: str, network: autoencoder.Network, **how: Any
) -> Generator[float, None, Detector]:
    """A network averaged over the clients, as `autoencoder.training`; returns the detector."""
    model = yield from autoencoder.training(detection.problem, network, **how)
    return _scored(
        name,
        detection,
        lambda records: autoencoder.score(model, records),
        upload_floats=network.parameters,
        bytes_total=model.bytes_up + model.bytes_down,
        training_seconds=model.seconds,
    )


@dataclass(frozen=True)
class SelfLearning:
    """Local PCA of every client, judged on the common test set; averages over clients."""

    auc: float
    average_precision: float
    #: accuracy, precision, recall, f1, fnr, fpr at each client's label-chosen threshold.
    oracle: dict[str, float]
    #: The same at each client's own quantile of its own training scores.
    own_quantile: dict[str, float]
    #: (clients,) float64: FPR of every client at its own quantile.
    false_alarms: Array


def self_learning(
    detection: DetectionTask, components: int, clients: int = 10
) -> Generator[float, None, SelfLearning]:
    """Local PCA: every client its own top eigenvectors and its own threshold.

    Only so many ``clients``, evenly spaced, are judged: the metrics of 100 on 60,000 records take
    seconds. Yields the share of them that is done, returns the averages.
    """
    problem = detection.problem
    assert problem.blocks is not None
    _, frames = problem.client_data.top_eigenvectors(components)
    count = min(clients, problem.clients)
    chosen = np.unique(np.linspace(0, problem.clients - 1, count).astype(int))
    oracle, own = [], []
    for position, index in enumerate(chosen):
        yield position / len(chosen)
        scores = score(detection.records, frames[index])
        best = evaluation.best_for_labels(detection.attack, scores)
        oracle.append(evaluate(detection.attack, scores, best))
        training = score(np.ascontiguousarray(problem.blocks[index].T), frames[index])
        own.append(evaluate(detection.attack, scores, quantile(training)))
    return SelfLearning(
        auc=float(np.mean([judged.auc for judged in oracle])),
        average_precision=float(np.mean([judged.average_precision for judged in oracle])),
        oracle=mean_rates(oracle),
        own_quantile=mean_rates(own),
        false_alarms=np.array([judged.fpr for judged in own]),
    )


def mean_rates(judged: Sequence[Evaluation]) -> dict[str, float]:
    return {name: float(np.mean([getattr(one, name) for one in judged])) for name in RATES}


def _scored(
    name: str, detection: DetectionTask, scorer: Callable[[Array], Array], **known: Any
) -> Detector:
    began = time.perf_counter()
    scores = scorer(detection.records)
    elapsed = time.perf_counter() - began
    return Detector(
        name=name,
        scores=scores,
        training_scores=scorer(detection.training),
        microseconds_per_record=1e6 * elapsed / len(detection.records),
        **known,
    )
