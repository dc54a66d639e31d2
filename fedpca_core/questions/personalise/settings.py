"""The settings of the Personalise page: clients around a common subspace, and how they learn."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.problems.personal_model import PersonalProblem, personal, personal_records
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.settings import Settings, because, choice, number, scale, switch
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.world import CLIENTS_NAMED, EMPTY_IS_ZERO, NO_NOISE, foreign, shared

#: Personalised PCA, its two baselines and its rival, as the registry names them.
PERSONAL, ALONE, SHARED = "personalized", "local_training", "global_averaging"
COMPARED = (PERSONAL, ALONE, SHARED, "decoupled")


@dataclass(frozen=True)
class PersonaliseSettings(Settings):
    """Everything that determines the Personalise page."""

    kind: ClassVar[str] = "personalise"
    family: ClassVar[str] = "personalise"

    problem: str = shared("problem", "latent")
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    missing: str = shared("missing")
    heterogeneity: float = shared("heterogeneity", 0.2, low=0.01, step=0.01)
    samples: int = shared("samples", 10)
    clients: int = shared("clients", 50, high=200)
    features: int = shared("features", 30, low=4, high=100)
    components: int = shared("components", 10, high=20)
    noise_variance: float = scale(0.5, "Noise variance")
    reading: str = choice("std", "How the paper's number is read")
    prior: str = choice("matched", "Prior")
    gradient: str = choice("exact", "Data gradient")
    start_from: str = choice("independent", "Start", key="start")
    pace: float = scale(2.0, "Pace")
    rounds: int = shared("rounds", 300)
    seed: int = shared("seed")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared("clip_norm", 6.0)
    # ---------------------------------------------------------------- view
    error_on: str = choice("fresh", "Error on", view=True)
    sweep: str = choice("heterogeneity", "Vary", view=True)
    datasets: int = number(3, "Data sets", 1, 10, view=True)
    exposure: bool = switch(False, "Attack a short run with these settings", view=True)

    def idle(self) -> Mapping[str, str]:
        own, other = self.problem == "table", foreign(self.problem)
        return because(
            (not own, other, TABLE_FIELDS),
            (math.isfinite(self.epsilon), EMPTY_IS_ZERO, "missing"),
            (own, other, "features"),
            (own and self.client_column, CLIENTS_NAMED, "clients"),
            (math.isinf(self.epsilon), NO_NOISE, ("delta", "clip_norm")),
        )

    # ---------------------------------------------------------------- what it stands for
    def build(self, data: OwnData | None = None) -> PersonalProblem:
        """The clients' data; with a finite ε they hold noisy second moments.

        Raises InvalidInput: sizes that do not fit, or a table that does not.
        """
        sizes = self.some("components", "samples", "noise_variance", "seed")
        if self.problem == "table":
            apart = None if self.client_column else self.heterogeneity
            problem = personal_records(own_problem(self, data, heterogeneity=apart), **sizes)
        else:
            sizes |= self.some("features", "clients", "reading")
            problem = personal(spread=self.heterogeneity, **sizes)
        if math.isinf(self.epsilon):
            return problem
        return problem.private(self.epsilon, self.delta, self.clip_norm, Streams(self.seed))

    def personalised(self) -> PersonalizedPCA:
        calibrated, spread = self.prior == "calibrated", self.heterogeneity
        if calibrated and self.reading == "literal":  # it starts from a standard deviation
            spread = float(np.sqrt(spread))
        prior = "calibrated" if calibrated else self.reading
        same = self.some("components", "noise_variance", "gradient", "pace", "start_from")
        return PersonalizedPCA(spread=spread, prior=prior, **same)

    def methods(self) -> dict[str, Algorithm]:
        """Personalised PCA and what it is compared with, by key."""
        return {key: METHODS[key].make(self) for key in COMPARED}
