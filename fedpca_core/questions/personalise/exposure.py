"""What a server recovers from the uploads of a short run of personalised PCA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.arrays import Array
from fedpca_core.attacks import personal as attack
from fedpca_core.attacks import recover_samples
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.problems.personal import PersonalProblem
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

#: Uploads of more features take minutes to solve.
LARGEST = attack.LARGEST
#: The short run: rounds, clients that take part, and clients that are attacked.
ROUNDS, CLIENTS, ATTACKED = 10, 10, 5
#: Recovered up to round-off, as far as anybody could use it.
EXACT = 1e-6
#: The two starts that are compared; what the first upload tells depends on them.
STARTS = ("common", "independent")


@dataclass(frozen=True, eq=False)
class Exposed:
    """What was recovered, and how far from the truth it is (errors are simulation only)."""

    #: mapping of start to (rounds + 1,) float64: ‖UUᵀ − RRᵀ‖_F / √(2r) between a client's frame and
    #: the recovered one, median over the attacked clients; NaN at the start, when nothing has been
    #: sent.
    errors: Mapping[str, Array]
    #: (rounds + 1,) float64: The same for a server that takes the common frame for every client's.
    baseline: Array
    #: (attacked,) float64: Relative errors of the matrix recovered after a common start, against
    #: the one that the client used: S_i, or S_i + E_i but for a multiple of the identity. NaN where
    #: that failed.
    moment_errors: Array
    #: (attacked,) float64: The same against S_i in any case.
    own_errors: Array
    #: (attacked,) float64: Relative errors of single records (one sample a client); NaN otherwise.
    record_errors: Array
    #: Whether the clients used S_i + E_i.
    noisy: bool

    @property
    def rounds(self) -> Array:
        """0, 1, ... up to the last round."""
        return np.arange(len(self.baseline), dtype=float)

    @property
    def attacked(self) -> int:
        """How many clients were attacked."""
        return len(self.moment_errors)

    @property
    def moments(self) -> int:
        """Clients whose whole matrix was recovered."""
        return int((self.moment_errors < EXACT).sum())

    @property
    def own(self) -> float:
        """Median distance of the recovered matrices from the clients' S_i; NaN without any."""
        recovered = self.own_errors[self.moment_errors < EXACT]
        return float(np.median(recovered)) if len(recovered) else float("nan")

    @property
    def records(self) -> int | None:
        """Clients whose single record was recovered; None where they hold more than one."""
        tried = np.isfinite(self.record_errors).any()
        return int((self.record_errors < EXACT).sum()) if tried else None

    @property
    def lost(self) -> bool:
        """Whether the attack had lost most clients by the last round, after a common start."""
        return bool(self.errors["common"][-1] > EXACT)

    @property
    def hidden(self) -> bool:
        """Whether uploads after independent starts tell little more than the common frame."""
        return bool(self.errors["independent"][-1] >= self.baseline[-1] / 2)


