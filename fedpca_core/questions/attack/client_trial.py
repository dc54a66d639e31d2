"""One method's run on a page's problem, and the trial of one client's messages in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd

from fedpca_core import attacks
from fedpca_core.attacks.attack import Effort
from fedpca_core.errors import require
from fedpca_core.findings import Finding, Target
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.steps import Part, Step, changed, part
from fedpca_core.study.build import (
    attacked_run,
    before_noise,
    build_algorithm,
    build_problem,
    with_noise,
)
from fedpca_core.study.deployed import deployment_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.trial import Trial, trial


@dataclass(frozen=True, eq=False)
class ClientTrial:
    """A run and what a server makes of one client in it.

    Attributes
    ----------
    table : pandas.DataFrame
        Metrics of the run, a row a round.
    transcript : Transcript
        Everything that crossed the wire.
    view : Transcript
        What the server reads: the same, or the sums without the colluders' uploads.
    trial : Trial
    """

    table: pd.DataFrame
    transcript: Transcript
    view: Transcript
    trial: Trial


def problems(
    settings: ConvergeSettings, data: OwnData | None = None
) -> tuple[Problem, Problem | None]:
    """The problem, and the same before some records joined where some did.

    Each run releases once, with noise of its own.

    Raises
    ------
    InvalidInput
        More newcomers than the client holds.
    """
    honest = before_noise(settings, data)
    earlier = _before(honest, settings)
    if math.isinf(settings.epsilon):
        return honest, earlier
    if earlier is None:
        return build_problem(settings, data), None
    return with_noise(honest, settings, release=1), with_noise(earlier, settings)


def _before(problem: Problem, settings: ConvergeSettings) -> Problem | None:
    """The problem before the last of the client's records joined; None where none did."""
    if settings.joined == 0:
        return None
    assert problem.blocks is not None
    held = problem.blocks[settings.client].shape[1]
    require(
        settings.joined < held,
        f"{settings.joined} records cannot have joined a client that holds {held} now; choose at "
        f"most {held - 1}, or more records per client.",
    )
    for number in range(held - 1, held - 1 - settings.joined, -1):
        problem = without_record(problem, settings.client, number)
    return problem


def observed(
    problem: Problem, method: str, settings: ConvergeSettings, start: int = 0
) -> Part[tuple[Transcript, Transcript, pd.DataFrame]]:
    """Run a method: everything that crossed the wire, what the server reads of it, metrics."""
    trace, table = yield from part(attacked_run(problem, method, settings, start), 0.0, 0.5)
    view = trace.transcript
    if settings.attack == "collude" and settings.secure_aggregation:
        # The same run without secure aggregation is what the colluders themselves remember.
        openly = replace(settings, secure_aggregation=False)
        seen, _ = yield from part(attacked_run(problem, method, openly, start), 0.5, 1.0)
        others = [client for client in range(problem.clients) if client != settings.client]
        told = [attacks.testify(seen.transcript, client) for client in others[: settings.colluders]]
        view = attacks.collude(view, told)
    return trace.transcript, view, table


def client_trial(
    problem: Problem,
    method: str,
    settings: ConvergeSettings,
    earlier: Problem | None = None,
) -> Part[ClientTrial]:
    """Run a method and take the attacked client's messages as far as they lead.

    They are read in the first way that fits, and searched only where the settings ask for it. A
    step whose result is a `ClientTrial` says what is known before a search that takes a while.
    """
    searches = settings.unmask
    share = 0.3 if searches else 0.7
    transcript, view, table = yield from part(observed(problem, method, settings), 0.0, 0.5 * share)
    before = None
    if earlier is not None:
        _, before, _ = yield from part(observed(earlier, method, settings), 0.5 * share, share)
    algorithm = build_algorithm(method, settings)
    deployment = deployment_of(
        problem, algorithm, settings, settings.client, rounds=len(view.exchanges), earlier=before
    )
    if view is not transcript and all(one.uploads is not None for one in view.exchanges):
        deployment = replace(deployment, sums=False)  # all others collude: nothing is hidden
    effort = Effort(settings.budget, settings.seeded, path=True)
    found = trial(
        view,
        deployment,
        settings.client,
        effort=effort,
        leave=lambda attack, seconds: (
            attack.target is Target.COVARIANCE and attack.searches and not searches
        ),
        thorough=False,
    )

    def known(step: Step[Trial]) -> Step[ClientTrial]:
        so_far = step.result
        whole = None if so_far is None else ClientTrial(table, transcript, view, so_far)
        return Step(share + (1 - share) * step.fraction, step.text, whole)

    return ClientTrial(table, transcript, view, (yield from changed(found, known)))


def said(found: Trial, round_: int) -> tuple[Finding, Finding]:
    """The findings after a round: of the matrix, and of the records."""
    matrix, *_, records = found.until(round_).findings
    return matrix, records
