"""Laws of FedPE and FedPG: gradients, invariants, convergence, and what the printed rules do."""

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.admm import smooth_gradient
from fedpca_core.algorithms.fedpe_fedpg import surrogate_gradient, surrogate_value
from fedpca_core.linalg.stiefel import orthonormalise, polar, remove_span, uniform_frame
from fedpca_core.metrics import admm as progress
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.streams import Streams

COMPONENTS = 4


def clear_gap(clients=100, features=20, samples=60, seed=5, spread=0.5):
    """Unequal clients that share a basis, with a clear gap after the fourth eigenvalue."""
    generator = np.random.default_rng(seed)
    basis = orthonormalise(generator.standard_normal((features, features)))
    scale = np.r_[np.linspace(4, 2, COMPONENTS), np.full(features - COMPONENTS, 0.4)]
    blocks = []
    for index in range(clients):
        own = scale * np.exp(spread * generator.standard_normal(features))
        draws = generator.standard_normal((features, samples + index % 7))
        blocks.append(basis @ (own[:, None] * draws))
    return fp.problems.problem.from_blocks(blocks)


@pytest.fixture(scope="module")
def problem():
    return clear_gap()


@pytest.fixture(scope="module")
def smaller():
    """For what takes many rounds and asks for no more than 1e-4."""
    return clear_gap(clients=50, features=16)


def run(problem, algorithm, rounds, participation=0.1, **options):
    return fp.simulate(
        problem, algorithm, rounds=rounds, participation=participation, seed=1, **options
    )


def distance(estimate, problem):
    target = problem.target(estimate.shape[-1])
    return float(np.linalg.norm(remove_span(estimate, target))) / np.sqrt(estimate.shape[-1])


# ---------------------------------------------------------------------- gradients
def numerical(function, at, width=1e-5):
    result = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[index] = width
        result[index] = (function(at + shift) - function(at - shift)) / (2 * width)
    return result


def test_gradient_of_the_loss_off_the_manifold():
    generator = np.random.default_rng(0)
    root = generator.standard_normal((7, 9))
    covariance = root @ root.T / 9
    frame = generator.standard_normal((7, 3))

    def value(at):
        return float(progress.losses(np.trace(covariance), covariance @ at, at))

    assert value(frame) == pytest.approx(
        np.linalg.norm(root - frame @ frame.T @ root) ** 2 / 9, rel=1e-12
    )
    found = smooth_gradient(covariance @ frame, frame)
    np.testing.assert_allclose(found, numerical(value, frame), rtol=1e-6, atol=1e-6)


def test_gradient_is_tangent_on_the_manifold():
    generator = np.random.default_rng(1)
    root = generator.standard_normal((8, 8))
    covariance = root @ root.T
    frame = uniform_frame(generator, 8, 3)
    found = smooth_gradient(covariance @ frame, frame)
    np.testing.assert_allclose(found, -2 * remove_span(covariance @ frame, frame), atol=1e-12)
    np.testing.assert_allclose(frame.T @ found, 0, atol=1e-12)


def test_gradient_of_the_surrogate():
    generator = np.random.default_rng(2)
    frames = 1.3 * generator.standard_normal((2, 6, 3))
    multipliers = generator.uniform(0, 1, (2, 3, 3))
    multipliers = multipliers + multipliers.mT
    penalty = np.full((2, 1, 1), 1.7)

    def value(at):
        return float(surrogate_value(at, multipliers, penalty).sum())

    found = surrogate_gradient(frames, multipliers, penalty)
    np.testing.assert_allclose(found, numerical(value, frames), rtol=1e-5, atol=1e-5)


def test_both_retractions_leave_a_frame_alone():
    frame = uniform_frame(np.random.default_rng(3), 9, 4)
    np.testing.assert_allclose(orthonormalise(frame), frame, atol=1e-14)
    np.testing.assert_allclose(polar(frame), frame, atol=1e-14)


