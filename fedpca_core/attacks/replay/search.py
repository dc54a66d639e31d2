"""The search of a replay attack: starts, stages, hidden inner steps, and a budget."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fedpca_core.attacks.replay.guess import Candidate
from fedpca_core.attacks.replay.least_squares import Fit, descend
from fedpca_core.attacks.replay.setup import Setup

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

    #: Which start, from 0.
    start: int
    #: Rounds of the client that were fitted.
    rounds: int
    #: Relative residual over these rounds.
    residual: float


@dataclass
class Search:
    """A search in progress: iterate over it; `best` and `history` can be read at any time."""

    setup: Setup
    #: Of the starts.
    seed: int
    #: Numbers of inner steps to try in every round; None where they are public.
    counts: Sequence[int] | None
    #: starts, evaluations: Budget.
    starts: int
    evaluations: int
    #: {"", "explained", "noise", "starts", "budget"}: Why the search ended; empty while it runs.
    ended: str = ""
    begun: int = 0
    history: list[ReplayStage] = field(default_factory=list)
    _best: Fit | None = None
    _current: Candidate | None = None

    @property
    def best(self) -> Fit:
        """The best guess so far, by its residual over all rounds."""
        if self._current is not None:
            self._finish(self._current, final=False)
        assert self._best is not None
        return self._best

    def __iter__(self) -> Iterator[ReplayStage]:
        """Go through the starts until one explains the messages or the budget ends."""
        for start in range(self.starts):
            self.begun = start + 1
            guess = self._current = self.setup.guess(start, self.seed)
            if self.counts is None:
                yield from self._climb(guess)
            else:
                yield from self._branch(guess, self.counts)
            if self.ended:
                return
        self.ended = "starts"

    def _climb(self, guess: Candidate) -> Iterator[ReplayStage]:
        """One start through all stages."""
        setup, damping = self.setup, 0.1
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
            if self.ended or hopeless:
                break
        self._finish(guess)

    def _branch(self, guess: Candidate, counts: Sequence[int]) -> Iterator[ReplayStage]:
        """Fit round after round, trying every inner-step count for each new round, best first."""
        setup = self.setup
        enough = setup.stages()[min(1, len(setup.stages()) - 1)]
        first = guess.frame is not None  # with a hidden start round 1 makes inner steps, too
        rest = setup.rounds - 1
        opening = counts if first else counts[:1]
        stack: list[tuple[Candidate, int, float]] = [
            (replace(guess, steps=(count,) + (counts[0],) * rest), 1, 0.1) for count in opening
        ]
        while stack and not self.ended:
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
                    one,
                    known + 1,
                    damping,
                    guided=known + 1 < enough,
                    jacobians=_PER_BRANCH,
                )
                fits.append(fit)
                if self.ended:
                    break
            alive = [fit for fit in fits if fit.residual < max(_MISFIT, 3 * setup.tolerance)]
            for fit in sorted(alive, key=lambda each: -each.residual):
                stack.append((fit.guess, known + 1, max(fit.damping, _FRESH * fit.residual)))
            self._finish(min(fits, key=lambda each: each.residual).guess, final=False)

    def _descend(
        self, guess: Candidate, rounds: int, damping: float, *, guided: bool, jacobians: int
    ) -> Generator[ReplayStage, None, Fit]:
        setup = self.setup
        fits = descend(
            setup.model,
            guess,
            rounds,
            extra=[*setup.every, *(setup.first if guided else ())],
            damping=damping,
            jacobians=jacobians,
            target=_WELL_BELOW * setup.tolerance,
        )
        while True:
            try:
                fit = next(fits)
            except StopIteration as end:
                found: Fit = end.value
                return found
            self._current = fit.guess
            self.history.append(ReplayStage(self.begun - 1, rounds, fit.residual))
            yield self.history[-1]
            if len(self.history) >= self.evaluations:
                self.ended = "budget"
                return fit

    def _finish(self, guess: Candidate, *, final: bool = True) -> None:
        """Compare a guess with the best so far over all rounds."""
        self._current = None
        residual = self._misfit(guess, self.setup.rounds)
        if self._best is None or residual < self._best.residual:
            self._best = Fit(guess, residual, 0.0)
        if final and residual <= self.setup.tolerance:
            self.ended = "explained"
        elif final and self.setup.every and residual <= _AS_NEAR * self.setup.tolerance:
            self.ended = "noise"

    def _misfit(self, guess: Candidate, rounds: int) -> float:
        """Relative residual of a guess over the client's first rounds."""
        recorded = self.setup.model.target(rounds)
        answers, _ = self.setup.model.answers(guess, rounds)
        return float(np.linalg.norm(answers - recorded) / np.linalg.norm(recorded))
