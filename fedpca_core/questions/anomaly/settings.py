"""Everything that determines an anomaly-detection experiment, and how it is shown."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, cast

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.settings import Settings, because, choice, number, scale, switch, text
from fedpca_core.study.world import (
    CLIENTS_NAMED,
    EMPTY_IS_ZERO,
    EVERYBODY,
    NO_NOISE,
    foreign,
    shared,
)


@dataclass(frozen=True)
class AnomalySettings(Settings):
    """One experiment: data, split, learning and alarm."""

    kind: ClassVar[str] = "anomaly"

    # ---------------------------------------------------------------- data
    problem: str = shared("problem", "auto")
    label_column: str = text("", "Label column", key="labels")
    normal_value: str = text("", "Label of normal records", key="normal")
    columns: tuple[str, ...] = shared("columns")
    client_column: str = shared("client_column")
    missing: str = shared("missing")
    clients: int = shared("clients", 100)
    split: str = choice("sorted", "Split")
    alpha: float = scale(0.5, "α of the split", key="alpha")
    each: int = number(2, "Kinds or shards a client", 1, 5)
    transform: str = choice("log", "Transform")
    standardising: str = choice("global", "Standardising")
    # ---------------------------------------------------------------- learning
    method: str = choice("fedpg", "Method")
    components: int = shared("components", 10)
    rounds: int = shared("rounds", 200)
    participation: float = shared("participation", 0.1)
    penalty_factor: float = shared("penalty_factor", 4.0)
    local_steps: int = shared("local_steps", 10, high=50)
    step_factor: float = number(1.0, "Step", 0.05, 1.0, 0.05)
    projection: str = choice("stiefel", "Tangent projection")
    average: str = choice("mean", "Server's average")
    local_start: str = choice("own", "Local start")
    sampling: str = choice("random", "Sampling")
    initial: str = choice("orthonormal", "First frame")
    seed: int = shared("seed")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared("clip_norm", 10.0)
    mean_share: float = shared("mean_share")
    mean_clip: float = shared("mean_clip")
    # ---------------------------------------------------------------- alarm
    rule: str = choice("quantile", "Threshold", view=True)
    flows_a_day: int = scale(10_000, "Normal flows a day", key="perday", view=True)
    share: float = scale(0.95, "Quantile", key="quantile", view=True)

    # ---------------------------------------------------------------- what is shown
    view: str = choice("detection", "Show", view=True)
    flow: int = number(100, "Flow", 0, 399, view=True)
    reconstructed: bool = switch(False, "After reconstruction", view=True)
    client: int = shared("client")
    hidden: str = text("", "Attack to hide", view=True)
    malicious: int = number(1, "Malicious clients", 1, 5, view=True)
    sweep: str = choice("penalty_factor", "Vary", view=True)
    seeds: int = number(1, "Seeds", 1, 10, view=True)

    def idle(self) -> Mapping[str, str]:
        own, off = self.problem == "own", math.isinf(self.epsilon)
        of_files = ("label_column", "normal_value", "columns", "client_column", "missing")
        return because(
            (not own, foreign(self.problem), of_files),
            (not off and self.standardising == "centre", EMPTY_IS_ZERO, "missing"),
            (own and self.client_column, CLIENTS_NAMED, ("clients", "split", "alpha", "each")),
            (self.split != "dirichlet", "The split does not draw from a Dirichlet.", "alpha"),
            (
                self.split not in ("pathological", "shards"),
                "The split deals no whole kinds or shards.",
                "each",
            ),
            (off, NO_NOISE, ("delta", "clip_norm", "mean_share", "mean_clip")),
            ("projection" not in self._named(), "Only FedPG projects.", "projection"),
            (self.participation == 1, EVERYBODY, "sampling"),
        )

    def algorithm(self) -> ConsensusADMM:
        made = cast(type[ConsensusADMM], METHODS[self.method].algorithm)
        return made(**self.some(*self._named()))

    def _named(self) -> set[str]:
        """The parameters of the method that are set here, under the same names."""
        return {one.name for one in fields(METHODS[self.method].algorithm)} & set(self.parameters())  # type: ignore[arg-type]
