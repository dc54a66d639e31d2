"""Models as messages: uploads, then the matrix, then the records.

On digits of few pixels where the whole matrix is solved for: a fit to FedPG's local runs has
features (features + 1)/2 unknowns. One-shot averaging's eigenvectors are read at full size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms import FedPG, OneShot, PersonalizedPCA
from fedpca_core.arrays import AnyArray
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.problems import Problem
from fedpca_core.problems.images import images
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.attack.records import pictures
from fedpca_core.steps import Part, Step, part
from fedpca_core.study.deployed import deployment_of, subtracted
from fedpca_core.study.pca_settings import ConvergeSettings
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


#: The channel of the demonstrations: nothing protects.
_PLAIN = ConvergeSettings()
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
    #: None where the messages determine no matrix.
    found: Records | None
    #: How it ended, in the attack's words.
    note: str
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
    nothing = FromModels(size, 1.0, None, "", 0, pictures.tiles(private, problem), None)
    yield Step(0.0, "Solving the uploads for the client's matrix")
    algorithm = _ALGORITHMS[method](size.components, problem)
    view = simulate(problem, algorithm, rounds=size.rounds).transcript
    deployment = deployment_of(problem, algorithm, _PLAIN, 0, rounds=size.rounds)
    tried = yield from part(trial(view, deployment), 0.0, 1.0)
    states, found, taken = tried.best[1], tried.ended, tried.certified
    if not states or states[-1].whole is None:
        return replace(nothing, note=" ".join(tried.refused.values()))
    ordered, cells = pictures.beside(taken, private, problem)
    mean = subtracted(problem)[:, None]
    return replace(
        nothing,
        error=float(np.linalg.norm(states[-1].matrix - truth) / np.linalg.norm(truth)),
        found=found,
        note="" if found is None else found.note,
        exact=int(cells.all(axis=0).sum()),
        recovered=None if ordered is None else pictures.tiles(ordered - mean, problem),
    )
