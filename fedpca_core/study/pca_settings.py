"""The settings of Converge and Attack: one federated PCA problem, its methods, its messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED, METHODS, without_effect
from fedpca_core.settings import Settings, Value, because, parameter
from fedpca_core.study.world import (
    CLIENTS_NAMED,
    EVERYBODY,
    NO_NOISE,
    NOT_CENTRED,
    PROBLEMS,
    foreign,
    shared,
)

IMAGES = ("digits", "mnist", "fashion_mnist", "cifar10", "olivetti")
#: Images that are stored finer than every method answers at.
FINER = ("mnist", "fashion_mnist", "cifar10", "olivetti")
#: Problems with a pooled subspace that is known exactly.
POOLED = {key: PROBLEMS[key] for key in ("decay_geometric", "decay_arithmetic", *IMAGES, "table")}

#: Parameters that single methods have; the others are of the problem, the run or the wire.
OF_METHODS = (
    *("penalty_factor", "rho_factor", "adaptive", "inner_rule", "inner_steps", "local_steps"),
    *("private_start", "private_penalty", "random_inner_steps"),
)
NO_METHOD = "None of the chosen methods makes use of it as they are set here."

#: The replay's budget was in seconds once; what such a link means in evaluations.
SECONDS = {5: 100, 10: 200, 30: 500, 60: 1000, 120: 2000}


@dataclass(frozen=True)
class ConvergeSettings(Settings):
    """Everything that determines a comparison of methods, and how it is shown."""

    kind: ClassVar[str] = "converge"
    family: ClassVar[str] = "pca"
    former_kinds: ClassVar[tuple[str, ...]] = ("laboratory",)
    former_keys: ClassVar[Mapping[str, str]] = {
        "newcomer": "differencing",
        "study": "defences",
        "budget": "budget",
    }
    former_fields: ClassVar[Mapping[str, str]] = {"newcomer": "differencing", "study": "defences"}

    # ---------------------------------------------------------------- problem
    problem: str = shared(
        "problem",
        help="Where the clients' private data come from. Spectra are synthetic with exactly known "
        "eigenvalues; images and tables are real.",
        choices=POOLED,
    )
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    features: int = shared("features", low=4, high=300)
    clients: int = shared("clients", high=100)
    samples: int = shared(
        "samples",
        help="Records each client holds, on average. FAPS calls it mᵢ, FedPower nᵢ, FedPG Dᵢ. "
        "FAPS needs many: about 20 for each feature.",
        grid=(1, 2, 5, 10, 20, 40, 50, 100, 200, 500, 1000, 2000, 5000),
    )
    records_per_client: float = shared("records_per_client")
    resolution: int = parameter(
        0,
        key="pixels",
        label="Pixels a side",
        help="Images are averaged over areas to so many pixels along a side. 0: as many as every "
        "method answers while a slider moves (8 for the digits).",
        grid=(0, 4, 5, 6, 8, 10, 14, 16, 28, 32),
    )
    split: str = parameter(
        "even",
        key="split",
        label="Client sizes",
        help="Even; uneven (client i holds a share proportional to i); or drawn from a Dirichlet "
        "distribution.",
        choices={"even": "Even", "uneven": "Uneven", "dirichlet": "Dirichlet"},
    )
    decay: float = parameter(
        1.05,
        key="decay",
        label="Spectral decay",
        help="Singular values fall by this factor from one to the next (ξ in FAPS). Close to 1, "
        "neighbouring directions are hard to tell apart and every method is slow.",
        grid=(1.0, 1.002, 1.005, 1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3),
    )
    condition: float = parameter(
        10.0,
        key="condition",
        label="Condition number",
        help="Ratio of the largest to the smallest singular value of an arithmetic spectrum "
        "(κ in FAPS).",
        grid=(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
    )
    heterogeneity: float = shared(
        "heterogeneity",
        help="0: clients hold random shares of one population. 1: each has its own classes or its "
        "own rotated spectrum. The pooled problem stays the same; the measured η is shown.",
    )
    components: int = shared("components")
    # ---------------------------------------------------------------- run
    methods: tuple[str, ...] = parameter(
        ("ssi", "local_power", "faps", "block_krylov"),
        key="method",
        label="Methods",
        help="The algorithms to compare, all from the same random start.",
        choices=COMPARED,
    )
    rounds: int = shared(
        "rounds",
        grid=(10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000),
    )
    starts: int = parameter(
        2,
        key="starts",
        label="Starts",
        help="Random starts. Round counts depend strongly on the start, so curves are medians and "
        "bands span all starts.",
        low=1,
        high=10,
        step=1,
    )
    seed: int = shared("seed")
    penalty_factor: float = shared(
        "penalty_factor",
        help="Strength of the pull to consensus in FAPS and variable splitting, βᵢ = factor × "
        "‖Sᵢ‖₂. Small is fast until a client breaks away.",
        grid=(0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0),
    )
    rho_factor: float = parameter(
        4.0,
        key="rho",
        label="Penalty factor ρ",
        help="Strength of the pull to consensus in FedPE and FedPG, ρ = factor × mean ‖Sᵢ‖₂.",
        grid=(0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    )
    adaptive: bool = parameter(
        True,
        key="adaptive",
        label="Adaptive penalty",
        help="Let each client raise its βᵢ by 10% whenever its distance to consensus stalls.",
    )
    inner_rule: str = parameter(
        "auto",
        key="inner",
        label="Inner rule",
        help="How many inner subspace iterations a FAPS client makes in a round: as many as remain "
        "stable for its own data; a fixed number; until the relative change is small; or until "
        "the theory's two conditions hold.",
        choices={
            "auto": "Automatic",
            "fixed": "Fixed number",
            "change": "Relative change",
            "conditions": "Conditions of the theory",
        },
    )
    inner_steps: int = parameter(
        5,
        key="innersteps",
        label="Inner steps",
        help="Inner iterations a round (J) of FAPS under the fixed rule and of variable splitting. "
        "Each costs one product with Sᵢ. 5 reproduces the counts of the FAPS paper.",
        low=1,
        high=20,
        step=1,
    )
    local_steps: int = shared(
        "local_steps",
        help="Local power steps of the first round of LocalPower; they halve every round (or fall "
        "by one under the decay schedule).",
        low=1,
        high=16,
    )
    participation: float = shared("participation", low=0.1, step=0.05)
    absent: str = parameter(
        "memory",
        key="absent",
        label="Absent clients",
        help="What the server does about absent clients: reuse the last upload of each, which "
        "converges but needs memory; or sum the present ones only, which has an error floor.",
        choices={"memory": "Reuse last upload", "present": "Sum the present only"},
    )
    # ---------------------------------------------------------------- wire
    dtype: str = parameter(
        "float64",
        key="precision",
        label="Message precision",
        help="Floating-point format on the wire. float32 halves the bytes and rounds every "
        "message.",
        choices={"float64": "float64", "float32": "float32"},
    )
    secure_aggregation: bool = shared("secure_aggregation")
    upload_noise: float = shared("upload_noise")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared("clip_norm")
    mean_share: float = shared("mean_share")
    # ---------------------------------------------------------------- attack
    client: int = shared(
        "client",
        help="The client whose covariance Sᵢ the server tries to reconstruct, counted from 0.",
        high=99,
    )
    attacked: tuple[str, ...] = parameter(
        ("ssi", "faps"),
        key="against",
        label="Methods under attack",
        help="The algorithms whose messages the server tries to turn into one client's covariance, "
        "all from the same start.",
        choices=ATTACKABLE,
    )
    attack: str = parameter(
        "linear",
        key="attack",
        label="Adversary",
        help="What the server does with the messages it saw.",
        choices={
            "linear": "Passive: solves linear equations",
            "symmetric": "Knows the structure: symmetric, trace stated",
            "ridge": "Knows the structure and a prior: ridge",
            "pooled": "Sees only sums",
            "collude": "Sees sums, and some clients tell theirs",
        },
    )
    colluders: int = parameter(
        1,
        key="colluders",
        label="Colluding clients",
        help="How many of the other clients pass their own uploads to the server, which subtracts "
        "them from the sums.",
        low=1,
        high=99,
        step=1,
    )
    replay: bool = parameter(
        False,
        key="replay",
        label="Replay FAPS's update",
        help="The client's update is public and deterministic, so the server can replay it with "
        "any candidate covariance and compare with what it received.",
        view=True,
    )
    seeded: bool = parameter(
        True,
        key="seeded",
        label="Start from what round 1 leaks",
        help="In round 1 the client's basis is the broadcast itself, so its upload gives away βᵢ "
        "and part of Sᵢ. Off: the plain fit from the prior, for contrast.",
        view=True,
    )
    budget: int = parameter(
        500,
        key="evaluations",
        label="Evaluations for the replay",
        help="The search ends after so many evaluations (each replays the client's rounds with all "
        "derivatives) or 20 starts, and keeps the best fit. Some 30 are enough where nothing is "
        "hidden, 100 to 250 against random inner steps.",
        grid=tuple(SECONDS.values()),
        view=True,
    )
    defences: bool = parameter(
        False,
        key="defences",
        label="Study every defence",
        help="Run FAPS under each defence and let the server replay it, fitting what is hidden.",
        view=True,
    )
    elsewhere: str = parameter(
        "none",
        key="elsewhere",
        label="Read the uploads of",
        help="Methods of the other pages, with small settings of their own.",
        choices={
            "none": "None",
            "fedpg": "FedPG",
            "personal": "Personalised PCA",
            "one_shot": "One-shot",
        },
        view=True,
    )
    growth: bool = parameter(
        False,
        key="growth",
        label="Rounds to recovery against features",
        help="FAPS, Figure 1(b): for 20 to 60 features, how many rounds of SSI it takes to recover "
        "the client and how many to converge.",
        view=True,
    )
    differencing: bool = parameter(
        False,
        key="differencing",
        label="Compare with an earlier run",
        help="Run every method under attack once more, without one record of the client, and let "
        "the server subtract what it learned from the two runs.",
        view=True,
    )
    record: int = parameter(
        0,
        key="record",
        label="The record that joined",
        help="Which of the client's records was not there in the earlier run, counted from 0.",
        low=0,
        high=9999,
        step=1,
        view=True,
    )
    mean_known: bool = parameter(
        True,
        key="meanknown",
        label="Mean announced",
        help="Clients need the pooled mean to subtract it, so it is public. Off: the server is not "
        "told, as if it had been agreed on by secret means.",
        view=True,
    )
    grid_known: bool = parameter(
        True,
        key="gridknown",
        label="Grid announced",
        help="Pixels are whole numbers of grey levels, counts are whole, and the schema says so. "
        "Off: the server tries the usual steps, 1, 1/10, 1/16, 1/100, 1/255 and a quarter of that, "
        "on all features alike.",
        view=True,
    )
    once: tuple[str, ...] = parameter(
        (),
        key="once",
        label="Sent once",
        help="Methods of one round, taken apart in this section only: the matrix itself, leading "
        "directions with their sizes, or without.",
        choices={
            "centralized": "Centralised",
            "one_shot_stacked": "One-shot (stacked)",
            "one_shot": "One-shot",
        },
        view=True,
    )
    fine: bool = parameter(
        False,
        key="fine",
        label="Finer pictures",
        help="Records of 28 or 32 pixels along a side in this section; the rest of the page stays "
        "at 14 or 16, where all its attacks answer.",
        view=True,
    )
    joined: int = parameter(
        0,
        key="joined",
        label="Records that joined",
        help="0: the server takes one run apart. Otherwise so many records joined the attacked "
        "client since an earlier run, and the server compares the two runs: what differs are "
        "these records, however many there were before, and under secure aggregation too.",
        low=0,
        high=60,
        step=1,
        view=True,
    )
    unmask: bool = parameter(
        False,
        key="unmask",
        label="Replay FAPS for its records",
        help="FAPS's uploads are no products, so they are replayed first, which gives the matrix, "
        "and taken apart then. Seconds where a client holds few records, since the messages span "
        "where these lie; half a minute at 30 records of 64 features.",
        view=True,
    )
    at_risk: bool = parameter(
        False,
        key="atrisk",
        label="Map what is at risk",
        help="How many records a client may hold until its matrix no longer gives them away, for "
        "images of several sizes, measured here.",
        view=True,
    )
    private_start: bool = parameter(
        False,
        key="ownstart",
        label="Private start",
        help="Every FAPS client starts from a random basis of its own that nobody else knows.",
    )
    private_penalty: bool = parameter(
        False,
        key="ownpenalty",
        label="Private penalty",
        help="Every FAPS client multiplies its βᵢ by a secret factor between ½ and 2.",
    )
    random_inner_steps: bool = parameter(
        False,
        key="randominner",
        label="Random inner steps",
        help="Every FAPS client draws its number of inner steps anew each round, in secret.",
    )
    # ---------------------------------------------------------------- view
    measure: str = parameter(
        "relative_error",
        key="measure",
        label="Measure",
        help="Relative error of the singular values; scaled KKT violation; sine of the largest "
        "principal angle; mean squared consensus gap.",
        choices={
            "relative_error": "Relative error",
            "kkt": "KKT violation",
            "sin_theta": "Largest angle",
            "consensus_gap": "Consensus gap",
        },
        view=True,
    )
    axis: str = parameter(
        "round",
        key="axis",
        label="Against",
        help="What progress is charged for: rounds, bytes over all clients, local products with "
        "Sᵢ over all clients, or seconds of computation here.",
        choices={
            "round": "Rounds",
            "bytes": "Bytes",
            "local_products": "Local products",
            "seconds": "Seconds",
        },
        view=True,
    )
    accuracy: float = parameter(
        1e-7,
        key="accuracy",
        label="Accuracy",
        help="The table counts what each method needs to bring the chosen measure below this.",
        grid=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1.07e-7, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12),
        view=True,
    )
    budgets: bool = parameter(
        False,
        key="budgets",
        label="Map ε against heterogeneity",
        help="Run every chosen method at six budgets on four federations, from the same clients "
        "alike to as far apart as the problem has them.",
        view=True,
    )
    guide: bool = parameter(
        True,
        key="guide",
        label="Predicted run",
        help="Dashed: where the first-order theory of a round says that a run goes, from the round "
        "in which it comes close. For SSI, LocalPower and FAPS with everyone present; it needs the "
        "matrices that the clients hold: simulation only.",
        view=True,
    )

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are run, whatever else a page shows."""
        return self.methods

    def idle(self) -> Mapping[str, str]:
        synthetic, own = self.problem.startswith("decay"), self.problem == "table"
        other, methods = foreign(self.problem), [METHODS[key] for key in self.compared]
        at_once = [one.over_at_once(self.participation, self.absent) for one in methods]
        return because(
            (self.problem != "decay_geometric", other, "decay"),
            (self.problem != "decay_arithmetic", other, "condition"),
            (not synthetic, other, ("features", "samples")),
            (self.problem not in IMAGES, other, ("records_per_client", "resolution")),
            (not own, other, ("client_column", "columns", "scaling")),
            (own and self.client_column, CLIENTS_NAMED, ("clients", "heterogeneity", "split")),
            (not any(one.heeds_absence for one in methods), NO_METHOD, "absent"),
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
        for name in ("methods", "attacked"):
            chosen = getattr(plain, name)
            changes[name] = tuple(key for key in described[name].choices if key in chosen)
        return replace(plain, **changes)

    @classmethod
    def _modernised(cls, values: dict[str, Any]) -> dict[str, Any]:
        """A budget in seconds becomes one in evaluations; no number is both."""
        seconds = {str(one): many for one, many in SECONDS.items()}
        budget = values.get("budget")
        return values | ({"budget": seconds[str(budget)]} if str(budget) in seconds else {})


@lru_cache(maxsize=1000)
def _without_effect(settings: ConvergeSettings) -> tuple[str, ...]:
    """What none of the methods that are run makes use of; pages ask in every run."""
    described = settings.parameters()
    values = {name: described[name].some() for name in OF_METHODS}
    return without_effect(settings, settings.compared, values)


def narrowed(name: str, default: Value, **changes: Any) -> Any:
    """The same parameter as in `ConvergeSettings`, with another default or a smaller range."""
    description = ConvergeSettings.parameters()[name].narrowed(default=default, **changes)
    return field(default=default, metadata={"parameter": description})


@dataclass(frozen=True)
class AttackSettings(ConvergeSettings):
    """The same settings with the defaults of FAPS, Figure 1(a), at live size."""

    kind: ClassVar[str] = "attack"
    former_kinds: ClassVar[tuple[str, ...]] = ()

    problem: str = narrowed("problem", default="decay_arithmetic")
    clients: int = narrowed("clients", default=5)
    samples: int = narrowed("samples", default=200)
    rounds: int = narrowed("rounds", default=20)
    starts: int = narrowed("starts", default=1)
    inner_rule: str = narrowed("inner_rule", default="fixed")

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.attacked, *(("faps",) if self.replay or self.defences else ()))
