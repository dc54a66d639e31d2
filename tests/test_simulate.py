"""Laws of the way of the data: client data, channel, transcript, trace and metrics."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import fedpca_core as fp
from fedpca_core.errors import InvalidInput, require_at_least, require_noise, require_positive
from fedpca_core.linalg import stiefel
from fedpca_core.linalg.threads import LARGE, one_thread, share_out, share_rows
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import run as any_run

SIZES = (30, 45, 12, 60)
FEATURES = 10
GOOD = np.arange(12.0).reshape(3, 4)


def threads() -> int:
    """Most threads a linear-algebra library may use in this process."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


def blocks(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    scale = np.linspace(2.0, 0.3, FEATURES)[:, None]
    return [scale * rng.standard_normal((FEATURES, size)) for size in SIZES]


@pytest.fixture(scope="module")
def problem() -> fp.problems.Problem:
    return fp.problems.problem.from_blocks(blocks())


# ---------------------------------------------------------------------- client data and target
def test_target_is_the_pooled_covariance_by_records(problem: fp.problems.Problem) -> None:
    pooled = np.concatenate(blocks(), axis=1)
    assert np.allclose(problem.covariance, pooled @ pooled.T / pooled.shape[1])
    left = np.linalg.svd(pooled)[0][:, :3]
    assert stiefel.largest_sine(problem.target(3), left) < 1e-10


def test_equal_weights_are_another_target() -> None:
    equal = fp.problems.problem.from_blocks(blocks(), weights="equal")
    mean = np.mean([block @ block.T / block.shape[1] for block in blocks()], axis=0)
    assert np.allclose(equal.covariance, mean)
    assert not np.allclose(equal.covariance, fp.problems.problem.from_blocks(blocks()).covariance)


def test_grams_and_factors_are_the_same_operator() -> None:
    frames = np.random.default_rng(1).standard_normal((4, FEATURES, 3))
    by_gram = ClientData.from_blocks(blocks(), keep="grams")
    by_factor = ClientData.from_blocks(blocks(), keep="factors")
    assert np.allclose(by_gram.apply(frames), by_factor.apply(frames))
    for name in ("traces", "spectral_norms", "dense", "mean"):
        assert np.allclose(getattr(by_gram, name)(), getattr(by_factor, name)()), name
    few = np.array([2, 0])
    assert np.allclose(by_gram.only(few).apply(frames[few]), by_factor.only(few).apply(frames[few]))
    values, vectors = by_gram.top_eigenvectors(3)
    other_values, other_vectors = by_factor.top_eigenvectors(3)
    assert np.allclose(values, other_values)
    assert stiefel.projector_distance(vectors, other_vectors).max() < 1e-7


def test_products_are_counted_for_those_who_compute() -> None:
    client_data = ClientData.from_blocks(blocks()).metered()
    frames = np.ones((4, FEATURES, 2))
    client_data.apply(frames, active=np.array([True, False, True, True]))
    client_data.only(np.array([1])).apply(frames[:1])
    assert client_data.products.tolist() == [1, 1, 1, 1]
    result = client_data.apply(frames, active=np.array([True, False, False, False]))
    assert client_data.products.tolist() == [2, 1, 1, 1]
    assert not result[1:].any()


# ---------------------------------------------------------------------- SSI and the channel
def test_ssi_is_centralised_subspace_iteration(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(components=3), rounds=25, seed=4)
    frame = trace.estimates[0]
    for estimate in trace.estimates[1:]:
        frame = stiefel.householder(problem.covariance @ frame)
        assert np.abs(frame - estimate).max() < 1e-12


def test_client_order_and_number_do_not_change_ssi(problem: fp.problems.Problem) -> None:
    given = blocks()
    merged = [np.concatenate([given[0], given[2]], axis=1), given[3], given[1]]
    other = fp.problems.problem.from_blocks(merged)
    first = fp.simulate(problem, fp.SSI(3), rounds=20, seed=1).estimates
    second = fp.simulate(other, fp.SSI(3), rounds=20, seed=1).estimates
    assert np.abs(first - second).max() < 1e-11


def test_bytes_are_those_of_the_arrays(problem: fp.problems.Problem) -> None:
    one = 8 * FEATURES * 3
    full = fp.simulate(problem, fp.SSI(3), rounds=5)
    assert full.bytes_up.tolist() == [4 * one * k for k in range(6)]
    assert full.bytes_down.tolist() == full.bytes_up.tolist()
    half = fp.simulate(problem, fp.SSI(3), rounds=5, participation=0.5)
    assert half.bytes_up[-1] == 2 * one * 5
    single = fp.simulate(problem, fp.SSI(3), rounds=5, channel=fp.Channel(dtype="float32"))
    assert single.bytes_up[-1] == full.bytes_up[-1] // 2


def test_float32_rounds_every_message(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(3), rounds=3, channel=fp.Channel(dtype="float32"))
    for exchange in trace.transcript.exchanges:
        assert exchange.uploads is not None
        for array in (exchange.downlink["frame"], exchange.uploads["product"]):
            assert np.array_equal(array, array.astype(np.float32))


def test_secure_aggregation_shows_sums_only(problem: fp.problems.Problem) -> None:
    plain = fp.simulate(problem, fp.SSI(3), rounds=6)
    secure = fp.simulate(problem, fp.SSI(3), rounds=6, channel=fp.Channel(secure_aggregation=True))
    assert np.allclose(plain.estimates, secure.estimates)
    exchange = secure.transcript.exchanges[2]
    assert exchange.uploads is None and exchange.sums is not None
    expected = problem.covariance @ exchange.downlink["frame"]
    assert np.allclose(exchange.sums["product"], expected)
    with pytest.raises(InvalidInput, match="secure aggregation"):
        secure.transcript.pairs(0)


def test_transcript_is_read_only_and_holds_what_crossed(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(3), rounds=4, participation=0.5, seed=2)
    for exchange in trace.transcript.exchanges:
        assert exchange.uploads is not None
        with pytest.raises(ValueError, match="read-only"):
            exchange.uploads["product"][0, 0, 0] = 1.0
        for row, client in enumerate(exchange.participants):
            gram = problem.client_data.dense()[client]
            expected = gram @ exchange.downlink["frame"]
            assert np.allclose(exchange.uploads["product"][row], expected)


@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 4)])
def test_a_transcript_knows_what_was_on_the_wire(
    problem: fp.problems.Problem, dtype: str, width: int
) -> None:
    """Counted by the channel: the arrays themselves are float64 under float32 too."""
    for record in ("full", "estimates"):
        channel = fp.Channel(dtype=dtype, record=record)
        trace = fp.simulate(
            problem, fp.FedPG(3), rounds=6, participation=0.5, seed=2, channel=channel
        )
        transcript, matrix = trace.transcript, FEATURES * 3 * width
        assert transcript.dtype == dtype
        up = [exchange.bytes_up for exchange in transcript.exchanges]
        down = [exchange.bytes_down for exchange in transcript.exchanges]
        norms = 4 * width  # ||S_i||, one number a client before the first round
        assert np.cumsum([norms, *up]).tolist() == trace.bytes_up.tolist()
        assert np.cumsum([0, *down]).tolist() == trace.bytes_down.tolist()
        for exchange in transcript.exchanges:
            assert exchange.upload_bytes == matrix
            assert exchange.bytes_up == 2 * matrix
            assert exchange.bytes_down == 2 * (2 * matrix + width)  # Z, the penalty, the new Z
        drawn = sum(1 in exchange.participants for exchange in transcript.exchanges)
        assert transcript.sent(1) == width + drawn * matrix
        assert transcript.until(1).sent(1) in (width, width + matrix)


