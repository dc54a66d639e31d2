"""Which of the claimed factors hold: recomputed from exact worst cases, not asserted.

Every claim is compared with the exact one-step norm on quadratics (or what the claim speaks of)
over an adversarial and a random family of heterogeneous clients and a grid of condition numbers,
penalties and local steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpca_core.consensus.claims import CLAIMS, Case, Claim
from fedpca_core.consensus.generators import RandomProblem, scalar_pair
from fedpca_core.consensus.problems import Quadratic

#: A measured value above claim x (1 + this) violates it.
TOLERANCE = 1e-9
LOW = 0.5
CONDITIONS = (1.5, 4.0, 10.0, 30.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Ruling:
    """A row of the table."""

    theorem: str
    setting: str
    claim: str
    #: Comparisons where the claim says something (factor below 1).
    cases: int
    #: Comparisons where it says nothing.
    vacuous: int
    violated: int
    #: Largest measured/claimed over the non-vacuous cases (NaN without any).
    worst: float
    #: Whether the row is the claim as printed, or corrected here.
    printed: bool

    @property
    def verdict(self) -> str:
        """ "holds", "false as printed", "corrected: holds" or "corrected: fails"."""
        if self.printed:
            return "holds" if self.violated == 0 else "false as printed"
        return "corrected: holds" if self.violated == 0 else "corrected: fails"


def families(condition: float, count: int, seed: int, *, alike: bool = False) -> list[Quadratic]:
    """Adversarial pairs and random clients with lambda = 1/2 and L = condition/2."""
    high = LOW * condition
    drawn = [
        RandomProblem(
            clients=3 if alike else 2 + index % 3,
            features=2,
            strong_convexity=LOW,
            smoothness=high,
            heterogeneity=0.0 if alike else 1.0,
            seed=seed + index,
        ).quadratics()
        for index in range(count)
    ]
    if alike:
        return drawn
    found: list[Quadratic] = [scalar_pair(LOW, high)]
    for share in (0.1, 0.5, 0.9):  # one stiff client among soft ones, and in between
        middle = LOW * condition**share
        values = np.array([LOW, middle, high])[:, None, None]
        found.append(Quadratic("Three scalar clients", values, np.array([[1.0], [2.0], [0.0]])))
    return found + drawn


def verdicts(count: int = 6, seed: int = 0) -> list[Ruling]:
    """Recompute the whole table on ``count`` random problems a condition number."""
    problems = {c: families(c, count, seed) for c in CONDITIONS}
    alike = {c: families(c, count, seed, alike=True) for c in CONDITIONS}
    table = []
    for claim in CLAIMS:
        chosen = alike if claim.alike else problems
        cases = [
            case
            for condition, family in chosen.items()
            for problem in family
            for case in claim.measure(problem, LOW, LOW * condition)
        ]
        table.append(_summarise(claim, cases))
    return table


def _summarise(claim: Claim, cases: Sequence[Case]) -> Ruling:
    speaking = [case for case in cases if case.claimed < 1 or case.speaks]
    ratios = np.array([case.measured / max(case.claimed, 1e-12) for case in speaking])
    violated = sum(case.measured > case.claimed * (1 + TOLERANCE) + 1e-12 for case in speaking)
    return Ruling(
        theorem=claim.theorem,
        setting=claim.setting,
        claim=claim.claim,
        cases=len(speaking),
        vacuous=len(cases) - len(speaking),
        violated=violated,
        worst=float(ratios.max()) if len(ratios) else float("nan"),
        printed=claim.printed,
    )
