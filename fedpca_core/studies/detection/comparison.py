"""All detectors of one experiment, judged once; a page then only moves the threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.anomaly import autoencoder, detectors
from fedpca_core.anomaly.detectors import Detector, SelfLearning
from fedpca_core.anomaly.evaluation import (
    Curves,
    Evaluation,
    area,
    caught_by_type,
    curves,
    evaluate,
)
from fedpca_core.anomaly.thresholds import best_for_labels, quantile
from fedpca_core.errors import require
from fedpca_core.metrics import admm as progress
from fedpca_core.problems.traffic import (
    Detection,
    Traffic,
    available,
    load,
    load_csv,
    prepare,
    synthetic,
)
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.studies.detection.settings import AnomalySettings

#: Told the share done and what comes next; answers whether to go on.
Report = Callable[[float, str], bool]


@dataclass(frozen=True, eq=False)
class Judged:
    """A detector, what it reaches at any threshold, and its curves."""

    detector: Detector
    areas: tuple[float, float]
    curves: Curves
    oracle: float

    def threshold(self, rule: str, share: float) -> float:
        """The alarm level by rule: "oracle" or "quantile"."""
        if rule == "oracle":
            return self.oracle
        return quantile(self.detector.training_scores, share)

    def at(self, attack: np.ndarray, rule: str, share: float) -> Evaluation:
        """Counts and rates by that rule."""
        level = self.threshold(rule, share)
        return evaluate(attack, self.detector.scores, level, self.areas)


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known so far: detectors by name, and the local models."""

    judged: dict[str, Judged]
    local: SelfLearning | None = None


def judge(detection: Detection, detector: Detector) -> Judged:
    """Everything about a detector that does not depend on the threshold."""
    scores = detector.scores
    oracle = best_for_labels(detection.attack, scores)
    whole = evaluate(detection.attack, scores, oracle)
    return Judged(
        detector=replace(detector, trace=None),  # a run holds a hundred megabytes of frames
        areas=(whole.auc, whole.average_precision),
        curves=curves(detection.attack, scores),
        oracle=oracle,
    )


def learn(detection: Detection, configuration: AnomalySettings) -> Detector:
    """The configured federated method, trained."""
    return detectors.federated(
        detection,
        configuration.algorithm(),
        rounds=configuration.rounds,
        participation=configuration.participation,
        seed=configuration.seed,
        channel=Channel(dtype="float32", record="estimates"),
    )


def compare(
    detection: Detection,
    configuration: AnomalySettings,
    report: Report,
    publish: Callable[[Findings], None],
    begun: Findings | None = None,
) -> Findings:
    """Train and judge the configured method, its baselines and its rivals.

    Parameters
    ----------
    begun : Findings, optional
        What `essentials` found already.
    """
    k, seed = configuration.components, configuration.seed
    participation = configuration.participation
    works: list[tuple[str, Callable[[], Detector]]] = [
        ("a random subspace", lambda: detectors.random_subspace(detection, k, seed)),
        (
            "the federated autoencoder",
            lambda: detectors.autoencoder_detector(
                detection, participation=participation, seed=seed
            ),
        ),
        (
            "the deeper autoencoder",
            lambda: detectors.autoencoder_detector(
                detection,
                hidden=autoencoder.FEDAE_2,
                participation=participation,
                seed=seed,
                name="FedAE-2",
            ),
        ),
    ]
    start = essentials(detection, configuration, report) if begun is None else begun
    publish(start)
    found = dict(start.judged)
    for index, (name, work) in enumerate(works):
        if not report(0.4 + 0.15 * index, f"Training and judging {name}"):
            return Findings(found)
        detector = work()
        found[detector.name] = judge(detection, detector)
        publish(Findings(dict(found)))
    if not report(0.85, "Judging ten clients' own models"):
        return Findings(found)
    return Findings(found, detectors.self_learning(detection, k, clients=10))


def essentials(detection: Detection, configuration: AnomalySettings, report: Report) -> Findings:
    """The configured method with what it must never be shown without: its aim and its baseline."""
    report(0.0, "Training and judging the federated method")
    three = (
        learn(detection, configuration),
        detectors.centralised(detection, configuration.components),
        detectors.norm_only(detection),
    )
    return Findings({detector.name: judge(detection, detector) for detector in three})


