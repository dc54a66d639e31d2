"""Linear, symmetric and ridge attacks: exactness, order, paths, formats, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks import scaled_identity, scores
from fedpca_core.attacks.linear import CUTOFFS, completion, read, shrunk, smallest
from fedpca_core.errors import InvalidInput
from tests.attacks.runs import faps, followed, problem, relative, transcript, truth


@pytest.fixture(scope="module")
def ssi():
    return transcript(problem(), fp.SSI(5), 20)


@pytest.mark.parametrize("seed", range(3))
def test_linear_is_exact_on_ssi_and_worse_than_zero_on_faps(seed):
    client, of = 1, problem(seed=seed)
    private = truth(of, client)
    plain = transcript(of, fp.SSI(5), 20, seed)
    masked = transcript(of, faps(5, 5), 20, seed)
    assert relative(attacks.linear(plain, client), private) < 1e-8
    assert relative(attacks.linear(masked, client), private) > 1


def test_linear_is_the_pseudo_inverse_and_explains_every_answer(ssi):
    pairs = ssi.pairs(0)[:6]
    probes = np.concatenate([probe for probe, _ in pairs], axis=1)
    answers = np.concatenate([answer for _, answer in pairs], axis=1)
    estimate = attacks.linear(ssi.until(6))
    np.testing.assert_allclose(estimate, answers @ np.linalg.pinv(probes), atol=1e-11)
    np.testing.assert_allclose(estimate @ probes, answers, atol=1e-12)


def test_symmetric_equals_its_closed_form_and_keeps_the_trace(ssi):
    private = truth(problem())
    rounds, trace = 5, float(np.trace(private))
    probes = np.concatenate([probe for probe, _ in ssi.pairs(0)[:rounds]], axis=1)
    basis = np.linalg.qr(probes)[0]
    content = attacks.linear(ssi.until(rounds)) @ basis
    expected = content @ basis.T + basis @ content.T - basis @ basis.T @ content @ basis.T
    expected += (trace - np.trace(expected)) / (50 - 25) * (np.eye(50) - basis @ basis.T)
    estimate = attacks.symmetric(ssi.until(rounds), trace=trace)
    np.testing.assert_allclose(estimate, expected, atol=1e-10)
    assert np.trace(estimate) == pytest.approx(trace)


def test_structure_helps_at_every_round(ssi):
    private = truth(problem())
    linear = scores.relative_errors(followed(smallest().after_each(ssi, 0)).estimates, private)
    path = followed(completion(trace=float(np.trace(private))).after_each(ssi, 0))
    symmetric = scores.relative_errors(path.estimates, private)
    assert (symmetric[1:10] < 0.9 * linear[1:10]).all()
    assert symmetric[-1] < linear[-1]


@pytest.mark.parametrize(
    ("attack", "reading"),
    [
        (attacks.linear, smallest()),
        (attacks.symmetric, completion()),
        (attacks.ridge, shrunk(20)),
    ],
)
def test_paths_equal_the_single_calls(attack, reading):
    run = transcript(problem(20, 60), fp.SSI(3), 14, participation=0.6)
    path = followed(reading.after_each(run, 2))
    assert path.estimates.shape == (15, 20, 20)
    for rounds in (3, 4, 7, 14):
        if len(run.until(rounds).seen(2)):
            single = attack(run.until(rounds), 2)
            np.testing.assert_allclose(path.estimates[rounds], single, atol=1e-12)
    assert (np.diff(path.ranks) >= 0).all()
    assert path.ranks[0] == 0 and path.ranks[-1] == 20


def test_the_rank_says_how_many_directions_are_known(ssi):
    assert followed(smallest().after_each(ssi, 0)).ranks.tolist() == [
        min(5 * k, 50) for k in range(21)
    ]


def test_long_runs_are_compressed_without_losing_what_was_seen():
    run = transcript(problem(12, 60), fp.SSI(2), 60)
    private = truth(problem(12, 60))
    errors = scores.relative_errors(followed(completion().after_each(run, 0)).estimates, private)
    assert errors[5] > 1e-2
    assert errors[-1] < 1e-12


def test_only_rounds_with_one_product_count_for_local_power():
    run = transcript(problem(20, 80), fp.LocalPower(4), 30)
    path = followed(smallest().after_each(run, 0))
    private = truth(problem(20, 80))
    assert relative(path.estimates[3], private) > 0.5  # no single product yet
    assert path.ranks[3] == 12 and path.ranks[4] == 4
    assert relative(path.estimates[-1], private) < 1e-4


def test_float32_messages_stop_exactness_and_the_server_sees_the_format():
    private, trace = truth(problem()), float(np.trace(truth(problem())))
    run = transcript(problem(), fp.SSI(5), 20, channel=fp.Channel(dtype="float32"))
    assert read(run, 0).single_precision
    assert not read(transcript(problem(), fp.SSI(5), 2), 0).single_precision
    assert 1e-3 < relative(attacks.linear(run), private) < 0.15
    assert 1e-4 < relative(attacks.symmetric(run, trace=trace), private) < 0.03
    assert 1e-4 < relative(attacks.ridge(run, trace=trace), private) < 0.03


def test_directions_below_the_rounding_of_the_messages_are_left_out(monkeypatch):
    # A steep spectrum settles long before its 150 directions are probed.
    of = fp.problems.decay_spectrum(150, [300] * 3, decay=1.05, seed=0)
    run = transcript(of, fp.SSI(5), 40)
    assert relative(attacks.linear(run), truth(of)) < 0.05
    assert followed(smallest().after_each(run, 0)).ranks[-1] < 150
    monkeypatch.setitem(CUTOFFS, "float64", 1e-18)
    assert relative(attacks.linear(run), truth(of)) > 1


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_ridge_survives_noise_where_least_squares_explodes(noise):
    private = truth(problem())
    trace = float(np.trace(private))
    run = transcript(problem(), fp.SSI(5), 20, channel=fp.Channel(upload_noise=noise))
    guess = relative(scaled_identity(50, trace), private)
    ridge = relative(attacks.ridge(run, trace=trace), private)
    assert relative(attacks.linear(run), private) > 1
    assert relative(attacks.symmetric(run, trace=trace), private) > 1
    assert ridge < 0.8 * guess
    strengths = np.logspace(-6, 3, 40)
    best = min(relative(attacks.ridge(run, trace=trace, strength=s), private) for s in strengths)
    assert ridge < 1.1 * best  # the likelihood finds the strength without the truth


def test_ridge_solves_its_own_optimality_condition(ssi):
    prior, strength = scaled_identity(50, 5.0), 0.37
    estimate = attacks.ridge(ssi.until(7), prior=prior, strength=strength)
    pairs = ssi.pairs(0)[:7]
    probes = np.concatenate([probe for probe, _ in pairs], axis=1)
    answers = np.concatenate([answer for _, answer in pairs], axis=1)
    slope = (estimate @ probes - answers) @ probes.T
    np.testing.assert_allclose(slope + slope.T + 2 * strength * (estimate - prior), 0, atol=1e-11)


def test_the_stated_trace_is_kept_by_ridge_and_helps():
    of = fp.problems.decay_spectrum(60, [300] * 3, decay=1.08, seed=0)
    private = truth(of)
    run = transcript(of, fp.SSI(3), 8, channel=fp.Channel(upload_noise=1e-4))
    trace = float(np.trace(private))
    prior = scaled_identity(60, trace)
    with_trace = attacks.ridge(run, trace=trace)
    assert np.trace(with_trace) == pytest.approx(trace)
    assert relative(with_trace, private) < 0.8 * relative(attacks.ridge(run, prior=prior), private)
    with pytest.raises(InvalidInput, match="prior must be a finite matrix of 60 x 60"):
        attacks.ridge(run, prior=np.eye(3))


def test_before_any_message_the_answer_is_the_prior(ssi):
    prior = np.diag(np.arange(50.0))
    np.testing.assert_array_equal(attacks.ridge(ssi.until(0), prior=prior), prior)
    for attack in (attacks.linear, attacks.symmetric):
        np.testing.assert_array_equal(attack(ssi.until(0)), 0.0)


@pytest.mark.parametrize("attack", [attacks.linear, attacks.symmetric, attacks.ridge])
def test_attacks_say_which_messages_they_lack(attack, ssi):
    hidden = transcript(problem(), fp.SSI(5), 2, channel=fp.Channel(secure_aggregation=True))
    with pytest.raises(InvalidInput, match="uploads of client 0 itself"):
        attack(hidden)
    unrecorded = transcript(problem(), fp.SSI(5), 2, channel=fp.Channel(record="estimates"))
    with pytest.raises(InvalidInput, match="round 1 were not recorded"):
        attack(unrecorded)
    with pytest.raises(InvalidInput, match="There is no client 7 among 5; choose one from 0 to 4"):
        attack(ssi, client=7)
    rare = transcript(problem(), fp.SSI(5), 1, participation=0.2)
    absent = next(k for k in range(5) if k not in rare.exchanges[0].participants)
    with pytest.raises(InvalidInput, match=f"Client {absent} took part in none of the 1 rounds"):
        attack(rare, client=absent)


def test_ridge_refuses_nonsense(ssi):
    with pytest.raises(InvalidInput, match="strength of the ridge must be at least 0, not -1"):
        attacks.ridge(ssi, strength=-1)
    with pytest.raises(InvalidInput, match="stated trace must be a positive number, not -2"):
        attacks.ridge(ssi, trace=-2)
