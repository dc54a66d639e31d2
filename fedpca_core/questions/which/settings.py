"""The settings of the page "Which one?": one problem, all methods, and what is asked of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from fedpca_core.algorithms.registry import titles
from fedpca_core.settings import Value, choice, number, scale, switch
from fedpca_core.study.pca_settings import ConvergeSettings, narrowed
from fedpca_core.study.world import EVERYBODY, NO_NOISE, shared

#: What seeks the pooled subspace: everything that Converge compares, and FedPower.
CANDIDATES = titles(lambda method: method.compared or method.plans_products)

#: Six values of each parameter that may vary, its usual one among them.
VALUES: Mapping[str, tuple[Value, ...]] = {
    "epsilon": (math.inf, 1.0, 10.0, 3.0, 0.5, 0.2),
    "penalty_factor": (0.15, 0.05, 0.5, 0.02, 0.3, 1.0),
    "local_steps": (8, 1, 16, 4, 2, 12),
    "participation": (1.0, 0.5, 0.75, 0.25, 0.6, 0.4),
    "rounds": (50, 10, 30, 20, 75, 100),
    "heterogeneity": (0.3, 0.0, 1.0, 0.6, 0.1, 0.8),
    "clients": (8, 32, 4, 16, 12, 24),
}

#: Lines by which a client may be online: bytes a second, seconds for a message to arrive.
LINKS: Mapping[str, tuple[float, float]] = {
    "mobile": (5e6 / 8, 0.1),
    "office": (1e8 / 8, 0.03),
    "centre": (1e10 / 8, 0.001),
}


@dataclass(frozen=True)
class FrontierSettings(ConvergeSettings):
    """One problem for all methods at a live size, and the parameter that varies."""

    kind: ClassVar[str] = "which"
    unordered: ClassVar[tuple[str, ...]] = (*ConvergeSettings.unordered, "candidates")

    problem: str = narrowed("problem", "decay_arithmetic")
    features: int = shared("features", 16, low=4, high=1000)
    clients: int = shared("clients", 8)
    samples: int = shared("samples", 5000)
    heterogeneity: float = narrowed("heterogeneity", 0.3)
    components: int = narrowed("components", 3)
    rounds: int = narrowed("rounds", 50)
    clip_norm: float = narrowed("clip_norm", 3.0)
    measure: str = narrowed("measure", "sin_theta", view=False)
    accuracy: float = narrowed("accuracy", 1e-2, view=False)
    candidates: tuple[str, ...] = choice(
        (
            *("ssi", "local_power", "faps", "variable_splitting"),
            *("block_krylov", "one_shot", "centralized", "fedpower"),
        ),
        "Candidates",
        CANDIDATES,
    )
    vary: str = choice("epsilon", "Paths over")
    seeds: int = number(5, "Seeds", 1, 10)
    searches: bool = switch(True, "Attacks that search")
    shared_noise: bool = switch(False, "Shared noise")
    # ---------------------------------------------------------------- what is asked for
    budget_bytes: float = scale(1e6, "Bytes, at most", key="mostbytes", view=True)
    budget_rounds: float = scale(math.inf, "Rounds, at most", key="mostrounds", view=True)
    server: str = choice("curious", "The server is", view=True)
    needed_epsilon: float = scale(2.0, "ε, at most", key="needed", view=True)
    most_lost: float = scale(0.05, "Variance lost, at most", key="mostlost", view=True)
    link: str = choice("office", "A client's line", view=True)
    across: str = choice("bytes_client", "Across", view=True)
    upward: str = choice("sin_theta", "Upward", view=True)

    @property
    def compared(self) -> tuple[str, ...]:
        return self.candidates

    def idle(self) -> Mapping[str, str]:
        found = dict(super().idle())
        if self.vary == "epsilon" or not math.isinf(self.needed_epsilon):
            for name in ("delta", "clip_norm", "mean_share"):  # paths and answers over ε clip too
                found.pop(name, None)
        if self.vary == "participation" and found.get("absent") == EVERYBODY:
            del found["absent"]
        if self.vary != "epsilon" and math.isinf(self.epsilon):
            found["shared_noise"] = NO_NOISE
        return found

    def alone(self, method: str, seed: int | None = None, **changes: Value) -> Self:
        """One point: this method, one seed, nothing that varies."""
        chosen = {"candidates": (method,), "vary": "none", "seeds": 1, "starts": 1, **changes}
        return replace(self, **{**chosen, "seed": self.seed if seed is None else seed})  # type: ignore[arg-type]


#: What the picture may show across and upward.
AXES = FrontierSettings.parameters()["across"].choices
