"""The adversary of the Attack page: which one fits the channel, and what it makes of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from fedpca_core import attacks
from fedpca_core.arrays import Array
from fedpca_core.attacks.belief import Belief
from fedpca_core.attacks.linear import AttackPath, Estimate
from fedpca_core.attacks.registry import on_matrices
from fedpca_core.findings import Finding
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.steps import Part, Step, part
from fedpca_core.study.build import attacked_run, build_algorithm
from fedpca_core.study.deployed import deployment_of, stated_trace, truth_of
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.trial import Trial, compared

#: Fields of the settings that a run and its attack depend on, whatever a section adds.
RUN = frozenset(
    name for name, described in AttackSettings.parameters().items() if not described.view
) - {"methods"}


@dataclass(frozen=True)
class Onlooker:
    """The adversary that attacks.

    Attributes
    ----------
    key : str
        Of `attacks.ADVERSARIES`.
    colluders : int
    note : str
        Why it is not the chosen one; empty if it is.
    """

    key: str
    colluders: int = 0
    note: str = ""

    @property
    def adversary(self) -> attacks.Adversary:
        """What it knows and does."""
        return attacks.ADVERSARIES[self.key]


def onlooker(settings: AttackSettings, clients: int) -> Onlooker:
    """The chosen adversary, or the nearest that the channel leaves something to read.

    Parameters
    ----------
    settings : AttackSettings
    clients : int
        Of the problem, which may have another number than the settings say (a table).
    """
    chosen = attacks.ADVERSARIES[settings.attack]
    if settings.secure_aggregation and chosen.needs_single_uploads:
        return Onlooker(
            "pooled",
            note="Under secure aggregation the server receives no single upload, so what is shown "
            "is the adversary who reads the sums.",
        )
    if not settings.secure_aggregation and not chosen.needs_single_uploads:
        return Onlooker(
            "linear",
            note="While every upload arrives by itself there are no sums to read and nothing for "
            "colluding clients to add, so what is shown is the passive adversary; switch secure "
            "aggregation on for the other.",
        )
    if settings.attack == "collude":
        most = clients - 1
        note = f"There are only {most} other clients; all of them collude here."
        return Onlooker(
            "collude",
            min(settings.colluders, most),
            note if settings.colluders > most else "",
        )
    return Onlooker(settings.attack)


def replaying(problem: Problem, view: Transcript, settings: ConvergeSettings) -> attacks.Replaying:
    """The replay of FAPS against the attacked client; only what clients state is read of them."""
    return attacks.Replaying(
        view,
        build_algorithm("faps", settings),
        settings.client,
        trace=stated_trace(problem, settings.client),
        seeded=settings.seeded,
        noise=settings.upload_noise,
        evaluations=settings.budget,
    )


@dataclass(frozen=True, eq=False)
class Attacked:
    """A run and what the adversary made of it.

    Attributes
    ----------
    table : pandas.DataFrame
        Metrics of the run.
    transcript : Transcript
        Everything that crossed the wire.
    view : Transcript
        What the adversary reads: the same, or the sums without the colluders' uploads.
    path : AttackPath
        Its belief after every round.
    finding : Finding
        What is known of the client's covariance: by this attack, compared with the truth, and
        where it did not get it, what else fits and was not tried.
    """

    table: pd.DataFrame
    transcript: Transcript
    view: Transcript
    path: AttackPath
    finding: Finding


def observed(
    problem: Problem, method: str, settings: AttackSettings, by: Onlooker, start: int = 0
) -> Part[tuple[Transcript, Transcript, pd.DataFrame]]:
    """Run a method: everything that crossed the wire, what the adversary reads of it, metrics."""
    trace, table = yield from part(attacked_run(problem, method, settings, start), 0.0, 0.5)
    view = trace.transcript
    if by.key == "collude":
        # The same run without secure aggregation is what the colluders themselves remember.
        openly = replace(settings, secure_aggregation=False)
        seen, _ = yield from part(attacked_run(problem, method, openly, start), 0.5, 1.0)
        others = [client for client in range(problem.clients) if client != settings.client]
        told = [attacks.testify(seen.transcript, client) for client in others[: by.colluders]]
        view = attacks.collude(view, told)
    return trace.transcript, view, table


def attack(
    problem: Problem, method: str, settings: AttackSettings, by: Onlooker, start: int = 0
) -> Part[Attacked]:
    """Run a method and attack it after every round."""
    watched = observed(problem, method, settings, by, start)
    transcript, view, table = yield from part(watched, 0.0, 0.6)
    stated = stated_trace(problem, settings.client)
    estimates: list[Estimate] = []
    for estimate in rounds(by.key, view, settings.client, stated):
        estimates.append(estimate)
        share = len(estimates) / (len(view.exchanges) + 2)
        yield Step(0.6 + 0.4 * share, f"the server after round {len(estimates) - 1}")
    path = AttackPath.of(estimates)
    known = _finding(problem, method, settings, by, view, path.estimates[-1])
    return Attacked(table, transcript, view, path, known)


#: Adversaries by their attacks in the registry.
_KEYS = {"pooled": "sums", "collude": "sums"}


def _finding(
    problem: Problem,
    method: str,
    settings: AttackSettings,
    by: Onlooker,
    view: Transcript,
    last: Array,
) -> Finding:
    """What the last estimate of one attack says of the client's covariance."""
    client = settings.client
    algorithm = build_algorithm(method, settings)
    deployment = deployment_of(problem, algorithm, settings, client, rounds=len(view.exchanges))
    if all(exchange.uploads is not None for exchange in view.exchanges):
        deployment = replace(deployment, sums=False)  # all others collude: nothing is hidden
    key = _KEYS.get(by.key, by.key)
    others = {
        one.key: one.seconds(deployment, client)
        for one in on_matrices(deployment, client)
        if one.key != key
    }
    run = Trial(deployment, client, {key: [Belief(last, dense=True)]}, waiting=others)
    truth = truth_of(problem, client, settings.components)
    return replace(run, got=compared(run, truth)).findings[0]


def rounds(key: str, view: Transcript, client: int, stated: float) -> Iterator[Estimate]:
    """An adversary's belief round by round; ``stated`` is the public trace of S_i."""
    if key == "symmetric":
        return attacks.symmetric_rounds(view, client, trace=stated)
    if key == "ridge":
        return attacks.ridge_rounds(view, client, trace=stated)
    if key == "linear":
        return attacks.linear_rounds(view, client)
    if all(exchange.uploads is not None for exchange in view.exchanges):
        return attacks.symmetric_rounds(view, client)  # all others collude: nothing is hidden
    return attacks.pooled_rounds(view, client)
