"""One method's run on a page's problem, and what a server makes of one client's messages in it.

Either by every attack that fits (`client_trial`), or by the adversary that the page names alone
(`read_by`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.attack import Deployment, Effort
from fedpca_core.errors import InvalidInput, require
from fedpca_core.findings import Finding
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.steps import Part, Step, changed, part
from fedpca_core.study.build import attacked_run, before_noise, build_problem, with_noise
from fedpca_core.study.deployed import deployment_of, truth_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import names
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.trial import Trial, trial

#: Fields of the settings that a run and its attack depend on, whatever a section adds.
RUN = frozenset(
    name for name, described in AttackSettings.parameters().items() if not described.view
) - {"methods"}
#: The attack of each adversary that the page names; `words.toml` says what it knows and does.
ADVERSARIES: Mapping[str, str] = {
    "linear": "linear",
    "symmetric": "symmetric",
    "ridge": "ridge",
    "pooled": "sums",
    "collude": "sums",
}
#: Why it is another one than was chosen.
_OTHERS = names("adversary-others")


def adversary(settings: AttackSettings, clients: int) -> tuple[str, str]:
    """The chosen key of `ADVERSARIES`, or the nearest with something to read, and why (or "").

    ``clients``: Of the problem: a table may have another number than the settings say.
    """
    secure, chosen, most = settings.secure_aggregation, settings.attack, clients - 1
    if secure != (ADVERSARIES[chosen] == "sums"):
        other = "pooled" if secure else "linear"
        return other, _OTHERS[other]
    fewer = chosen == "collude" and settings.colluders > most
    return chosen, _OTHERS[chosen].format(most=most) if fewer else ""


@dataclass(frozen=True, eq=False)
class ClientTrial:
    """A run and what a server makes of one client in it."""

    #: Metrics of the run, a row a round.
    table: pd.DataFrame
    #: The run, with everything that crossed the wire.
    trace: Trace
    #: What the server reads: the same, or the sums without the colluders' uploads.
    view: Transcript
    trial: Trial

    @property
    def estimates(self) -> Array:
        """(rounds + 1, features, features) float64: what the best reading believes."""
        return np.stack([state.matrix for state in self.trial.best[1]])

    @property
    def directions(self) -> IntArray:
        """(rounds + 1,) int64: directions of it that the messages tell."""
        return np.array([state.read for state in self.trial.best[1]], dtype=np.int64)


def problems(
    settings: ConvergeSettings, data: OwnData | None = None
) -> tuple[Problem, Problem | None]:
    """The problem, and the same before some records joined where some did.

    Raises InvalidInput: more newcomers than the client holds.
    """
    joined = settings.joined
    if joined == 0:
        return build_problem(settings, data), None
    later = before_noise(settings, data)
    assert later.blocks is not None
    held = later.blocks[settings.client].shape[1]
    require(
        joined < held,
        f"{joined} records cannot have joined a client that holds {held} now; choose at most "
        f"{held - 1}, or more records per client.",
    )
    return two_runs(later, settings, range(held - 1, held - 1 - joined, -1))


def two_runs(
    later: Problem, settings: ConvergeSettings, joined: Iterable[int]
) -> tuple[Problem, Problem]:
    """The problem with and without some records; each run releases once, with noise of its own."""
    earlier = later
    for number in joined:
        earlier = without_record(earlier, settings.client, number)
    if math.isinf(settings.epsilon):
        return later, earlier
    return with_noise(later, settings, release=1), with_noise(earlier, settings)


def observed(
    problem: Problem, method: str, settings: ConvergeSettings, start: int = 0
) -> Part[tuple[Trace, Transcript, pd.DataFrame]]:
    """Run a method: the run, what the server reads of it, metrics."""
    trace, table = yield from part(attacked_run(problem, method, settings, start), 0.0, 0.5)
    view = trace.transcript
    if settings.attack == "collude" and settings.secure_aggregation:
        # The same run without secure aggregation is what the colluders themselves remember.
        openly = replace(settings, secure_aggregation=False)
        seen, _ = yield from part(attacked_run(problem, method, openly, start), 0.5, 1.0)
        others = [client for client in range(problem.clients) if client != settings.client]
        view = attacks.collude(view, seen.transcript, others[: settings.colluders])
    return trace, view, table


def _deployment(
    problem: Problem,
    method: str,
    settings: ConvergeSettings,
    view: Transcript,
    earlier: Transcript | None = None,
) -> Deployment:
    algorithm, client = METHODS[method].make(settings), settings.client
    rounds = len(view.exchanges)
    found = deployment_of(problem, algorithm, settings, client, rounds=rounds, earlier=earlier)
    # Where all others collude nothing is hidden.
    hidden = any(exchange.uploads is None for exchange in view.exchanges)
    return replace(found, sums=found.sums and hidden)


def read_by(
    attack: str, problem: Problem, method: str, settings: AttackSettings, start: int = 0
) -> Part[ClientTrial]:
    """Run a method and let one attack read it round by round; what else fits waits."""
    trace, view, table = yield from part(observed(problem, method, settings, start), 0.0, 0.6)
    deployment = _deployment(problem, method, settings, view)
    if attack == "sums" and not deployment.sums:
        attack = "symmetric"  # of the client's own uploads, which colluders have left over
    truth, effort = truth_of(problem, settings.client, settings.components), Effort(path=True)
    reading = trial(view, deployment, settings.client, truth=truth, effort=effort, only=attack)
    found = yield from part(reading, 0.6, 1.0)
    if found.refused:
        raise InvalidInput(found.refused[attack])
    return ClientTrial(table, trace, view, found)


def client_trial(
    problem: Problem, method: str, settings: ConvergeSettings, earlier: Problem | None = None
) -> Part[ClientTrial]:
    """Run a method and take the attacked client's messages as far as they lead.

    They are read in the first way that fits, and searched only where the settings ask for it. A
    step whose result is a `ClientTrial` says what is known before a search that takes a while.
    """
    searches = settings.unmask
    share = 0.3 if searches else 0.7
    trace, view, table = yield from part(observed(problem, method, settings), 0.0, 0.5 * share)
    before = None
    if earlier is not None:
        _, before, _ = yield from part(observed(earlier, method, settings), 0.5 * share, share)
    deployment = _deployment(problem, method, settings, view, before)
    effort = Effort(settings.budget, settings.seeded, path=True, unmask=searches)
    found = trial(view, deployment, settings.client, effort=effort, thorough=False)

    def known(step: Step[Trial]) -> Step[ClientTrial]:
        so_far = step.result
        whole = None if so_far is None else ClientTrial(table, trace, view, so_far)
        return Step(share + (1 - share) * step.fraction, step.text, whole)

    return ClientTrial(table, trace, view, (yield from changed(found, known)))


def said(found: Trial, round_: int) -> tuple[Finding, Finding]:
    """The findings after a round: of the matrix, and of the records."""
    matrix, *_, records = found.until(round_).findings
    return matrix, records
