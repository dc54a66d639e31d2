"""One run with everything beside it: its error, its bytes, and the server's picture of a client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms.method import Method
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.errors import require
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.studies import costs
from fedpca_core.studies.build import build_problem, simulation
from fedpca_core.studies.facts import Facts
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.records.held import Held, held
from fedpca_core.studies.records.pictures import (
    SHOWN,
    eigen_tiles,
    in_order_of,
    shape_of,
    subtracted,
    tiles,
)
from fedpca_core.studies.records.taken_apart import TakenApart, take_apart
from fedpca_core.studies.scene.settings import SceneSettings
from fedpca_core.studies.study import Part, Run, Step, Study, part

#: Records of the clients that are not attacked.
THUMBNAILS = 4


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything the picture needs.

    Attributes
    ----------
    facts : Facts
    metrics : pandas.DataFrame
        A row a round, as of `metrics.frame`.
    upload_bytes : int
        Of one client in one round.
    present : (rounds + 1, clients) bool
    thumbnails : (clients, tiles, rows, columns) float64 in [0, 1]
        Some private records of every client (simulation only).
    truth : (shown, rows, columns) float64 in [0, 1]
        The attacked client's records (simulation only).
    pictures : (rounds + 1, shown, rows, columns) float64 in [0, 1]
        What the server holds of them: directions of the client's matrix, or the records.
    directions : (rounds + 1,) int
        How many directions it holds.
    attack : str
        Which attack read the messages.
    certified : int or None
        Round after whose messages the server has every record exactly, and can prove it.
    records : int
        How many the client has.
    distance : float or None
        The largest distance of a recovered value from the grid, where certified.
    """

    facts: Facts
    metrics: pd.DataFrame
    upload_bytes: int
    present: BoolArray
    thumbnails: Array
    truth: Array
    pictures: Array
    directions: Array
    attack: str
    certified: int | None
    records: int
    distance: float | None

    @property
    def rounds(self) -> int:
        """Rounds of the run."""
        return len(self.metrics) - 1


class LivePicture(Study[SceneSettings, Scene]):
    """Run one method, read what crossed the wire, keep both."""

    key: ClassVar[str] = "scene"
    title: ClassVar[str] = "The live picture"
    settings: ClassVar[type[SceneSettings]] = SceneSettings

    def cost(self, settings: SceneSettings, data: OwnData | None = None) -> Cost:
        size = costs.Size.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.linear(size, settings)
        return costs.prepare(size) + one.times(2)

    def run(self, settings: SceneSettings, data: OwnData | None = None) -> Run[Scene]:
        yield Step(0.0, "Preparing the records")
        problem = build_problem(settings, data)
        client = min(settings.client, problem.clients - 1)
        run = simulation(problem, settings.method, settings)
        for entry in run:
            if entry.index % 5 == 0:
                yield Step(0.4 * entry.index / settings.rounds, f"Round {entry.index}")
        trace = run.trace()
        frame = metrics.frame(trace, problem)
        method = METHODS[settings.method]
        states = yield from part(_states(trace.transcript, method, client, settings), 0.4, 0.6)
        scene = _scene(problem, frame, trace.transcript, states, client)
        yield Step(0.6, "Taking the matrix apart into records", scene)
        return (yield from _with_records(scene, problem, states, client))

    def tables(self, result: Scene, settings: SceneSettings) -> dict[str, pd.DataFrame]:
        rows = result.metrics.assign(
            directions_held=result.directions,
            records_held=[
                result.records if result.certified is not None and k >= result.certified else 0
                for k in range(result.rounds + 1)
            ],
        )
        return {"rounds": rows}


def _states(
    transcript: Transcript, method: Method, client: int, settings: SceneSettings
) -> Part[list[Held]]:
    states = []
    for state in held(transcript, method, client, noise=settings.upload_noise):
        states.append(state)
        yield Step(len(states) / (settings.rounds + 1), "Reading the messages")
    return states


def _scene(
    problem: Problem, frame: pd.DataFrame, transcript: Transcript, states: list[Held], client: int
) -> Scene:
    facts, problem = Facts.of(problem), problem.unperturbed  # whose records are shown
    require(
        problem.blocks is not None,
        "The records of this problem are too many to be shown; choose fewer records per client.",
    )
    assert problem.blocks is not None
    shown = min(SHOWN, problem.blocks[client].shape[1])
    present = np.zeros((len(frame), problem.clients), dtype=bool)
    for row, exchange in enumerate(transcript.exchanges, 1):
        present[row, exchange.participants] = True
    states = states + [states[-1]] * (len(frame) - len(states))
    return Scene(
        facts=facts,
        metrics=frame,
        upload_bytes=max((e.upload_bytes for e in transcript.exchanges), default=0),
        present=present,
        thumbnails=np.stack([tiles(block[:, :THUMBNAILS], problem) for block in problem.blocks]),
        truth=tiles(problem.blocks[client][:, :shown], problem),
        pictures=np.stack([eigen_tiles(s.factor, shown, shape_of(problem)) for s in states]),
        directions=np.array([state.factor.shape[1] for state in states]),
        attack=states[-1].attack,
        certified=None,
        records=int(problem.client_data.samples[client]),
        distance=None,
    )


def _with_records(scene: Scene, problem: Problem, states: list[Held], client: int) -> Run[Scene]:
    """Go on from the first matrix that is whole to the records behind it."""
    truth = problem.unperturbed
    if truth.announced is None:
        return scene
    taken: TakenApart = yield from part(
        take_apart(states, truth.announced, guarantee=problem.guarantee), 0.6, 1.0
    )
    found = taken.found
    if taken.round is None or found is None or found.values is None:
        return scene
    assert truth.blocks is not None
    mean = subtracted(truth)[:, None]
    ordered = in_order_of(found.values, truth.blocks[client] + mean)
    pictures = scene.pictures.copy()
    pictures[taken.round :] = tiles(ordered[:, : len(scene.truth)] - mean, truth)
    distance = None if found.certificate is None else found.certificate.largest_distance
    return replace(scene, pictures=pictures, certified=taken.round, distance=distance)