class Exposure(Study[PersonaliseSettings, Exposed]):
    """Attack the uploads of a few clients, after a common and after independent starts.

    With the safe steps: long ones carry frames past 45 degrees of the common one, where the attack
    has to choose between branches.
    """

    key: ClassVar[str] = "personalised-exposure"
    title: ClassVar[str] = "What the uploads give away"
    most: ClassVar[Cost] = Cost(megabytes=150, seconds=120)
    reads: ClassVar[frozenset[str] | None] = frozenset(
        set(PersonaliseSettings.parameters())
        - {"start_from", "pace", "rounds", "error_on", "sweep", "datasets", "exposure"}
    )
    seconds: ClassVar[float] = 240.0

    def wanted(self, settings: PersonaliseSettings) -> bool:
        own = settings.problem == "table"  # how many columns it has is known once it is read
        return settings.exposure and (own or settings.features <= LARGEST)

    def run(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Run[Exposed]:
        small = replace(settings, clients=min(settings.clients, CLIENTS), pace=1.0)
        yield Step(0.0, "A short run from either start")
        problem = small.build(data)
        require(
            problem.features <= LARGEST,
            f"The demonstration solves for up to {LARGEST} features, not {problem.features}; "
            "choose fewer features.",
        )
        errors: dict[str, Array] = {}
        truth: list[tuple[float, float, float]] = []
        for start, share in in_turn(STARTS):
            algorithm = replace(small.personalised(), start_from=start)
            algorithm = algorithm.prepared(problem.client_data)
            trace = simulate(problem, algorithm, rounds=ROUNDS, seed=small.seed)
            followed = yield from part(_follow(algorithm, trace), *share)
            recovered = [[one.frame for one in tracked if one.round] for tracked in followed]
            errors[start] = _distances(recovered, trace)
            if start == "common":
                common = [exchange.downlink["centre"] for exchange in trace.transcript.exchanges]
                baseline = _distances([common] * len(followed), trace)
                for client, tracked in enumerate(followed):
                    yield Step(0.5, f"Client {client}, covariance")
                    truth.append(_data_errors(problem, algorithm, trace, client, tracked))
        moments, own, records = np.array(truth).T
        noisy = problem.guarantee is not None
        return Exposed(errors, baseline, moments, own, records, noisy)

    def tables(self, result: Exposed, settings: PersonaliseSettings) -> dict[str, pd.DataFrame]:
        frames = {f"{start}_start": values for start, values in result.errors.items()}
        return {
            "frames": pd.DataFrame(
                {"round": result.rounds} | frames | {"common_frame_only": result.baseline}
            ),
            "data": pd.DataFrame(
                {
                    "client": np.arange(result.attacked),
                    "moment_error": result.moment_errors,
                    "own_moment_error": result.own_errors,
                    "record_error": result.record_errors,
                }
            ),
        }


def _follow(algorithm: PersonalizedPCA, trace: Trace) -> Part[list[list[attack.FrameOfRound]]]:
    """The frames recovered from the uploads of every attacked client."""
    attacked = min(ATTACKED, trace.setting.clients)
    followed: list[list[attack.FrameOfRound]] = []
    for client in range(attacked):
        tracked: list[attack.FrameOfRound] = []
        for item in attack.track(trace.transcript, algorithm, client):
            tracked.append(item)
            done = (client + item.round / ROUNDS) / attacked
            yield Step(done, f"Client {client}, upload of round {item.round}")
        followed.append(tracked)
    return followed


def _distances(frames: Sequence[Sequence[Array]], trace: Trace) -> Array:
    """Median distance of the frames that are taken for the clients' from their own, by round."""
    found = [
        [_apart(frame, trace.estimates[row, client]) for row, frame in enumerate(own, start=1)]
        for client, own in enumerate(frames)
    ]
    return np.concatenate([[np.nan], np.median(found, axis=0)])


def _apart(found: Array, true: Array) -> float:
    return float(projector_distance(found, true)) / float(np.sqrt(2 * true.shape[1]))


def _data_errors(
    problem: PersonalProblem,
    algorithm: PersonalizedPCA,
    trace: Trace,
    client: int,
    tracked: Sequence[attack.FrameOfRound],
) -> tuple[float, float, float]:
    """Relative errors of what the client used, of S_i, and of a single record; NaN where refused.

    A multiple of the identity is not counted where there is noise: frames say nothing of it.
    """
    assert problem.blocks is not None  # `personal` keeps them
    block, noisy = problem.blocks[client], problem.guarantee is not None
    try:
        found = attack.second_moment(
            trace.transcript, algorithm, client, tracked=tracked, noisy=noisy
        ).matrix
    except InvalidInput:
        return float("nan"), float("nan"), float("nan")
    own = block @ block.T / block.shape[1]
    used = problem.client_data.dense()[client]
    moments = _off(found, used, noisy), _off(found, own, noisy)
    if block.shape[1] > 1:
        return *moments, float("nan")
    record, actual = recover_samples(found, 1)[:, 0], block[:, 0]
    signed = min(np.linalg.norm(record - actual), np.linalg.norm(record + actual))
    return *moments, float(signed / np.linalg.norm(actual))


def _off(found: Array, true: Array, noisy: bool) -> float:
    """Relative Frobenius error, of the parts without trace where there is noise."""
    if noisy:
        found, true = (
            matrix - np.trace(matrix) / len(matrix) * np.eye(len(matrix))
            for matrix in (found, true)
        )
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))
