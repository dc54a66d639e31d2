"""What a run of a candidate gives away of one client: the trial of its messages, as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.attacks import scores, simulation_only
from fedpca_core.attacks.attack import Effort, MatrixAttack, RecordsAttack
from fedpca_core.attacks.registry import on_matrices
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Finding, Target
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.which.runs import Made, made
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome
from fedpca_core.study.deployed import deployment_of, private_matrix, truth_of
from fedpca_core.trial import TWO_RUNS, Trial, best_guess, trial

#: Attacks that solve linear equations.
LINEAR = ("linear", "symmetric")


@dataclass(frozen=True)
class Leak:
    """What the best attack gave.

    Attributes
    ----------
    attack : str
        Key in the registry; empty where none beats the best guess that needs no message.
    error : float
        ``||S_hat - S_i||_F / ||S_i||_F`` of the best attack; NaN where one that fits was not tried.
    linear : float
        The same of the attacks that solve linear equations alone; NaN where they do not fit.
    guess : float
        The same of the best public guess.
    sine : float
        Largest angle of the client's leading space, as the best attack has it.
    records : float
        Records that came back to the last digit; NaN off any grid, and where it was not tried.
    findings : tuple of Finding
    """

    attack: str
    error: float
    linear: float
    guess: float
    sine: float
    records: float
    findings: tuple[Finding, ...]


def attempt(run: Made, settings: FrontierSettings, rounds: int, *, search: bool) -> Trial:
    """Attack the first rounds of a run.

    Parameters
    ----------
    search : bool
        Also by what takes seconds, and on to the records.
    """

    def leave(attack: MatrixAttack | RecordsAttack, seconds: float) -> bool:
        return attack.searches and not search

    deployment = deployment_of(run.problem, run.algorithm, settings, settings.client, rounds=rounds)
    found = outcome(
        trial(
            run.trace.transcript.until(rounds),
            replace(deployment, guarantee=run.guarantee),
            settings.client,
            truth=truth_of(run.problem, settings.client, settings.components),
            effort=Effort(settings.budget),
            leave=leave,
        )
    )
    assert found is not None
    return found


def leak(run: Made, settings: FrontierSettings, rounds: int, *, search: bool) -> Leak:
    """`attempt` in numbers."""
    found = attempt(run, settings, rounds, search=search)
    truth = private_matrix(run.problem, settings.client)
    guess = best_guess(truth, found.deployment.trace)
    errors = {
        key: scores.relative_error(found.beliefs[key][-1].matrix, truth)
        for key in LINEAR
        if key in found.beliefs
    }
    linear = min(errors.values(), default=math.nan)
    best = found.got[Target.COVARIANCE]
    untried = any(key in found.waiting for key in _searching(found))
    records = found.got.get(Target.RECORDS)
    return Leak(
        attack=best.attack if best.figure < guess and not untried else "",
        error=math.nan if untried else best.figure,
        linear=linear,
        guess=guess,
        sine=math.nan if untried else found.got[Target.LEADING].figure,
        records=records.figure if records is not None and search else math.nan,
        findings=found.findings,
    )


def _searching(found: Trial) -> list[str]:
    """Keys of the attacks on the matrix that search."""
    return [one.key for one in on_matrices(found.deployment, found.client) if one.searches]


@dataclass(frozen=True)
class Summed:
    """What sums over all clients still give away; NaN where the method's sums cannot be read.

    Attributes
    ----------
    error : float
        Relative error of the attacked client's matrix from sums alone.
    pooled : float
        The same of the pooled matrix S, which is all that sums of equal participants can hold.
    newcomer : float
        Sine of the angle between the record that joined between two runs and what the server
        reads of it.
    """

    error: float = math.nan
    pooled: float = math.nan
    newcomer: float = math.nan


def summed(method: str, settings: FrontierSettings, problem: Problem) -> Summed:
    """The same method under secure sums, once more without one record of the attacked client."""
    truth, client = problem.unperturbed, settings.client
    chosen = replace(settings, secure_aggregation=True)
    if truth.blocks is None:
        return Summed()
    record = truth.blocks[client][:, 0]
    try:
        after = made(method, chosen, truth)
        before = made(method, chosen, without_record(truth, client, 0)).trace.transcript
    except InvalidInput:  # its server needs single uploads
        return Summed()
    found = _compared(after, before, chosen)
    last = found.beliefs.get("sums")
    private, data = private_matrix(truth, client), truth.client_data
    pooled = simulation_only.pooled_mean(data.dense(), data.weights)
    error = math.nan if last is None else scores.relative_error(last[-1].matrix, private)
    two, sine = found.beliefs.get(TWO_RUNS), math.nan
    if two is not None and two[-1].read and record.any():
        seen = two[-1].factor[:, 0]
        unit, seen = record / np.linalg.norm(record), seen / np.linalg.norm(seen)
        sine = float(np.linalg.norm(seen - unit * (unit @ seen)))
    if last is None:
        return Summed()
    return Summed(error, scores.relative_error(pooled, private), sine)


def _compared(after: Made, before: Transcript, settings: FrontierSettings) -> Trial:
    """Sums of two runs, read without a search."""
    deployment = deployment_of(
        after.problem,
        after.algorithm,
        settings,
        settings.client,
        rounds=after.trace.rounds,
        earlier=before,
    )
    found = outcome(
        trial(
            after.trace.transcript,
            deployment,
            settings.client,
            leave=lambda attack, seconds: attack.searches,
        )
    )
    assert found is not None
    return found
