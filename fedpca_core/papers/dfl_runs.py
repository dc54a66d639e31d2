"""The theory of deterministic federated learning: its statements and its figure, checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedpca_core.consensus import bounds, operators, verdicts
from fedpca_core.consensus.problems import scalar_pair
from fedpca_core.papers.experiment import Cell, Experiment, Number, Piece, Size
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Part, Step

#: Constants and penalties of Figure 1.
LOW, HIGH = 0.5, 5.0
FOLLOWED = np.concatenate([np.linspace(0.0, 1.0, 41), np.linspace(1.25, 20.0, 76)])


def _series(claim: Any) -> str:
    return f"{claim.theorem}{'' if claim.printed else ', corrected'}: {claim.setting}"


class StatementsAgainstCases(Experiment):
    """Every claimed factor against exact worst cases of an adversarial and a random family."""

    key, title, source = "dfl-statements", "Statements against exact worst cases", "dfl"
    sizes = ("live",)

    def pieces(self, size: Size) -> Iterable[Piece]:
        claims = [_series(claim) for claim in verdicts.CLAIMS]
        yield "", "", {"conditions": list(verdicts.CONDITIONS), "claims": claims}

    def described(self, size: Size) -> str:
        return "Two to four clients, condition numbers 1.5 to 1000; no size is the paper's"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Checking the statements")
        return [
            Number(_series(row), measure, float(getattr(row, measure)))
            for row in verdicts.verdicts(seed=cell.seed).itertuples()
            for measure in ("worst", "violated", "cases", "vacuous")
        ]


class FigureOne(Experiment):
    """The factor of Theorem 1 against the penalty, its square, and the exact worst case."""

    key, title, source = "dfl-figure-1", "Figure 1: the factor against the penalty", "dfl"
    x_title, y_title = "penalty r", "factor of a round"
    sizes, exact = ("live",), True

    def pieces(self, size: Size) -> Iterable[Piece]:
        yield "", "", {"low": LOW, "high": HIGH, "penalties": FOLLOWED.tolist()}

    def described(self, size: Size) -> str:
        return f"λ = {LOW:g}, L = {HIGH:g}, r from 0 to {FOLLOWED[-1]:g}"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Following the factor")
        factors = [bounds.theorem_1(LOW, HIGH, float(r)) for r in FOLLOWED]
        methods = [bounds.uzawa_exact(LOW, HIGH, float(r)) for r in FOLLOWED]
        exact = [float(n) for n in operators.one_step_norms(scalar_pair(LOW, HIGH), methods)]
        least = int(np.argmin(factors))
        curves = {
            "ρ_GS": factors,
            "ρ_GS squared": [factor**2 for factor in factors],
            "measured, two scalar clients": exact,
        }
        found = {"gain": factors[0] / factors[least], "minimum": factors[least]}
        return Number.each("ρ_GS", found | {"least_penalty": float(FOLLOWED[least])}) + [
            Number(name, "factor", float(value), float(r))
            for name, values in curves.items()
            for r, value in zip(FOLLOWED, values, strict=True)
        ]