# ---------------------------------------------------------------------- convergence
def test_fedpg_converges_with_a_tenth_of_the_clients(problem):
    trace = run(problem, fp.FedPG(COMPONENTS), 300)
    assert distance(trace.estimates[0], problem) > 0.5
    assert distance(trace.estimate, problem) < 1e-6


def test_everybody_present_the_lagrangian_never_rises(problem):
    trace = run(problem, fp.FedPG(COMPONENTS), 200, participation=1.0)
    table = progress.frame(trace, problem)
    rises = np.diff(table["lagrangian"]) / table["lagrangian"].iloc[-1]
    assert rises.max() < 1e-12
    assert table["distance"].iloc[-1] < 2e-6
    assert table["progress"].iloc[-1] < 1e-6 * table["progress"].iloc[1]


@pytest.mark.parametrize("algorithm", [fp.FedPG(COMPONENTS), fp.FedPE(COMPONENTS)])
def test_duals_of_all_clients_sum_to_zero(problem, algorithm):
    table = progress.frame(run(problem, algorithm, 60), problem, every=10)
    assert table["dual_size"].iloc[-1] > 1
    assert table["dual_sum"].max() < 1e-9 * problem.clients * table["dual_size"].max()


def test_the_kept_duals_are_those_of_the_messages(problem):
    """Y_i += penalty (U_i - Z) and, for FedPE, T_i += penalty m o m, redone from the wire."""
    trace = run(problem, fp.FedPE(COMPONENTS, initial="uniform", local_steps=2), 12, 0.5)
    duals = np.zeros_like(trace.frames[0])
    multipliers = np.zeros((problem.clients, COMPONENTS, COMPONENTS))
    for exchange in trace.transcript.exchanges:
        own, penalty = exchange.uploads["frame"], float(exchange.downlink["penalty"])
        duals[exchange.participants] += penalty * (own - exchange.feedback["frame"])
        beyond = np.maximum(0.0, own.mT @ own - np.eye(COMPONENTS))
        multipliers[exchange.participants] += penalty * beyond**2
    np.testing.assert_allclose(trace.state("dual")[-1], duals, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trace.state("multiplier")[-1], multipliers, rtol=1e-12, atol=1e-12)
    assert multipliers.any()


def test_fedpe_converges_more_slowly(smaller):
    at = {}
    for algorithm in (fp.FedPE(COMPONENTS), fp.FedPG(COMPONENTS)):
        trace = run(smaller, algorithm, 300)
        at[algorithm.title] = [distance(estimate, smaller) for estimate in trace.estimates]
    assert at["FedPE"][-1] < 1e-4
    first = {name: int(np.argmax(np.array(values) < 1e-3)) for name, values in at.items()}
    assert first["FedPG"] < first["FedPE"]


def test_printed_projection_comes_close_and_then_drifts_away(problem):
    trace = run(problem, fp.FedPG(COMPONENTS, projection="printed"), 400, participation=1.0)
    table = progress.frame(trace, problem, every=5)
    assert table["distance"].min() < 0.02
    assert table["distance"].iloc[-1] > 0.3
    assert table["dual_size"].iloc[-1] > 2 * table["dual_size"].iloc[20]


def test_printed_average_leaves_a_floor_that_falls_with_the_penalty(smaller):
    def floor(factor):
        method = fp.FedPG(COMPONENTS, average="printed", penalty_factor=factor)
        trace = run(smaller, method, 600)
        return np.median([distance(estimate, smaller) for estimate in trace.estimates[500:]])

    low, high = floor(4.0), floor(12.0)
    assert 1e-4 < high < low < 0.1