def test_recording_policy(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(3), rounds=4, channel=fp.Channel(record="estimates"))
    with pytest.raises(InvalidInput, match="not recorded"):
        trace.transcript.pairs(0)
    limited = fp.simulate(problem, fp.SSI(3), rounds=9, channel=fp.Channel(byte_limit=5_000))
    recorded = [exchange.recorded for exchange in limited.transcript.exchanges]
    assert recorded[0] and not recorded[-1]


# ---------------------------------------------------------------------- participation, streams
def test_participation_never_shifts_other_streams(problem: fp.problems.Problem) -> None:
    noisy = fp.Channel(upload_noise=0.1)
    full = fp.simulate(problem, fp.SSI(3), rounds=1, seed=3, channel=noisy)
    half = fp.simulate(problem, fp.SSI(3), rounds=1, seed=3, participation=0.5, channel=noisy)
    assert np.array_equal(full.estimates[0], half.estimates[0])
    first = full.transcript.exchanges[0].uploads
    second = half.transcript.exchanges[0].uploads
    assert first is not None and second is not None
    present = half.transcript.exchanges[0].participants
    assert len(present) == 2
    assert np.array_equal(first["product"][present], second["product"])


def test_memory_converges_where_dropping_has_a_floor(problem: fp.problems.Problem) -> None:
    options = {"rounds": 600, "participation": 0.5, "seed": 5}
    memory = fp.simulate(problem, fp.SSI(2), absent="memory", **options)
    present = fp.simulate(problem, fp.SSI(2), absent="present", **options)
    assert fp.metrics.frame(memory, problem)["sin_theta"].iloc[-1] < 1e-10
    assert fp.metrics.frame(present, problem)["sin_theta"].iloc[-100:].median() > 1e-3


