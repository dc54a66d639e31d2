"""FAPS: its formulas against dense ones, a plain loop, its rules and its stationary points."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.faps import inner as faps_inner
from fedpca_core.algorithms.faps import rules as faps_rules
from fedpca_core.algorithms.faps.inner import low_rank_part
from fedpca_core.algorithms.faps.rules import largest_stable_steps
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import householder, projector_distance, random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams
from tests.algorithms.small_problems import (
    COMPONENTS,
    FEATURES,
    client_spectra,
    identical,
    mixed,
    stability_numbers,
)


def parts(seed: int = 0) -> tuple[fp.problems.Problem, Array, Array, Array]:
    """A problem, local frames X_i away from consensus, a received Z, and penalties."""
    rng = np.random.default_rng(seed)
    problem = mixed()
    frames = np.stack([random_frame(rng, FEATURES, COMPONENTS) for _ in range(problem.clients)])
    return problem, frames, random_frame(rng, FEATURES, COMPONENTS), rng.uniform(0.1, 0.5, 4)


def dense_operators(matrix: Array, frame: Array, received: Array, penalty: float) -> list[Array]:
    """Lambda_i, H_i and Q_i as features x features matrices, straight from the paper."""
    projector = frame @ frame.T
    weight = -(np.eye(len(frame)) - projector) @ matrix @ frame
    multiplier = frame @ weight.T + weight @ frame.T
    image = matrix + multiplier + penalty * received @ received.T
    return [multiplier, image, penalty * projector - multiplier]


def test_multiplier_is_symmetric_and_of_low_rank() -> None:
    problem, frames, received, penalty = parts()
    for matrix, frame, beta in zip(problem.client_data.dense(), frames, penalty, strict=True):
        multiplier = dense_operators(matrix, frame, received, beta)[0]
        assert np.allclose(multiplier, multiplier.T, atol=1e-15)
        assert np.linalg.matrix_rank(multiplier, tol=1e-12) <= 2 * COMPONENTS


def test_the_gradient_is_the_penalty_part_alone() -> None:
    problem, frames, received, penalty = parts()
    for matrix, frame, beta in zip(problem.client_data.dense(), frames, penalty, strict=True):
        image = dense_operators(matrix, frame, received, beta)[1]
        outside = np.eye(FEATURES) - frame @ frame.T
        expected = beta * outside @ received @ received.T @ frame
        assert np.allclose(outside @ image @ frame, expected, atol=1e-14)


def one_round(inner_steps: int, seed: int = 0) -> tuple[Array, Array, list[Array]]:
    """One client step from a prepared state: new frames, uploads, the dense operators used."""
    problem, frames, received, penalty = parts(seed)
    client_data = problem.client_data.metered()
    algorithm = fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=inner_steps)
    run = fp.Simulation(problem, algorithm, rounds=5)
    _, state = algorithm.start(client_data, run.setting, run.streams)
    products = client_data.apply(frames)
    state = {
        **state,
        "frame": frames,
        "product": products,
        "multiplier": faps_inner.multiplier(frames, products),
        "penalty": penalty,
        "rounds": np.ones(problem.clients),
    }
    plan = algorithm.plan({"frame": received}, 2, run.setting, run.streams)
    uplink, after = algorithm.client(client_data, state, plan, run.streams)
    operators = [
        dense_operators(matrix, frame, received, beta)
        for matrix, frame, beta in zip(problem.client_data.dense(), frames, penalty, strict=True)
    ]
    answers = [
        dense_operators(matrix, frame, received, beta)[2] @ received
        for matrix, frame, beta in zip(
            problem.client_data.dense(), after["frame"], penalty, strict=True
        )
    ]
    assert np.allclose(uplink["product"], np.stack(answers), atol=1e-13)
    assert np.allclose(after["product"], problem.client_data.dense() @ after["frame"], atol=1e-13)
    expected = []
    for frame, (_, image, _) in zip(frames, operators, strict=True):
        for _ in range(inner_steps):
            frame = householder(image @ frame)
        expected.append(frame)
    return after["frame"], np.stack(expected), answers


@pytest.mark.parametrize("inner_steps", [1, 2, 3, 4, 5, 8])
def test_inner_steps_and_upload_equal_the_dense_formulas(inner_steps: int) -> None:
    frames, expected, _ = one_round(inner_steps)
    assert np.abs(frames - expected).max() < 1e-10
    gram = np.swapaxes(frames, 1, 2) @ frames
    assert np.abs(gram - np.eye(COMPONENTS)).max() < 5e-15


def plain_loop(
    problem: fp.problems.Problem, factor: float, steps: int, rounds: int, seed: int
) -> list[Array]:
    """FAPS, client by client and with dense matrices: the oracle."""
    client_data = problem.client_data
    start = random_frame(Streams(seed).generator("start"), problem.features, COMPONENTS)
    received = start
    norms = [float(np.linalg.norm(matrix, 2)) for matrix in client_data.dense()]
    frames = [start] * client_data.clients
    penalties = [factor * norm for norm in norms]
    gaps = [0.0] * client_data.clients
    estimates = [start]
    for round_ in range(1, rounds + 1):
        total = np.zeros_like(start)
        for client, matrix in enumerate(client_data.dense()):
            frame, beta = frames[client], penalties[client]
            if round_ > 1:
                image = dense_operators(matrix, frame, received, beta)[1]
                for _ in range(steps):
                    frame = householder(image @ frame)
            frames[client] = frame
            answer = dense_operators(matrix, frame, received, beta)[2]
            total += client_data.weights[client] * answer @ received
            if round_ % 5 == 0:
                gap = float(np.linalg.norm(frame @ frame.T - received @ received.T))
                if round_ >= 10 and gaps[client] <= 1.01 * gap and gap >= 1e-9:
                    penalties[client] = min(1.1 * beta, 2 * norms[client])
                gaps[client] = gap
        received = householder(total)
        estimates.append(received)
    return estimates


def test_a_run_equals_the_plain_loop_including_the_penalty_rule() -> None:
    # So many steps at so small a penalty that the clients leave the consensus and beta is raised.
    problem = fp.problems.decay_spectrum(12, (60, 30, 90), 1.05, heterogeneity=0.6, seed=2)
    algorithm = fp.FAPS(COMPONENTS, 0.05, inner_rule="fixed", inner_steps=3)
    trace = fp.simulate(problem, algorithm, rounds=40, seed=4)
    raised = trace.state("penalty")
    assert (raised[-1] > 1.05 * raised[0]).any()
    oracle = plain_loop(problem, 0.05, 3, 40, seed=4)
    gaps = projector_distance(trace.estimates, np.stack(oracle))
    assert gaps.max() < 1e-8


def test_round_one_moves_nobody_and_costs_one_product() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=5), rounds=3)
    assert trace.frames is not None
    assert np.array_equal(trace.frames[1], trace.frames[0])
    assert np.diff(trace.local_products).tolist() == [4, 20, 20]


def test_the_first_message_hides_nothing_outside_the_first_basis() -> None:
    problem = mixed()
    trace = fp.simulate(
        problem, fp.FAPS(COMPONENTS), rounds=2, channel=fp.Channel(record="full"), seed=7
    )
    for k, exact in ((0, True), (1, False)):
        exchange = trace.transcript.exchanges[k]
        assert exchange.uploads is not None
        frame = exchange.downlink["frame"]
        outside = np.eye(FEATURES) - frame @ frame.T
        products = problem.client_data.dense() @ frame
        assert np.allclose(outside @ exchange.uploads["product"], outside @ products) == exact


def test_the_top_space_is_stationary_whatever_the_rule() -> None:
    problem = mixed()
    for rule in faps_rules.INNER_RULES:
        trace = fp.simulate(problem, fp.FAPS(COMPONENTS, inner_rule=rule), rounds=300)
        table = fp.metrics.frame(trace, problem)
        assert table.sin_theta.iloc[-1] < 1e-9, rule
        assert table.consensus_gap.iloc[-1] < 1e-18, rule
    # And conversely: a client step from the solution stays there.
    client_data, target = problem.client_data.metered(), problem.target(COMPONENTS)
    algorithm = fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=4)
    run = fp.Simulation(problem, algorithm, rounds=5)
    _, state = algorithm.start(client_data, run.setting, run.streams)
    for round_ in (1, 2, 3):
        plan = algorithm.plan({"frame": target}, round_, run.setting, run.streams)
        uplink, state = algorithm.client(client_data, state, plan, run.streams)
        total = np.tensordot(client_data.weights, uplink["product"], axes=1)
        assert projector_distance(householder(total), target) < 1e-12
    assert projector_distance(state["frame"], target).max() < 1e-12


def test_auto_rule_follows_the_stability_number_and_its_products_are_metered() -> None:
    problem = mixed()
    algorithm = fp.FAPS(COMPONENTS, inner_limit=8)
    run = fp.Simulation(problem, algorithm, rounds=80)
    client_data = problem.client_data.metered()
    server, state = algorithm.start(client_data, run.setting, run.streams)
    counted = np.zeros(problem.clients)
    for round_ in range(1, 81):
        plan = algorithm.plan(server, round_, run.setting, run.streams)
        rule = algorithm.rule(client_data, ClientState(**state), plan, run.streams)
        before = client_data.products.copy()
        uplink, state = algorithm.client(client_data, state, plan, run.streams)
        counted += client_data.products - before
        spent = client_data.products - before - (round_ == 1)
        extra = spent - rule.budget
        assert set(extra.tolist()) <= {0, 1}
        assert extra.any() == (round_ > 1 and (round_ - 1) % COMPONENTS == 0)
        total = np.tensordot(client_data.weights, uplink["product"], axes=1)
        server = {"frame": householder(total)}
    outside, inside = client_spectra(client_data, server["frame"])
    assert np.allclose(state["outside"], outside, rtol=0.05)  # the power iteration has settled
    exact = largest_stable_steps(outside, inside, state["penalty"], 8)
    assert np.abs(exact - rule.budget).max() <= 1
    for client, steps in enumerate(exact):
        numbers = stability_numbers(outside, inside, state["penalty"], int(steps))
        assert numbers[client] <= 1


def test_change_rule_spends_one_step_near_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """And there it does not make the multipliers' part of H, which only a second step needs."""
    made = []
    part = lambda *which: made.append(which) or low_rank_part(*which)  # noqa: E731
    monkeypatch.setattr("fedpca_core.algorithms.faps.inner.low_rank_part", part)
    problem = identical(1.1)
    trace = fp.simulate(problem, fp.FAPS(3, inner_rule="change"), rounds=60)
    per_round = np.diff(trace.local_products) / problem.clients
    assert per_round[1] > 1
    assert (per_round[-10:] == 1).all()
    assert len(made) == (per_round[1:] > 1).sum()