def test_printed_average_is_the_mean_when_all_are_present(problem):
    ways = [
        run(problem, fp.FedPG(COMPONENTS, average=average), 30, participation=1.0).estimate
        for average in ("mean", "printed", "memory", "polar")
    ]
    np.testing.assert_allclose(ways[1], ways[0], atol=1e-9)
    np.testing.assert_allclose(ways[2], ways[0], atol=1e-9)
    np.testing.assert_allclose(ways[3], ways[0], atol=1e-9)


def test_memory_has_no_floor(smaller):
    trace = run(smaller, fp.FedPG(COMPONENTS, average="memory"), 400, participation=0.5)
    assert distance(trace.estimate, smaller) < 1e-4


@pytest.mark.parametrize(
    "algorithm",
    [
        fp.FedPG(COMPONENTS, sampling="round robin"),
        fp.FedPG(COMPONENTS, local_start="consensus", local_steps=2),
        fp.FedPG(COMPONENTS, retraction="polar"),
        fp.FedPG(COMPONENTS, initial="uniform"),
        fp.FedPE(COMPONENTS, surrogate=False),
    ],
    ids=["in turn", "from consensus", "polar", "uniform", "no surrogate"],
)
def test_options_reach_the_same_answer(smaller, algorithm):
    assert distance(run(smaller, algorithm, 400).estimate, smaller) < 1e-3


@pytest.mark.parametrize("method", [fp.FedPE, fp.FedPG])
@pytest.mark.parametrize("penalty", [0.01, 64.0])
@pytest.mark.parametrize("steps", [1, 50])
def test_no_dial_position_diverges(method, penalty, steps):
    problem = clear_gap(clients=20, features=12, spread=1.5)
    algorithm = method(3, penalty_factor=penalty, local_steps=steps, initial="uniform")
    trace = run(problem, algorithm, 60)
    explained = fp.metrics.frame(trace, problem)["objective"]
    assert np.isfinite(trace.estimates).all()
    np.testing.assert_allclose(trace.estimate.T @ trace.estimate, np.eye(3), atol=1e-10)
    assert 0 <= explained.iloc[-1] <= 1


def test_equal_clients_find_the_pca_of_one():
    block = np.random.default_rng(7).standard_normal((9, 80)) * np.linspace(3, 0.5, 9)[:, None]
    problem = fp.problems.problem.from_blocks([block, block])
    alone = np.linalg.svd(block)[0][:, :3]
    estimate = run(problem, fp.FedPG(3), 500, 0.5).estimate
    assert np.linalg.norm(remove_span(estimate, alone)) < 1e-6


def test_scale_of_the_data_does_not_matter(problem):
    generator = np.random.default_rng(8)
    blocks = [generator.standard_normal((8, 30)) * np.arange(1, 9)[:, None] for _ in range(6)]
    small = run(fp.problems.problem.from_blocks([1e-3 * b for b in blocks]), fp.FedPG(3), 30, 0.5)
    large = run(fp.problems.problem.from_blocks([1e4 * b for b in blocks]), fp.FedPG(3), 30, 0.5)
    np.testing.assert_allclose(small.estimate, large.estimate, atol=1e-9)


def test_unequal_clients_count_by_their_records():
    generator = np.random.default_rng(4)
    blocks = [
        np.diag([5.0, 1, 1, 1]) @ generator.standard_normal((4, 900)),
        np.diag([1.0, 3, 1, 1]) @ generator.standard_normal((4, 100)),
    ]
    for weights in ("records", "equal"):
        problem = fp.problems.problem.from_blocks(blocks, weights=weights)
        estimate = run(problem, fp.FedPG(1), 300, 1.0).estimate
        assert distance(estimate, problem) < 1e-6


# ---------------------------------------------------------------------- the wire
@pytest.mark.parametrize("dtype,width", [("float64", 8), ("float32", 4)])
def test_bytes_of_a_round(problem, dtype, width):
    trace = run(problem, fp.FedPG(COMPONENTS), 7, channel=fp.Channel(dtype=dtype))
    frame = problem.features * COMPONENTS * width
    norms = problem.clients * width  # ||S_i||, before the first round
    assert trace.bytes_up[-1] == norms + 7 * 10 * frame
    # Z before the local steps, the new Z after them, and the penalty as one number.
    assert trace.bytes_down[-1] == 7 * 10 * (2 * frame + width)


