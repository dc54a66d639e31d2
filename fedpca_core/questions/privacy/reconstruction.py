"""What noise leaves to a server that reconstructs one client's S_i, against the budget.

The real method runs and its transcript goes to the attack; the truth is used to score it and to
tune it in hindsight, which is an upper hand for the attacker (simulation only).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms import FedPower, Noisy
from fedpca_core.arrays import Array
from fedpca_core.attacks import ridge
from fedpca_core.findings import Figure, Finding, Status, Target
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.price import WITH_INFINITE, PrivateSweep, last_value
from fedpca_core.questions.privacy.repeated import run_seeds, traced
from fedpca_core.questions.privacy.runs import QUIET
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, part
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.sweep import Measured, Swept

#: The client under attack: the reference, which uploads in every round whoever is drawn.
CLIENT = 0
#: Runs for each budget and calibration.
RUNS = 3
#: Guesses that need no message of the client.
PUBLIC, EVEN = "public answer S", "even guess I/d"
#: A guess counts as beaten from this share of its error on.
BEATEN = 0.95
#: Sizes of S_i - S, relative to S_i, that a server may have in mind when it sets the ridge.
_PRIOR_SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6)


def best_error(
    problem: Problem, run: FedPower | Noisy, transcript: Transcript, client: int = CLIENT
) -> float:
    """Relative Frobenius error of the best reconstruction of S_i the server can make.

    Ridge around the public answer S, its strength tuned with the truth in hand (no guess at all
    among the strengths), so that no server using ridge does better. Without noise every strength
    is 0: what remains of S are the directions that no message speaks of.
    """
    if isinstance(run, FedPower):
        # An upload after the last communication carries frames, not answers to a probe.
        transcript = transcript.until(len(run.times))
    truth, public = problem.client_data.dense()[client], problem.covariance
    size = float(np.linalg.norm(truth))
    errors = [float(np.linalg.norm(public - truth))]
    noise = noise_of(problem, run, client)
    for share in _PRIOR_SHARES if noise else (1.0,):
        # lambda = nu^2/tau^2 for entries of S_i - S of size tau.
        tau = share * size / problem.features
        found = ridge(transcript, client, prior=public, strength=float((noise / tau) ** 2))
        errors.append(float(np.linalg.norm(found - truth)))
    return min(errors) / size


def noise_of(problem: Problem, run: FedPower | Noisy, client: int) -> float:
    """Standard deviation of the noise on one client's products."""
    samples = problem.client_data.samples
    return float(run.noise * samples.mean() / samples[client])


def public_guesses(problem: Problem, client: int = CLIENT) -> dict[str, float]:
    """Errors of guesses that need no message of the client: S itself, and the even matrix."""
    truth = problem.client_data.dense()[client]
    even = np.eye(problem.features) * np.trace(truth) / problem.features
    size = float(np.linalg.norm(truth))
    guesses: dict[str, Array] = {PUBLIC: problem.covariance, EVEN: even}
    return {name: float(np.linalg.norm(guess - truth)) / size for name, guess in guesses.items()}


class Reconstruction(PrivateSweep):
    """Error of the same attacker at every budget, beside guesses that need no message."""

    key: ClassVar[str] = "private_reconstruction"
    title: ClassVar[str] = "Reconstructing one client's matrix"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("epsilon", WITH_INFINITE)
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "attacks")

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return run_seeds(settings.seed, RUNS)

    def reading(self, settings: PrivacySettings) -> float:
        size = costs.Size(settings.features, 1, 1)
        return len(_PRIOR_SHARES) * costs.solved(size)

    def check(self, settings: PrivacySettings) -> None:
        super().check(settings)
        build.require_single_uploads(settings)

    def once(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        c = settings
        problem = build.build_problem(c, data)
        found = {name: {"error": error} for name, error in public_guesses(problem).items()}
        chosen = build.kinds(c) or ((QUIET,) if build.accountable(c) else ())
        for index, kind in enumerate(chosen):
            if kind == "source":
                private = build.private(c, build.records(c, data), seed)
                found[kind] = {"error": shrunk_error(private)}
                continue
            run = build.method(c, build.noise_for(c, kind, data=data))
            assert isinstance(run, FedPower | Noisy)
            steps = traced(problem, run, build.rounds(c), seed, Channel(), kind)
            trace = yield from part(steps, index / len(chosen), (index + 1) / len(chosen))
            found[kind] = {"error": best_error(problem, run, trace.transcript)}
        return found


def shrunk_error(private: Problem) -> float:
    """Relative error of S_i for a server that has all of M_i = S_i + E_i, the most that any method
    lets out: it moves from the public answer S towards M_i by the share that is best in hindsight.
    """
    assert private.source is not None
    truth = private.source.clipped.dense()[CLIENT]
    public, seen = private.covariance, private.client_data.dense()[CLIENT]
    towards = seen - public
    share = max(0.0, float(((truth - public) * towards).sum() / (towards**2).sum()))
    found = public + min(share, 1.0) * towards
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def finding(swept: Swept, kind: str) -> Finding:
    """What this one attacker gets of the client's matrix, at the budgets that were tried.

    It counts as had in part where it is nearer than the public guess, and as not opened elsewhere:
    another attacker may do better.
    """
    if kind == "none":
        error, guess = last_value(swept, kind), last_value(swept, PUBLIC)
        assert error is not None and guess is not None
        figure = Figure(error, "relative error", draws=RUNS)
        if error < BEATEN * guess:
            against = "compared with the truth"
            return Finding(Target.COVARIANCE, Status.PARTLY, "ridge", figure, against, tried=1)
        nearer = "a guess without any message is as near, which proves nothing"
        return Finding(Target.COVARIANCE, Status.NOT_OPENED, figure=figure, basis=nearer, tried=1)
    band = swept.band(kind, "error")
    start, at_the_edge = beats_guess_from(swept, kind)
    least, largest = float(band.middle.min()), float(band.x[-1])
    figure = Figure(least, "relative error", draws=RUNS)
    if start is None:
        basis = (
            f"at every ε up to {largest:g} a guess without any message is as near, which proves "
            "nothing"
        )
        return Finding(Target.COVARIANCE, Status.NOT_OPENED, figure=figure, basis=basis, tried=1)
    basis = f"nearer than a guess without any message from ε = {start:g} on"
    if at_the_edge:
        basis += ", the smallest ε that was tried"
    return Finding(Target.COVARIANCE, Status.PARTLY, "ridge", figure, basis, tried=1)


def beats_guess_from(swept: Swept, calibration: str) -> tuple[float | None, bool]:
    """The smallest budget from which on the server beats the public guess, if any.

    The second says whether that is the smallest budget tried, so that the border may lie below.
    """
    found, guess = swept.band(calibration, "error"), last_value(swept, PUBLIC)
    assert guess is not None
    beaten = found.middle < BEATEN * guess
    if not len(beaten) or not beaten[-1]:
        return None, False
    first = len(beaten) - int(np.argmin(beaten[::-1])) if not beaten.all() else 0
    return float(found.x[first]), first == 0
