"""What a server reconstructs of one client from each method's messages: the Attack page's study."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks import random_subspace, scaled_identity, scores
from fedpca_core.attacks.scores import ImageScore
from fedpca_core.errors import InvalidInput, require
from fedpca_core.findings import Finding
from fedpca_core.problems import Problem
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import (
    ADVERSARIES,
    RUN,
    ClientTrial,
    adversary,
    read_by,
)
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.streams import Streams
from fedpca_core.study import Cost, OwnData, Study, pictures, stacked
from fedpca_core.study.build import build_problem
from fedpca_core.study.deployed import held_matrix, private_matrix, stated_trace
from fedpca_core.study.facts import Facts
from fedpca_core.study.panels import Baseline
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import Pictures

#: A reconstruction counts as complete below this relative error.
RECOVERED = 1e-6
#: Seconds between two partial results.
PARTIAL_SECONDS = 1.0
#: Rounds that are scored between two looks at the stop button.
_AT_ONCE = 10


@dataclass(frozen=True, eq=False)
class Recovery:
    """What the attack on one method's messages gave; errors and angles are simulation only."""

    #: (starts, rounds + 1) float64: Relative error of the reconstruction after each round.
    errors: Array
    #: (rounds + 1,) int64: Directions the server had probed, from the first start.
    ranks: IntArray
    #: (rounds + 1,) float64: Sine of the largest angle to the leading space of S_i, from the first.
    angles: Array
    #: (rounds + 1,) float64: The same of the method's own estimate to the answer.
    progress: Array
    #: What crossed the wire, round by round.
    messages: pd.DataFrame
    #: For images: how alike the first eigen-images are, after each round.
    likeness: tuple[ImageScore | None, ...]
    #: Relative error, at the end, to what the client answered with, noise at the source included.
    released: float
    #: What is known of the client's covariance, from the first start.
    finding: Finding

    @property
    def middle(self) -> Array:
        """Median error over the starts, after each round."""
        return np.asarray(np.median(self.errors, axis=0))

    @property
    def last(self) -> float:
        """Median error at the end."""
        return float(self.middle[-1])

    @property
    def complete(self) -> int | None:
        """First round after which the reconstruction is complete; None if it never is."""
        hits = np.flatnonzero(self.middle <= RECOVERED)
        return int(hits[0]) if len(hits) else None

    def angle_of_method(self, round_: int) -> float:
        """How far the method itself had come by then."""
        return float(self.progress[min(round_, len(self.progress) - 1)])

    def joined(self, errors: Array) -> Recovery:
        """The same with the errors of one more start; who ended earlier keeps the last one."""
        length = max(len(errors), self.errors.shape[1])
        rows = [np.pad(row, (0, length - len(row)), mode="edge") for row in (*self.errors, errors)]
        return replace(self, errors=np.stack(rows))


@dataclass(frozen=True, eq=False)
class Reconstructed:
    recoveries: Mapping[str, Recovery]
    refusals: Mapping[str, str]
    #: Errors of guesses that need no message, by their name.
    guesses: tuple[Baseline, ...]
    #: The server's view, round by round.
    pictures: tuple[Pictures, ...]
    #: Key of the adversary in `ADVERSARIES`, and why it is another one than was chosen.
    by: str
    note: str
    facts: Facts

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return max((found.errors.shape[1] - 1 for found in self.recoveries.values()), default=0)


