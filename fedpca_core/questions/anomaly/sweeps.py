"""One setting varied, all others as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.evaluation import area
from fedpca_core.metrics import admm as progress
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, noisy_task
from fedpca_core.questions.anomaly.topic import LEARNING
from fedpca_core.questions.anomaly.trained import detector, run
from fedpca_core.settings import Value
from fedpca_core.steps import Part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.sweep import Measured, Sweep, Swept

#: Values of each sweep.
VALUES: Mapping[str, tuple[Value, ...]] = {
    "penalty_factor": (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    "components": (1, 2, 3, 4, 6, 8, 10, 12, 16, 20),
    "clients": (20, 40, 60, 100, 140, 200, 300),
    "local_steps": (1, 2, 5, 10, 20, 30, 50),
}


class Sweeps(Sweep[AnomalySettings]):
    """AUC of the federated and the centralised subspace and of the length, distance, and time.

    Series ``federated`` (``auc distance excess_loss seconds``), ``centralised`` and ``norm``
    (``auc``); no AUC without labels.
    """

    key: ClassVar[str] = "detection-sweep"
    title: ClassVar[str] = "Sweep"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "sweeps")
    settings: ClassVar[type[AnomalySettings]] = AnomalySettings
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE | {"sweep", "seeds"}
    seconds: ClassVar[float] = 300.0

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        points = [self.at(settings, value, settings.seed) for value in self.values(settings)]
        every = [costs.detection(one, data, runs=len(self.seeds(settings))) for one in points]
        return Cost(max(one.megabytes for one in every), sum(one.seconds for one in every))

    def parameter(self, settings: AnomalySettings) -> str:
        return settings.sweep

    def values(self, settings: AnomalySettings) -> Sequence[Value]:
        return VALUES[settings.sweep]

    def seeds(self, settings: AnomalySettings) -> Sequence[int]:
        return range(settings.seed, settings.seed + settings.seeds)

    def measure(self, settings: AnomalySettings, data: OwnData | None) -> Part[Measured]:
        on = noisy_task(settings, data)
        channel = Channel(dtype="float32")
        trace = yield from run(settings, settings.algorithm(), on.problem, channel)
        near = progress.approach(trace, on.problem).iloc[-1]
        federated = {
            "distance": float(near["distance"]),
            "excess_loss": float(near["excess_loss"]),
            "seconds": float(trace.seconds[-1]),
        }
        if not on.source.labelled:
            return {"federated": federated}
        found: dict[str, dict[str, float]] = {}
        for name in ("federated", "centralised", "norm"):
            if name == "federated":
                scores = detectors.subspace_detector(name, on, trace.estimate).scores
            else:
                scores = (yield from detector(name, settings, data)).scores
            found[name] = {"auc": area(on.attack, scores)}
        return {**found, "federated": {**found["federated"], **federated}}


def best(swept: Swept, measure: str, *, lowest: bool = False) -> tuple[float, float]:
    """Where the federated method's median is highest (or lowest), and that median."""
    band = swept.band("federated", measure)
    at = int(np.nanargmin(band.middle) if lowest else np.nanargmax(band.middle))
    return float(band.x[at]), float(band.middle[at])


def span(swept: Swept, measure: str) -> tuple[float, float]:
    """Least and largest median of the federated method along the sweep."""
    middle = swept.band("federated", measure).middle
    return float(np.nanmin(middle)), float(np.nanmax(middle))
