"""The settings of Converge and Attack: one federated PCA problem, its methods, its messages."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

from fedpca_core.algorithms.faps import rules
from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED, METHODS, without_effect
from fedpca_core.settings import Settings, Value, because, choice, declared, number, scale, switch
from fedpca_core.study.world import (
    CLIENTS_NAMED,
    EMPTY_IS_ZERO,
    EVERYBODY,
    NO_NOISE,
    NOT_CENTRED,
    foreign,
    shared,
)

IMAGES = ("digits", "mnist", "fashion_mnist", "cifar10", "olivetti")
#: Images that are stored finer than every method answers at.
FINER = ("mnist", "fashion_mnist", "cifar10", "olivetti")
#: Constants of single inner rules of FAPS.
CONSTANTS = tuple(f"inner_{name}" for name in rules.CONSTANTS)
#: Parameters that single methods have; the others are of the problem, the run or the wire.
OF_METHODS = (
    *("penalty_factor", "rho_factor", "adaptive", "inner_rule", "inner_steps", "local_steps"),
    *CONSTANTS,
    *("private_start", "private_penalty", "random_inner_steps"),
)
NO_METHOD = "None of the chosen methods makes use of it as they are set here."


@dataclass(frozen=True)
class ConvergeSettings(Settings):
    """Everything that determines a comparison of methods, and how it is shown."""

    kind: ClassVar[str] = "converge"
    family: ClassVar[str] = "pca"
    #: Fields whose order makes no difference.
    unordered: ClassVar[tuple[str, ...]] = ("methods", "attacked")

    # ---------------------------------------------------------------- problem
    problem: str = shared("problem")
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    missing: str = shared("missing")
    features: int = shared("features", low=4, high=300)
    clients: int = shared("clients", high=100)
    samples: int = shared("samples")
    records_per_client: float = shared("records_per_client")
    resolution: int = scale(0, "Pixels a side", key="pixels")
    sizes: str = choice("even", "Client sizes")
    decay: float = scale(1.05, "Spectral decay")
    condition: float = scale(10.0, "Condition number")
    heterogeneity: float = shared("heterogeneity")
    components: int = shared("components")
    # ---------------------------------------------------------------- run
    methods: tuple[str, ...] = choice(
        ("ssi", "local_power", "faps", "block_krylov"), "Methods", COMPARED
    )
    rounds: int = shared("rounds")
    starts: int = number(2, "Starts", 1, 10)
    seed: int = shared("seed")
    penalty_factor: float = shared("penalty_factor")
    rho_factor: float = scale(4.0, "Penalty factor ρ", key="rho")
    adaptive: bool = switch(True, "Adaptive penalty")
    inner_rule: str = choice("auto", "Inner rule", key="inner")
    inner_steps: int = number(5, "Inner steps", 1, 20)
    inner_tolerance: float = scale(1e-2, "Inner tolerance εₓ", key="tolerance")
    inner_decrease: float = scale(0.25, "Decrease c₁", key="decrease")
    inner_curvature: float = scale(2.0, "Curvature c₁′", key="curvature")
    inner_residual: float = scale(0.5, "Residual δ, relative", key="residual")
    local_steps: int = shared("local_steps", low=1, high=16)
    participation: float = shared("participation", low=0.1, step=0.05)
    absent: str = choice("memory", "Absent clients")
    # ---------------------------------------------------------------- wire
    dtype: str = choice("float64", "Message precision", key="precision")
    secure_aggregation: bool = shared("secure_aggregation")
    upload_noise: float = shared("upload_noise")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared("clip_norm")
    mean_share: float = shared("mean_share")
    # ---------------------------------------------------------------- attack
    client: int = shared("client", high=99)
    attacked: tuple[str, ...] = choice(
        ("ssi", "faps"), "Methods under attack", ATTACKABLE, key="against"
    )
    attack: str = choice("linear", "Adversary")
    colluders: int = number(1, "Colluding clients", 1, 99)
    replay: bool = switch(False, "Replay FAPS's update", view=True)
    seeded: bool = switch(True, "Start from what round 1 leaks", view=True)
    budget: int = scale(500, "Evaluations for the replay", key="evaluations", view=True)
    defences: bool = switch(False, "Study every defence", view=True)
    elsewhere: str = choice("none", "Read the uploads of", view=True)
    differencing: bool = switch(False, "Compare with an earlier run", view=True)
    record: int = number(0, "The record that joined", 0, 9999, view=True)
    mean_known: bool = switch(True, "Mean announced", view=True)
    grid_known: bool = switch(True, "Grid announced", view=True)
    once: tuple[str, ...] = choice((), "Sent once", view=True)
    fine: bool = switch(False, "Finer pictures", view=True)
    joined: int = number(0, "Records that joined", 0, 60, view=True)
    unmask: bool = switch(False, "Replay FAPS behind its mask", view=True)
    at_risk: bool = switch(False, "Map what is at risk", view=True)
    private_start: bool = switch(False, "Private start", key="ownstart")
    private_penalty: bool = switch(False, "Private penalty", key="ownpenalty")
    random_inner_steps: bool = switch(False, "Random inner steps", key="randominner")
    # ---------------------------------------------------------------- view
    measure: str = choice("relative_error", "Measure", view=True)
    axis: str = choice("round", "Horizontal axis", view=True)
    accuracy: float = scale(1e-7, "Accuracy", view=True)
    budgets: bool = switch(False, "Map ε against heterogeneity", view=True)
    guide: bool = switch(True, "Predicted run", view=True)

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are run, whatever else a page shows."""
        return self.methods

    def idle(self) -> Mapping[str, str]:
        synthetic, own = self.problem.startswith("decay"), self.problem == "table"
        other, methods = foreign(self.problem), [METHODS[key] for key in self.compared]
        at_once = [one.over_at_once(self.participation, self.absent) for one in methods]
        heeded = [one.algorithm.reuses_uploads or one.algorithm.waits for one in methods]
        return because(
            (self.problem != "decay_geometric", other, "decay"),
            (self.problem != "decay_arithmetic", other, "condition"),
            (not synthetic, other, ("features", "samples")),
            (self.problem not in IMAGES, other, ("records_per_client", "resolution")),
            (not own, other, ("client_column", "columns", "scaling", "missing")),
            (math.isfinite(self.epsilon), EMPTY_IS_ZERO, "missing"),
            (own and self.client_column, CLIENTS_NAMED, ("clients", "heterogeneity", "sizes")),
            (not any(heeded), NO_METHOD, "absent"),
            (self.participation == 1, EVERYBODY, "absent"),
            (methods and all(at_once), "The chosen methods are done after one round.", "rounds"),
            (math.isinf(self.epsilon), NO_NOISE, ("delta", "clip_norm", "mean_share")),
            (synthetic or (own and self.scaling == "none"), NOT_CENTRED, "mean_share"),
            (True, NO_METHOD, _without_effect(self)),
        )

    def run_key(self) -> Self:
        """As for all settings; nor does the order matter in which methods were chosen."""
        plain, described = super().run_key(), self.parameters()
        changes: dict[str, Any] = {}
        for name in self.unordered:
            chosen = getattr(plain, name)
            changes[name] = tuple(key for key in described[name].choices if key in chosen)
        return replace(plain, **changes)


@lru_cache(maxsize=1000)
def _without_effect(settings: ConvergeSettings) -> tuple[str, ...]:
    """What none of the methods that are run makes use of; pages ask in every run."""
    described = settings.parameters()
    values = {name: described[name].some() for name in OF_METHODS}
    return without_effect(settings, settings.compared, values)


def narrowed(name: str, default: Value, **changes: Any) -> Any:
    """The same parameter as in `ConvergeSettings`, with another default or a smaller range."""
    return declared(ConvergeSettings.parameters()[name], default, **changes)


@dataclass(frozen=True)
class AttackSettings(ConvergeSettings):
    """The same settings with the defaults of FAPS, Figure 1(a), at live size."""

    kind: ClassVar[str] = "attack"

    problem: str = narrowed("problem", "decay_arithmetic")
    clients: int = narrowed("clients", 5)
    samples: int = narrowed("samples", 200)
    rounds: int = narrowed("rounds", 20)
    starts: int = narrowed("starts", 1)
    inner_rule: str = narrowed("inner_rule", "fixed")

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.attacked, *(("faps",) if self.replay or self.defences else ()))