#: Rates of an evaluation that tables show, in per cent.
RATES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "fnr": "false_negative_rate",
    "fpr": "false_positive_rate",
}


def summary(
    findings: Findings, detection: Detection, configuration: AnomalySettings
) -> pd.DataFrame:
    """One row for each detector at the configured threshold, the baselines included.

    Columns ``detector auc average_precision`` and, in per cent, ``accuracy precision recall f1 fnr
    fpr``. Self-learning PCA averages over clients, each with a threshold of its own.
    """
    rows: list[dict[str, Any]] = []
    for name, judged in findings.judged.items():
        found = judged.at(detection.attack, configuration.rule, configuration.share)
        rates = {short: 100 * getattr(found, long) for short, long in RATES.items()}
        areas = {"auc": found.auc, "average_precision": found.average_precision}
        rows.append({"detector": name, **areas, **rates})
    if findings.local is not None:
        local = findings.local
        own = local.oracle if configuration.rule == "oracle" else local.own_quantile
        areas = {"auc": local.auc, "average_precision": local.average_precision}
        rates = {name: 100 * own[name] for name in RATES}
        rows.append({"detector": "Self-learning PCA", **areas, **rates})
    share = detection.attack_share
    rows.append(
        {
            "detector": "Always alarm",
            "auc": 0.5,
            "average_precision": share,
            "accuracy": 100 * share,
            "precision": 100 * share,
            "recall": 100.0,
            "f1": 200 * share / (1 + share),
            "fnr": 0.0,
            "fpr": 100.0,
        }
    )
    return pd.DataFrame(rows)


def tables(
    configuration: AnomalySettings, report: Report, own: Path | None = None
) -> dict[str, pd.DataFrame]:
    """What the command line prints and writes: ``summary``, ``types`` and ``curves``.

    Parameters
    ----------
    own : path, optional
        The public CSV to read for the data set "own".
    """
    require(
        (own is None) == (configuration.data != "own"),
        "A CSV file belongs to the data set “Your own file” and to no other; give both or neither.",
    )
    data = resolve(configuration.data)
    if own is not None:
        source = load_csv(own)
    elif data == "synthetic":
        source = synthetic(seed=configuration.seed)
    else:
        source = load(data)
    detection = prepared(source, configuration)
    findings = compare(detection, configuration, report, lambda part: None)
    judged = next(iter(findings.judged.values()))
    level = judged.threshold(configuration.rule, configuration.share)
    curves_ = [
        pd.DataFrame(
            {
                "detector": name,
                "false_positive_rate": entry.curves.false_positive_rate,
                "true_positive_rate": entry.curves.true_positive_rate,
            }
        )
        for name, entry in findings.judged.items()
    ]
    types = caught_by_type(detection.attack, detection.types, judged.detector.scores, level)
    return {
        "summary": summary(findings, detection, configuration),
        "types": types,
        "curves": pd.concat(curves_, ignore_index=True),
    }


def resolve(data: str) -> str:
    """The data set behind "best available": TON-IoT where it is found, else synthetic."""
    if data != "auto":
        return data
    return "ton" if "ton" in available() else "synthetic"


def variants(configuration: AnomalySettings) -> dict[str, ConsensusADMM]:
    """The configured method beside the corrected and the printed rules, under their names."""
    shared = configuration.algorithm()
    common = {
        name: getattr(shared, name)
        for name in (
            "components",
            "penalty_factor",
            "step_factor",
            "local_steps",
            "local_start",
            "sampling",
            "initial",
        )
    }
    return {
        "FedPG, corrected": FedPG(**common),
        "FedPE, corrected": FedPE(**common),
        "FedPG, printed average": FedPG(**common, average="printed"),
        "FedPG, printed projection": FedPG(**common, projection="printed"),
    }


@dataclass(frozen=True, eq=False)
class Learning:
    """Convergence of the variants, and the progress measure of the configured method."""

    approach: dict[str, pd.DataFrame]
    progress: pd.DataFrame | None = None


