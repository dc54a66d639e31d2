"""Slips and remarks of the deterministic theory that a few lines of arithmetic settle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fedpca_core.consensus import bounds
from fedpca_core.consensus.generators import scalar_pair
from fedpca_core.consensus.methods import State
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.steps import Part, Step

#: Condition numbers L/λ with λ = 1, and penalties, over which the largest value is taken.
CONDITIONS = (4.0, 10.0, 100.0, 1000.0)
PENALTIES = (0.0, 0.1, 1.0, 10.0, 100.0)
#: Constants of Figure 1, a small penalty and rounds at which round-off shows.
LOW, HIGH, SMALL, ROUNDS = 0.5, 5.0, 0.1, 60


def remark_9(whole: bool) -> float:
    """Largest factor of Algorithm 1 over (n-1)/n, n near the root of κ, clients all alike.

    Of the multipliers alone, or of the ``whole`` iteration.
    """
    largest = 0.0
    for kappa in CONDITIONS:
        steps = bounds.best_local_steps(1.0, kappa)
        a, b = bounds.coefficients(np.linspace(1.0, kappa, 801), bounds.scaffnew(kappa, steps))
        factor = float(np.abs([a, b] if whole else a).max())
        largest = max(largest, factor * steps / (steps - 1))
    return largest


def lemma_11() -> float:
    """Largest 8(r+L)²/(2r+L+λ)², which the proof takes to be at most 2, over 2."""
    return max(4.0 * (r + k) ** 2 / (2 * r + k + 1) ** 2 for k in CONDITIONS for r in PENALTIES)


def lemma_11_conclusion() -> float:
    """Largest |ω(Y - Kz)|/Φ over the 2 that Theorem 3 needs; Y are exact local solves.

    On two scalar clients, where the claim says something. With M the resolvent,
    ω (Y - K z) = ω E_Z - M (ω E_H + r ω E_Z), and E_H, ω E_Z lie along (1, -1) and (1, 1).
    """
    largest = 0.0
    apart, alike = np.array([1.0, -1.0]) / np.sqrt(2), np.array([1.0, 1.0]) / np.sqrt(2)
    for kappa in CONDITIONS:
        for r in PENALTIES:
            if bounds.theorem_1(1.0, kappa, r) < 1:
                resolvent = 1.0 / (np.array([1.0, kappa]) + r)
                step = bounds.dual_step_1(1.0, kappa, r)
                moved = np.stack([-step * resolvent * apart, alike - r * resolvent * alike])
                largest = max(largest, float(np.linalg.norm(moved, 2)))
    return largest / 2.0


def expanded_square() -> float:
    """The factor of Theorem 1 squared, expanded as printed, over itself at r = 0."""
    top, bottom = LOW**2 * (HIGH - LOW) ** 2, LOW**2 * (HIGH - LOW) ** 2  # bottom: L + λ is right
    return top / bottom / bounds.theorem_1(LOW, HIGH, 0.0) ** 2


def averaging(printed: bool) -> float:
    """Φ after `ROUNDS` rounds over Φ at the start: two scalar clients, exact solves."""
    problem, method = scalar_pair(LOW, HIGH), bounds.uzawa_exact(LOW, HIGH, SMALL)
    state = State(np.zeros((2, 1)), np.zeros(1), np.zeros((2, 1)))
    sizes = []
    for _ in range(ROUNDS + 1):
        off = method.dual_step * np.tile(state.average - problem.solution, (2, 1))
        sizes.append(float(np.linalg.norm([off, state.multipliers - problem.multipliers])))
        moved = method.step(problem, state, 0.0)
        if printed:
            average = moved.points.mean(axis=0) - state.multipliers.mean(axis=0) / SMALL
            change = method.dual_step * (average - moved.points)
            moved = State(moved.points, average, state.multipliers + change)
        state = moved
    return sizes[-1] / sizes[0]


FORMULAS: Mapping[str, Callable[[], float]] = {
    "Remark 9, multipliers": partial(remark_9, False),
    "Remark 9, iteration": partial(remark_9, True),
    "Lemma 11, proof": lemma_11,
    "Lemma 11, conclusion": lemma_11_conclusion,
    "Theorem 1, expanded": expanded_square,
    "average as printed": partial(averaging, True),
    "average of the clients": partial(averaging, False),
}


class Formulas(Experiment):
    """Every entry of `FORMULAS`, at once."""

    key, title, source = "dfl-formulas", "Remarks and slips, by arithmetic", "dfl"
    sizes = ("live",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        fixed = {"conditions": list(CONDITIONS), "penalties": list(PENALTIES), "rounds": ROUNDS}
        return [Cell("", name, 0, fixed) for name in FORMULAS]

    def described(self, size: Size) -> str:
        return "L/λ from 4 to 1000, penalties from 0 to 100; no size is the paper's"

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, cell.name)
        return [Number(cell.series, "value", FORMULAS[cell.series]())]
