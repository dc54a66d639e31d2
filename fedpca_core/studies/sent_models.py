"""Methods that send models instead of products, read on the Attack page with small settings."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd

from fedpca_core.settings import Settings
from fedpca_core.studies.detection.leaks import Leaked, Leaks
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.detection.task import present
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.personalised.exposure import Exposed, Exposure
from fedpca_core.studies.personalised.settings import PersonaliseSettings
from fedpca_core.studies.study import Run, Study

#: Small enough that the whole covariance can be fitted while one waits.
_TRAFFIC: dict[str, Any] = {"components": 4, "clients": 20, "rounds": 100, "topic": "leaks"}
_PERSONAL = PersonaliseSettings(features=12, components=3, samples=10, exposure=True)


def borrowed(settings: AttackSettings) -> tuple[Study[Any, Any], Settings]:
    """The study of another page that reads the chosen method, and its settings.

    FedPG is shown on IoT-23 where it is found, because its eight features can be fitted whole.
    """
    if settings.elsewhere == "personal":
        return Exposure(), _PERSONAL
    problem = "iot23" if present("iot23") else "synthetic"
    return Leaks(), AnomalySettings(problem=problem, **_TRAFFIC)


class SentModels(Study[AttackSettings, Leaked | Exposed]):
    """What the uploads of FedPG or personalised PCA give away."""

    key: ClassVar[str] = "sent_models"
    title: ClassVar[str] = "Methods that send models"
    settings: ClassVar[type[AttackSettings]] = AttackSettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=30)
    reads: ClassVar[frozenset[str]] = frozenset({"elsewhere"})
    seconds: ClassVar[float] = 240.0

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.elsewhere != "none"

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[Leaked | Exposed]:
        study, small = borrowed(settings)
        found: Leaked | Exposed = yield from study.run(small)
        return found

    def tables(self, result: Leaked | Exposed, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        study, small = borrowed(settings)
        return study.tables(result, small)