def test_stream_equals_simulate(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(3), rounds=7, seed=6)
    rounds = list(fp.stream(problem, fp.SSI(3), rounds=7, seed=6))
    assert [entry.index for entry in rounds] == list(range(8))
    assert np.array_equal(np.stack([entry.estimate for entry in rounds]), trace.estimates)


def test_a_run_stopped_early_keeps_what_it_has(problem: fp.problems.Problem) -> None:
    run = fp.Simulation(problem, fp.SSI(3), rounds=50, seed=6)
    for entry in run:
        if entry.index == 4:
            break
    full = fp.simulate(problem, fp.SSI(3), rounds=50, seed=6)
    assert np.array_equal(run.trace().estimates, full.estimates[:5])


def test_a_round_without_anybody_new_is_a_round_all_the_same() -> None:
    """Centralised, thin factors: nobody uploads in a round of clients heard before."""
    rng = np.random.default_rng(0)
    thin = [rng.standard_normal((40, 3 + index % 3)) for index in range(40)]
    problem = fp.problems.problem.from_blocks(thin)
    assert problem.client_data.factors
    nobody = problem.client_data.only(np.array([], dtype=np.int64))
    assert nobody.dense().shape == (0, 40, 40)
    assert nobody.top_eigenvectors(2)[1].shape == (0, 40, 2)
    trace = fp.simulate(problem, fp.Centralized(4), rounds=60, participation=0.5, seed=4)
    senders = [len(exchange.participants) for exchange in trace.transcript.exchanges]
    assert sum(senders) == 40 and 0 in senders
    assert stiefel.largest_sine(trace.estimate, problem.target(4)) < 1e-10


# ---------------------------------------------------------------------- threads and memory
@dataclass(frozen=True)
class Watching(fp.SSI):
    """SSI that notes how many BLAS threads its clients may use."""

    seen: list[int] = field(default_factory=list)

    def client(self, data, clients, plan, streams):
        self.seen.append(threads())
        return super().client(data, clients, plan, streams)


def test_small_runs_use_one_thread_and_leave_the_setting_alone(
    problem: fp.problems.Problem,
) -> None:
    algorithm = Watching(3)
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != 2:
            pytest.skip("this linear-algebra library does not take a second thread")
        fp.simulate(problem, algorithm, rounds=2)
        assert threads() == 2
        for _ in fp.stream(problem, algorithm, rounds=2):
            assert threads() == 2  # a reader between the rounds keeps its own setting
        with pytest.raises(InvalidInput):
            fp.simulate(problem, fp.SSI(12), rounds=2)
        assert threads() == 2
        assert algorithm.seen == [1] * 4
        with one_thread(5000):
            assert threads() == 2


def test_overlapping_runs_restore_the_setting_of_the_first() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        first, second = one_thread(10), one_thread(10)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == 1
        second.__exit__(None, None, None)
        assert threads() == before


