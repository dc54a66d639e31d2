"""The settings of the Personalise page: clients around a common subspace, and how they learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.problems.personal import PersonalProblem, personal, personal_records
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.settings import Settings, because, parameter
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.world import CLIENTS_NAMED, NO_NOISE, PROBLEMS, foreign, shared

#: Personalised PCA and its two baselines, as the registry names them.
PERSONAL, ALONE, SHARED = "personalized", "local_training", "global_averaging"
COMPARED = (PERSONAL, ALONE, SHARED)


@dataclass(frozen=True)
class PersonaliseSettings(Settings):
    """Everything that determines the Personalise page."""

    kind: ClassVar[str] = "personalise"
    family: ClassVar[str] = "personalise"
    former_keys: ClassVar[Mapping[str, str]] = {
        "p-spread": "heterogeneity",
        "p-samples": "samples",
        "p-clients": "clients",
        "p-features": "features",
        "p-components": "components",
        "p-noise": "noise_variance",
        "p-reading": "reading",
        "p-prior": "prior",
        "p-gradient": "gradient",
        "p-start": "start_from",
        "p-pace": "pace",
        "p-rounds": "rounds",
        "p-seed": "seed",
        "p-measure": "measure",
        "p-vary": "vary",
    }
    former_fields: ClassVar[Mapping[str, str]] = {"spread": "heterogeneity"}

    problem: str = shared(
        "problem",
        default="latent",
        choices={key: PROBLEMS[key] for key in ("latent", "table")},
    )
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    heterogeneity: float = shared(
        "heterogeneity",
        default=0.2,
        low=0.01,
        step=0.01,
        help="How much the clients differ: the standard deviation of the random step that takes "
        "the common basis to a client's own (PerPCA's σ_U, printed there as a variance). With a "
        "table of your own it is what personalised PCA assumes of them; where a rule splits the "
        "rows it also says how unlike the parts are.",
    )
    samples: int = shared(
        "samples",
        default=10,
        grid=(1, 2, 5, 10, 20, 40, 80, 160, 320),
        help="Records each client holds (n in PerPCA). With few, a client alone overfits. Of a "
        "table of your own each client learns from so many rows; the others are fresh.",
    )
    clients: int = shared(
        "clients", default=50, high=200, help="How many parties could join (m in PerPCA)."
    )
    features: int = shared(
        "features", default=30, low=4, high=100, help="Dimension of a record (d in PerPCA)."
    )
    components: int = shared(
        "components", default=10, high=20, help="Columns of every basis (r in PerPCA)."
    )
    noise_variance: float = parameter(
        0.5,
        key="noisevariance",
        label="Noise variance",
        help="σ_ε² of PerPCA; the signal has variance 1. The methods are told its value, or assume "
        "it with a table of your own.",
        grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    )
    reading: str = parameter(
        "std",
        key="reading",
        label="How the paper's number is read",
        help="PerPCA prints its heterogeneity as a variance. Its findings appear only when the "
        "number is a standard deviation; read literally, nobody can gain by collaborating.",
        choices={"std": "Standard deviation", "literal": "Variance, literally"},
    )
    prior: str = parameter(
        "matched",
        key="prior",
        label="Prior",
        help="Variance the objective assumes around the common basis: the generator's own number, "
        "or the smaller one that its bases really have (they lie on a curved surface).",
        choices={"matched": "As generated", "calibrated": "Calibrated"},
    )
    gradient: str = parameter(
        "exact",
        key="gradient",
        label="Data gradient",
        help="The paper prints half of the true data gradient. The printed one acts like a prior "
        "twice as strong.",
        choices={"exact": "Exact", "printed": "As printed (half)"},
    )
    start_from: str = parameter(
        "independent",
        key="start",
        label="Start",
        help="Everybody at a random basis of their own (as in Figure 1a), all at one common "
        "random basis, or all at the pooled answer.",
        choices={"independent": "Independent", "common": "Common", "pooled": "Pooled answer"},
    )
    pace: float = parameter(
        2.0,
        key="pace",
        label="Pace",
        help="Factor on the safe step sizes. At 1 the objective falls in every round; 2 arrives "
        "sooner; above 2.5 it gets worse.",
        grid=(0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    )
    rounds: int = shared("rounds", default=300, grid=(50, 100, 150, 200, 300, 400, 600))
    seed: int = shared("seed")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared(
        "clip_norm",
        default=6.0,
        help="Largest Euclidean norm of a record; longer ones are shortened to it inside the "
        "client. Records here are about √(r + d σ²) long, 5 at the defaults.",
    )
    # ---------------------------------------------------------------- view
    measure: str = parameter(
        "fresh",
        key="measure",
        label="Error on",
        help="Fresh records tell how good a model is; its own training records only how well it "
        "fits them.",
        choices={"fresh": "Fresh records", "training": "Training records"},
        view=True,
    )
    vary: str = parameter(
        "heterogeneity",
        key="vary",
        label="Vary",
        choices={
            "heterogeneity": "Heterogeneity",
            "samples": "Samples per client",
            "clients": "Clients",
        },
        view=True,
    )
    datasets: int = parameter(
        3,
        key="datasets",
        label="Data sets",
        help="Every value of the varied parameter is measured on so many data sets, from "
        "consecutive seeds; curves are medians, bands span all of them.",
        low=1,
        high=10,
        step=1,
        view=True,
    )
    exposure: bool = parameter(
        False,
        key="exposure",
        label="Attack a short run with these settings",
        help="Run ten rounds with at most ten clients and let the server solve their uploads.",
        view=True,
    )

    @classmethod
    def _modernised(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Heterogeneity was called the spread, also where it is what varies."""
        if values.get("vary") in ("spread", "How much they differ"):
            values = values | {"vary": "heterogeneity"}
        return values

    def idle(self) -> Mapping[str, str]:
        own, other = self.problem == "table", foreign(self.problem)
        return because(
            (not own, other, TABLE_FIELDS),
            (own, other, "features"),
            (own and self.client_column, CLIENTS_NAMED, "clients"),
            (math.isinf(self.epsilon), NO_NOISE, ("delta", "clip_norm")),
        )

    # ---------------------------------------------------------------- what it stands for
    def build(self, data: OwnData | None = None) -> PersonalProblem:
        """The clients' data; with a finite ε they hold noisy second moments.

        Raises
        ------
        InvalidInput
            Sizes that do not fit, or a table that does not.
        """
        if self.problem == "table":
            apart = None if self.client_column else self.heterogeneity
            problem = personal_records(
                own_problem(self, data, heterogeneity=apart),
                components=self.components,
                samples=self.samples,
                noise_variance=self.noise_variance,
                seed=self.seed,
            )
        else:
            problem = personal(
                features=self.features,
                components=self.components,
                clients=self.clients,
                samples=self.samples,
                spread=self.heterogeneity,
                reading=self.reading,
                noise_variance=self.noise_variance,
                seed=self.seed,
            )
        if math.isinf(self.epsilon):
            return problem
        return problem.private(self.epsilon, self.delta, self.clip_norm, Streams(self.seed))

    def personalised(self) -> PersonalizedPCA:
        """Personalised PCA with these parameters."""
        calibrated = self.prior == "calibrated"
        literal = self.reading == "literal"
        deviation = float(np.sqrt(self.heterogeneity)) if literal else self.heterogeneity
        return PersonalizedPCA(
            components=self.components,
            # The calibrated variance starts from a standard deviation in either reading.
            spread=deviation if calibrated else self.heterogeneity,
            noise_variance=self.noise_variance,
            prior="calibrated" if calibrated else self.reading,
            gradient=self.gradient,
            pace=self.pace,
            start_from=self.start_from,
        )

    def methods(self) -> dict[str, Algorithm]:
        """Personalised PCA and its two baselines, by key."""
        return {key: METHODS[key].make(self) for key in COMPARED}
