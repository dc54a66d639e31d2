"""FedPower with a reference whose records are public: each machine aligns, and no frame travels."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.attacks.attack import Deployment
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import orthonormalise, procrustes
from fedpca_core.privacy import account
from fedpca_core.privacy.accounting import releases_made, spent, within
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Setting, Wrapper
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.trace.opened import OpenedRun, OpenedSettings
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.trial import trial

SECURE = Channel(secure_aggregation=True)


@pytest.fixture(scope="module")
def uneven() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=12, samples=(100, 200, 400, 100), clients=4)


def ran(problem: fp.problems.Problem, method: FedPower, seed: int = 1, **more: object):
    return fp.simulate(problem, method, rounds=99, seed=seed, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", [0, 2])
@pytest.mark.parametrize("draws", [None, 2])
@pytest.mark.parametrize(
    ("period", "decay", "products"),
    [
        *((1, True, 12), (2, True, 12), (4, True, 12), (5, True, 10)),
        *((5, False, 12), (5, False, 11), (12, False, 12)),
    ],
)
def test_without_noise_it_is_the_run_whose_frames_travel(
    uneven: fp.problems.Problem,
    period: int,
    decay: bool,
    products: int,
    draws: int | None,
    reference: int,
) -> None:
    """At every gap, also where the run ends one or two products after a communication."""
    method = FedPower(3, 4, products, period, decay, draws=draws, reference=reference)
    usual, public = ran(uneven, method), ran(uneven, replace(method, public=True))
    assert len(usual.estimates) == len(public.estimates) == method.rounds + 1
    assert np.abs(usual.estimates - public.estimates).max() < 1e-12
    if period > 1 and draws is None:
        bare = ran(uneven, replace(method, alignment=False))
        assert np.abs(usual.estimates - bare.estimates).max() > 1e-6


def by_hand(problem: fp.problems.Problem, method: FedPower, seed: int) -> list[np.ndarray]:
    """The sums that Remark 1 means, from the matrices themselves and the run's own noise."""
    held = problem.client_data
    grams, streams = held.dense(), Streams(seed)
    nu = method.noise * held.samples.mean() / held.samples
    one, found, time = method.reference, [], 0
    frame = Simulation(problem, method, rounds=1, seed=seed).begin()["frame"]
    for until in method.times:
        frames, public = np.stack([frame] * len(grams)), frame
        while True:
            time += 1
            noise = streams.generator("noise", time).standard_normal(frames.shape)
            products = np.stack([s @ z for s, z in zip(grams, frames, strict=True)])
            noisy = products + nu[:, None, None] * noise
            noisy[one] = products[one]
            if time == until:
                break
            frames, public = orthonormalise(noisy), orthonormalise(grams[one] @ public)
        turned = [y @ procrustes(z, public) for y, z in zip(noisy, frames, strict=True)]
        frame = orthonormalise(np.tensordot(held.weights, np.stack(turned), axes=1))
        found.append(frame)
    return found


@pytest.mark.parametrize(("period", "reference"), [(1, 0), (2, 1), (4, 0), (4, 3)])
def test_with_noise_it_is_the_remark_by_hand(
    uneven: fp.problems.Problem, period: int, reference: int
) -> None:
    """The others' noise as ever; the public path and the public product carry none."""
    method = FedPower(
        3, 4, products=12, period=period, decay=False, noise=0.02, reference=reference, public=True
    )
    trace, expected = ran(uneven, method, seed=7), by_hand(uneven, method, seed=7)
    assert np.abs(trace.estimates[1:] - np.stack(expected)).max() < 1e-12
    noisy = ran(uneven, replace(method, public=False), seed=7)
    assert np.abs(trace.estimates - noisy.estimates).max() > 1e-4


def test_noise_that_is_turned_with_its_product_keeps_its_law(uneven: fp.problems.Problem) -> None:
    """N D is N: what an upload adds to the turned product has its size in every direction."""
    method = FedPower(3, products=400, period=2, decay=False, noise=0.5, public=True)
    added = []
    for exchange in ran(uneven, method).transcript.exchanges:
        assert exchange.uploads is not None
        added.append(exchange.uploads["product"][1:])
    spread = np.stack(added).std(axis=(0, 2, 3))
    # Of this size noise is all that is to be seen.
    assert np.allclose(spread, 0.5 * 200 / np.array([200, 400, 100]), rtol=0.05)
    columns = np.stack(added).std(axis=(0, 2))
    assert np.allclose(columns, spread[:, None], rtol=0.06)