def test_conditions_hold_when_the_rule_stops_early() -> None:
    problem = mixed()
    algorithm = fp.FAPS(COMPONENTS, inner_rule="conditions", inner_limit=200)
    trace = fp.simulate(problem, algorithm, rounds=30)
    assert trace.frames is not None
    factor = 0.5 * faps_rules.residual_bound(2.0, problem.client_data.weights)
    path = trace.state("penalty")
    for round_ in range(2, 31):
        received = trace.estimates[round_ - 1]
        for client, matrix in enumerate(problem.client_data.dense()):
            before, after = trace.frames[round_ - 1][client], trace.frames[round_][client]
            image = dense_operators(matrix, before, received, path[round_ - 1][client])[1]
            first = np.linalg.norm(image @ before - before @ (before.T @ image @ before))
            last = np.linalg.norm(image @ after - after @ (after.T @ image @ after))
            assert last <= factor * first * (1 + 1e-6) + 1e-14


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        ({"inner_tolerance": 0.1}, {"inner_tolerance": 1e-4}),
        ({"inner_residual": 1.0}, {"inner_residual": 0.01}),
        ({"inner_decrease": 0.25}, {"inner_decrease": 2.0}),
        ({"inner_decrease": 2.0, "inner_curvature": 20.0}, {"inner_decrease": 2.0}),
    ],
)
def test_a_stricter_constant_asks_more_of_an_inner_solve(loose: dict, strict: dict) -> None:
    rule = "change" if "inner_tolerance" in loose else "conditions"
    # At a small penalty, where one iteration does not settle everything.
    usual = {"inner_rule": rule, "penalty_factor": 0.5}
    spent = [
        fp.simulate(mixed(), fp.FAPS(COMPONENTS, **usual, **one), rounds=20).local_products[-1]
        for one in (loose, strict)
    ]
    assert spent[0] < spent[1]


