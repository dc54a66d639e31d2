"""Clients check what they are asked: the guarantee holds against a dishonest server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.checked_probes import checked_probe, new_part
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import Guarantee
from fedpca_core.linalg.stiefel import largest_sine, orthonormalise
from fedpca_core.privacy import account, noisy


@pytest.fixture(scope="module")
def problem() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=20, samples=500, clients=4, seed=1)


@pytest.fixture(scope="module")
def uneven() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=20, samples=(50, 500, 5000), clients=3, seed=1)


def basis(columns: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((20, columns)))[0]


# ---------------------------------------------------------------------- one probe
def test_a_sound_probe_is_answered_as_it_is() -> None:
    probes = basis(6)
    answered = np.zeros((2, 20, 9))
    answered[:, :, :3] = probes[:, :3]
    assert checked_probe(probes[:, 3:], answered) is not None
    assert np.shares_memory(checked_probe(probes[:, 3:], answered), probes)


def test_rounding_of_float32_is_mended_to_float64() -> None:
    """What the client multiplies is orthonormal and orthogonal to all before, to rounding."""
    probes = basis(12).astype(np.float32).astype(np.float64)
    answered = np.zeros((1, 20, 12))
    for begin in range(0, 12, 3):
        mended = checked_probe(probes[:, begin : begin + 3], answered)
        answered[0, :, begin : begin + 3] = mended
        assert np.abs(mended - probes[:, begin : begin + 3]).max() < 1e-6
    assert np.abs(answered[0].T @ answered[0] - np.eye(12)).max() < 1e-14


@pytest.mark.parametrize("size", [1e-7, 1e-3, 1.0])
def test_an_overlap_is_refused_beyond_the_precision_of_the_message(size: float) -> None:
    probes = basis(4)
    answered = probes[None, :, :2]
    overlapping = np.linalg.qr(probes[:, 2:] + size * probes[:, :2])[0]
    with pytest.raises(InvalidInput, match="overlaps one it has answered"):
        checked_probe(overlapping, answered)
    with pytest.raises(InvalidInput, match="not orthonormal"):
        checked_probe((1 + size) * probes)


def test_tolerances_follow_the_format_of_the_message() -> None:
    rounded = (basis(3) * (1 + 3e-7)).astype(np.float32).astype(np.float64)
    mended = checked_probe(rounded)
    assert np.abs(mended.T @ mended - np.eye(3)).max() < 1e-14
    with pytest.raises(InvalidInput, match="not orthonormal"):
        checked_probe(basis(3) * (1 + 3e-7))


# ---------------------------------------------------------------------- whole runs
@pytest.mark.parametrize("method", [fp.SSI(3), fp.BlockKrylov(3), fp.DistributedPower(3)])
def test_float32_messages_work_with_checked_probes(
    problem: fp.problems.Problem, method: fp.SSI
) -> None:
    run = noisy(method, 1e-5, 5)
    ends = [
        fp.simulate(problem, run, rounds=5, channel=fp.Channel(dtype=dtype)).estimate
        for dtype in ("float64", "float32")
    ]
    assert largest_sine(*ends) < 1e-4
    fp.simulate(problem, run, rounds=5, participation=0.5, channel=fp.Channel(dtype="float32"))


def test_float32_messages_work_with_fedpower(problem: fp.problems.Problem) -> None:
    run = fp.FedPower(3, 4, noise=1e-5)
    ends = [
        fp.simulate(problem, run, rounds=9, channel=fp.Channel(dtype=dtype)).estimate
        for dtype in ("float64", "float32")
    ]
    assert np.abs(ends[0] - ends[1]).max() < 1e-4


@dataclass(frozen=True)
class Dishonest(fp.FedPower):
    """A server that magnifies what it asks, to drown the noise."""

    title: ClassVar[str] = "Dishonest"
    magnified: float = 1000.0
    widened: bool = False
    longer: int = 0

    def plan(self, server, round_, setting, streams):  # type: ignore[no-untyped-def]
        plan = super().plan(server, round_, setting, streams)
        frame = plan.downlink["frame"] * self.magnified
        if self.widened:
            frame = basis(self.width + 1)
        steps = plan.local_steps + self.longer
        return replace(plan, downlink={"frame": frame}, local_steps=steps, stop=False)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (Dishonest(3, noise=0.1), "frame not orthonormal"),
        (Dishonest(3, noise=0.1, magnified=1.0001), "frame not orthonormal"),
        (Dishonest(3, noise=0.1, magnified=1.0, widened=True), "calibrated to 3 columns"),
        (Dishonest(3, noise=0.1, magnified=1.0, longer=9), "its budget is spent"),
    ],
)
def test_a_fedpower_machine_refuses_what_its_noise_does_not_cover(
    problem: fp.problems.Problem, server: Dishonest, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        fp.simulate(problem, server, rounds=9)


@dataclass(frozen=True)
class Endless(Noisy):
    """A server that does not stop at the products the noise was calibrated to."""

    def plan(self, server, round_, setting, streams):  # type: ignore[no-untyped-def]
        return replace(super().plan(server, round_, setting, streams), stop=False)


def test_a_client_counts_its_own_answers(problem: fp.problems.Problem) -> None:
    with pytest.raises(InvalidInput, match="its budget is spent"):
        fp.simulate(problem, Endless(fp.SSI(3), 0.1, 4), rounds=5)
    assert fp.simulate(problem, Endless(fp.SSI(3), 0.1, 4), rounds=4).rounds == 4


@dataclass(frozen=True)
class Wide(fp.SSI):
    """A server that sends more columns than were agreed."""

    title: ClassVar[str] = "Wide"

    def server(self, server, inbox, plan):  # type: ignore[no-untyped-def]
        from fedpca_core.protocol.algorithm import Reply

        return Reply({"frame": basis(self.components + 1)})


def test_more_columns_than_agreed_are_refused(problem: fp.problems.Problem) -> None:
    """One column costs less than two, so its noise does not cover two."""
    with pytest.raises(InvalidInput, match="a probe of 2 columns"):
        fp.simulate(problem, Noisy(Wide(1), 0.1, 3), rounds=3)


def test_ssi_is_refused_where_the_noise_counts_on_orthogonal_probes(
    problem: fp.problems.Problem,
) -> None:
    with pytest.raises(InvalidInput, match="overlaps one it has answered"):
        fp.simulate(problem, Noisy(fp.SSI(3), 0.1, 4, orthogonal=True), rounds=4)


def test_credit_is_given_for_the_check_and_not_for_the_name(problem: fp.problems.Problem) -> None:
    setting = fp.simulate(problem, fp.BlockKrylov(3), rounds=1).setting
    with_check = account(Noisy(fp.BlockKrylov(3), 0.1, 5, orthogonal=True), setting, delta=1e-5)
    without = account(Noisy(fp.BlockKrylov(3), 0.1, 5), setting, delta=1e-5)
    assert isinstance(with_check, Guarantee) and isinstance(without, Guarantee)
    assert (with_check.composition, without.composition) == (1, 5)
    assert "orthogonal to each other and count as one" in with_check.terms()["released"]
    assert "each counted in full" in without.terms()["released"]
    assert "dishonest" in with_check.terms()["towards"]


# ---------------------------------------------------------------------- noise itself
@pytest.mark.parametrize(
    "noisy_run",
    [fp.FedPower(3, products=1, period=1, noise=0.2), Noisy(fp.SSI(3), 0.2, 1)],
    ids=["FedPower", "Noisy"],
)
def test_a_client_with_fewer_records_adds_more_noise(
    uneven: fp.problems.Problem, noisy_run: fp.FedPower | Noisy
) -> None:
    """nu_i = nu (mean m)/m_i, because one record of few moves S_i further than one of many."""
    spread = np.zeros(3)
    for seed in range(20):
        exchange = fp.simulate(uneven, noisy_run, rounds=1, seed=seed).transcript.exchanges[0]
        assert exchange.uploads is not None
        exact = uneven.client_data.dense() @ exchange.downlink["frame"]
        spread += ((exchange.uploads["product"] - exact) ** 2).mean(axis=(1, 2)) / 20
    sizes = uneven.client_data.samples
    assert np.allclose(np.sqrt(spread), 0.2 * sizes.mean() / sizes, rtol=0.1)


def test_hidden_products_carry_noise_too(problem: fp.problems.Problem) -> None:
    """The frame that enters the last product is made of a hidden product; without noise on that
    it would be the client's own iterate exactly."""
    run = fp.FedPower(3, products=2, period=2, decay=False, noise=1.0)
    overlaps = []
    for seed in range(10):
        exchange = fp.simulate(problem, run, rounds=1, seed=seed).transcript.exchanges[0]
        assert exchange.uploads is not None
        bare = orthonormalise(problem.client_data.dense() @ exchange.downlink["frame"])
        overlaps.append(np.linalg.norm(bare.swapaxes(1, 2) @ exchange.uploads["frame"]) ** 2 / 12)
    # Noise far above the signal leaves a uniform frame: 3 of 20 dimensions overlap by 0.15.
    assert np.mean(overlaps) == pytest.approx(3 / 20, abs=0.06)


