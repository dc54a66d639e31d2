"""Uploads of personalised PCA are not private: frames, second moments and single records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedpca_core.algorithms import SSI, PersonalizedPCA
from fedpca_core.attacks import personal as attack
from fedpca_core.attacks import recover_samples
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import projector_distance, symmetric_part
from fedpca_core.problems import personal
from fedpca_core.problems.personal_model import centre_gradient
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate

ROUNDS = 12


def _setup(samples: int, start: str = "common", channel: Channel | None = None, **sizes: int):
    shape: dict[str, Any] = {"features": 12, "components": 3, "clients": 6, **sizes}
    problem = personal(samples=samples, spread=0.2, **shape)
    algorithm = PersonalizedPCA(
        components=shape["components"], spread=0.2, start_from=start
    ).prepared(problem.client_data)
    return problem, algorithm, simulate(problem, algorithm, rounds=ROUNDS, channel=channel)


@pytest.fixture(scope="module")
def single():
    """One record a client, a common start."""
    return _setup(1)


@pytest.fixture(scope="module")
def several():
    return _setup(8)


def _miss(found: np.ndarray, true: np.ndarray) -> float:
    return float(projector_distance(found, true)) / np.sqrt(2 * true.shape[1])


def test_the_message_has_the_stated_form() -> None:
    generator = np.random.default_rng(0)
    centre, frame = (np.linalg.qr(generator.standard_normal((9, 3)))[0] for _ in range(2))
    product = centre.T @ frame
    aligned, skew = symmetric_part(product), 0.5 * (product - product.T)
    outside = frame - centre @ product
    expected = centre @ (skew @ aligned + aligned @ skew) / 2 + outside @ aligned
    np.testing.assert_allclose(-0.04 * centre_gradient(frame, centre, 0.04), expected, atol=1e-15)


def test_one_upload_after_a_common_start_gives_the_frame_away(several) -> None:
    _, algorithm, trace = several
    for client in range(6):
        *_, found = attack.track(trace.transcript.until(1), algorithm, client)
        assert found.exact
        assert _miss(found.frame, trace.estimates[1, client]) < 1e-12
        # The frame itself, not only its span.
        np.testing.assert_allclose(found.frame, trace.estimates[1, client], atol=1e-12)


def test_at_the_papers_size_too() -> None:
    _, algorithm, trace = _setup(10, features=30, components=10)
    for client in range(6):
        *_, found = attack.track(trace.transcript.until(1), algorithm, client)
        assert _miss(found.frame, trace.estimates[1, client]) < 1e-12


def test_tracking_and_second_moments(several) -> None:
    problem, algorithm, trace = several
    right = 0
    for client in range(6):
        tracked = list(attack.track(trace.transcript, algorithm, client))
        assert [item.round for item in tracked] == list(range(ROUNDS + 1))
        np.testing.assert_array_equal(tracked[0].frame, trace.estimates[0, client])
        on_branch = all(
            _miss(item.frame, trace.estimates[item.round, client]) < 1e-9 for item in tracked
        )
        found = attack.second_moment(trace.transcript, algorithm, client)
        true = problem.client_data.dense()[client]
        error = np.linalg.norm(found.matrix - true) / np.linalg.norm(true)
        # The attacker can tell: equations of a wrong branch belong to no S_i.
        assert (found.misfit < 1e-9) == on_branch
        if on_branch:
            assert error < 1e-8
            right += 1
    assert right >= 4


def test_a_single_record_is_recovered_up_to_its_sign(single) -> None:
    problem, algorithm, trace = single
    assert problem.blocks is not None
    for client in range(6):
        moment = attack.second_moment(trace.transcript, algorithm, client).matrix
        found, true = recover_samples(moment, 1)[:, 0], problem.blocks[client][:, 0]
        error = min(np.linalg.norm(found - true), np.linalg.norm(found + true))
        assert error < 1e-9 * np.linalg.norm(true)
        np.testing.assert_allclose(moment, np.outer(true, true), atol=1e-9 * (true @ true))


def test_with_more_records_than_features_the_multiple_of_the_identity_is_a_guess() -> None:
    problem, algorithm, trace = _setup(40)
    found = attack.second_moment(trace.transcript, algorithm, 1)
    true = problem.client_data.dense()[1]
    gap = found.matrix - true
    if found.misfit < 1e-9:
        np.testing.assert_allclose(gap, gap[0, 0] * np.eye(12), atol=1e-7)
    assert np.trace(found.matrix) == pytest.approx(3 + 12 * 0.5)


def test_float32_messages_protect_little(several) -> None:
    _, _, exact = several
    _, algorithm, rounded = _setup(8, channel=Channel(dtype="float32"))
    for client in range(6):
        *_, found = attack.track(rounded.transcript.until(1), algorithm, client)
        assert _miss(found.frame, exact.estimates[1, client]) < 1e-4


def test_independent_starts_hide_the_first_message() -> None:
    _, algorithm, trace = _setup(8, start="independent")
    misses = [
        _miss(
            list(attack.track(trace.transcript.until(1), algorithm, c))[-1].frame,
            trace.estimates[1, c],
        )
        for c in range(6)
    ]
    assert min(misses) > 0.05


def test_secure_aggregation_hides_the_messages() -> None:
    _, algorithm, trace = _setup(8, channel=Channel(secure_aggregation=True))
    with pytest.raises(InvalidInput, match="secure aggregation"):
        list(attack.track(trace.transcript, algorithm))


def test_what_does_not_fit_is_refused(several) -> None:
    problem, algorithm, trace = several
    with pytest.raises(InvalidInput, match="There is no client 6"):
        list(attack.track(trace.transcript, algorithm, 6))
    with pytest.raises(InvalidInput, match="not in the public configuration"):
        attack.second_moment(trace.transcript, PersonalizedPCA(components=3, start_from="common"))
    other = simulate(problem, SSI(components=3), rounds=2)
    with pytest.raises(InvalidInput, match="attack made for this method"):
        list(attack.track(other.transcript, algorithm))