class ClientReconstruction(Study[AttackSettings, Reconstructed]):
    """Every method under attack, from every start, after every round."""

    key = "reconstruction"
    title = "Reconstruction by the server"
    reads = RUN
    look: ClassVar[Mapping[str, Any]] = {"rounds": 10, "starts": 1}

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.linear(size, settings)
        return costs.prepare(size) + one.kept(len(settings.attacked)).times(settings.starts)

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[Reconstructed]:
        chosen = settings.attacked
        require(len(chosen) > 0, "No method is under attack; choose at least one.")
        yield Step(0.0, "Preparing the problem")
        problem = build_problem(settings, data)
        truth = private_matrix(problem, settings.client)
        (by, note), facts = adversary(settings, problem.clients), Facts.of(problem)
        guesses = _guesses(settings, problem, truth)
        recoveries, paths, refusals = dict[str, Recovery](), dict[str, Array](), dict[str, str]()

        def result() -> Reconstructed:
            shown = _pictures(paths, truth, problem, settings.client)
            return Reconstructed(dict(recoveries), dict(refusals), guesses, shown, by, note, facts)

        shown = time.monotonic()
        for (method, start), ends in in_turn(list(product(chosen, range(settings.starts)))):
            if method in refusals:
                continue
            try:
                reading = read_by(ADVERSARIES[by], problem, method, settings, start)
                found = yield from part(reading, *ends)
            except InvalidInput as refusal:
                refusals[method] = str(refusal)
                continue
            if start:
                errors = scores.relative_errors(found.estimates, truth)
                recoveries[method] = recoveries[method].joined(errors)
            else:
                scoring = _recovery(found, truth, problem, settings)
                recoveries[method] = yield from part(scoring, ends[1], ends[1])
                paths[method] = found.estimates
            if time.monotonic() - shown > PARTIAL_SECONDS:
                yield Step(ends[1], f"{METHODS[method].title} attacked", result())
                shown = time.monotonic()
        return result()

    def tables(self, result: Reconstructed, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        found = result.recoveries
        summary = pd.DataFrame(
            {
                "method": [METHODS[method].title for method in found],
                "adversary": result.by,
                "finding": [one.finding.words for one in found.values()],
                "error": [one.last for one in found.values()],
                "error_to_what_was_released": [one.released for one in found.values()],
                "complete_after_round": np.array([one.complete for one in found.values()], float),
                "method_sine": [one.angle_of_method(-1) for one in found.values()],
            }
        )
        guesses = pd.DataFrame(
            [(one.label, one.value, one.simulation_only) for one in result.guesses],
            columns=["guess", "error", "simulation_only"],
        )
        errors = stacked(
            {
                "method": METHODS[method].title,
                "start": start,
                "round": np.arange(len(row)),
                "reconstruction_error": row,
                "leading_space_sine": one.angles if start == 0 else np.nan,
            }
            for method, one in found.items()
            for start, row in enumerate(one.errors)
        )
        messages = stacked(
            one.messages.assign(method=METHODS[method].title) for method, one in found.items()
        )
        return {"summary": summary, "guesses": guesses, "errors": errors, "messages": messages}


def _recovery(
    found: ClientTrial, truth: Array, problem: Problem, settings: AttackSettings
) -> Part[Recovery]:
    estimates, shape = found.estimates, problem.image_shape
    angles: list[Array] = []
    likeness: list[ImageScore | None] = []
    for begin in range(0, len(estimates), _AT_ONCE):
        yield Step(0.0, "scoring the reconstruction")
        some = estimates[begin : begin + _AT_ONCE]
        angles.append(scores.top_space_sines(some, truth, settings.components))
        if shape is not None:
            # PSNR and SSIM of the first eigen-image; none while there is nothing.
            likeness += [
                scores.eigen_image_scores(one, truth, shape, 1)[0] if one.any() else None
                for one in some
            ]
    return Recovery(
        errors=scores.relative_errors(estimates, truth)[None],
        ranks=found.directions,
        angles=np.concatenate(angles),
        progress=found.table["sin_theta"].to_numpy(dtype=float),
        messages=_messages(found, settings.client),
        likeness=tuple(likeness),
        released=scores.relative_error(estimates[-1], held_matrix(problem, settings.client)),
        finding=found.trial.findings[0],
    )


def _messages(found: ClientTrial, client: int) -> pd.DataFrame:
    """Round by round: who took part, what was sent, its size, what the server knows by then."""
    rows, transcript = [], found.trace.transcript
    sizes = found.table[["bytes_up", "bytes_down"]].diff() / 1e3
    for exchange, rank in zip(transcript.exchanges, found.directions[1:], strict=False):
        uploads = exchange.uploads if exchange.uploads is not None else exchange.sums or {}
        shape = {name: array.shape[-2:] for name, array in uploads.items()}
        sent = " + ".join(f"{name} {rows} × {columns}" for name, (rows, columns) in shape.items())
        rows.append(
            {
                "round": exchange.round,
                "participants": f"{len(exchange.participants)} of {transcript.clients}",
                "client_took_part": bool((exchange.participants == client).any()),
                "broadcast": " + ".join(
                    f"{name} {' × '.join(map(str, array.shape))}"
                    for name, array in exchange.downlink.items()
                ),
                "uploads": sent if exchange.uploads is not None else f"sum of {sent}",
                "kilobytes_up": float(sizes["bytes_up"][exchange.round]),
                "kilobytes_down": float(sizes["bytes_down"][exchange.round]),
                "directions_known": f"{rank} of {transcript.features}",
            }
        )
    return pd.DataFrame(rows)


def _guesses(settings: AttackSettings, problem: Problem, truth: Array) -> tuple[Baseline, ...]:
    features, trace = problem.features, stated_trace(problem, settings.client)
    generator = Streams(settings.seed).generator("baseline")
    subspace = random_subspace(features, settings.components, trace, generator)
    honest = problem.unperturbed.client_data
    others = honest.only(np.delete(np.arange(honest.clients), settings.client))
    tried = (
        ("guessing zero", np.zeros((features, features)), False),
        ("guessing a scaled identity", scaled_identity(features, trace), False),
        ("random subspace", subspace, False),
        # A server that knew everybody else's data, or exactly the target, would have these.
        ("mean of the other clients", others.mean(), True),
        ("pooled S", honest.mean(), True),
    )
    return tuple(
        Baseline(label, error, hidden)
        for label, guess, hidden in tried
        if (error := scores.relative_error(guess, truth)) > 0
    )


def _pictures(
    paths: Mapping[str, Array], truth: Array, problem: Problem, client: int
) -> tuple[Pictures, ...]:
    """Covariances, and for image data eigen-images and, of a small client, one record."""
    if not paths:
        return ()
    rows = [pictures.covariances(paths, truth, problem)]
    if problem.image_shape is not None:
        rows.append(pictures.eigen_images(paths, truth, problem.image_shape))
        blocks = problem.unperturbed.blocks
        if blocks is not None and blocks[client].shape[1] < problem.features:
            rows.append(pictures.records(paths, blocks[client], problem.image_shape))
    return tuple(rows)