def test_hidden_noise_has_the_stated_size(problem: fp.problems.Problem) -> None:
    """A hidden product is Y = A Z + N with N of standard deviation nu: to first order its frame
    turns by N / sigma, so the turn grows in proportion to nu and has the right size."""
    sizes = []
    for noise in (1e-6, 1e-5):
        run = fp.FedPower(1, products=2, period=2, decay=False, noise=noise)
        turn = []
        for seed in range(20):
            exchange = fp.simulate(problem, run, rounds=1, seed=seed).transcript.exchanges[0]
            assert exchange.uploads is not None
            product = problem.client_data.dense() @ exchange.downlink["frame"]
            bare = orthonormalise(product)
            off = exchange.uploads["frame"] - bare
            turn.append((off**2).sum(axis=(1, 2)) * (product**2).sum(axis=(1, 2)))
        sizes.append(np.sqrt(np.mean(turn) / 19) / noise)
    assert sizes == pytest.approx([1.0, 1.0], rel=0.1)


# ---------------------------------------------------------------------- answers from memory
def test_a_probe_is_taken_apart_into_known_and_new() -> None:
    probes = basis(7)
    answered = np.zeros((2, 20, 8))
    answered[:, :, :4] = probes[:, :4]
    turned = np.linalg.qr(probes[:, 2:6] @ np.random.default_rng(1).standard_normal((4, 3)))[0]
    known, new, length = new_part(turned, answered)
    assert np.allclose(answered @ known + new @ length, turned)
    assert np.abs(answered.swapaxes(1, 2) @ new).max() < 1e-14
    # Two of the four directions are old, so that one of three columns has nothing new to ask.
    assert list((new != 0).any(axis=1).sum(axis=1)) == [2, 2]
    unit = new.swapaxes(1, 2) @ new
    assert np.allclose(unit, np.diag([1.0, 1.0, 0.0]), atol=1e-14)


