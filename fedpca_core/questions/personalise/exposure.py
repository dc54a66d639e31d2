"""What a server recovers from the uploads of a short run of personalised PCA."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.arrays import Array
from fedpca_core.attacks import personal as attack
from fedpca_core.attacks import recover_samples
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.problems.personal_model import PersonalProblem
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, OwnData, Study

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
    """How far from the truth what was recovered is (simulation only)."""

    #: After each round, ‖UUᵀ − RRᵀ‖_F / √(2r) between a client's frame and the recovered one,
    #: median over the attacked clients, by start (common_start, independent_start) and for a server
    #: that takes the common frame for every client's (common_frame_only); NaN before the first.
    frames: pd.DataFrame
    #: Of each attacked client after a common start, relative errors of the matrix recovered
    #: against the one that the client used (moment_error): S_i, or S_i + E_i but for a multiple of
    #: the identity; against S_i in any case (own_moment_error); and of a single record
    #: (record_error, one sample a client). NaN where that failed or does not apply.
    data: pd.DataFrame
    #: Whether the clients used S_i + E_i.
    noisy: bool

    @property
    def moments(self) -> int:
        """Clients whose whole matrix was recovered."""
        return int((self.data["moment_error"] < EXACT).sum())

    @property
    def own(self) -> float:
        """Median distance of the recovered matrices from the clients' S_i; NaN without any."""
        return float(self.data["own_moment_error"][self.data["moment_error"] < EXACT].median())

    @property
    def records(self) -> int | None:
        """Clients whose single record was recovered; None where they hold more than one."""
        errors = self.data["record_error"]
        return int((errors < EXACT).sum()) if errors.notna().any() else None


class Exposure(Study[PersonaliseSettings, Exposed]):
    """Attack the uploads of a few clients, after a common and after independent starts.

    With the safe steps: long ones carry frames past 45 degrees of the common one, where the attack
    has to choose between branches.
    """

    key = "personalised-exposure"
    title = "What the uploads give away"
    most = Cost(megabytes=150, seconds=120)
    reads = frozenset(
        set(PersonaliseSettings.parameters())
        - {"start_from", "pace", "rounds", "error_on", "sweep", "datasets", "exposure"}
    )
    seconds = 240.0

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
        frames: dict[str, Array] = {}
        rows: list[tuple[float, ...]] = []
        for start, share in in_turn(STARTS):
            algorithm = replace(small.personalised(), start_from=start)
            algorithm = algorithm.prepared(problem.client_data)
            trace = simulate(problem, algorithm, rounds=ROUNDS, seed=small.seed)
            followed = yield from part(_follow(algorithm, trace), *share)
            recovered = [[one.frame for one in tracked if one.round] for tracked in followed]
            frames[f"{start}_start"] = _distances(recovered, trace)
            if start == "common":
                common = [exchange.downlink["centre"] for exchange in trace.transcript.exchanges]
                baseline = _distances([common] * len(followed), trace)
                for client, tracked in enumerate(followed):
                    yield Step(0.5, f"Client {client}, covariance")
                    rows.append(_data_errors(problem, algorithm, trace, client, tracked))
        found = pd.DataFrame({**frames, "common_frame_only": baseline})
        found.insert(0, "round", np.arange(len(found), dtype=float))
        errors = pd.DataFrame(rows, columns=["moment_error", "own_moment_error", "record_error"])
        errors.insert(0, "client", np.arange(len(errors)))
        return Exposed(found, errors, problem.guarantee is not None)


def _follow(algorithm: PersonalizedPCA, trace: Trace) -> Part[list[list[attack.FrameOfRound]]]:
    """The frames recovered from the uploads of every attacked client."""
    attacked = min(ATTACKED, trace.setting.clients)
    followed: list[list[attack.FrameOfRound]] = [[] for _ in range(attacked)]
    for client, tracked in enumerate(followed):
        for item in attack.track(trace.transcript, algorithm, client):
            tracked.append(item)
            done = (client + item.round / ROUNDS) / attacked
            yield Step(done, f"Client {client}, upload of round {item.round}")
    return followed


def _distances(frames: Sequence[Sequence[Array]], trace: Trace) -> Array:
    """Median distance of the frames that are taken for the clients' from their own, by round."""
    size = float(np.sqrt(2 * trace.estimates.shape[-1]))
    held = trace.estimates[1:, : len(frames)].swapaxes(0, 1)
    found = projector_distance(np.array(frames), held) / size
    return np.concatenate([[np.nan], np.median(found, axis=0)])


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
        found = attack.second_moment(trace.transcript, algorithm, client, tracked, noisy).matrix
    except InvalidInput:
        return np.nan, np.nan, np.nan
    own = block @ block.T / block.shape[1]
    moments = _off(found, problem.client_data.dense()[client], noisy), _off(found, own, noisy)
    if block.shape[1] > 1:
        return *moments, np.nan
    record, actual = recover_samples(found, 1)[:, 0], block[:, 0]
    signed = min(np.linalg.norm(record - actual), np.linalg.norm(record + actual))
    return *moments, float(signed / np.linalg.norm(actual))


def _off(found: Array, true: Array, noisy: bool) -> float:
    """Relative Frobenius error, of the parts without trace where there is noise."""
    if noisy:
        found, true = (one - np.trace(one) / len(one) * np.eye(len(one)) for one in (found, true))
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))
