"""The adaptive replay attack: find the matrix whose replay reproduces a client's uploads.

Masking does not hide a deterministic update: its rule is public, so the server can replay a client
with any candidate S and compare with what it received. The fit is nonlinear least squares over
symmetric S. Against FAPS three things make it reliable:

* round 1 leaks exactly. There X_i = Z, so the upload is ``beta_i Z + (I - Z Z^T) S_i Z``: the
  server reads off beta_i, with it ||S_i||_2, and the block of S_i between Z and the rest;
* a first fit to two rounds keeps to matrices that data can have (no negative eigenvalue, the
  known norm, the stated trace), later ones are free of these guides;
* early rounds first, then all of them.

Hidden parts are fitted too: a private start X_i, a private beta_i, secret numbers of inner steps.
The budget counts evaluations, so that a replay gives the same on every machine.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import check_took_part
from fedpca_core.attacks.replay.client import Candidate
from fedpca_core.attacks.replay.least_squares import Fit, descend
from fedpca_core.attacks.replay.setup import Setup
from fedpca_core.errors import require, require_at_least
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.transcript import Transcript

#: Above this relative standard error the messages leave S open, however well they are explained.
_DETERMINED = 0.1
#: Bytes that a fit may need for its derivatives.
_LARGEST = 2**30
#: Jacobians a stage may form; the last one runs to the rounding floor.
_PER_STAGE, _LAST = 12, 25
#: A start whose residual is above these after the second and any later stage is given up.
_PROMISING = 0.1, 0.01
#: While hidden inner steps are being told apart: a shorter fit, and what counts as a misfit.
_PER_BRANCH, _MISFIT = 8, 1e-2
#: A stage starts with at least this damping for each unit of the last residual: the equations are
#: new, but near the solution damping would only slow the last steps.
_FRESH = 1e-2
#: Under noise other starts ended no nearer where we looked: one so many tolerances off is the last.
_AS_NEAR = 1.5
#: Stages stop below this share of the tolerance.
_WELL_BELOW = 1e-3


@dataclass(frozen=True)
class ReplayStage:
    """One evaluation of the fit (a replay with all its derivatives), for plotting."""

    #: From 0.
    start: int
    #: rounds, residual: Of the client's rounds so many were fitted, to this relative residual.
    rounds: int
    residual: float


@dataclass(frozen=True)
class Replay:
    #: (features, features) float64, symmetric: Best S found, by residual.
    estimate: Array
    #: (features, features) float64: The public guess the attack started from.
    prior: Array
    #: residual, tolerance: Relative misfit over all rounds read, and what counts as explained.
    residual: float
    tolerance: float
    #: Standard error of the least-squares fit relative to ||S||_F, from the transcript alone: how
    #: far the messages leave S open. Infinite with fewer independent equations than unknowns.
    uncertainty: float
    #: Whether residual and uncertainty, and not the unknown truth, say that S was found.
    succeeded: bool
    #: starts, evaluations: How many there were; an evaluation replays with all its derivatives.
    starts: int
    evaluations: int
    #: {"explained", "noise", "starts", "budget", ""}: Why the search ended; empty while it goes on.
    ended: str
    #: beta_i of the first round as read off or fitted.
    penalty: float | None
    #: (features, components) float64 or None: Fitted hidden start.
    frame: Array | None
    #: Fitted inner steps of the client's rounds.
    inner_steps: tuple[int, ...] | None
    history: tuple[ReplayStage, ...]


class Replaying:
    """A replay attack in progress: iterate over its evaluations, ask for its result at any time.

    ``algorithm`` has FAPS's public parameters. The first start is ``trace/features`` times the
    identity, of the stated tr S_i; where none is stated, of what ||S_i||_2 leaves open, which round
    1 gives away. ``seeded`` uses what round 1 leaks and the guides of a first fit; False is the
    plain fit from the prior, for contrast. ``noise`` is the stated relative standard deviation of
    noise on uploads (as in `Channel`), which pulls the fit towards the prior. ``starts`` and
    ``evaluations`` are the most; ``seed`` is of the random starts.

    Raises InvalidInput: missing messages, no trace and nothing that tells its size, a budget of
    nothing, another method than FAPS, a fit too large for memory.
    """

    def __init__(
        self,
        transcript: Transcript,
        algorithm: Algorithm,
        client: int = 0,
        *,
        trace: float | None = None,
        seeded: bool = True,
        noise: float = 0.0,
        starts: int = 20,
        evaluations: int = 1000,
        seed: int = 0,
    ) -> None:
        require(
            algorithm.replayable,
            f"The replay is made for FAPS, and this is {algorithm.title}; use a linear attack.",
        )
        method = cast(FAPS, algorithm.unwrapped)
        check_took_part(transcript, client)
        seen = transcript.seen(client)
        require(
            len(seen) >= 2,
            f"A replay needs at least 2 rounds of client {client} to compare, not {len(seen)}; "
            "read more rounds.",
        )
        require_at_least("The number of starts", starts, 1)
        require_at_least("The number of evaluations", evaluations, 1)
        require(noise >= 0, f"The stated noise must be at least 0, not {noise}.")
        self._setup = Setup(transcript, method, client, trace, seeded=seeded, noise=noise)
        model = self._setup.model
        size = 8 * model.size * max(model.size, len(seen) * model.features * model.components)
        require(
            size <= _LARGEST,
            f"A replay of {len(seen)} rounds with {transcript.features} features needs "
            f"{size / 2**30:.1f} GiB for its derivatives; choose fewer features or rounds.",
        )
        # Numbers of inner steps to try in every round; None where they are public.
        secret = method.random_inner_steps
        self._counts = tuple(range(1, method.inner_steps + 1)) if secret else None
        self._seed, self._starts, self._evaluations = seed, starts, evaluations
        self._begun, self._ended = 0, ""
        self._history: list[ReplayStage] = []
        self._best: Fit | None = None
        self._current: Candidate | None = None

    def __iter__(self) -> Iterator[ReplayStage]:
        """Go through the starts until one explains the messages or the budget ends."""
        for start in range(self._starts):
            self._begun = start + 1
            guess = self._current = self._setup.guess(start, self._seed)
            yield from self._climb(guess) if self._counts is None else self._branch(guess)
            if self._ended:
                return
        self._ended = "starts"

    @property
    def result(self) -> Replay:
        """The best fit so far by its residual over all rounds; its uncertainty at the end."""
        setup, ended = self._setup, self._ended
        if self._current is not None:
            self._finish(self._current, final=False)
        best = self._best
        assert best is not None
        frame = best.guess.frame
        uncertainty = _uncertainty(setup, best) if ended else float("inf")
        return Replay(
            estimate=setup.basis @ best.guess.matrix @ setup.basis.T,
            prior=setup.public,
            residual=best.residual,
            tolerance=setup.tolerance,
            uncertainty=uncertainty,
            succeeded=best.residual <= setup.tolerance and uncertainty <= _DETERMINED,
            starts=self._begun,
            evaluations=len(self._history),
            ended=ended,
            penalty=best.guess.penalty,
            frame=None if frame is None else setup.basis @ frame,
            inner_steps=best.guess.steps,
            history=tuple(self._history),
        )

    def _climb(self, guess: Candidate) -> Iterator[ReplayStage]:
        """One start through all stages."""
        setup, damping = self._setup, 0.1
        stages = setup.stages()
        for position, rounds in enumerate(stages):
            last = position == len(stages) - 1
            if position > 0 and self._misfit(guess, rounds) <= _WELL_BELOW * setup.tolerance:
                continue  # these rounds follow from the earlier ones
            fit = yield from self._descend(
                guess,
                rounds,
                damping,
                guided=(position == 0 or setup.asked > 0) and not last,
                jacobians=_LAST if last else _PER_STAGE,
            )
            guess, damping = fit.guess, max(fit.damping, _FRESH * fit.residual)
            limit = _PROMISING[0 if position == 1 else 1]
            hopeless = position > 0 and fit.residual > max(limit, 3 * setup.tolerance)
            if self._ended or hopeless:
                break
        self._finish(guess)

    def _branch(self, guess: Candidate) -> Iterator[ReplayStage]:
        """Fit round after round, trying every inner-step count for each new round, best first."""
        setup, counts = self._setup, self._counts
        assert counts is not None
        enough = setup.stages()[min(1, len(setup.stages()) - 1)]
        first = guess.frame is not None  # with a hidden start round 1 makes inner steps, too
        rest = setup.rounds - 1
        opening = counts if first else counts[:1]
        stack: list[tuple[Candidate, int, float]] = [
            (replace(guess, steps=(count,) + (counts[0],) * rest), 1, 0.1) for count in opening
        ]
        while stack and not self._ended:
            guess, known, damping = stack.pop()
            if known == setup.rounds:
                fit = yield from self._descend(guess, known, damping, guided=False, jacobians=_LAST)
                self._finish(fit.guess)
                continue
            assert guess.steps is not None
            before, after = guess.steps[:known], guess.steps[known + 1 :]
            tried = [replace(guess, steps=(*before, count, *after)) for count in counts]
            # Once the matrix stands, the right count shows without another fit.
            plain = [one for one in tried if self._misfit(one, known + 1) <= setup.tolerance]
            if len(plain) == 1:
                stack.append((plain[0], known + 1, damping))
                continue
            fits: list[Fit] = []
            for one in tried:
                fit = yield from self._descend(
                    one, known + 1, damping, guided=known + 1 < enough, jacobians=_PER_BRANCH
                )
                fits.append(fit)
                if self._ended:
                    break
            alive = [fit for fit in fits if fit.residual < max(_MISFIT, 3 * setup.tolerance)]
            for fit in sorted(alive, key=lambda each: -each.residual):
                stack.append((fit.guess, known + 1, max(fit.damping, _FRESH * fit.residual)))
            self._finish(min(fits, key=lambda each: each.residual).guess, final=False)

    def _descend(
        self, guess: Candidate, rounds: int, damping: float, *, guided: bool, jacobians: int
    ) -> Generator[ReplayStage, None, Fit]:
        setup = self._setup
        fits = descend(
            setup.model,
            guess,
            rounds,
            extra=[*setup.every, *(setup.first if guided else ())],
            damping=damping,
            jacobians=jacobians,
            target=_WELL_BELOW * setup.tolerance,
        )
        for fit in fits:
            self._current = fit.guess
            self._history.append(ReplayStage(self._begun - 1, rounds, fit.residual))
            yield self._history[-1]
            if len(self._history) >= self._evaluations:
                self._ended = "budget"
                break
        return fit

    def _finish(self, guess: Candidate, *, final: bool = True) -> None:
        """Compare a guess with the best so far over all rounds."""
        self._current = None
        residual = self._misfit(guess, self._setup.rounds)
        if self._best is None or residual < self._best.residual:
            self._best = Fit(guess, residual, 0.0)
        if final and residual <= self._setup.tolerance:
            self._ended = "explained"
        elif final and self._setup.every and residual <= _AS_NEAR * self._setup.tolerance:
            self._ended = "noise"

    def _misfit(self, guess: Candidate, rounds: int) -> float:
        """Relative residual of a guess over the client's first rounds."""
        recorded = self._setup.model.target(rounds)
        answers, _ = self._setup.model.answers(guess, rounds)
        return float(np.linalg.norm(answers - recorded) / np.linalg.norm(recorded))


def replay(attack: Replaying) -> Replay:
    """What a replay has found once its search has ended."""
    for _ in attack:
        pass
    return attack.result


def _uncertainty(setup: Setup, fit: Fit) -> float:
    """Standard error of the matrix, relative to its norm, with the residual as noise."""
    recorded = setup.model.target(setup.rounds)
    _, played = setup.model.answers(fit.guess, setup.rounds)
    jacobian = setup.model.jacobian(fit.guess, played)
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    rounding = float(np.finfo(np.float64).eps)
    if values[0] <= rounding * len(values) * values[-1]:
        return float("inf")  # some direction leaves no trace in the messages
    open_ = vectors[: setup.model.entries.count] ** 2
    noise = max(fit.residual, rounding) * float(np.linalg.norm(recorded)) / np.sqrt(len(recorded))
    error = noise * float(np.sqrt((open_ / values).sum()))
    return error / max(float(np.linalg.norm(fit.guess.matrix)), rounding)