def test_the_curvature_of_the_conditions_is_that_of_the_client() -> None:
    """At factor 5 the ceiling of beta_i is 5 ||S_i||: the bound is 2 ||S_i|| + beta_i = 7."""
    frame, across = np.eye(4)[None, :, :1], np.eye(4)[None, :, 1:2]
    rule = faps_rules.InnerRule(np.array([9]), "conditions", 0.5)
    state = ClientState.at_start(frame, norms=np.ones(1), penalty=np.full(1, 5.0))
    for fallen, holds in ((0.12, False), (0.15, True)):  # a quarter of 2^2 asks for 1/7
        now = frame, 2.0 * fallen * frame
        assert faps_rules.conditions_hold(rule, state, (frame, 2.0 * across), now) == [holds]
    start = fp.Simulation(mixed(), fp.FAPS(COMPONENTS, 5.0), rounds=1)
    _, clients = start.algorithm.start(start.client_data, start.setting, start.streams)
    assert np.allclose(clients["norm"], np.linalg.norm(mixed().client_data.dense(), 2, (1, 2)))
    assert np.allclose(clients["ceiling"], 5 * clients["norm"])


def test_h_is_the_operator_of_the_paper() -> None:
    problem, frames, received, penalty = parts()
    dense = problem.client_data.dense()
    state = ClientState.at_start(frames, problem.client_data.spectral_norms(), penalty)
    state.product = dense @ frames
    state.multiplier = faps_inner.multiplier(frames, state.product)
    others = np.random.default_rng(5).standard_normal(frames.shape)
    tall, wide = low_rank_part(state, received)
    found = dense @ others + tall @ (wide @ others)
    for client, matrix in enumerate(dense):
        h = dense_operators(matrix, frames[client], received, penalty[client])[1]
        assert np.allclose(found[client], h @ others[client], atol=1e-13)


