"""Models as messages: FedPG's and personalised PCA's uploads, then the matrix, then the records.

On digits of few pixels, because the whole matrix is solved for: a fit to FedPG's local runs has
features (features + 1)/2 unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms import FedPG, PersonalizedPCA
from fedpca_core.arrays import AnyArray, Array
from fedpca_core.attacks import personal, stationary
from fedpca_core.attacks.low_rank import factor_of
from fedpca_core.attacks.records import Records
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.problems.images import images
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.studies.records import pictures
from fedpca_core.studies.records.held import Held
from fedpca_core.studies.records.taken_apart import exactly, take_apart
from fedpca_core.studies.study import Part, Step, part

#: Clients of the demonstration; the first is attacked.
CLIENTS = 5


@dataclass(frozen=True)
class Size:
    """A demonstration: pixels a side, records of a client, components, rounds that are read."""

    side: int
    records: int
    components: int
    rounds: int


#: By method, as `AttackSettings.elsewhere` names them.
SIZES: Mapping[str, Size] = {"fedpg": Size(4, 8, 3, 12), "personal": Size(6, 12, 4, 15)}


@dataclass(frozen=True, eq=False)
class FromModels:
    """Records behind uploads that are models.

    Attributes
    ----------
    size : Size
    error : float
        Of the client's matrix as found, relative (simulation only).
    found : Records or None
        None where the messages determine no matrix.
    note : str
        How it ended, in the attack's words.
    exact : int
        Recovered records that are the private ones (simulation only).
    truth : (records, rows, columns) float in [0, 1]
        Private (simulation only).
    recovered : (records, rows, columns) float in [0, 1] or None
        In the order of the true ones.
    """

    size: Size
    error: float
    found: Records | None
    note: str
    exact: int
    truth: AnyArray
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
    try:
        matrix = (_of_fedpg if method == "fedpg" else _of_personal)(problem, size)
    except InvalidInput as refusal:
        return replace(nothing, note=str(refusal))
    factor = factor_of(matrix, size.records)
    state = Held(factor.matrix, factor, "model")
    taken = yield from part(take_apart([state], problem.announced), 0.6, 1.0)
    assert isinstance(taken.found, Records)
    result = replace(
        nothing,
        error=float(np.linalg.norm(matrix - truth) / np.linalg.norm(truth)),
        found=taken.found,
        note=taken.found.note,
    )
    if taken.found.values is None:
        return result
    mean = pictures.subtracted(problem)[:, None]
    ordered = pictures.in_order_of(taken.found.values, private + mean)
    cells = exactly(ordered, private + mean, problem.announced.grid)
    return replace(
        result,
        exact=int(cells.all(axis=0).sum()),
        recovered=pictures.tiles(ordered - mean, problem),
    )


def _of_fedpg(problem: Problem, size: Size) -> Array:
    """The matrix on which FedPG's own code lands on the client's uploads."""
    algorithm = FedPG(size.components)
    return stationary.fit_runs(_messages(problem, algorithm, size), algorithm)


def _of_personal(problem: Problem, size: Size) -> Array:
    """The matrix behind consecutive private frames, solved from one upload each."""
    algorithm = PersonalizedPCA(components=size.components, start_from="common")
    algorithm = algorithm.prepared(problem.client_data)
    return personal.second_moment(_messages(problem, algorithm, size), algorithm).matrix


def _messages(problem: Problem, algorithm: FedPG | PersonalizedPCA, size: Size) -> Transcript:
    return simulate(problem, algorithm, rounds=size.rounds).transcript
