"""One run with everything beside it: its error, its bytes, and the server's picture of a client."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from fedpca_core import metrics
from fedpca_core.algorithms.method import Method
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.attacks.records import Records, record_stages
from fedpca_core.errors import require
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.studies.build import build_problem, simulation
from fedpca_core.studies.facts import Facts
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.scene.held import Held, held
from fedpca_core.studies.scene.settings import SceneSettings
from fedpca_core.studies.study import Part, Run, Step, Study, part

#: Records of the attacked client that are shown, and of the others.
SHOWN, THUMBNAILS = 60, 4


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
    problem = problem.unperturbed  # whose records are shown
    require(
        problem.blocks is not None,
        "The records of this problem are too many to be shown; choose fewer records per client.",
    )
    assert problem.blocks is not None
    shape = problem.image_shape or _nearly_square(problem.features)
    mean = _mean(problem)
    shown = min(SHOWN, problem.blocks[client].shape[1])
    present = np.zeros((len(frame), problem.clients), dtype=bool)
    for row, exchange in enumerate(transcript.exchanges, 1):
        present[row, exchange.participants] = True
    states = states + [states[-1]] * (len(frame) - len(states))
    low, high = _range(problem)
    return Scene(
        facts=Facts.of(problem),
        metrics=frame,
        upload_bytes=max((e.upload_bytes for e in transcript.exchanges), default=0),
        present=present,
        thumbnails=np.stack(
            [_pictures(block[:, :THUMBNAILS], mean, shape, low, high) for block in problem.blocks]
        ),
        truth=_pictures(problem.blocks[client][:, :shown], mean, shape, low, high),
        pictures=np.stack([_eigen_images(state.factor, shown, shape) for state in states]),
        directions=np.array([state.factor.shape[1] for state in states]),
        attack=states[-1].attack,
        certified=None,
        records=int(problem.client_data.samples[client]),
        distance=None,
    )


def _with_records(scene: Scene, problem: Problem, states: list[Held], client: int) -> Run[Scene]:
    """Go on from the first matrix that is whole to the records behind it."""
    whole = next((k for k, state in enumerate(states) if state.whole is not None), None)
    truth = problem.unperturbed
    if whole is None or truth.announced is None:
        return scene
    factor = states[whole].whole
    assert factor is not None and truth.blocks is not None
    if problem.guarantee is not None:  # the server knows how much noise there is
        factor = replace(factor, error=max(factor.error, problem.guarantee.noise))
    found: Records | None = None
    public = truth.announced
    stages = record_stages(factor, public.grid, public.mean, public.records_total)
    for count, step in enumerate(stages, 1):
        found = step
        yield Step(1.0 - 0.4 / (1 + count), "Taking the matrix apart into records")
    if found is None or not found.certified or found.values is None:
        return scene
    shape = problem.image_shape or _nearly_square(problem.features)
    mean = _mean(truth)
    private = truth.blocks[client] + mean[:, None]
    # Their order is lost; for the eye, each is put where the true one stands.
    cost = ((found.values[:, :, None] - private[:, None, :]) ** 2).sum(axis=0)
    rows, columns = linear_sum_assignment(cost.T)
    ordered = found.values[:, columns[np.argsort(rows)]]
    low, high = _range(problem)
    exact = _pictures(ordered[:, : len(scene.truth)] - mean[:, None], mean, shape, low, high)
    pictures = scene.pictures.copy()
    pictures[whole:] = exact
    distance = None if found.certificate is None else found.certificate.largest_distance
    return replace(scene, pictures=pictures, certified=whole, distance=distance)


def _mean(problem: Problem) -> Array:
    """What was subtracted from every record."""
    return np.zeros(problem.features) if problem.own_mean is None else problem.own_mean


def _range(problem: Problem) -> tuple[float, float]:
    """What black and white stand for."""
    if problem.image_shape is not None:
        return 0.0, 1.0
    assert problem.blocks is not None
    size = max(float(np.abs(block).max(initial=0.0)) for block in problem.blocks)
    return -size, size


def _nearly_square(features: int) -> tuple[int, int]:
    rows = next(r for r in range(math.isqrt(features), 0, -1) if features % r == 0)
    return rows, features // rows


def _pictures(
    records: Array, mean: Array, shape: tuple[int, int], low: float, high: float
) -> Array:
    """Records as pictures in [0, 1], the mean added back."""
    values = (records + mean[:, None] - low) / (high - low)
    return np.clip(values.T.reshape(-1, *shape), 0.0, 1.0)


def _eigen_images(factor: Array, shown: int, shape: tuple[int, int]) -> Array:
    """Directions as pictures around grey, the largest first; grey where there is none."""
    pictures = np.full((shown, *shape), 0.5)
    if factor.shape[1]:
        left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
        kept = min(shown, int((sizes > 1e-9 * sizes[0]).sum()))
        peaks = np.abs(left[:, :kept]).max(axis=0)
        pictures[:kept] = 0.5 + 0.5 * (left[:, :kept] / peaks).T.reshape(-1, *shape)
    return pictures