@pytest.mark.parametrize("scale", [1e18, 1e55, 1e-55])
def test_the_unit_of_the_data_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(2)
    blocks = [np.linspace(2, 1, 8)[:, None] * rng.standard_normal((8, 40)) for _ in range(4)]
    for rule in faps_rules.INNER_RULES:
        ends = [
            fp.simulate(
                fp.problems.problem.from_blocks(unit), fp.FAPS(2, inner_rule=rule), rounds=60
            )
            for unit in (blocks, [scale * block for block in blocks])
        ]
        assert projector_distance(ends[0].estimate, ends[1].estimate) < 1e-7


def test_penalty_rule_waits_caps_and_settles() -> None:
    frame = np.eye(6)[:, :2]
    turned = householder(frame + 0.1 * np.ones((6, 2)) * [[1.0, 2.0]])
    frames, nothing = np.stack([turned, frame, turned]), np.zeros(3)
    state = ClientState(
        frame=frames,
        product=np.zeros_like(frames),
        multiplier=np.zeros_like(frames),
        penalty=np.array([1.0, 1.0, 1.95]),
        ceiling=np.full(3, 2.0),
        norm=np.ones(3),
        gap=nothing,
        rounds=np.full(3, 5.0),
        direction=np.zeros((3, 6, 1)),
        outside=nothing,
        steps=np.zeros(1),
        pulled=np.zeros((3, 0, 2)),
    )
    faps_rules.adapt(state, frame)
    assert state.penalty.tolist() == [1.0, 1.0, 1.95]  # round 5 has nothing to compare with
    state.rounds = np.full(3, 9.0)
    faps_rules.adapt(state, frame)
    assert state.penalty.tolist() == [1.0, 1.0, 1.95]
    state.rounds = np.full(3, 10.0)
    faps_rules.adapt(state, frame)
    # No progress raises beta, up to the ceiling; a gap of zero leaves it.
    assert state.penalty.tolist() == [1.1, 1.0, 2.0]
    state.gap = 2 * state.gap
    state.rounds = np.full(3, 15.0)
    faps_rules.adapt(state, frame)
    assert state.penalty.tolist() == [1.1, 1.0, 2.0]  # the gap halved: progress


def test_private_switches_change_only_what_they_name() -> None:
    problem = mixed()
    base = fp.simulate(problem, fp.FAPS(COMPONENTS, inner_rule="fixed"), rounds=4, seed=6)
    hidden = fp.simulate(
        problem, fp.FAPS(COMPONENTS, inner_rule="fixed", private_start=True), rounds=4, seed=6
    )
    assert np.array_equal(base.estimates[0], hidden.estimates[0])
    assert base.frames is not None and hidden.frames is not None
    assert projector_distance(hidden.frames[0], hidden.estimates[0]).min() > 0.1
    assert np.diff(hidden.local_products).tolist() == [24, 20, 20, 20]  # round 1 steps as well
    secret = fp.simulate(problem, fp.FAPS(COMPONENTS, private_penalty=True), rounds=1, seed=1)
    factor = secret.state("penalty")[0] / problem.client_data.spectral_norms()
    assert ((factor >= 0.075) & (factor <= 0.3)).all() and np.ptp(factor) > 0.01
    drawn = fp.simulate(problem, fp.FAPS(COMPONENTS, random_inner_steps=True), rounds=60, seed=6)
    per_round = np.diff(drawn.local_products)[1:] / problem.clients
    assert 1 <= per_round.min() < per_round.max() <= 5
    every = fp.FAPS(COMPONENTS, private_start=True, private_penalty=True, random_inner_steps=True)
    table = fp.metrics.frame(fp.simulate(problem, every, rounds=400), problem)
    assert table.sin_theta.iloc[-1] < 1e-6


