"""The exhibit: shift-and-invert helps alike clients, and fails unlike ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedpca_core.consensus.shift_invert import clients_matrices, exhibit
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.theory import figures

SIZES: dict[str, Any] = {"clients": 10, "features": 20, "samples": 20_000, "gap": 0.05, "seed": 0}


def test_alike_clients_are_helped_and_lanczos_still_wins() -> None:
    found = exhibit(clients_matrices(heterogeneity=0.0, **SIZES), rounds=600)
    assert found.convex and found.excess < 1.05
    rounds = {name: course.rounds[-1] for name, course in found.courses.items()}
    for course in found.courses.values():
        assert not course.diverged and course.sines[-1] <= 1e-10
        assert (np.diff(course.rounds) >= 1).all()
    assert rounds["Shift-and-invert with Scaffnew"] < rounds["Power method"]
    assert rounds["Shift-and-invert with ADMM"] < rounds["Power method"]
    assert rounds["Lanczos"] * 4 < min(v for k, v in rounds.items() if k != "Lanczos")
    assert "is convex here" in figures.bridge_sentence(found)


def test_unlike_clients_break_the_assumption_and_the_method() -> None:
    found = exhibit(clients_matrices(heterogeneity=1.0, **SIZES), rounds=600)
    assert not found.convex and found.excess > 1.3
    assert found.courses["Shift-and-invert with ADMM"].diverged
    sentence = figures.bridge_sentence(found)
    assert "no factor above applies" in sentence and "Diverged" in sentence
    assert found.courses["Lanczos"].sines[-1] <= 1e-10


def test_the_power_method_shrinks_by_its_ratio() -> None:
    matrices = clients_matrices(heterogeneity=0.0, **SIZES)
    values = np.linalg.eigvalsh(matrices.mean(axis=0))
    course = exhibit(matrices, rounds=600).courses["Power method"]
    ratio = course.sines[-1] / course.sines[-2]
    assert ratio == pytest.approx((values[-2] / values[-1]) ** 2, rel=1e-3)


def test_a_plane_is_too_small() -> None:
    with pytest.raises(InvalidInput, match="at least 3 features"):
        clients_matrices(**{**SIZES, "features": 2}, heterogeneity=0.0)
