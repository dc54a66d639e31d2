"""The settings of the page "Which one?": one problem, all methods, and what is asked of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from fedpca_core.algorithms.registry import Titles
from fedpca_core.settings import Value, parameter
from fedpca_core.study.pca_settings import ConvergeSettings, narrowed
from fedpca_core.study.world import EVERYBODY, NO_NOISE

#: What seeks the pooled subspace: everything that Converge compares, and FedPower.
CANDIDATES = Titles(lambda method: method.compared or method.key == "fedpower")

#: Six values of each parameter that may vary, its usual one among them.
VALUES: Mapping[str, tuple[Value, ...]] = {
    "epsilon": (math.inf, 1.0, 10.0, 3.0, 0.5, 0.2),
    "penalty_factor": (0.15, 0.05, 0.5, 0.02, 0.3, 1.0),
    "local_steps": (8, 1, 16, 4, 2, 12),
    "participation": (1.0, 0.5, 0.75, 0.25, 0.6, 0.4),
    "rounds": (50, 10, 30, 20, 75, 100),
}

AXES: Mapping[str, str] = {
    "rounds": "Rounds",
    "bytes_up": "Bytes up, all clients",
    "bytes_client": "Bytes a client, both ways",
    "local_products": "Local products, all clients",
    "seconds": "Seconds of computation",
    "sin_theta": "Largest angle",
    "relative_error": "Relative error",
    "unexplained": "Variance lost",
    "worst_client": "Variance lost by the worst client",
    "leak": "Best attack's error",
    "records": "Records recovered exactly",
    "epsilon": "Formal ε",
}


@dataclass(frozen=True)
class FrontierSettings(ConvergeSettings):
    """One problem for all methods at a live size, and the parameter that varies."""

    kind: ClassVar[str] = "which"
    former_kinds: ClassVar[tuple[str, ...]] = ()

    problem: str = narrowed("problem", default="decay_arithmetic")
    features: int = narrowed("features", default=16)
    clients: int = narrowed("clients", default=8)
    samples: int = narrowed("samples", default=5000)
    heterogeneity: float = narrowed("heterogeneity", default=0.3)
    components: int = narrowed("components", default=3)
    rounds: int = narrowed("rounds", default=50, grid=(10, 20, 30, 50, 75, 100, 150, 200))
    clip_norm: float = narrowed("clip_norm", default=3.0)
    measure: str = narrowed(
        "measure",
        default="sin_theta",
        view=False,
        choices={
            "relative_error": "Relative error",
            "kkt": "KKT violation",
            "sin_theta": "Largest angle",
        },
    )
    accuracy: float = narrowed(
        "accuracy",
        default=1e-2,
        view=False,
        help="A run is over as soon as the measure is below this, or, where it never is, as soon "
        "as it is within 5% of where it ends. Costs and leaks are counted up to there.",
    )
    candidates: tuple[str, ...] = parameter(
        (
            *("ssi", "local_power", "faps", "variable_splitting"),
            *("block_krylov", "one_shot", "centralized", "fedpower"),
        ),
        key="candidates",
        label="Candidates",
        help="The methods to choose from. Personal models seek no common subspace and are compared "
        "on a page of their own.",
        choices=CANDIDATES,
    )
    vary: str = parameter(
        "epsilon",
        key="vary",
        label="Paths over",
        help="The parameter along which every method becomes a path; a method that does not have "
        "it stays a point.",
        choices={
            "none": "Nothing",
            "epsilon": "Budget ε",
            "penalty_factor": "Penalty factor",
            "local_steps": "Local steps",
            "participation": "Participation",
            "rounds": "Rounds",
        },
    )
    seeds: int = parameter(
        5,
        key="seeds",
        label="Seeds",
        help="Data, starts and noise are drawn anew from each of so many seeds; bands span them.",
        low=1,
        high=10,
        step=1,
    )
    searches: bool = parameter(
        True,
        key="searches",
        label="Attacks that search",
        help="Replay of FAPS, fitting of FedPE and FedPG, the lattice attack on records and the "
        "comparison of two runs: seconds each, so of the first seed only.",
    )
    shared_noise: bool = parameter(
        False,
        key="sharednoise",
        label="Shared noise",
        help="Under secure aggregation the clients share the noise at the source, so that only the "
        "sum carries all of it. For methods whose server needs nothing but the sum of the "
        "matrices.",
    )
    strip: bool = parameter(
        False,
        key="strip",
        label="Over heterogeneity and clients",
        help="The same picture for other clients: alike or different, few or many.",
        view=True,
    )
    # ---------------------------------------------------------------- what is asked for
    budget_bytes: float = parameter(
        1e6,
        key="mostbytes",
        label="Bytes, at most",
        help="What one client can send and receive in the whole run; ∞ asks for nothing.",
        grid=(1e2, 1e3, 1e4, 1e5, 1e6, 1e7, math.inf),
        names={
            1e2: "100 bytes",
            1e3: "1 kB",
            1e4: "10 kB",
            1e5: "100 kB",
            1e6: "1 MB",
            1e7: "10 MB",
        },
        view=True,
    )
    budget_rounds: float = parameter(
        math.inf,
        key="mostrounds",
        label="Rounds, at most",
        help="How often all clients can be online.",
        grid=(1, 2, 5, 10, 20, 50, 100, math.inf),
        view=True,
    )
    server: str = parameter(
        "curious",
        key="server",
        label="The server is",
        help="Trusted: it may hold the clients' matrices. Curious: it follows the protocol and "
        "reads everything. Curious behind secure sums: it sees only sums over all clients.",
        choices={
            "trusted": "Trusted",
            "curious": "Curious",
            "sums": "Curious, behind secure sums",
        },
        view=True,
    )
    needed_epsilon: float = parameter(
        2.0,
        key="needed",
        label="ε, at most",
        help="The differential privacy that every record must have; ∞ asks for none, and then "
        "nothing of a client may be read from the messages of a curious server.",
        grid=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, math.inf),
        view=True,
    )
    across: str = parameter(
        "bytes_client",
        key="across",
        label="Across",
        help="The horizontal axis.",
        choices=AXES,
        view=True,
    )
    upward: str = parameter(
        "sin_theta",
        key="upward",
        label="Upward",
        help="The vertical axis.",
        choices=AXES,
        view=True,
    )

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

    def run_key(self) -> Self:
        """As for Converge; the order in which candidates were chosen does not matter either."""
        plain = super().run_key()
        order = tuple(key for key in CANDIDATES if key in plain.candidates)
        return replace(plain, candidates=order)

    def alone(self, method: str, seed: int | None = None, **changes: Value) -> Self:
        """One point: this method, one seed, nothing that varies."""
        chosen = {"candidates": (method,), "vary": "none", "seeds": 1, "starts": 1, **changes}
        return replace(self, **{**chosen, "seed": self.seed if seed is None else seed})  # type: ignore[arg-type]