def test_a_late_joiner_starts_from_the_current_frame() -> None:
    problem = mixed()
    algorithm = fp.FAPS(COMPONENTS, inner_rule="fixed")
    trace = fp.simulate(problem, algorithm, rounds=12, participation=0.5, seed=2)
    assert trace.frames is not None
    seen: set[int] = set()
    for round_, exchange in enumerate(trace.transcript.exchanges, start=1):
        for client in map(int, exchange.participants):
            if client not in seen:
                assert np.array_equal(trace.frames[round_][client], trace.estimates[round_ - 1])
                seen.add(client)
        absent = np.setdiff1d(np.arange(problem.clients), exchange.participants)
        assert np.array_equal(trace.frames[round_][absent], trace.frames[round_ - 1][absent])
    assert seen == {0, 1, 2, 3}


def test_a_client_whose_data_are_zero_is_harmless() -> None:
    rest = fp.problems.decay_spectrum(8, (400, 500, 600), 1.2, seed=3).client_data
    matrices = np.concatenate([rest.dense(), np.zeros((1, 8, 8))])
    client_data = ClientData.from_grams(matrices, np.array([400, 500, 600, 50]))
    problem = fp.problems.Problem(name="one client without data", client_data=client_data)
    for rule in faps_rules.INNER_RULES:
        trace = fp.simulate(problem, fp.FAPS(2, inner_rule=rule), rounds=150)
        assert fp.metrics.frame(trace, problem).sin_theta.iloc[-1] < 1e-6
        assert not trace.transcript.pairs(3)[-1][1].any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"penalty_factor": 0.0}, "penalty factor must be positive, not 0.0"),
        ({"inner_rule": "magic"}, "'auto', 'fixed', 'change' or 'conditions', not 'magic'"),
        ({"inner_steps": 0}, "inner steps must be at least 1, not 0"),
        ({"inner_tolerance": -1.0}, "inner tolerance must be positive, not -1.0"),
        ({"penalty_spread": 0.5}, "penalty spread must be at least 1, not 0.5"),
        ({"inner_decrease": 0.0}, "inner decrease must be positive, not 0.0"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(options: dict, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        fp.simulate(mixed(), fp.FAPS(COMPONENTS, **options), rounds=1)


def augmented_lagrangian(trace: Trace, problem: fp.problems.Problem) -> Array:
    """Value after every round with Z the estimate of that round, from p x p products."""
    assert trace.frames is not None
    values = []
    for frames, estimate, penalty in zip(
        trace.frames, trace.estimates, trace.state("penalty"), strict=True
    ):
        products = problem.client_data.dense() @ frames
        weight = faps_inner.multiplier(frames, products)
        # <Lambda, X X^T> vanishes because W_i is orthogonal to X_i.
        along, across = frames.mT @ estimate, weight.mT @ estimate
        local = -0.5 * (frames * products).sum(axis=(1, 2)) + (along * across).sum(axis=(1, 2))
        gap = projector_distance(frames, estimate)
        values.append(problem.client_data.weights @ (local + 0.25 * penalty * gap**2))
    return np.array(values)


def test_lagrangian_falls_to_minus_half_the_leading_eigenvalues() -> None:
    problem = mixed()
    # At half the norm the penalty is large enough for the value to fall in every round.
    algorithm = fp.FAPS(COMPONENTS, 0.5, inner_rule="fixed")
    trace = fp.simulate(problem, algorithm, rounds=200)
    values = augmented_lagrangian(trace, problem)
    assert len(values) == 201
    assert np.diff(values).max() < 1e-14
    expected = -0.5 * problem.eigenvalues[:COMPONENTS].sum()
    assert values[-1] == pytest.approx(expected, abs=1e-10)
    # At the start X_i = Z, so only the objective is left.
    start = trace.estimates[0]
    assert values[0] == pytest.approx(-0.5 * np.trace(start.T @ problem.covariance @ start))
    # Once from the definition, with features x features matrices.
    row, total = 7, 0.0
    assert trace.frames is not None
    estimate = trace.estimates[row]
    path = trace.state("penalty")[row]
    for client, matrix in enumerate(problem.client_data.dense()):
        frame = trace.frames[row][client]
        multiplier = dense_operators(matrix, frame, estimate, path[client])[0]
        gap = frame @ frame.T - estimate @ estimate.T
        total += problem.client_data.weights[client] * (
            -0.5 * np.trace(frame.T @ matrix @ frame)
            - 0.5 * np.sum(multiplier * gap)
            + 0.25 * path[client] * np.sum(gap**2)
        )
    assert values[row] == pytest.approx(total, abs=1e-12)