def test_answers_from_memory_are_those_of_one_noisy_matrix(problem: fp.problems.Problem) -> None:
    """All that a client says is S_i + G_i times what it was asked, with one G_i in the whole run:
    more equations than unknowns, and all hold."""
    run = noisy(fp.SSI(3), 0.5, 15, remembers=True)
    exchanges = fp.simulate(
        problem, run, rounds=15, participation=0.75, seed=3
    ).transcript.exchanges
    noise = []
    for client in range(4):
        asked, said = [], []
        for exchange in exchanges:
            if client in exchange.participants:
                assert exchange.uploads is not None
                asked.append(exchange.downlink["frame"])
                said.append(exchange.uploads["product"][list(exchange.participants).index(client)])
        probes, answers = np.concatenate(asked, axis=1), np.concatenate(said, axis=1)
        assert probes.shape[1] > 20
        whole = np.linalg.lstsq(probes.T, answers.T, rcond=1e-9)[0].T
        assert np.abs(whole @ probes - answers).max() < 1e-5
        left, sizes, _ = np.linalg.svd(probes)
        noise.append((whole - problem.client_data.dense()[client]) @ left[:, sizes > 0.1])
    # G_i has independent entries of the stated size.
    assert np.sqrt(np.mean(np.concatenate(noise, axis=1) ** 2)) == pytest.approx(0.5, rel=0.1)


def test_a_server_learns_nothing_by_asking_again(problem: fp.problems.Problem) -> None:
    @dataclass(frozen=True)
    class Stubborn(fp.SSI):
        title: ClassVar[str] = "Stubborn"

        def server(self, server, inbox, plan):  # type: ignore[no-untyped-def]
            from fedpca_core.protocol.algorithm import Reply

            return Reply({"frame": basis(3)})

    run = Noisy(Stubborn(3), 0.1, 5, remembers=True)
    exchanges = fp.simulate(problem, run, rounds=5).transcript.exchanges
    second, *later = [exchange.uploads["product"] for exchange in exchanges[1:] if exchange.uploads]
    assert len(later) == 3 and all(np.allclose(one, second, atol=1e-12) for one in later)


def test_answers_from_memory_cost_one_release(problem: fp.problems.Problem) -> None:
    setting = fp.simulate(problem, fp.SSI(3), rounds=1).setting
    found = account(noisy(fp.SSI(3), 0.1, 40, remembers=True), setting, delta=1e-5)
    assert isinstance(found, Guarantee) and found.composition == 1 and found.releases == 40
    assert "from memory" in found.terms()["released"]
    with pytest.raises(InvalidInput, match="Answers from memory"):
        run = noisy(fp.SSI(3), 0.1, 4, remembers=True, summed=True)
        fp.simulate(problem, run, rounds=4, channel=fp.Channel(secure_aggregation=True))
