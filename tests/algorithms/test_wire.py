"""What crosses the wire, to the byte; who takes part; what secure aggregation leaves unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.linalg.stiefel import orthonormalise, random_frame
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Algorithm, Inbox, Plan, Reply, ServerState
from tests.algorithms.small_problems import COMPONENTS, FEATURES, mixed

FRAME = FEATURES * COMPONENTS
ITERATIVE: list[Algorithm] = [
    fp.SSI(COMPONENTS),
    fp.LocalPower(COMPONENTS),
    fp.LocalPower(COMPONENTS, schedule="decay"),
    fp.FAPS(COMPONENTS),
    fp.FAPS(COMPONENTS, inner_rule="fixed"),
    fp.VariableSplitting(COMPONENTS),
    fp.VariableSplitting(COMPONENTS, 2.0, constraint="free"),
    fp.BlockKrylov(COMPONENTS),
]
SUMS_ONLY = [*ITERATIVE, fp.Centralized(COMPONENTS)]


def name(algorithm: Algorithm) -> str:
    return f"{algorithm.title}-{getattr(algorithm, 'inner_rule', '')}".strip("-")


@dataclass(frozen=True)
class Chatty(fp.SSI):
    """SSI whose server sends the new frame and one number back to everybody."""

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        frame = orthonormalise(inbox.total("product"))
        return Reply({"frame": frame}, {"frame": frame, "rate": np.ones(1)})


@pytest.mark.parametrize("algorithm", ITERATIVE, ids=name)
@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 4)])
def test_bytes_at_full_participation(algorithm: Algorithm, dtype: str, width: int) -> None:
    trace = fp.simulate(mixed(), algorithm, rounds=5, channel=fp.Channel(dtype=dtype))
    assert trace.bytes_up.tolist() == [4 * FRAME * width * k for k in range(6)]
    assert trace.bytes_down.tolist() == [4 * FRAME * width * k for k in range(6)]


@pytest.mark.parametrize("algorithm", ITERATIVE, ids=name)
def test_bytes_at_half_participation(algorithm: Algorithm) -> None:
    trace = fp.simulate(mixed(), algorithm, rounds=5, participation=0.5, seed=4)
    senders = [len(exchange.participants) for exchange in trace.transcript.exchanges]
    if isinstance(algorithm, fp.BlockKrylov):
        assert max(senders) == 2 and min(senders) < 2  # those who have answered stay silent
    else:
        assert senders == [2] * 5
    expected = (np.cumsum([0, *senders]) * FRAME * 8).tolist()
    assert trace.bytes_up.tolist() == trace.bytes_down.tolist() == expected


def test_bytes_of_feedback_go_to_all_participants() -> None:
    trace = fp.simulate(mixed(), Chatty(COMPONENTS), rounds=3, participation=0.5)
    assert np.diff(trace.bytes_up).tolist() == [2 * FRAME * 8] * 3
    assert np.diff(trace.bytes_down).tolist() == [2 * FRAME * 8 + 2 * (FRAME + 1) * 8] * 3


@pytest.mark.parametrize("algorithm", SUMS_ONLY, ids=name)
@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_sums_are_all_the_server_needs(algorithm: Algorithm, participation: float) -> None:
    runs = [
        fp.simulate(
            mixed(),
            algorithm,
            rounds=12,
            participation=participation,
            channel=fp.Channel(secure_aggregation=secret),
        )
        for secret in (False, True)
    ]
    assert np.array_equal(runs[0].estimates, runs[1].estimates)
    assert all(exchange.uploads is None for exchange in runs[1].transcript.exchanges)


@pytest.mark.parametrize("algorithm", SUMS_ONLY, ids=name)
def test_participation_does_not_shift_streams(algorithm: Algorithm) -> None:
    problem = mixed()
    full = fp.simulate(problem, algorithm, rounds=6, seed=9)
    part = fp.simulate(problem, algorithm, rounds=6, seed=9, participation=0.5)
    assert np.array_equal(full.estimates[0], part.estimates[0])


def test_private_draws_belong_to_clients_and_rounds() -> None:
    problem = mixed()
    algorithm = fp.FAPS(
        COMPONENTS, random_inner_steps=True, private_start=True, private_penalty=True
    )
    full = fp.simulate(problem, algorithm, rounds=1, seed=9)
    part = fp.simulate(problem, algorithm, rounds=1, seed=9, participation=0.5)
    present = part.transcript.exchanges[0].participants
    assert full.frames is not None and part.frames is not None
    assert np.array_equal(full.frames[0], part.frames[0])
    assert np.allclose(full.frames[1][present], part.frames[1][present], atol=1e-13)
    assert full.transcript.exchanges[0].uploads is not None
    assert part.transcript.exchanges[0].uploads is not None
    ours = part.transcript.exchanges[0].uploads["product"]
    theirs = full.transcript.exchanges[0].uploads["product"][present]
    assert np.allclose(ours, theirs, atol=1e-13)


@pytest.mark.parametrize("algorithm", [*ITERATIVE, fp.OneShot(COMPONENTS)], ids=name)
def test_metrics_see_the_span_only(algorithm: Algorithm) -> None:
    problem = mixed()
    trace = fp.simulate(problem, algorithm, rounds=5)
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((COMPONENTS, COMPONENTS)))[0]
    flip = np.diag([-1.0, 1.0, -1.0])
    plain = fp.metrics.frame(trace, problem)
    for change in (turn, flip):
        object.__setattr__(trace, "estimates", trace.estimates @ change)
        turned = fp.metrics.frame(trace, problem)
        for column in ("objective", "kkt", "relative_error", "sin_theta", "consensus_gap"):
            assert np.allclose(plain[column], turned[column], atol=1e-12, equal_nan=True), column


def _turned_start(problem: Problem, algorithm: Algorithm, change: np.ndarray) -> np.ndarray:
    """Estimates of a run whose first frame is multiplied by an orthogonal matrix."""

    def turned(generator: np.random.Generator, features: int, components: int) -> np.ndarray:
        return random_frame(generator, features, components) @ change

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedpca_core.protocol.algorithm.random_frame", turned)
        return fp.simulate(problem, algorithm, rounds=15).estimates


@pytest.mark.parametrize(
    "algorithm",
    [fp.SSI(COMPONENTS), fp.FAPS(COMPONENTS), fp.FAPS(COMPONENTS, inner_rule="fixed")],
    ids=name,
)
def test_iterates_depend_on_the_span_of_the_start_only(algorithm: Algorithm) -> None:
    problem = mixed()
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((COMPONENTS, COMPONENTS)))[0]
    plain = _turned_start(problem, algorithm, np.eye(COMPONENTS))
    turned = _turned_start(problem, algorithm, turn)
    assert not np.allclose(plain[0], turned[0])
    gaps = fp.linalg.stiefel.projector_distance(plain, turned)
    assert gaps.max() < 1e-9
