"""Methods that send models instead of products, read on the Attack page with small settings."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from fedpca_core.questions.anomaly.leaks import Leaked, Leaks
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import present
from fedpca_core.questions.attack.records.from_models import FromModels, from_models
from fedpca_core.questions.personalise.exposure import Exposed, Exposure
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.study import Study

#: Small enough that the whole covariance can be fitted while one waits.
_TRAFFIC: dict[str, Any] = {"components": 4, "clients": 20, "rounds": 100, "view": "leaks"}
_PERSONAL = PersonaliseSettings(features=12, components=3, samples=10, exposure=True)


@dataclass(frozen=True, eq=False)
class SentModel:
    """What uploads that are models give away."""

    #: As on the page of the method, where it has one.
    read: Leaked | Exposed | None
    #: Whole records, on digits of few pixels; None while they are worked at.
    records: FromModels | None = None


def borrowed(settings: AttackSettings) -> tuple[Study[Any, Any], Settings] | None:
    """The study of another page that reads the chosen method, and its settings; None without one.

    FedPG is shown on IoT-23 where it is found, because its eight features can be fitted whole.
    """
    problem = "iot23" if present("iot23") else "synthetic"
    read: dict[str, tuple[Study[Any, Any], Settings]] = {
        "personal": (Exposure(), _PERSONAL),
        "fedpg": (Leaks(), AnomalySettings(problem=problem, **_TRAFFIC)),
    }
    return read.get(settings.elsewhere)


class SentModels(Study[AttackSettings, SentModel]):
    """What uploads that are models or eigenvectors give away."""

    key: ClassVar[str] = "sent_models"
    title: ClassVar[str] = "Methods that send models"
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=30)
    reads: ClassVar[frozenset[str]] = frozenset({"elsewhere"})
    seconds: ClassVar[float] = 240.0

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.elsewhere != "none"

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[SentModel]:
        read: Leaked | Exposed | None = None
        if (other := borrowed(settings)) is not None:
            study, small = other
            read = yield from part(study.run(small), 0.0, 0.8)
        yield Step(0.8, "On to whole records", SentModel(read))
        records = yield from part(from_models(settings.elsewhere), 0.8, 1.0)
        return SentModel(read, records)

    def tables(self, result: SentModel, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        tables = {}
        if (other := borrowed(settings)) is not None:
            tables = other[0].tables(result.read, other[1])
        if result.records is not None:
            certified = result.records.found is not None and result.records.found.certified
            row = {**vars(result.records.size), "matrix_error": result.records.error}
            row |= {"certified": certified, "exact": result.records.exact}
            tables["records"] = pd.DataFrame([row])
        return tables
