"""What the server reads off FedPE and FedPG about one client."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.arrays import Array
from fedpca_core.attacks import stationary
from fedpca_core.attacks.scores import relative_error
from fedpca_core.errors import check_client
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task, task, with_noise
from fedpca_core.questions.anomaly.trained import LEARNING, Topic, run
from fedpca_core.steps import Part, Run, Step, part
from fedpca_core.study.own_data import OwnData

#: Fitting a whole covariance takes seconds up to so many features.
FITTED_FEATURES = 12
#: Every message of a run is held for the attack, so long runs are cut.
MOST_ROUNDS = 500
#: Participations that are fitted at most.
FITTED_RUNS = 5


@dataclass(frozen=True, eq=False)
class Leaked:
    """Errors of the readings, relative to the truth (simulation only)."""

    facts: TaskFacts
    #: The configured method.
    title: str
    #: After each participation, of the part of S_i Z outside the span of Z: round, error.
    outside: pd.DataFrame
    #: Of the whole S_i fitted to the first 1, 2, ... of them: participations, error; None above
    #: `FITTED_FEATURES` features.
    fitted: pd.DataFrame | None = None
    #: truth, found: (features, features) float64, or None: The last of these and what it should be.
    truth: Array | None = None
    found: Array | None = None
    #: One record that joined between two runs, read off the difference of two fits: the cosine of
    #: what was read to the true one (simulation only), and the purity, the share of the leading
    #: eigenvalue of the difference, which the server sees.
    joined: pd.DataFrame | None = None


class Leaks(Topic[Leaked]):
    """Replay, read and fit the messages of one client."""

    key = "leaks"
    title = "Leaks"
    opened_by = ("view", "leaks")
    reads = TASK | LEARNING | NOISE | {"client"}
    runs = 4
    recorded = True

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Leaked]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        problem, algorithm, client = on.problem, settings.algorithm(), settings.client
        check_client(client, problem.clients)
        trace = yield from part(_run(settings, problem), 0.0, 0.3)
        # What the server is after is the client's own, not the noise on it.
        held = problem.client_data if problem.source is None else problem.source.clipped
        truth = held.only(np.array([client])).dense()[0]
        path = stationary.outside_path(trace.transcript, algorithm, client)
        rounds = [round_ for round_, _, _ in path]
        errors = [relative_error(found, remove_span(truth @ z, z)) for _, z, found in path]
        outside = pd.DataFrame({"round": rounds, "error": errors})
        leaked = Leaked(TaskFacts.of(on), algorithm.title, outside)
        if problem.features > FITTED_FEATURES:
            return leaked
        fitted = []
        for count, last in enumerate(rounds[:FITTED_RUNS], 1):
            yield Step(0.3 + 0.1 * count, f"Fitting {count} participations", leaked)
            read = trace.transcript.until(last)
            matrix = stationary.fit_runs(read, algorithm, client).matrix
            fitted.append({"participations": count, "error": relative_error(matrix, truth)})
            leaked = replace(leaked, fitted=pd.DataFrame(fitted), truth=truth, found=matrix)
        yield Step(0.9, "Running once more without one record", leaked)
        joined = yield from part(_joined(settings, data, problem, matrix, last), 0.9, 1.0)
        return replace(leaked, joined=joined)


def _run(settings: AnomalySettings, problem: Problem) -> Part[Trace]:
    rounds = min(settings.rounds, MOST_ROUNDS)
    channel = Channel(dtype="float32")
    return run(settings, settings.algorithm(), problem, channel, rounds=rounds, record="full")


def _joined(
    settings: AnomalySettings, data: OwnData | None, problem: Problem, found: Array, last_round: int
) -> Part[pd.DataFrame | None]:
    """The client's first record, read off the run with it and an earlier one without it.

    With noise at the source the earlier run is a release of its own.
    """
    client = settings.client
    assert problem.blocks is not None
    record = problem.blocks[client][:, 0]
    held = int(problem.client_data.samples[client])
    if held < 2 or not record.any():
        return None  # no earlier run, or a record that leaves no trace
    earlier = without_record(problem.unperturbed, client, 0)
    if problem.source is not None:
        on = replace(task(settings, data), problem=earlier)
        earlier = with_noise(on, settings, release=1).problem
    trace = yield from _run(settings, earlier)
    read_before = trace.transcript.until(last_round)
    before = stationary.fit_runs(read_before, settings.algorithm(), client).matrix
    read = attacks.differencing(before, found, held - 1, held)
    sizes = float(np.linalg.norm(read.records) * np.linalg.norm(record))
    cosine = abs(float(read.records @ record)) / sizes if sizes > 0 else 0.0
    return pd.DataFrame({"cosine": [cosine], "purity": [float(read.purity)]})
