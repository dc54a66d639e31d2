"""Runs with everything beside them: error, bytes, answer, and the server's picture of a client.

What a replay found that takes longer than a picture may is stored: shown at once, while it runs
anew. ``python -m scripts.replayed`` runs it and writes the file; a test compares that with a fresh
run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import AnyArray, Array, BoolArray, IntArray
from fedpca_core.attacks.attack import Belief
from fedpca_core.errors import require
from fedpca_core.findings import Figure, Finding, Status, Target
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Exchange
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import ClientTrial, client_trial, problems, said
from fedpca_core.questions.attack.records import pictures as drawn
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import CHAPTERS, FAIR, degrees
from fedpca_core.remembered import Remembered
from fedpca_core.settings import short
from fedpca_core.steps import Part, Run, Step, changed, outcome, part
from fedpca_core.study import Cost, InPieces, OwnData
from fedpca_core.study.build import attacked_run, build_problem
from fedpca_core.study.deployed import private_matrix, subtracted
from fedpca_core.study.facts import Facts

#: Records of the clients that are not attacked.
THUMBNAILS = 4
#: Columns of a message, learned directions, and records of all clients that are drawn.
TILES, LEARNT, POINTS = 10, 6, 400
#: A federation that bears a budget, and the least budget that it bears.
BEARABLE: Mapping[str, Any] = {
    name: value
    for name, value in CHAPTERS["7"].sets.items()
    if name not in ("epsilon", "price", "versus")
}
BORNE = 10.0
_offers: Remembered[Bearable] = Remembered(64)
FILE = Path(__file__).with_name("replayed.json")
#: The digits have so many grey levels.
WHITE = 16


@dataclass(frozen=True)
class Bearable:
    """What the answer costs where a budget is bearable."""

    #: records, sine: That the smallest client holds, and of the largest angle of the answer.
    records: int
    sine: float


@dataclass(frozen=True, eq=False)
class Scene:
    facts: Facts
    #: A row a round, as of `metrics.frame`.
    metrics: pd.DataFrame
    #: Of one client in one round.
    upload_bytes: int
    #: (rounds + 1, clients) bool.
    present: BoolArray
    #: (clients, tiles, rows, columns) float64 in [0, 1]: Some private records of every client
    #: (simulation only).
    thumbnails: Array
    #: (shown, rows, columns) float64 in [0, 1]: The attacked client's records (simulation only).
    truth: Array
    #: (rounds + 1, shown, rows, columns) float64 in [0, 1]: What the server holds: the records, or
    #: directions of the client's matrix.
    pictures: Array
    #: (rounds + 1,) int: How many directions it holds.
    directions: Array
    #: (rounds + 1,) float64: Sine of the angle from its matrix to the client's (simulation only).
    held_error: Array
    #: After every round: of the client's matrix (or the sum), and of its records (or those that
    #: joined).
    findings: tuple[tuple[Finding, Finding], ...]
    #: Round after whose messages the server has every record exactly, and can prove it.
    certified: int | None
    #: How many the client has.
    records: int
    #: (rounds + 1, columns, rows, columns) float64 in [0, 1]: The client's latest message, or the
    #: sum where only that arrives: its columns as pictures.
    message: Array
    #: Of one message.
    message_shape: tuple[int, ...]
    #: (rounds + 1, components, rows, columns) float64 in [0, 1]: The leading directions of all
    #: records within the common subspace, as pictures.
    components: Array
    #: (rounds + 1, records, 2) float64: Records of all clients along the first two, between -1 and
    #: 1 (simulation only).
    places: Array
    #: (records,) int: The client that holds each.
    owners: IntArray
    #: Sine of the largest angle of the attacked client's own PCA (simulation only).
    alone: float
    #: ε and the sine of the largest angle that the answer has with it, where asked for.
    prices: pd.DataFrame | None = None
    #: Where noise outweighs the records and other settings would bear it (`bearable`).
    offer: Bearable | None = None
    #: The end is that of the same run made before, which runs again now.
    earlier: bool = False
    #: The same problem under the second method, from the same start.
    other: Scene | None = None

    @property
    def beginning(self) -> Scene:
        """The same before anything has been sent: what a question is asked beside."""
        return replace(self._at([0]), certified=None)

    def lasting(self, rounds: int) -> Scene:
        """The same on a longer clock: a method that is done stays as it is."""
        more = rounds - self.rounds
        if more <= 0:
            return self
        longer = self._at([*range(len(self.metrics)), *[-1] * more])
        metrics = longer.metrics.assign(round=range(rounds + 1))
        return replace(longer, metrics=metrics, present=np.pad(self.present, ((0, more), (0, 0))))

    def _at(self, rounds: list[int]) -> Scene:
        """The same at these rounds alone."""
        of_rounds = "present", "pictures", "directions", "held_error", "message"
        arrays = {
            name: getattr(self, name)[rounds] for name in (*of_rounds, "components", "places")
        }
        findings = tuple(self.findings[number] for number in rounds)
        return replace(self, metrics=self.metrics.iloc[rounds], findings=findings, **arrays)

    @cached_property
    def sines(self) -> list[float]:
        """Of the largest angle to the truth, after every round."""
        return [float(sine) for sine in self.metrics["sin_theta"]]

    @property
    def rounds(self) -> int:
        return len(self.metrics) - 1


class LivePicture(InPieces[SceneSettings, Scene]):
    """Run one method or two, read what crossed the wire, keep both."""

    key = "scene"
    title = "The live picture"
    unit = "methods"
    seconds = 600.0
    look: ClassVar[Mapping[str, Any]] = {"rounds": 10, "price": False}

    def first_look(self, settings: SceneSettings) -> SceneSettings | None:
        return None if settings.unmask else super().first_look(settings)  # a long search

    def pieces(self, settings: SceneSettings) -> Sequence[SceneSettings]:
        if settings.opponent is None:
            return ()
        # What a side makes no use of is no part of it: its run is known when that is turned.
        right = replace(settings.side(settings.opponent), price=False)
        return settings.side(settings.method).run_key(), right.run_key()

    def gathered(self, settings: SceneSettings, found: Sequence[Scene]) -> Scene | None:
        return replace(found[0], other=found[1]) if len(found) == 2 else None

    def cost(self, settings: SceneSettings, data: OwnData | None = None) -> Cost:
        every = Cost()
        for side in map(settings.side, settings.compared):
            size = costs.ProblemSize.of(side, data)
            runs = 2 + len(side.parameters()["epsilon"].grid) * side.price
            one = costs.run(size, side, recorded=True) + costs.linear(size, side)
            every += costs.prepare(size) + one.times(runs)
            if side.unmask and "unmask" not in side.idle():
                every += costs.replay(size, side)
        return every

    def piece(self, settings: SceneSettings, data: OwnData | None) -> Run[Scene]:
        yield Step(0.0, "Preparing the records")
        problem, earlier = problems(settings, data)
        _ = private_matrix(problem, settings.client)  # there is such a client
        prices = None
        if settings.price:
            prices = yield from part(_prices(settings, data), 0.0, 0.3)
        same = data is None and stored().settings == settings.run_key().query_string()
        read: dict[tuple[str, ...], Scene] = {}

        def scene_of(found: ClientTrial) -> Scene:
            """What reading the messages shows is made once, before and after the records."""
            attacks = tuple(found.trial.beliefs)
            if attacks not in read:
                read[attacks] = _scene(problem, found, settings, prices)
            return _with_records(read[attacks], problem, found, settings)

        def news(step: Step[ClientTrial]) -> Step[Scene]:
            scene = None if step.result is None else scene_of(step.result)
            if scene is not None and same:
                scene = _as_before(scene, stored())
            return Step(0.3 + 0.7 * step.fraction, step.text, scene)

        tried = client_trial(problem, settings.method, settings, earlier)
        scene = scene_of((yield from changed(tried, news)))
        return replace(scene, offer=_offered(scene, settings))

    def tables(self, result: Scene, settings: SceneSettings) -> dict[str, pd.DataFrame]:
        since = np.inf if result.certified is None else result.certified
        rows = result.metrics.assign(
            directions_held=result.directions,
            held_error=result.held_error,
            records_held=np.where(np.arange(result.rounds + 1) < since, 0, result.records),
        )
        tables = {"rounds": rows}
        if result.other is not None and settings.opponent is not None:
            against = settings.side(settings.opponent)
            tables["rounds_against"] = self.tables(result.other, against)["rounds"]
        if result.prices is not None:
            tables["prices"] = result.prices
        if settings.step in CHAPTERS:
            chapter = CHAPTERS[settings.step]
            tables["story"] = pd.DataFrame(
                {
                    "step": [chapter.key],
                    "asked": [chapter.filled(chapter.asked, settings, result.facts)],
                    "answer": [chapter.answered(tables)],
                    "ending": [chapter.ending(tables, settings, result.facts)],
                }
            )
        return tables


def bearable(settings: SceneSettings) -> SceneSettings:
    """The same with few clients that share all records and look for little."""
    epsilon = max(settings.epsilon, BORNE)
    return replace(settings, **BEARABLE, epsilon=epsilon, price=False, unmask=False)


def _offered(scene: Scene, settings: SceneSettings) -> Bearable | None:
    borne = degrees(scene.sines[-1]) <= FAIR
    if scene.facts.guarantee is None or borne or settings.problem != "digits":
        return None
    more = bearable(settings)

    def made() -> Bearable:
        problem = build_problem(more)
        run = outcome(attacked_run(problem, more.method, more))
        assert run is not None
        return Bearable(int(problem.client_data.samples.min()), float(run[1]["sin_theta"].iloc[-1]))

    return _offers.get(more.run_key().query_string(), made)


def _prices(settings: SceneSettings, data: OwnData | None) -> Part[pd.DataFrame]:
    """The error of the answer at every ε on offer, without noise last."""
    budgets = settings.parameters()["epsilon"].grid
    sines = []
    for position, epsilon in enumerate(budgets):
        yield Step(position / len(budgets), f"ε = {short(epsilon)}")
        problem = build_problem(replace(settings, epsilon=epsilon), data)
        _, frame = yield from part(attacked_run(problem, settings.method, settings), 0.0, 0.0)
        sines.append(float(frame["sin_theta"].iloc[-1]))
    return pd.DataFrame({"epsilon": budgets, "sin_theta": sines})


def _scene(
    problem: Problem, found: ClientTrial, settings: SceneSettings, prices: pd.DataFrame | None
) -> Scene:
    facts, problem = Facts.of(problem), problem.unperturbed  # whose records are shown
    require(
        problem.blocks is not None,
        "The records of this problem are too many to be shown; choose fewer records per client.",
    )
    assert problem.blocks is not None
    frame, exchanges, shape = found.table, found.trace.transcript.exchanges, drawn.shape_of(problem)
    private = problem.blocks[settings.client][:, -settings.joined :]
    shown = min(drawn.SHOWN, private.shape[1])
    present = np.zeros((len(frame), problem.clients), dtype=bool)
    for row, exchange in enumerate(exchanges, 1):
        present[row, exchange.participants] = True
    few = [drawn.tiles(block[:, :THUMBNAILS], problem) for block in problem.blocks]
    states = found.trial.shown
    states = states + [states[-1]] * (len(frame) - len(states))
    return Scene(
        facts=facts,
        metrics=frame,
        upload_bytes=max((e.upload_bytes for e in exchanges), default=0),
        present=present,
        thumbnails=np.stack([drawn.padded(one, THUMBNAILS) for one in few]),
        truth=drawn.tiles(private[:, :shown], problem),
        pictures=_after_each(states, lambda one: drawn.eigen_tiles(one, shown, shape)),
        directions=np.array([state.read for state in states]),
        held_error=_after_each(states, lambda one: _sine(one, private)),
        findings=(),
        certified=None,
        records=private.shape[1],
        message=_messages(exchanges, settings.client, problem),
        message_shape=_sent(exchanges[0], settings.client).shape if exchanges else (),
        prices=prices,
        **_answer(found.trace.estimates, problem, settings.client),
    )


def _sent(exchange: Exchange, client: int) -> AnyArray:
    """A client's message of a round, or the sum; nothing where it was absent."""
    if exchange.uploads is None:
        return next(iter((exchange.sums or {}).values()), np.zeros((0, 0)))
    here = np.flatnonzero(exchange.participants == client)
    whole = next(iter(exchange.uploads.values()))
    return whole[here[0]] if len(here) else np.zeros(whole.shape[1:])


