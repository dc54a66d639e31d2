"""The theory of deterministic federated learning: a row for every statement that can be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedpca_core.consensus import bounds, operators, verdicts
from fedpca_core.consensus.claims import CLAIMS, Claim
from fedpca_core.consensus.generators import scalar_pair
from fedpca_core.papers.dfl_formulas import Formulas
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.papers.quoted import Quoted
from fedpca_core.papers.row import Row, at_least, at_most, number
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Part, Step

#: The paper prints no measured number.
QUOTED: tuple[Quoted, ...] = ()
#: Constants and penalties of Figure 1.
LOW, HIGH = 0.5, 5.0
PENALTIES = np.concatenate([np.linspace(0.0, 1.0, 41), np.linspace(1.25, 20.0, 76)])


def _series(claim: Claim | verdicts.Verdict) -> str:
    return f"{claim.theorem}{'' if claim.printed else ', corrected'}: {claim.setting}"


class Statements(Experiment):
    """Every claimed factor against exact worst cases of an adversarial and a random family."""

    key, title, source = "dfl-statements", "Statements against exact worst cases", "dfl"
    sizes = ("live",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        fixed: dict[str, Any] = {
            "conditions": list(verdicts.CONDITIONS),
            "claims": [_series(claim) for claim in CLAIMS],
        }
        return [Cell("", "", seed, {**fixed, "family_seed": seed}) for seed in range(seeds)]

    def described(self, size: Size) -> str:
        return "Two to four clients, condition numbers 1.5 to 1000; no size is the paper's"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Checking the statements")
        return [
            Number(_series(row), measure, float(getattr(row, measure)))
            for row in verdicts.verdicts(seed=cell.seed)
            for measure in ("worst", "violated", "cases", "vacuous")
        ]


class FigureOne(Experiment):
    """The factor of Theorem 1 against the penalty, its square, and the exact worst case."""

    key, title, source = "dfl-figure-1", "Figure 1: the factor against the penalty", "dfl"
    x_title, y_title = "penalty r", "factor of a round"
    sizes = ("live",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [Cell("", "", 0, {"low": LOW, "high": HIGH, "penalties": PENALTIES.tolist()})]

    def described(self, size: Size) -> str:
        return f"λ = {LOW:g}, L = {HIGH:g}, r from 0 to {PENALTIES[-1]:g}"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Following the factor")
        factors = [bounds.theorem_1(LOW, HIGH, float(r)) for r in PENALTIES]
        methods = [bounds.uzawa_exact(LOW, HIGH, float(r)) for r in PENALTIES]
        exact = [float(n) for n in operators.one_step_norms(scalar_pair(LOW, HIGH), methods)]
        least = int(np.argmin(factors))
        curves = {
            "ρ_GS": factors,
            "ρ_GS squared": [factor**2 for factor in factors],
            "measured, two scalar clients": exact,
        }
        return [
            Number("ρ_GS", "gain", factors[0] / factors[least]),
            Number("ρ_GS", "minimum", factors[least]),
            Number("ρ_GS", "least_penalty", float(PENALTIES[least])),
            *(
                Number(name, "factor", float(value), float(r))
                for name, values in curves.items()
                for r, value in zip(PENALTIES, values, strict=True)
            ),
        ]


EXPERIMENTS: tuple[Experiment, ...] = (Statements(), FigureOne(), Formulas())

_AGREEMENT = at_most(1.0 + verdicts.TOLERANCE)
_UNIT = "largest measured over claimed"


#: Theorems of which a corrected version follows the printed one.
_FALSE = frozenset(claim.theorem for claim in CLAIMS if not claim.printed)
_DEMONSTRATION = (
    "from fedpca_core.consensus.verdicts import verdicts\n"
    "print(*[found for found in verdicts(1) if found.theorem == {!r}], sep='\\n')"
)


#: What is wrong with the printed ones; the corrected one is judged in a row of its own.
_WHY: Mapping[str, str] = {
    "Corollary 1": "The step should be ω = L/n.",
    "Theorem 4(3)": "The eigenvalues of A and of its inverse are interchanged in the step; with "
    "ω*(r) the factor is (L−λ)/(2r+L+λ).",
    "Theorem 4, points": "The exponent is off by one: k − 1 holds.",
    "Theorem 6": "True for ω = r + λ only; half of it is a counterexample.",
    "Theorem 7": "A step of each client's own leaves multipliers that no longer sum to zero; true "
    "where all clients have the same Hessian.",
    "Theorem 9, second": "An asymptotic rate: a single round contracts less, and at condition "
    "number 1000 can even increase the error.",
}


def _statement(claim: Claim) -> Row:
    return Row(
        f"dfl-{_series(claim)}",
        "dfl",
        claim.theorem + " (ours)" * claim.theorem.startswith("ρ"),
        f"With {claim.setting}: at most {claim.claim}, wherever that is below 1.",
        experiment="dfl-statements",
        ours=number(_series(claim), "worst"),
        unit=_UNIT,
        agreement=_AGREEMENT,
        correction="" if claim.printed else "Corrected here; false as printed in the row before.",
        why="Our own bound."
        if claim.theorem.startswith("ρ")
        else _WHY.get(claim.theorem, "")
        if claim.printed
        else "",
        kind="false as printed",
        scale_free=True,
        explained="theory",
        demonstration=_DEMONSTRATION.format(claim.theorem) if claim.theorem in _FALSE else "",
    )


_UNREAD = "The statement could not be read; only its number is known to us."


def _formula(
    name: str, place: str, claim: str, unit: str, why: str = "", correction: str = "",
    most: float = 1.0 + verdicts.TOLERANCE,
) -> Row:  # fmt: skip
    return Row(
        f"dfl-{name.lower().replace(', ', '-').replace(' ', '-')}",
        "dfl",
        place,
        claim,
        experiment="dfl-formulas",
        ours=number(name, "value"),
        unit=unit,
        agreement=at_most(most),
        correction=correction,
        why=why,
        kind="false as printed",
        scale_free=True,
        explained="theory",
        demonstration="from fedpca_core.papers.dfl_formulas import FORMULAS\n"
        f"print(FORMULAS[{name!r}]())",
    )


_FORMULAS: tuple[Row, ...] = (
    _formula(
        "Remark 9, iteration", "Remark 9",
        "With n = √κ local steps Algorithm 1 contracts by (n−1)/n a round.",
        "asymptotic factor over (n−1)/n", "True of the multipliers alone.",
    ),
    _formula(
        "Remark 9, multipliers", "Remark 9",
        "With n = √κ local steps the multipliers alone contract by (n−1)/n.",
        "factor over (n−1)/n", correction="Said of the multipliers, not of the iteration.",
    ),
    _formula(
        "Lemma 11, proof", "Lemma 11, proof", "8(r+L)²/(2r+L+λ)² is at most 2.",
        "largest value over 2", "It lies between 2 and 8.",
    ),
    _formula(
        "Lemma 11, conclusion", "Lemma 11",
        "What local solves move is at most twice the error, which Theorem 3 needs.",
        "largest movement over twice the error",
        correction="Another proof: it follows from Theorem 1, for any strongly convex functions.",
    ),
    _formula(
        "Theorem 1, expanded", "Theorem 1, expanded fraction",
        "The expanded fraction is the factor of Theorem 1, squared.",
        "printed over true at r = 0", "The constant term of its denominator has L − λ for L + λ.",
    ),
    _formula(
        "average as printed", "Algorithm 2, server's step",
        "The iteration converges with the server's step as printed, mean X − mean H / r.",
        "Φ after sixty rounds over Φ at the start, r = 0.1",
        "Mean H is 0 on paper; rounding in it grows by |1 − ω/r| a round.", most=1e-3,
    ),
    _formula(
        "average of the clients", "Algorithm 2, server's step",
        "The iteration converges with the clients' average as the server's step.",
        "Φ after sixty rounds over Φ at the start, r = 0.1",
        correction="The mean of X alone, the same in exact arithmetic.", most=1e-3,
    ),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    *(_statement(claim) for claim in CLAIMS),
    *_FORMULAS,
    Row(
        "dfl-figure-1",
        "dfl",
        "Figure 1",
        "A small positive penalty makes the factor of Theorem 1 smaller than none.",
        experiment="dfl-figure-1",
        ours=number("ρ_GS", "least_penalty"),
        unit="penalty at which the factor is least",
        agreement=at_least(float(PENALTIES[1])),
        why="The gain is a little over one per cent. The paper does not say whether it draws the "
        "factor or its square; both are drawn.",
        scale_free=True,
        explained="theory",
    ),
    *(
        Row(
            f"dfl-{place.lower().replace(' ', '-')}",
            "dfl",
            place,
            f"{place} of the theory.",
            unreadable=reason,
            explained="theory",
        )
        for place, reason in (
            ("Theorem 2", _UNREAD),
            ("Theorem 5", _UNREAD),
            ("Equation (67)", _UNREAD),
            ("Theorem 8", "The paper numbers a Theorem 8 and states none."),
            ("Bounds on X", "Theorem 4 bounds the clients' points and is judged above; other "
             "bounds of this kind could not be read."),
        )
    ),
)  # fmt: skip
