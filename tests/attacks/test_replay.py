"""The adaptive replay attack: derivatives, exact recovery, hidden parts, budget, refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks.linear import scaled_identity
from fedpca_core.attacks.replay.client import Candidate, Entries, FapsReplay, Message
from fedpca_core.attacks.replay.least_squares import guides
from fedpca_core.attacks.replay.setup import Setup
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import random_frame
from fedpca_core.problems.problem import from_blocks
from tests.attacks.runs import faps, problem, relative, transcript, truth

SMALL = problem(10, 40)
TRACE = float(np.trace(truth(SMALL)))


def model(algorithm: Any, rounds: int, **fitted: bool) -> FapsReplay:
    run = transcript(SMALL, algorithm, rounds)
    messages = [
        Message(exchange.round, exchange.downlink["frame"], exchange.uploads["product"][row])
        for exchange, row in run.seen(0)
        if exchange.uploads is not None
    ]
    return FapsReplay(algorithm, run, 0, messages, Entries.of(10), **fitted)


CASES = {
    "fixed": (faps(2, 3), {}),
    "adaptive, long": (faps(2, 2, adaptive=True), {}),
    "auto": (faps(2, inner_rule="auto", adaptive=True), {}),
    "change": (faps(2, inner_rule="change"), {}),
    "conditions": (faps(2, inner_rule="conditions"), {}),
    "hidden start": (faps(2, 3, private_start=True), {"fit_frame": True}),
    "hidden start and penalty": (
        faps(2, 3, private_start=True, private_penalty=True),
        {"fit_frame": True, "fit_penalty": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_match_finite_differences(name):
    algorithm, fitted = CASES[name]
    rounds, length = 14 if "long" in name else 6, 1e-6
    replayed = model(algorithm, rounds, **fitted)
    rng = np.random.default_rng(3)
    bump = rng.standard_normal((10, 10)) * 0.02
    guess = Candidate(
        truth(SMALL) + bump + bump.T,
        penalty=0.11 if "fit_penalty" in fitted else None,
        frame=random_frame(rng, 10, 2) if "fit_frame" in fitted else None,
    )
    _, played = replayed.answers(guess, rounds)
    analytic = replayed.jacobian(guess, played)
    numeric = np.empty_like(analytic)
    for direction in range(replayed.size):
        step = np.zeros(replayed.size)
        step[direction] = length
        ahead, behind = replayed.move(guess, step), replayed.move(guess, -step)
        difference = replayed.answers(ahead, rounds)[0] - replayed.answers(behind, rounds)[0]
        numeric[:, direction] = difference / (2 * length)
    np.testing.assert_allclose(analytic, numeric, atol=1e-7 * np.abs(numeric).max())


def test_the_truth_reproduces_the_uploads_whatever_the_rule():
    for algorithm, fitted in CASES.values():
        if not fitted:
            replayed = model(algorithm, 20)
            answers, _ = replayed.answers(Candidate(truth(SMALL)), 20)
            np.testing.assert_allclose(answers, replayed.target(20), atol=1e-12)


def test_round_one_leaks_the_penalty_the_norm_and_a_block():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 2)
    setup = Setup(run, algorithm, 0, TRACE, seeded=True, noise=0.0)
    assert setup.leak is not None
    penalty, block = setup.leak
    private = setup.basis.T @ truth(SMALL) @ setup.basis
    norm = float(np.linalg.norm(private, 2))
    assert penalty == pytest.approx(0.15 * norm, rel=1e-12)
    np.testing.assert_allclose(block, private[2:, :2], atol=1e-13)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_nobody_needs_to_state_the_trace(scale: float) -> None:
    algorithm = faps(2, 3)
    assert SMALL.blocks is not None
    scaled = from_blocks([scale * block for block in SMALL.blocks])
    found = attacks.replay(attacks.Replaying(transcript(scaled, algorithm, 8), algorithm, starts=5))
    assert found.succeeded
    assert relative(found.estimate, truth(scaled)) < 1e-7


def test_guides_vanish_at_a_covariance_and_their_derivative_is_right():
    private, entries = truth(SMALL), Entries.of(10)
    known = partial(guides, float(np.linalg.norm(private, 2)), TRACE)
    amounts, _ = known(Candidate(private), entries, entries.count)
    np.testing.assert_allclose(amounts, 0, atol=1e-12)
    wrong = private - 0.3 * np.eye(10) + 0.03 * np.diag(np.arange(10.0))
    amounts, table = known(Candidate(wrong), entries, entries.count)
    step = 1e-7 * np.random.default_rng(0).standard_normal(entries.count)
    moved, _ = known(Candidate(entries.add(wrong, step)), entries, entries.count)
    assert len(amounts) > 2  # negative eigenvalues, the norm, the trace
    np.testing.assert_allclose(moved - amounts, table @ step, atol=1e-11)


@pytest.mark.parametrize("inner_steps", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_seeded_replay_recovers_a_client_of_faps(seed, inner_steps):
    of, algorithm = problem(10, 40, seed=seed), faps(2, inner_steps)
    run = transcript(of, algorithm, 10, seed)
    private = truth(of)
    trace = float(np.trace(private))
    found = attacks.replay(attacks.Replaying(run, algorithm, trace=trace, starts=20))
    assert found.succeeded and found.ended == "explained"
    assert relative(found.estimate, private) < 1e-9
    assert found.uncertainty < 1e-9
    np.testing.assert_array_equal(found.prior, scaled_identity(10, trace))
    assert relative(attacks.linear(run), private) > 1


def test_unseeded_replay_is_the_weaker_contrast():
    needed = {True: 0, False: 0}
    for seed in range(3):
        of, algorithm = problem(10, 40, seed=seed), faps(2, 3)
        run = transcript(of, algorithm, 10, seed)
        for seeded in needed:
            found = attacks.replay(
                attacks.Replaying(
                    run, algorithm, trace=float(np.trace(truth(of))), starts=3, seeded=seeded
                )
            )
            needed[seeded] += len(found.history)
            assert found.succeeded == (relative(found.estimate, truth(of)) < 1e-6)
    assert needed[True] < needed[False]


HIDDEN: dict[str, dict[str, bool]] = {
    "start": {"private_start": True},
    "penalty": {"private_penalty": True},
    "start and penalty": {"private_start": True, "private_penalty": True},
    "inner steps of every round": {"random_inner_steps": True},
}


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_parts_are_fitted_along(name):
    secrets = HIDDEN[name]
    algorithm = faps(2, 3, **secrets)
    run = transcript(SMALL, algorithm, 10)
    found = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE))
    assert found.succeeded
    assert relative(found.estimate, truth(SMALL)) < 1e-8
    if "inner" in name:
        assert found.inner_steps is not None
        drawn = fp.simulate(SMALL, algorithm, rounds=10).local_products
        assert len(set(found.inner_steps[1:])) > 1 and drawn[-1] > 0
    if secrets.get("private_start"):
        assert found.frame is not None
        np.testing.assert_allclose(found.frame.T @ found.frame, np.eye(2), atol=1e-12)


def test_partial_participation_and_adaptive_rules_are_replayed():
    algorithm = faps(2, inner_rule="auto", adaptive=True)
    run = transcript(SMALL, algorithm, 30, participation=0.6)
    found = attacks.replay(
        attacks.Replaying(run, algorithm, client=2, trace=float(np.trace(truth(SMALL, 2))))
    )
    assert found.succeeded and relative(found.estimate, truth(SMALL, 2)) < 1e-8


def test_float32_messages_are_explained_to_their_rounding():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 10, channel=fp.Channel(dtype="float32"))
    found = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE))
    error = relative(found.estimate, truth(SMALL))
    assert 1e-9 < found.residual < found.tolerance < 2e-6
    assert error < 1e-3 and found.succeeded


def test_noise_is_a_floor_and_the_uncertainty_says_so():
    algorithm, errors = faps(2, 3), []
    for noise in (1e-4, 1e-2):
        run = transcript(SMALL, algorithm, 10, channel=fp.Channel(upload_noise=noise))
        found = attacks.replay(
            attacks.Replaying(run, algorithm, trace=TRACE, noise=noise, starts=3)
        )
        errors.append(relative(found.estimate, truth(SMALL)))
        assert 0.3 * noise < found.residual < 1.5 * noise
        assert errors[-1] / 5 < found.uncertainty < 5 * errors[-1]
    assert errors[0] < 0.02 < errors[1]
    assert errors[1] < relative(scaled_identity(10, TRACE), truth(SMALL))


def test_too_few_rounds_are_explained_but_not_called_success():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 10)
    found = attacks.replay(attacks.Replaying(run.until(2), algorithm, trace=TRACE))
    assert found.residual < found.tolerance
    assert found.uncertainty == float("inf") and not found.succeeded
    assert relative(found.estimate, truth(SMALL)) > 0.1


def few(features: int, records: int) -> fp.Problem:
    """Five clients of so many records each."""
    rng = np.random.default_rng(1)
    return fp.problems.problem.from_blocks(
        [rng.standard_normal((features, records)) for _ in range(5)]
    )


@pytest.mark.parametrize(("records", "reach"), [(3, 7), (4, 8), (6, 14), (10, 22), (80, 40)])
def test_few_records_confine_the_replay_to_what_the_messages_span(records, reach):
    of, algorithm = few(40, records), faps(4, 3)
    run = transcript(of, algorithm, 6)
    trace = float(np.trace(truth(of)))
    setup = attacks.Replaying(run, algorithm, trace=trace)._setup
    assert setup.reach == reach
    inside = setup.basis[:, :reach]
    np.testing.assert_allclose(inside @ (inside.T @ truth(of)), truth(of), atol=1e-10)
    # There the truth answers as it did among all features.
    answers, _ = setup.model.answers(Candidate(setup.basis.T @ truth(of) @ setup.basis), 6)
    np.testing.assert_allclose(answers, setup.model.target(6), atol=1e-10)


def test_few_records_of_many_features_are_replayed():
    of, algorithm = few(200, 4), faps(4, 3)
    run = transcript(of, algorithm, 6)
    found = attacks.replay(attacks.Replaying(run, algorithm, trace=float(np.trace(truth(of)))))
    assert found.succeeded and relative(found.estimate, truth(of)) < 1e-8


def test_a_replay_in_progress_tells_what_it_has_and_may_be_left():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 10)
    attack = attacks.Replaying(run, algorithm, trace=TRACE)
    stages = iter(attack)
    first = [next(stages) for _ in range(3)]
    found = attack.result
    assert found.ended == "" and not found.succeeded and found.evaluations == 3
    assert np.isfinite(found.estimate).all() and found.residual < 1
    assert [stage.rounds for stage in first] == [2, 2, 2]
    for _ in stages:
        pass
    assert attack.result.ended == "explained" and attack.result.succeeded


def test_the_budget_counts_evaluations():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 10)
    for budget in (1, 5):
        short = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE, evaluations=budget))
        assert short.ended == "budget" and short.evaluations == len(short.history) == budget
    enough = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE))
    same = attacks.replay(
        attacks.Replaying(run, algorithm, trace=TRACE, evaluations=enough.evaluations)
    )
    np.testing.assert_array_equal(enough.estimate, same.estimate)


def test_the_same_call_gives_the_same_result():
    algorithm = faps(2, 3, private_start=True)
    run = transcript(SMALL, algorithm, 6)
    first = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE, starts=2, seed=4))
    second = attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE, starts=2, seed=4))
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_replay_refuses_what_it_cannot_use():
    algorithm = faps(2, 3)
    run = transcript(SMALL, algorithm, 4)
    secret = faps(2, 3, private_start=True)
    with pytest.raises(InvalidInput, match="state the trace of S_i"):
        attacks.replay(attacks.Replaying(transcript(SMALL, secret, 4), secret))
    nothing = from_blocks([np.zeros((10, 4)), *problem(10, 40).blocks[1:]], judged=False)
    with pytest.raises(InvalidInput, match="nothing in these messages tells its size"):
        attacks.replay(attacks.Replaying(transcript(nothing, algorithm, 4), algorithm))
    with pytest.raises(InvalidInput, match="at least 2 rounds of client 0 to compare, not 1"):
        attacks.replay(attacks.Replaying(run.until(1), algorithm, trace=TRACE))
    with pytest.raises(InvalidInput, match="number of starts must be at least 1, not 0"):
        attacks.replay(attacks.Replaying(run, algorithm, trace=TRACE, starts=0))
    with pytest.raises(InvalidInput, match="made for FAPS, and this is SSI"):
        attacks.replay(attacks.Replaying(transcript(SMALL, fp.SSI(2), 4), fp.SSI(2), trace=TRACE))
    large = transcript(problem(300, 400), algorithm, 4)
    with pytest.raises(InvalidInput, match=r"300 features needs 14\.8 GiB .* fewer features"):
        attacks.replay(attacks.Replaying(large, algorithm, trace=TRACE))
    hidden = transcript(SMALL, algorithm, 4, channel=fp.Channel(secure_aggregation=True))
    with pytest.raises(InvalidInput, match="uploads of client 0 itself"):
        attacks.replay(attacks.Replaying(hidden, algorithm, trace=TRACE))
    renamed = replace(
        run,
        exchanges=tuple(
            replace(exchange, uploads={"frame": exchange.uploads["product"]})
            for exchange in run.exchanges
            if exchange.uploads is not None
        ),
    )
    with pytest.raises(InvalidInput, match=r"“product”.*round 1 carried frame"):
        attacks.replay(attacks.Replaying(renamed, algorithm, trace=TRACE))