def test_uploads_are_the_local_frames(problem):
    trace = run(problem, fp.FedPG(COMPONENTS), 3)
    last = trace.transcript.exchanges[-1]
    np.testing.assert_array_equal(last.uploads["frame"], trace.frames[-1][last.participants])
    printed = run(problem, fp.FedPG(COMPONENTS, average="printed"), 3)
    assert set(printed.transcript.exchanges[-1].uploads) == {"shifted"}


def test_secure_aggregation_changes_nothing_but_the_view(problem):
    plain = run(problem, fp.FedPG(COMPONENTS), 20)
    summed = run(problem, fp.FedPG(COMPONENTS), 20, channel=fp.Channel(secure_aggregation=True))
    np.testing.assert_allclose(summed.estimate, plain.estimate, atol=1e-12)
    with pytest.raises(fp.InvalidInput, match="secure aggregation"):
        run(
            problem,
            fp.FedPG(COMPONENTS, average="memory"),
            2,
            channel=fp.Channel(secure_aggregation=True),
        )


def test_a_reset_begins_with_zero_duals_and_changes_nothing_before(problem):
    plain = run(problem, fp.FedPG(COMPONENTS), 60)
    reset = run(problem, fp.FedPG(COMPONENTS, dual_reset=41), 60)
    np.testing.assert_array_equal(plain.estimates[:41], reset.estimates[:41])
    assert not np.array_equal(plain.estimates[41], reset.estimates[41])
    duals, exchange = reset.state("dual"), reset.transcript.exchanges[40]
    present, penalty = exchange.participants, float(exchange.downlink["penalty"])
    expected = penalty * (reset.frames[41][present] - exchange.feedback["frame"])
    assert np.abs(duals[40][present]).max() > 1
    np.testing.assert_allclose(duals[41][present], expected, atol=1e-12)


# ---------------------------------------------------------------------- sampling and refusals
def test_taking_turns_reaches_everybody_within_two_passes():
    setting = Setting(
        features=3,
        clients=23,
        samples=np.ones(23, np.int64),
        weights=np.full(23, 1 / 23),
        participation=0.2,
    )
    size = setting.participants_per_round
    rounds = [setting.in_turn(index, Streams(0)) for index in range(1, 41)]
    assert all(len(set(drawn)) == size for drawn in rounds)
    passes = -(-23 // size)
    for begin in range(0, 40 - passes + 1, passes):
        assert set(np.concatenate(rounds[begin : begin + passes])) == set(range(23))
    assert any((a != b).any() for a, b in zip(rounds[:passes], rounds[passes:], strict=False))


@pytest.mark.parametrize(
    "settings,words",
    [
        ({"penalty_factor": 0.0}, "penalty factor must be positive, not 0.0"),
        ({"step_factor": 1.5}, r"step factor must lie in \(0, 1\], not 1.5"),
        ({"local_steps": 0}, "local steps must be at least 1, not 0"),
        ({"average": "median"}, "server's average is .* not 'median'"),
        ({"projection": "none"}, "projection is 'stiefel' or 'printed', not 'none'"),
    ],
)
def test_refusals_name_value_and_remedy(settings, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.FedPG(2, **settings)


def test_progress_refuses_other_runs(problem):
    with pytest.raises(fp.InvalidInput, match="belongs to FedPE and FedPG, not to SSI"):
        progress.frame(fp.simulate(problem, fp.SSI(3), rounds=2), problem)
    trace = run(problem, fp.FedPG(3), 2, channel=fp.Channel(record="estimates"))
    with pytest.raises(fp.InvalidInput, match="record in full"):
        progress.frame(trace, problem)