def test_states_too_large_to_keep_are_left_out_with_a_sentence(
    problem: fp.problems.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = fp.simulate(problem, fp.FedPG(3), rounds=3)
    assert kept.state("dual").shape == (4, 4, FEATURES, 3)
    with pytest.raises(InvalidInput, match="no client state called “penalty”; it has dual, frame"):
        kept.state("penalty")
    monkeypatch.setattr(any_run, "STATE_BYTES", 4 * 4 * FEATURES * 3 * 8 - 1)
    trace = fp.simulate(problem, fp.FedPG(3), rounds=3)
    assert trace.frames is None and np.array_equal(trace.estimates, kept.estimates)
    assert fp.metrics.frame(trace, problem)["consensus_gap"].isna().all()
    with pytest.raises(InvalidInput, match="a simulation keeps at most 256 MB of them"):
        fp.progress.frame(trace, problem)


# ---------------------------------------------------------------------- metrics
def test_metrics_do_not_depend_on_the_basis(problem: fp.problems.Problem) -> None:
    estimates = fp.simulate(problem, fp.SSI(3), rounds=5, seed=7).estimates
    rotation = stiefel.uniform_frame(np.random.default_rng(8), 3, 3)
    plain = fp.metrics.subspace_errors(estimates, problem)
    for change in (rotation, np.diag([1.0, -1.0, 1.0]), np.eye(3)[:, [2, 0, 1]]):
        changed = fp.metrics.subspace_errors(estimates @ change, problem)
        for name, values in plain.items():
            assert np.allclose(values, changed[name], atol=1e-13), name


def test_metrics_against_dense_formulas(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, fp.SSI(3), rounds=5, seed=9)
    table = fp.metrics.frame(trace, problem)
    s, z = problem.covariance, trace.estimates[2]
    projector = z @ z.T
    assert table["kkt"][2] == pytest.approx(
        np.linalg.norm((np.eye(FEATURES) - projector) @ s @ z) / np.trace(s)
    )
    found = np.sqrt(np.sort(np.linalg.eigvalsh(z.T @ s @ z))[::-1])
    best = np.sqrt(problem.eigenvalues[:3])
    assert table["relative_error"][2] == pytest.approx(
        np.linalg.norm(found - best) / np.linalg.norm(best)
    )
    target = problem.target(3) @ problem.target(3).T
    assert table["sin_theta"][2] == pytest.approx(np.linalg.norm(projector - target, 2))
    assert table["objective"][2] == pytest.approx(np.trace(z.T @ s @ z) / np.trace(s))
    assert list(table.columns) == list(fp.metrics.COLUMNS)
    assert table["local_products"].tolist() == [4 * k for k in range(6)]


def test_exact_answer_has_no_error(problem: fp.problems.Problem) -> None:
    errors = fp.metrics.subspace_errors(problem.target(3)[None], problem)
    assert errors["sin_theta"][0] < 1e-12
    assert errors["relative_error"][0] < 1e-12
    assert errors["kkt"][0] < 1e-12


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.problems.problem.from_blocks([]), "number of clients is 0"),
        (lambda: fp.problems.problem.from_blocks([GOOD]), "number of clients is 1"),
        (lambda: fp.problems.problem.from_blocks([np.ones((3, 0)), GOOD]), "Client 0 is empty"),
        (lambda: fp.problems.problem.from_blocks([GOOD, GOOD.T]), "4 features"),
        (lambda: fp.problems.problem.from_blocks([GOOD * np.nan, GOOD]), "12 missing"),
        (lambda: fp.problems.problem.from_blocks([GOOD, 0 * GOOD]), "client 1 is constant"),
        (lambda: fp.problems.problem.from_blocks([np.zeros((3, 1))] * 2), "All values are zero"),
        (lambda: fp.problems.problem.from_blocks([np.ones(3), GOOD]), "numeric matrix"),
        (
            lambda: fp.problems.problem.from_blocks([GOOD, 1e-310 * GOOD]),
            "client 1 is 1.1e-309.* vanish",
        ),
        (
            lambda: fp.problems.problem.from_blocks([GOOD, 1e80 * GOOD]),
            "client 1 is 1.1e.81.* overflow",
        ),
        (lambda: fp.problems.problem.from_blocks([GOOD, GOOD], weights="size"), "'size'"),
        (lambda: fp.SSI(2.5), "“components” .* whole number, not 2.5"),
        (lambda: fp.SSI("3"), "“components” .* whole number, not '3'"),
        (lambda: fp.FAPS(3, inner_steps=5.0), "“inner steps” .* whole number, not 5.0"),
        (lambda: fp.BlockKrylov(3, blocks=3.5), "“blocks” .* whole number, not 3.5"),
        (lambda: fp.FedPG(3, local_steps=float("nan")), "“local steps” .* not nan"),
        (lambda: fp.FedPower(3, columns=4.5), "“columns” .* whole number, not 4.5"),
        (lambda: fp.PersonalizedPCA(True), "“components” .* whole number, not True"),
        (
            lambda: fp.problems.problem.from_blocks([GOOD, GOOD]).target(1.5),
            "whole number, not 1.5",
        ),
        (lambda: fp.problems.problem.from_blocks([GOOD, GOOD], weights=[1, 0]), "positive weight"),
        (lambda: fp.Channel(dtype="float16"), "float16"),
        (lambda: fp.Channel(upload_noise=-1.0), "-1.0"),
        (lambda: fp.Channel(record="some"), "'some'"),
    ],
)
def test_refusals_name_the_value(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounds": 0}, "at least 1 round, not 0"),
        ({"rounds": 2.5}, "number of rounds .* whole number, not 2.5"),
        ({"rounds": 5, "participation": 0.0}, r"\(0, 1\], not 0"),
        ({"rounds": 5, "absent": "forget"}, "'forget'"),
        ({"rounds": 5, "seed": -3}, "-3"),
    ],
)
def test_run_refusals(problem: fp.problems.Problem, options, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fp.simulate(problem, fp.SSI(3), **options)


def test_more_components_than_features_is_refused(problem: fp.problems.Problem) -> None:
    with pytest.raises(InvalidInput, match="12 components do not fit 10 features"):
        fp.simulate(problem, fp.SSI(12), rounds=5)


def test_large_work_is_shared_out_and_small_work_is_not() -> None:
    names: dict[int, str] = {}
    seen: set[int] = set()

    def work(index: int) -> None:
        names[index] = threading.current_thread().name
        seen.add(threads())

    here = threading.current_thread().name
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != 2:
            pytest.skip("this linear-algebra library does not take a second thread")
        share_out(work, 5, LARGE - 1)
        assert names == dict.fromkeys(range(5), here)
        names.clear()
        seen.clear()
        with one_thread():  # a round of many clients
            share_out(work, 5, LARGE)
        assert sorted(names) == list(range(5))
        assert here not in names.values()
        assert seen == {1}
        with pytest.raises(ZeroDivisionError):
            share_out(lambda index: 1 // (index - 3), 5, LARGE)
        assert threads() == 2
    with threadpool_limits(limits=1, user_api="blas"):
        names.clear()
        share_out(work, 5, LARGE)  # who asks for one thread gets one
        assert names == dict.fromkeys(range(5), here)


def test_rows_are_shared_out_in_slices_that_cover_them() -> None:
    taken: list[slice] = []
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != 2:
            pytest.skip("this linear-algebra library does not take a second thread")
        share_rows(taken.append, 5, LARGE // 5 + 1)
        assert sorted((rows.start, rows.stop) for rows in taken) == [(0, 2), (2, 5)]
        taken.clear()
        share_rows(taken.append, 5, 10)
        assert taken == [slice(0, 5)]


def test_products_in_threads_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((600, count)) for count in (300, 280, 310)]
    frames = rng.standard_normal((3, 600, 25))
    data = ClientData.from_blocks(blocks, keep="factors")
    results = []
    for limit in (1, 2):
        with threadpool_limits(limits=limit, user_api="blas"):
            results.append(data.apply(frames))
    assert np.allclose(results[0], results[1], rtol=0, atol=1e-11)
    assert np.allclose(results[0], data.dense() @ frames, rtol=0, atol=1e-9)
    assert np.allclose(
        data.spectral_norms(), np.linalg.norm(data.dense(), 2, axis=(1, 2)), rtol=1e-13
    )


@pytest.mark.parametrize("columns", [1, 7, 150])
@pytest.mark.parametrize("in_parts", [True, False])
def test_large_products_are_the_same_in_parts_and_as_a_whole(
    columns: int, in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 7 columns a part has 227 of 629 rows, with 1 all of them, with 150 too few to pay."""
    monkeypatch.setattr("fedpca_core.problems.client_data.copies_nothing", lambda: in_parts)
    rng = np.random.default_rng(0)
    grams = np.stack([half @ half.T for half in rng.standard_normal((2, 629, 40))])
    data = ClientData.from_grams(grams, np.array([5, 5]))
    for frames in (rng.standard_normal((629, columns)), rng.standard_normal((2, columns, 629)).mT):
        assert np.allclose(data.apply(frames), grams @ frames, rtol=0, atol=1e-10)


def test_a_large_matrix_of_zeros_has_norm_zero() -> None:
    data = ClientData.from_grams(np.stack([np.zeros((250, 250)), np.eye(250)]), np.array([5, 5]))
    assert np.array_equal(data.spectral_norms(), [0.0, 1.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1, -(10**400)])
def test_numbers_outside_their_limits_are_refused_and_no_whole_number_is_too_long(value):
    """A file may hold a whole number that no float can."""
    checks = (
        lambda one: require_at_least("It", one, 1),
        lambda one: require_positive("It", one, 1),
        require_noise,
    )
    for check in checks:
        check(1)
        check(10**400)
        with pytest.raises(InvalidInput, match="not"):
            check(value)