def test_the_rotation_of_an_upload_hides_no_product_with_the_squared_matrix(
    uneven: fp.problems.Problem,
) -> None:
    """U = S W D with W D = S Z R orthonormal: then R is the inverse of U^T Z, and S^2 Z = U U^T Z.

    Longer gaps leave R open, and so would a W that is not orthonormal.
    """
    for period, told in ((2, True), (3, False)):
        method = FedPower(3, 4, products=12, period=period, decay=False, public=True)
        (one, *_) = ran(uneven, method).transcript.exchanges
        assert one.uploads is not None
        probe = one.downlink["frame"]
        for client in range(1, 4):
            upload = one.uploads["product"][client]
            power = np.linalg.matrix_power(uneven.client_data.dense()[client], period)
            turned = np.allclose(upload @ (upload.T @ probe), power @ probe, rtol=1e-10)
            assert turned == told


def test_no_frame_travels_and_bytes_are_those_of_the_products(uneven: fp.problems.Problem) -> None:
    method = FedPower(3, 4, products=12, period=4, decay=False, noise=0.01)
    usual, public = ran(uneven, method), ran(uneven, replace(method, public=True))
    assert public.bytes_up[-1] == 8 * 12 * 4 * 4 * 3 == usual.bytes_up[-1] / 2
    assert np.array_equal(public.bytes_down, usual.bytes_down)
    assert np.array_equal(public.local_products, usual.local_products)
    literal = ran(uneven, replace(method, public=True, literal=True))
    assert np.array_equal(literal.estimates, public.estimates)
    assert replace(method, public=True, literal=True).effective() == replace(method, public=True)
    for one in (*public.transcript.exchanges, *literal.transcript.exchanges):
        assert set(one.uploads or {}) == {"product"}
    last = ran(uneven, replace(method, products=13, public=True)).transcript.exchanges[-1]
    assert set(last.uploads or {}) == {"frame"}  # the output, as in the paper


def test_at_gap_one_only_the_noise_of_the_reference_is_missing(uneven: fp.problems.Problem) -> None:
    method = FedPower(3, 4, period=1)
    usual, public = ran(uneven, method), ran(uneven, replace(method, public=True))
    assert np.array_equal(usual.estimates, public.estimates)
    assert np.array_equal(usual.bytes_up, public.bytes_up)
    noisy = replace(method, noise=0.1)
    sent = [
        ran(uneven, one).transcript.exchanges[0] for one in (noisy, replace(noisy, public=True))
    ]
    first, other = (one.uploads["product"] for one in sent if one.uploads is not None)
    assert np.array_equal(first[1:], other[1:])
    clean = uneven.client_data.apply(sent[0].downlink["frame"])[0]
    assert np.array_equal(other[0], clean) and np.abs(first[0] - clean).max() > 0.01


def test_sums_are_enough_and_nobody_is_waited_for(uneven: fp.problems.Problem) -> None:
    method = FedPower(3, 4, products=11, period=4, noise=0.01)
    assert method.needs_individual_uploads and method.indispensable == (0,)
    public = replace(method, public=True)
    assert not public.needs_individual_uploads and public.indispensable == ()
    assert np.abs(ran(uneven, public, channel=SECURE).estimates
                  - ran(uneven, public).estimates).max() < 1e-12  # fmt: skip
    with pytest.raises(InvalidInput, match="secure aggregation"):
        ran(uneven, method, channel=SECURE)


def test_a_public_reference_uploads_only_when_drawn(uneven: fp.problems.Problem) -> None:
    seen = set()
    for seed in range(6):
        for exchange in ran(uneven, FedPower(3, draws=2, public=True), seed).transcript.exchanges:
            assert (exchange.weights > 0).all()
            seen.add(0 in exchange.participants)
    assert seen == {True, False}


