"""What is at risk: for which sizes of clients and records the server has every record.

Every cell of the map is measured: clients of so many records, dealt at random, run SSI for as many
rounds as it takes to ask as many directions as there are records, and the server attacks one of
them. A cell that fails says at which step, which explains where the boundary runs:

* *rank*: a client with as many records as informative features, or more, has too many rotations;
* *precision*: rounding and noise, magnified by the reader, reach the step of the grid;
* *grid*: the step that is known is not that of the data, or too few features are left over to fix
  the rotation by whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import Array
from fedpca_core.attacks.low_rank import Factor, low_rank
from fedpca_core.attacks.records import BUDGET, Records, records
from fedpca_core.attacks.scores import recovered_records
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.streams import Streams

#: Outcomes of a cell, best first, each with its sentence.
OUTCOMES = {
    "recovered": "every record, certified",
    "rank": "no fewer records than informative features",
    "precision": "rounding and noise reach the step of the grid",
    "grid": "the features left over do not fix the rotation",
}
#: Clients of a run; one of them is attacked.
_CLIENTS = 3
#: Above this error of an entry, in grid units, no reduction is expected to succeed.
_PRECISION = 0.01


@dataclass(frozen=True)
class Cell:
    """One measured point of the map.

    Attributes
    ----------
    records, features : int
        Of the client.
    noise : float
        Relative noise on its uploads, as in `Channel`.
    recovered : float
        Share of the trials in which all records were recovered exactly and certified.
    outcome : str
        A key of `OUTCOMES`: the most frequent one.
    false : int
        Certified results that were not the records; there must be none.
    error : float
        Median error of an entry of the rotated records, in grid units.
    """

    records: int
    features: int
    noise: float
    recovered: float
    outcome: str
    false: int
    error: float


def risk_map(
    problems: Sequence[Problem],
    sizes: Sequence[int],
    noises: Sequence[float] = (0.0,),
    *,
    trials: int = 5,
    components: int = 10,
    seed: int = 0,
    dtype: str = "float64",
    budget: float = BUDGET,
) -> Iterator[Cell]:
    """Measure the map cell by cell.

    Parameters
    ----------
    problems : sequence of Problem
        The same data at different numbers of features, or one; with their public facts.
    sizes : sequence of int
        Records of a client.
    noises : sequence of float
        Relative noise on uploads.
    trials : int
        Clients attacked for each cell.
    components : int
        Columns of SSI's frame.
    seed : int
    dtype : {"float64", "float32"}
        Format of the messages.
    budget : float
        Work allowed for each attack; see `attacks.records`.

    Raises
    ------
    InvalidInput
        Problems without records or public facts, fewer records than clients need.
    """
    for problem in problems:
        pool, facts = _pool(problem)
        for size in sizes:
            for noise in noises:
                streams = Streams(seed)
                tried = [
                    _trial(pool, facts, size, noise, trial, components, streams, dtype, budget)
                    for trial in range(trials)
                ]
                yield _cell(size, problem.features, noise, tried)


def _pool(problem: Problem) -> tuple[Array, PublicFacts]:
    if problem.blocks is None or problem.announced is None:
        raise InvalidInput(
            f"The problem “{problem.name}” keeps no records or states no grid; choose images or a "
            "table."
        )
    return np.hstack(problem.blocks), problem.announced


@dataclass(frozen=True)
class _Trial:
    outcome: str
    false: bool
    error: float


def _trial(
    pool: Array,
    facts: PublicFacts,
    size: int,
    noise: float,
    trial: int,
    components: int,
    streams: Streams,
    dtype: str,
    budget: float,
) -> _Trial:
    need = size * _CLIENTS
    require(
        need <= pool.shape[1],
        f"{_CLIENTS} clients of {size} records need {need}, but there are {pool.shape[1]}; choose "
        "fewer records a client.",
    )
    chosen = streams.generator("data", size, trial).permutation(pool.shape[1])[:need]
    blocks = [pool[:, part] for part in np.array_split(chosen, _CLIENTS)]
    columns = min(components, pool.shape[0] - 1)
    run = simulate(
        from_blocks(blocks),
        SSI(columns),
        rounds=-(-size // columns) + 1,
        seed=trial,
        channel=Channel(dtype=dtype, upload_noise=noise),
    )
    factor = low_rank(run.transcript, 0, noise=noise)
    found = records(factor, facts.grid, facts.mean, facts.records_total, budget=budget)
    exact = recovered_records(found.values, _raw(blocks[0], facts), facts.grid)
    error = factor.error * float(np.sqrt(size) / np.median(facts.grid))
    whole = found.certified and exact == size
    outcome = "recovered" if whole else _reason(factor, found, blocks[0], error)
    return _Trial(outcome, found.certified and exact < size, error)


def _raw(block: Array, facts: PublicFacts) -> Array:
    return block if facts.mean is None else block + facts.mean[:, None]


def _reason(factor: Factor, found: Records, block: Array, error: float) -> str:
    informative = int((np.abs(block).max(axis=1) > 1e-9).sum())
    if block.shape[1] >= informative or factor.rank < np.linalg.matrix_rank(block):
        return "precision" if error > _PRECISION else "rank"
    return "precision" if error > _PRECISION else "grid"


def _cell(size: int, features: int, noise: float, tried: Sequence[_Trial]) -> Cell:
    outcomes = [one.outcome for one in tried]
    usual = max(OUTCOMES, key=outcomes.count)
    return Cell(
        records=size,
        features=features,
        noise=noise,
        recovered=outcomes.count("recovered") / len(outcomes),
        outcome=usual,
        false=sum(one.false for one in tried),
        error=float(np.median([one.error for one in tried])),
    )
