"""Methods that send models instead of products: read with small settings, on to the records.

These are of digits of few pixels where the whole matrix is solved for: a fit to FedPG's local runs
has features (features + 1)/2 unknowns. One-shot averaging's eigenvectors are read at full size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms import FedPG, OneShot, PersonalizedPCA
from fedpca_core.arrays import AnyArray
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.problems import Problem
from fedpca_core.problems.images import images
from fedpca_core.problems.traffic_table import available
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.anomaly.leaks import Leaked, Leaks
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.attack.records import pictures
from fedpca_core.questions.personalise.exposure import Exposed, Exposure
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.settings import Settings
from fedpca_core.steps import Part, Run, Step, part
from fedpca_core.study import Cost, OwnData, Study
from fedpca_core.study.deployed import deployment_of, subtracted
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.trial import trial

#: Clients of the demonstration; the first is attacked.
CLIENTS = 5


@dataclass(frozen=True)
class ModelSize:
    """A demonstration: pixels a side, records of a client, components, rounds that are read."""

    side: int
    records: int
    components: int
    rounds: int


#: How the methods are set up.
_ALGORITHMS: Mapping[str, Callable[[int, Problem], Algorithm]] = {
    "fedpg": lambda components, problem: FedPG(components),
    "one_shot": lambda components, problem: OneShot(components),
    "personal": lambda components, problem: PersonalizedPCA(
        components=components, start_from="common"
    ).prepared(problem.client_data),
}
#: By method, as `AttackSettings.elsewhere` names them.
SIZES: Mapping[str, ModelSize] = {
    "fedpg": ModelSize(4, 8, 3, 12),
    "personal": ModelSize(6, 12, 4, 15),
    "one_shot": ModelSize(8, 10, 10, 1),
}


@dataclass(frozen=True, eq=False)
class FromModels:
    """Records behind uploads that are models."""

    size: ModelSize
    #: Of the client's matrix as found, relative (simulation only).
    error: float
    #: The records, or how it ended.
    taken: Records
    #: Recovered records that are the private ones (simulation only).
    exact: int
    #: (records, rows, columns) float in [0, 1]: Private (simulation only).
    truth: AnyArray
    #: (records, rows, columns) float in [0, 1] or None: In the order of the true ones.
    recovered: AnyArray | None


def from_models(method: str) -> Part[FromModels]:
    """Run the method on digits, solve its uploads for the first client's matrix, take it apart."""
    size = SIZES[method]
    problem = images(
        "digits", CLIENTS, max_samples=CLIENTS * size.records, resolution=size.side, seed=0
    )
    assert problem.blocks is not None and problem.announced is not None
    private = problem.blocks[0]
    truth = private @ private.T / private.shape[1]
    yield Step(0.0, "Solving the uploads for the client's matrix")
    algorithm = _ALGORITHMS[method](size.components, problem)
    view = simulate(problem, algorithm, rounds=size.rounds).transcript
    deployment = deployment_of(problem, algorithm, ConvergeSettings(), 0, rounds=size.rounds)
    tried = yield from part(trial(view, deployment), 0.0, 1.0)
    states, taken, error = tried.best[1], Records(False, " ".join(tried.refused.values())), 1.0
    if states and states[-1].whole is not None:
        taken = tried.ended
        error = float(np.linalg.norm(states[-1].matrix - truth) / np.linalg.norm(truth))
    ordered, cells = pictures.beside(taken, private, problem)
    known = None if ordered is None else ordered - subtracted(problem)[:, None]
    return FromModels(
        size,
        error,
        taken,
        exact=int(cells.all(axis=0).sum()),
        truth=pictures.tiles(private, problem),
        recovered=None if known is None else pictures.tiles(known, problem),
    )


# ---------------------------------------------------------------------- as on their own pages
#: Small enough that the whole covariance can be fitted while one waits.
_TRAFFIC: dict[str, Any] = {"components": 4, "clients": 20, "rounds": 100, "view": "leaks"}
_PERSONAL = PersonaliseSettings(features=12, components=3, samples=10, exposure=True)


@dataclass(frozen=True, eq=False)
class SentModel:
    #: As on the page of the method, where it has one.
    read: Leaked | Exposed | None
    #: Whole records, on digits of few pixels; None while they are worked at.
    records: FromModels | None = None


def borrowed(settings: AttackSettings) -> tuple[Study[Any, Any], Settings] | None:
    """The study of another page that reads the chosen method, and its settings; None without one.

    FedPG is shown on IoT-23 where it is found, because its eight features can be fitted whole.
    """
    problem = "iot23" if "iot23" in available() else "synthetic"
    read: dict[str, tuple[Study[Any, Any], Settings]] = {
        "personal": (Exposure(), _PERSONAL),
        "fedpg": (Leaks(), AnomalySettings(problem=problem, **_TRAFFIC)),
    }
    return read.get(settings.elsewhere)


class SentModels(Study[AttackSettings, SentModel]):
    """What uploads that are models or eigenvectors give away."""

    key = "sent_models"
    title = "Methods that send models"
    most = Cost(megabytes=100, seconds=30)
    reads = frozenset({"elsewhere"})
    seconds = 240.0

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.elsewhere != "none"

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[SentModel]:
        read: Leaked | Exposed | None = None
        if (other := borrowed(settings)) is not None:
            study, small = other
            read = yield from part(study.run(small), 0.0, 0.8)
        yield Step(0.8, "On to whole records", SentModel(read))
        return SentModel(read, (yield from part(from_models(settings.elsewhere), 0.8, 1.0)))

    def tables(self, result: SentModel, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        tables = {}
        if (other := borrowed(settings)) is not None:
            tables = other[0].tables(result.read, other[1])
        if result.records is not None:
            one = result.records
            told = {"matrix_error": one.error, "certified": one.taken.certified, "exact": one.exact}
            tables["records"] = pd.DataFrame([vars(one.size) | told])
        return tables