def convergence(
    detection: Detection,
    configuration: AnomalySettings,
    report: Report,
    publish: Callable[[Learning], None],
) -> Learning:
    """Run the variants and the configured method, and read how near they come."""
    works: dict[str, ConsensusADMM] = variants(configuration)
    tables: dict[str, pd.DataFrame] = {}
    for index, (name, algorithm) in enumerate(works.items()):
        if not report(index / (len(works) + 2), f"Running {name}"):
            return Learning(tables)
        trace = simulate(
            detection.problem,
            algorithm,
            rounds=configuration.rounds,
            participation=configuration.participation,
            seed=configuration.seed,
            channel=Channel(record="estimates"),
        )
        tables[name] = progress.approach(trace, detection.problem)
        publish(Learning(dict(tables)))
    report(len(works) / (len(works) + 2), "Reading the augmented Lagrangian")
    # Every client's frame of every round is held for this one, so long runs are cut.
    trace = simulate(
        detection.problem,
        configuration.algorithm(),
        rounds=min(configuration.rounds, 300),
        participation=configuration.participation,
        seed=configuration.seed,
    )
    if trace.frames is None:
        return Learning(tables)
    every = max(1, trace.rounds // 60)
    return Learning(tables, progress.frame(trace, detection.problem, every=every))


#: Values of each sweep.
SWEEPS: dict[str, tuple[float, ...]] = {
    "penalty_factor": (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    "components": (1, 2, 3, 4, 6, 8, 10, 12, 16, 20),
    "clients": (20, 40, 60, 100, 140, 200, 300),
}


def sweep(
    traffic: Traffic, configuration: AnomalySettings, report: Report
) -> Iterator[pd.DataFrame]:
    """Yield a growing table over one setting: AUC of both PCAs and of the length, distance, time.

    Columns ``value auc centralised norm distance seconds``.
    """
    axis = configuration.sweep
    rows: list[dict[str, float]] = []
    last: tuple[int, Detection] | None = None
    for index, value in enumerate(SWEEPS[axis]):
        if not report(index / len(SWEEPS[axis]), f"{axis.replace('_', ' ')} {value:g}"):
            return
        whole = axis != "penalty_factor"
        changed: dict[str, Any] = {axis: int(value) if whole else value}
        at = replace(configuration, **changed)
        if last is None or last[0] != at.clients:
            last = at.clients, prepared(traffic, at)
        detection = last[1]
        if at.components >= detection.problem.features:
            continue
        run, exact = learn(detection, at), detectors.centralised(detection, at.components)
        assert run.trace is not None
        near = progress.approach(run.trace, detection.problem)
        rows.append(
            {
                "value": value,
                "auc": area(detection.attack, run.scores),
                "centralised": area(detection.attack, exact.scores),
                "norm": area(detection.attack, detectors.norm_only(detection).scores),
                "distance": float(near["distance"].iloc[-1]),
                "seconds": run.training_seconds,
            }
        )
        yield pd.DataFrame(rows)


def prepared(traffic: Traffic, configuration: AnomalySettings) -> Detection:
    """The detection task of a configuration."""
    return prepare(
        traffic,
        clients=configuration.clients,
        split=configuration.split,
        transform=configuration.transform,
        scaling=configuration.scaling,
        seed=configuration.seed,
    )


def stream(detection: Detection, flows: int = 400, seed: int = 0) -> np.ndarray:
    """Indices of test records as a live detector may meet them: calm, with a burst of each attack.

    Half the records are normal, in their own order; each attack type comes once, all bursts of
    equal length.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 77]))
    types = sorted({str(name) for name in detection.types[detection.attack]})
    burst = max(2, flows // (2 * len(types)))
    calm = np.flatnonzero(~detection.attack)
    begin = int(generator.integers(0, max(1, len(calm) - burst * (len(types) + 1))))
    pieces, at = [], begin
    for name in types:
        pieces.append(calm[at : at + burst])
        at += burst
        rows = np.flatnonzero(detection.attack & (detection.types == name))
        first = int(generator.integers(0, max(1, len(rows) - burst)))
        pieces.append(rows[first : first + burst])
    pieces.append(calm[at : at + burst])
    return np.concatenate(pieces)
