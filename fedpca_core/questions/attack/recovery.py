"""FAPS, Figure 1(b) at live size: rounds to recover a client against rounds to converge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fedpca_core import attacks
from fedpca_core.arrays import BoolArray
from fedpca_core.attacks import scores
from fedpca_core.questions.attack.adversary import RUN
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step, part
from fedpca_core.study.build import attacked_run, build_problem
from fedpca_core.study.deployed import private_matrix
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.sweep import Measured, Sweep

FEATURES = (20, 30, 40, 50, 60)
#: Both the reconstruction and the KKT violation count as done below this, as in the paper.
DONE = 1e-5
LONGEST = 500
#: Problems drawn at every size.
DRAWS = 3


class Recovery(Sweep[AttackSettings]):
    """Rounds of SSI until its client is recovered, and until it has converged, by features."""

    key: ClassVar[str] = "recovery"
    title: ClassVar[str] = "Rounds to recovery against features"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("features", FEATURES)
    settings: ClassVar[type[AttackSettings]] = AttackSettings
    most: ClassVar[Cost] = Cost(megabytes=150, seconds=90)
    reads: ClassVar[frozenset[str]] = RUN - {
        "epsilon", "delta", "clip_norm", "mean_share", "features", "rounds", "starts", "attacked",
        "attack", "colluders", "local_steps", "penalty_factor", "adaptive", "inner_rule",
        "inner_steps",
    }  # fmt: skip

    @staticmethod
    def obstacle(settings: AttackSettings) -> str:
        """Why there is nothing to vary with these settings; empty if there is."""
        if not settings.problem.startswith("decay"):
            return (
                "Images and tables have the features they have; choose a synthetic spectrum to "
                "vary them."
            )
        if settings.secure_aggregation:
            return (
                "This figure reads single uploads, which secure aggregation hides; switch it off "
                "to see them read at every size."
            )
        if not math.isinf(settings.epsilon):
            return (
                "With noise at the source no client's own covariance is recovered at any size; "
                "set ε to ∞ for this figure."
            )
        return ""

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.growth and not self.obstacle(settings)

    def seeds(self, settings: AttackSettings) -> Sequence[int]:
        return tuple((settings.seed + draw) % 100_000 for draw in range(DRAWS))

    def measure(self, settings: AttackSettings, data: OwnData | None) -> Part[Measured]:
        chosen = replace(settings, rounds=LONGEST)
        problem = build_problem(chosen, data)
        truth = private_matrix(problem, chosen.client)
        trace, table = yield from part(attacked_run(problem, "ssi", chosen), 0.0, 0.8)
        recovered = np.nan
        # The attack needs some features/components rounds; later ones add nothing.
        enough = 4 * (chosen.features // chosen.components + 1)
        for round_, (estimate, _) in enumerate(
            attacks.linear_rounds(trace.transcript, chosen.client, enough)
        ):
            yield Step(0.9, "the server's reconstruction")
            if scores.relative_error(estimate, truth) <= DONE:
                recovered = float(round_)
                break
        converged = _first(table["kkt"].to_numpy() <= DONE)
        return {"SSI": {"recovered": recovered, "converged": converged}}


def _first(reached: BoolArray) -> float:
    """Index of the first True, NaN if none: the curve then has a gap."""
    hits = np.flatnonzero(reached)
    return float(hits[0]) if len(hits) else float("nan")
