"""Every guard of a certificate refuses something that would pass without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedpca_core import attacks
from fedpca_core.attacks.lattice import certificate as judged
from fedpca_core.attacks.lattice import polish
from fedpca_core.attacks.lattice.certificate import Certificate, certify
from fedpca_core.attacks.lattice.directions import Attempt
from fedpca_core.attacks.lattice.records import _question
from fedpca_core.attacks.low_rank import Factor

Patch = pytest.MonkeyPatch


def factor(rows: np.ndarray, error: float) -> Factor:
    """Of rotated records (features, m), whose entries are known to ``error`` grid units."""
    count = rows.shape[1]
    return Factor(rows / np.sqrt(count), count, error / np.sqrt(count))


def certified(rows: np.ndarray, turn: np.ndarray, error: float) -> Certificate:
    """What the certificate says of directions that somebody suggests."""
    question = _question(factor(rows, error), np.ones(len(rows)))
    chosen = np.arange(0, dtype=np.int64)
    return certify(question, Attempt(len(turn), turn, None, chosen, ""))[0]


def turned(seed: int, size: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def whole(seed: int, features: int = 40, count: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 12, (features, count)).astype(float)


def killed(patch: Patch, mutate: Callable[[], None], refuses: Callable[[], bool]) -> None:
    """The guard refuses, and without it the same passes."""
    assert refuses()
    mutate()
    assert not refuses(), "another guard refuses this too, so it says nothing about this one"
    patch.undo()


def test_records_must_give_the_matrix_back(monkeypatch: Patch) -> None:
    """A matrix that is no longer that of the records, though all entries are near the grid."""
    rows = whole(1) @ turned(1, 5) + np.random.default_rng(2).normal(0.0, 1e-4, (40, 5))

    def refuses() -> bool:
        found = certified(rows, turned(1, 5), 1e-9)
        assert found.valid or "do not give the matrix back" in found.note
        return not found.valid

    def mutate() -> None:
        monkeypatch.setattr(judged, "farthest", lambda rows, _: np.full(len(rows), np.inf))

    killed(monkeypatch, mutate, refuses)
    assert certified(rows, turned(1, 5), 1e-4).valid  # its error being known


def test_entries_must_lie_near_the_grid(monkeypatch: Patch) -> None:
    """Noise of a tenth of a step makes some entries ambiguous."""
    noise = np.random.default_rng(4).normal(0.0, 0.1, (400, 5))
    rows = whole(3, 400) @ turned(3, 5) + noise

    def refuses() -> bool:
        found = certified(rows, turned(3, 5), 0.1)
        assert found.valid or "beyond the" in found.note
        return not found.valid

    def mutate() -> None:
        monkeypatch.setattr(judged, "TOLERANCE", 0.45)
        monkeypatch.setattr(judged, "is_exact", lambda *_: True)

    killed(monkeypatch, mutate, refuses)


def test_few_entries_are_no_evidence(monkeypatch: Patch) -> None:
    """Three features of two real records: some rotation comes near the grid by chance."""
    rows = np.random.default_rng(0).normal(0.0, 30.0, (3, 2))
    angles = np.linspace(0.0, np.pi / 2, 500)
    every = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for a in angles]
    nearest = min(every, key=lambda turn: np.abs(rows @ turn.T - np.rint(rows @ turn.T)).max())
    error = float(np.abs(rows @ nearest.T - np.rint(rows @ nearest.T)).max())
    assert error < polish.TOLERANCE

    monkeypatch.setattr(judged, "is_exact", lambda *_: True)

    def refuses() -> bool:
        found = certified(rows, nearest, error / polish.FARTHEST)
        assert found.valid or "with a chance of up to" in found.note
        return not found.valid

    killed(monkeypatch, lambda: monkeypatch.setattr(judged, "_CHANCE", -1.0), refuses)


def test_a_matrix_that_is_not_known_exactly_needs_a_proof(monkeypatch: Patch) -> None:
    """Entries hang together, so that no chance says how many nearly right records there are."""
    rows = whole(8, 200) @ turned(8, 5) + np.random.default_rng(9).normal(0.0, 0.02, (200, 5))

    def refuses() -> bool:
        found = certified(rows, turned(8, 5), 0.02)
        assert found.valid or "leaves room" in found.note
        return not found.valid

    def mutate() -> None:
        monkeypatch.setattr(judged, "is_exact", lambda *_: True)

    killed(monkeypatch, mutate, refuses)


def test_room_beside_the_records_is_no_certificate(monkeypatch: Patch) -> None:
    """One long row: the error of the others turns it by more than a step of the grid."""
    records = whole(5)
    records[0] = np.rint(1e4 * np.random.default_rng(5).uniform(0.5, 1.0, 5))
    rows = records @ turned(5, 5) + np.random.default_rng(6).normal(0.0, 1e-5, (40, 5))
    bounds = np.tile([0.0, 1e4], (40, 1))

    def refuses() -> bool:
        found = attacks.records(factor(rows, 1e-5), bounds=bounds)
        assert found.certificate is not None
        assert found.certified or "leaves room" in found.certificate.note
        return not found.certified

    def mutate() -> None:
        monkeypatch.setattr(judged, "nothing_else_fits", lambda *_: True)

    killed(monkeypatch, mutate, refuses)
    exact = attacks.records(factor(records @ turned(5, 5), 1e-11), bounds=bounds)
    assert exact.certificate is not None and exact.certificate.unique


def test_signs_are_decided_by_a_mean_or_by_bounds_or_named(monkeypatch: Patch) -> None:
    rows = whole(7) @ turned(7, 5)

    def refuses() -> bool:
        found = attacks.records(factor(rows, 1e-12)).certificate
        assert found is not None and found.valid
        return not found.unique

    killed(monkeypatch, lambda: monkeypatch.setattr(judged, "_open", lambda *_: ""), refuses)


def test_two_pairs_of_equal_records_are_not_told_from_sums_and_differences() -> None:
    """x, x, y, y and x + y, x - y, 0, 0 have one matrix: neither is certified without a mean."""
    for seed in range(5):
        x, y = whole(seed, count=2).T
        pairs = np.column_stack([x, x, y, y])
        others = np.column_stack([x + y, x - y, 0 * x, 0 * x])
        np.testing.assert_allclose(pairs @ pairs.T, others @ others.T)
        for one in (pairs, others):
            found = attacks.records(attacks.factor_of(one @ one.T / 4, 4))
            assert not found.certified and "explain as well" in found.note
        # A mean tells them apart: mu - x is no record.
        mean = np.full(40, 2.0 / 7.0)
        moment = (pairs - mean[:, None]) @ (pairs - mean[:, None]).T / 4
        found = attacks.records(attacks.factor_of(moment, 4), 1.0, mean, 7)
        assert found.certified and found.whole is not None
        assert sorted(map(tuple, found.whole.T)) == sorted(map(tuple, pairs.T))


@pytest.mark.parametrize("mean", [None, np.full(40, 2.0 / 7.0)], ids=["uncentred", "centred"])
def test_a_wrong_number_of_records_is_refused_or_named(mean: np.ndarray | None) -> None:
    centre = np.zeros(40) if mean is None else mean
    for seed in range(10):
        sent = whole(seed, count=6) - centre[:, None]
        moment = sent @ sent.T / 6
        for told in (7, 12):
            total = None if mean is None else 7
            found = attacks.records(attacks.factor_of(moment, told), 1.0, mean, total)
            if found.certified:
                assert found.certificate is not None and told == 12
                assert "2 times fewer records" in found.certificate.ambiguity
                assert not found.certificate.unique


def test_a_direction_of_any_length_is_refused_at_once() -> None:
    """Directions that a lattice suggests may be long beyond all reason."""
    rows = whole(10) @ turned(10, 5)
    moment = attacks.factor_of(rows @ rows.T / 7, 7)  # of 7 records, so that two are missing
    question = _question(moment, np.ones(40))
    long = 1e6 * turned(10, 5)
    chosen = np.arange(0, dtype=np.int64)
    found, _ = certify(question, Attempt(5, long, None, chosen, ""))
    assert not found.valid