# ------------------------------------------------------------------ privacy
def public_setting(problem: fp.problems.Problem) -> Setting:
    held = problem.client_data
    return Setting(problem.features, problem.clients, held.samples, held.weights, record_norm=1.0)


def test_epsilon_of_the_others_is_that_of_every_product(uneven: fp.problems.Problem) -> None:
    setting = public_setting(uneven)
    method = FedPower(3, 4, products=12, period=4, noise=0.1)
    public = replace(method, public=True)
    for client in (1, 2, 3):
        one = account(method, setting, delta=1e-5, client=client).stated()
        other = account(public, setting, delta=1e-5, client=client).stated()
        assert other.epsilon == one.epsilon and other.releases == one.releases == 12
        assert other.terms()["taken as public"] == (
            one.terms()["taken as public"] + ", all records of client 0"
        )
    assert within(public, setting, 1.0, 1e-5).noise == within(method, setting, 1.0, 1e-5).noise
    trace = ran(uneven, replace(public, draws=2))
    found = spent(trace, public, delta=1e-5)
    usual = spent(trace, method, delta=1e-5)
    assert np.array_equal(found[1:], usual[1:]) and found[0] == np.inf
    assert releases_made(trace).max() <= 12
    assert list(public.protected(4)) == [1, 2, 3] and list(method.protected(4)) == [0, 1, 2, 3]


def test_no_finding_is_about_public_records(uneven: fp.problems.Problem) -> None:
    public = FedPower(3, 4, products=12, period=4, noise=0.1, public=True, reference=2)
    trace = ran(uneven, public)
    deployment = Deployment(12, 4, 3, trace.rounds, uneven.client_data.samples, public)
    for about in (
        lambda client: account(public, public_setting(uneven), delta=1e-5, client=client),
        lambda client: outcome(trial(trace.transcript, deployment, client)),
    ):
        assert about(1) is not None
        with pytest.raises(InvalidInput, match=r"records of client 2 are public.*another client"):
            about(2)


def test_a_method_around_it_says_who_is_public_and_how_wide_frames_are() -> None:
    class Around(Wrapper):
        """Changes nothing."""

    around = Around(FedPower(3, columns=5, public=True, reference=1))
    assert around.width == 5
    assert around.public_clients == (1,) and list(around.protected(3)) == [0, 2]
    assert Noisy(fp.SSI(2), 0.1, 3).public_clients == ()


def test_the_public_path_is_computed_from_the_public_records_alone(
    uneven: fp.problems.Problem,
) -> None:
    """Another matrix of a private machine changes its own upload of round 1 and no other's."""
    held, method = uneven.client_data, FedPower(3, products=4, period=4, public=True, noise=0.1)
    grams = held.dense().copy()
    grams[3] = np.eye(12) / 12
    other = replace(uneven, client_data=ClientData.from_grams(grams, held.samples, held.weights))
    first, second = (ran(one, method).transcript.exchanges[0] for one in (uneven, other))
    assert first.uploads is not None and second.uploads is not None
    same = [np.array_equal(*pair) for pair in zip(first.uploads["product"],
            second.uploads["product"], strict=True)]  # fmt: skip
    assert same == [True, True, True, False]


def test_files_and_the_estimator_know_who_is_public(uneven: fp.problems.Problem) -> None:
    file = io.BytesIO()
    save_trace(ran(uneven, FedPower(3, products=12, period=4, public=True)), file)
    run = OwnData("run.npz", file.getvalue())
    with pytest.raises(InvalidInput, match="records of client 0 are public"):
        outcome(OpenedRun().run(OpenedSettings(), run))
    found = outcome(OpenedRun().run(OpenedSettings(client=1), run))
    assert found is not None and found.findings

    records = np.random.default_rng(0).standard_normal((130, 6)) * np.arange(1, 7)
    sites = np.repeat(["small", "large", "third"], [20, 60, 50])
    method = FedPower(2, products=6, period=2, public=True, reference=1)
    fitted = fp.FederatedPCA(2, method=method).fit(records, groups=sites)
    assert fitted.groups_[1] == "small"  # in the order of the alphabet
    assert set(fitted.leaks()["group"]) == {"third"}
    with pytest.raises(InvalidInput, match="records of client 1 are public"):
        fitted.leaks("small")
