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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.arrays import Array
from fedpca_core.attacks.linear_system import check_took_part
from fedpca_core.attacks.replay.least_squares import Fit
from fedpca_core.attacks.replay.search import ReplayStage, Search
from fedpca_core.attacks.replay.setup import Setup
from fedpca_core.errors import require, require_at_least
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.transcript import Transcript

#: Above this relative standard error the messages leave S open, however well they are explained.
_DETERMINED = 0.1
#: Bytes that a fit may need for its derivatives.
_LARGEST = 2**30


@dataclass(frozen=True)
class Replay:
    """Result of the replay attack."""

    #: (features, features) float64, symmetric: Best S found, by residual.
    estimate: Array
    #: (features, features) float64: The public guess the attack started from; show it beside the
    #: result.
    prior: Array
    #: residual, tolerance: Relative misfit over all rounds read, and what counts as explained.
    residual: float
    tolerance: float
    #: Standard error of the least-squares fit relative to ||S||_F, from the transcript alone: how
    #: far the messages leave S open. Infinite with fewer independent equations than unknowns.
    uncertainty: float
    #: Whether residual and uncertainty, and not the unknown truth, say that S was found.
    succeeded: bool
    #: Starts used.
    starts: int
    #: Replays with all their derivatives.
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

    ``algorithm`` has FAPS's public parameters; ``client`` is as in `linear`. The
    first start uses ``trace/features`` times the identity, of the stated tr S_i; where none is
    stated, of what ||S_i||_2 leaves open, which round 1 gives away. ``seeded`` uses what round 1
    leaks and the guides of a first fit; False is the plain fit from the prior, for contrast.
    ``noise`` is the stated relative standard deviation of noise on uploads (as in `Channel`),
    which pulls the fit towards the prior. ``starts`` and ``evaluations`` are the most; ``seed`` is
    of the random starts.

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
        self._setup = Setup.of(transcript, method, client, trace, seeded=seeded, noise=noise)
        model = self._setup.model
        size = 8 * model.size * max(model.size, len(seen) * model.features * model.components)
        require(
            size <= _LARGEST,
            f"A replay of {len(seen)} rounds with {transcript.features} features needs "
            f"{size / 2**30:.1f} GiB for its derivatives; choose fewer features or rounds.",
        )
        secret = method.random_inner_steps
        counts = tuple(range(1, method.inner_steps + 1)) if secret else None
        self._search = Search(self._setup, seed, counts, starts, evaluations)

    def __iter__(self) -> Iterator[ReplayStage]:
        return iter(self._search)

    @property
    def result(self) -> Replay:
        """The best fit so far; how far it is determined is known at the end."""
        search, setup = self._search, self._setup
        best, ended = search.best, search.ended
        frame = best.guess.frame
        uncertainty = _uncertainty(setup, best) if ended else float("inf")
        return Replay(
            estimate=setup.basis @ best.guess.matrix @ setup.basis.T,
            prior=setup.public,
            residual=best.residual,
            tolerance=setup.tolerance,
            uncertainty=uncertainty,
            succeeded=best.residual <= setup.tolerance and uncertainty <= _DETERMINED,
            starts=search.begun,
            evaluations=len(search.history),
            ended=ended,
            penalty=best.guess.penalty,
            frame=None if frame is None else setup.basis @ frame,
            inner_steps=best.guess.steps,
            history=tuple(search.history),
        )


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