def _messages(exchanges: Sequence[Exchange], client: int, problem: Problem) -> Array:
    """The columns of every message as pictures; the last where a round brought none."""
    n, shape = problem.features, drawn.shape_of(problem)
    found = [np.full((1, *shape), 0.5)]
    for exchange in exchanges:
        sent = _sent(exchange, client)
        fits = sent.ndim == 2 and len(sent) == n and np.isfinite(sent).all() and sent.any()
        found.append(drawn.column_tiles(sent[:, :TILES], shape) if fits else found[-1])
    return np.stack([drawn.padded(one, max(map(len, found))) for one in found])


def _answer(estimates: Array, problem: Problem, client: int) -> dict[str, Any]:
    """What the clients learn together: estimates turned to the leading directions of all records.

    Any basis of the subspace is as good; this one is the same for methods that agree.
    """
    assert problem.blocks is not None
    subspaces = estimates if estimates.ndim == 3 else estimates[:, client]
    subspaces = np.linalg.qr(np.nan_to_num(subspaces, posinf=0.0, neginf=0.0))[0]
    most = 1 + POINTS // problem.clients
    kept = [np.arange(0, block.shape[1], -(-block.shape[1] // most)) for block in problem.blocks]
    records = np.hstack([block[:, few] for block, few in zip(problem.blocks, kept, strict=True)])
    held = np.swapaxes(subspaces, 1, 2) @ np.hstack(list(problem.blocks))
    turned = subspaces @ np.linalg.eigh(held @ np.swapaxes(held, 1, 2))[1][:, :, ::-1]
    # The signs of the last round, and before it those that turn a direction least.
    peaks = np.abs(turned[-1]).argmax(axis=0)
    turned[-1] *= np.sign(turned[-1][peaks, range(turned.shape[2])])
    for k in range(len(turned) - 2, -1, -1):
        same = (turned[k] * turned[k + 1]).sum(axis=0) >= 0
        turned[k] *= np.where(same, 1.0, -1.0)
    own = np.linalg.svd(problem.blocks[client], full_matrices=False)[0][:, : held.shape[1]]
    places = np.swapaxes(np.swapaxes(turned[:, :, :2], 1, 2) @ records, 1, 2)
    size = float(np.abs(places).max(initial=0.0)) or 1.0
    if places.shape[2] == 1:
        places = np.concatenate([places, np.zeros_like(places)], axis=2)
    shape = drawn.shape_of(problem)
    return {
        "components": np.stack([drawn.column_tiles(one[:, :LEARNT], shape) for one in turned]),
        "places": places / size,
        "owners": np.repeat(np.arange(problem.clients), [len(few) for few in kept]),
        "alone": float(largest_sine(own, problem.target(held.shape[1]))),
    }


def _after_each(states: Sequence[Belief], how: Callable[[Array], Any]) -> Array:
    """Something of what is held after every round; of what stays the same, once."""
    found: list[Any] = []
    for k, state in enumerate(states):
        found.append(found[-1] if k > 0 and state is states[k - 1] else how(state.factor))
    return np.stack(found)


def _sine(factor: Array, private: Array) -> float:
    """Of the angle between factor factorᵀ and private privateᵀ, whatever their scale, in the space
    of all matrices; 1 where nothing is held."""
    sizes = [float(np.abs(one).max(initial=0.0)) for one in (factor, private)]
    if 0.0 in sizes:
        return 1.0
    # In the coordinates of both spans, so that no matrix of features × features is formed; what a
    # method that diverges sends has no squares.
    both = np.hstack([factor / sizes[0], private / sizes[1]])
    small = np.split(np.linalg.qr(both, mode="r"), [factor.shape[1]], axis=1)
    held, own = (one @ one.T for one in small)
    held, own = held / np.linalg.norm(held), own / np.linalg.norm(own)
    return min(float(np.linalg.norm(own - float((held * own).sum()) * held)), 1.0)


@dataclass(frozen=True, eq=False)
class Stored:
    #: The run as its link: it is an answer to this one and to no other.
    settings: str
    #: After whose messages the records were found.
    round: int
    #: (records, features) int: Grey levels of the records, of `WHITE`, in the order in which the
    #: client holds them.
    levels: list[list[int]]
    #: Of the matrix, and of the records.
    findings: tuple[Finding, Finding]


@cache
def stored() -> Stored:
    held: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    matrix, records = (
        Finding(
            **one
            | {"target": Target(one["target"]), "status": Status(one["status"])}
            | {"figure": one["figure"] and Figure(**one["figure"])}
        )
        for one in held["findings"]
    )
    return Stored(**held | {"findings": (matrix, records)})


def outcome_of(scene: Scene, settings: SceneSettings) -> Stored:
    """What of a scene in which the records were found cannot be had at once."""
    assert scene.certified is not None
    flat = scene.pictures[scene.certified].reshape(len(scene.truth), -1)
    levels = np.round(WHITE * flat).astype(int).tolist()
    key = settings.run_key().query_string()
    return Stored(key, scene.certified, levels, scene.findings[scene.certified])


def _as_before(scene: Scene, found: Stored) -> Scene:
    """A scene before its search has ended, with the end that the same search had."""
    last, k = np.array(found.levels).reshape(scene.truth.shape) / WHITE, found.round
    figure = found.findings[0].figure
    ends = {"pictures": last, "directions": figure.value if figure else 0, "held_error": 0.0}
    arrays = {name: getattr(scene, name).copy() for name in ends}
    for name, end in ends.items():
        arrays[name][k:] = end
    findings = scene.findings[:k] + (found.findings,) * (len(scene.findings) - k)
    return replace(scene, **arrays, findings=findings, certified=k, earlier=True)


def _with_records(
    scene: Scene, problem: Problem, trial: ClientTrial, settings: SceneSettings
) -> Scene:
    """With the findings, and the records in the place of directions once they are certified."""
    found = trial.trial
    scene = replace(scene, findings=tuple(said(found, k) for k in range(len(scene.metrics))))
    taken = found.ended
    if taken.round is None or taken.values is None:
        return scene
    problem = problem.unperturbed
    assert problem.blocks is not None
    private = problem.blocks[settings.client][:, -settings.joined :]
    mean = subtracted(problem)[:, None]
    ordered = drawn.in_order_of(taken.values, private + mean)
    pictures = scene.pictures.copy()
    pictures[taken.round :] = drawn.tiles(ordered[:, : len(scene.truth)] - mean, problem)
    return replace(scene, pictures=pictures, certified=taken.round)
