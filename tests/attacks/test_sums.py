"""Secure aggregation: what sums say of one client, and what collusion adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.errors import InvalidInput
from tests.attacks.runs import faps, followed, problem, relative, transcript, truth

SECURE = fp.Channel(secure_aggregation=True)
SMALL = problem(20, 60, clients=4)


@pytest.mark.parametrize("seed", range(3))
def test_no_attack_on_sums_beats_the_pooled_mean(seed):
    of = problem(seed=seed)
    private = truth(of)
    run = transcript(of, fp.SSI(5), 20, seed, channel=SECURE)
    best = relative(of.client_data.mean(), private)
    path = followed(attacks.pooled_rounds(run))
    errors = [relative(estimate, private) for estimate in path.estimates]
    assert min(errors) > 0.95 * best
    assert errors[-1] == pytest.approx(best, rel=1e-6)  # and it does reach the pooled mean


def test_the_pooled_path_equals_the_single_calls():
    run = transcript(SMALL, fp.SSI(3), 12, channel=SECURE, participation=0.5)
    path = followed(attacks.pooled_rounds(run, 1))
    for rounds in (5, 12):
        single = attacks.pooled(run.until(rounds), 1)
        np.testing.assert_allclose(path.estimates[rounds], single, atol=1e-12)


def test_equations_kept_short_have_the_solution_of_all_of_them():
    """Least norm over all clients, against a pseudo-inverse of everything that was ever sent."""
    of = problem(6, 30, clients=3)
    run = transcript(of, fp.SSI(2), 30, channel=SECURE, participation=0.6, absent="present")
    weights, columns, answers = run.weights, [], []
    for exchange in run.exchanges:
        parts = exchange.sum_weights / np.sqrt(weights)
        columns.append(np.concatenate([part * exchange.downlink["frame"] for part in parts]))
        answers.append(exchange.sums["product"])
    whole = np.hstack(answers) @ np.linalg.pinv(np.hstack(columns), rcond=1e-13)
    for client in range(3):
        own = whole[:, 6 * client : 6 * client + 6] / np.sqrt(weights[client])
        assert relative(attacks.pooled(run, client), 0.5 * (own + own.T)) < 1e-7


@pytest.mark.parametrize("absent", ["memory", "present"])
def test_changing_participants_undo_secure_aggregation(absent):
    run = transcript(SMALL, fp.SSI(3), 60, channel=SECURE, participation=0.5, absent=absent)
    for client in range(4):
        assert relative(attacks.pooled(run, client), truth(SMALL, client)) < 1e-8


def test_unequal_weights_still_give_the_weighted_mean():
    of = fp.problems.decay_spectrum(20, [40, 80, 160], condition=10.0, seed=1)
    run = transcript(of, fp.SSI(4), 20, channel=SECURE)
    assert relative(attacks.pooled(run, 2), of.covariance) < 1e-8


def test_sums_of_faps_are_not_sums_of_products():
    run = transcript(SMALL, faps(3, 5), 30, channel=SECURE)
    assert relative(attacks.pooled(run), SMALL.covariance) > 0.5


def test_colluders_leave_the_sum_over_the_others():
    full = transcript(SMALL, fp.SSI(3), 20)
    run = transcript(SMALL, fp.SSI(3), 20, channel=SECURE)
    weights, dense = SMALL.client_data.weights, SMALL.client_data.dense()
    left = attacks.collude(run, full, (1, 2))
    rest = (weights[0] * dense[0] + weights[3] * dense[3]) / (weights[0] + weights[3])
    assert relative(attacks.pooled(left), rest) < 1e-8
    with pytest.raises(InvalidInput, match="uploads of client 0 itself"):
        attacks.linear(left)


def test_when_all_others_collude_the_victim_stands_alone():
    full = transcript(SMALL, fp.SSI(3), 20)
    run = transcript(SMALL, fp.SSI(3), 20, channel=SECURE)
    left = attacks.collude(run, full, (1, 2, 3))
    assert not left.secure_aggregation
    assert relative(attacks.linear(left), truth(SMALL)) < 1e-8


def test_a_replay_follows_collusion():
    of, algorithm = problem(10, 40), faps(2, 3)
    full = transcript(of, algorithm, 10)
    run = transcript(of, algorithm, 10, channel=SECURE)
    left = attacks.collude(run, full, range(1, 5))
    found = attacks.replay(attacks.Replaying(left, algorithm, trace=float(np.trace(truth(of)))))
    assert found.succeeded and relative(found.estimate, truth(of)) < 1e-8


def test_sums_and_collusion_refuse_what_they_cannot_use():
    full = transcript(SMALL, fp.SSI(3), 4)
    run = transcript(SMALL, fp.SSI(3), 4, channel=SECURE)
    with pytest.raises(InvalidInput, match="the server received every client's own upload"):
        attacks.pooled(full)
    with pytest.raises(InvalidInput, match="server received every client's own upload already"):
        attacks.collude(full, full, [])
    with pytest.raises(InvalidInput, match="There is no client 9"):
        attacks.pooled(run, 9)
    unrecorded = fp.Channel(secure_aggregation=True, record="estimates")
    with pytest.raises(InvalidInput, match="round 1 were not recorded"):
        attacks.pooled(transcript(SMALL, fp.SSI(3), 2, channel=unrecorded))
    with pytest.raises(InvalidInput, match="All 4 clients collude"):
        attacks.collude(run, full, range(4))
    with pytest.raises(InvalidInput, match="counts once"):
        attacks.collude(run, full, [1, 1])
    silent = replace(full, exchanges=full.exchanges[:1])
    with pytest.raises(InvalidInput, match="Client 1 took part in round 2 but tells nothing"):
        attacks.collude(run, silent, [1])
    with pytest.raises(InvalidInput, match="are not all among the 4 clients"):
        attacks.collude(run, full, [8])
