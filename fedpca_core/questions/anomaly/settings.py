"""Everything that determines an anomaly-detection experiment, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.settings import Settings, because, parameter
from fedpca_core.study.world import CLIENTS_NAMED, EVERYBODY, NO_NOISE, PROBLEMS, foreign, shared

#: Where traffic comes from.
TRAFFIC = {
    key: PROBLEMS[key] for key in ("auto", "ton", "unsw", "nsl", "iot23", "synthetic", "own")
}


@dataclass(frozen=True)
class AnomalySettings(Settings):
    """One experiment: data, split, learning and alarm."""

    kind: ClassVar[str] = "anomaly"
    former_keys: ClassVar[Mapping[str, str]] = {
        "data": "problem",
        "scaling": "standardising",
        "attacked": "client",
    }
    former_fields: ClassVar[Mapping[str, str]] = {"data": "problem", "scaling": "standardising"}

    # ---------------------------------------------------------------- data
    problem: str = shared(
        "problem",
        default="auto",
        help="Public intrusion data sets: IoT-23 comes along, “python -m fedpca_core data” says "
        "how to get the others; any CSV file of your own; or synthetic traffic drawn by this "
        "program. Best available: TON-IoT where it is found, else synthetic.",
        choices=TRAFFIC,
    )
    label_column: str = parameter(
        "",
        key="labels",
        label="Label column",
        help="Column of your own file that says which records are attacks. Without one every "
        "record counts as normal: scores and alarms are shown, but nobody can say how many are "
        "right.",
    )
    normal_value: str = parameter(
        "",
        key="normal",
        label="Label of normal records",
        help="Its value that stands for normal; every other value is a type of attack.",
    )
    columns: tuple[str, ...] = shared("columns")
    client_column: str = shared("client_column")
    clients: int = shared(
        "clients",
        default=100,
        help="Devices among which the normal training records are divided (N in the paper).",
    )
    split: str = parameter(
        "sorted",
        key="split",
        label="Split",
        help="Sorted: by one column (source port, number of recent connections, ...) and cut, as "
        "in the paper, so each client sees a narrow kind of traffic. Shuffled: everybody sees "
        "everything.",
        choices={"sorted": "Sorted (non-iid)", "iid": "Shuffled (iid)"},
    )
    transform: str = parameter(
        "log",
        key="transform",
        label="Transform",
        help="sign(x) log(1+|x|) before standardising. Traffic counters are so heavy-tailed that "
        "without it a handful of records own the first components. The paper uses none.",
        choices={"log": "Logarithm", "none": "None (paper)"},
    )
    standardising: str = parameter(
        "global",
        key="standardising",
        label="Standardising",
        help="By pooled means and deviations (each client sends two sums once), or each client by "
        "its own, as the authors ran it: then training and scoring use different coordinates. Mean "
        "only: nothing is divided; an ε needs this, and pays for a noisy mean.",
        choices={"global": "Pooled", "local": "Each client its own", "centre": "Mean only"},
    )
    # ---------------------------------------------------------------- learning
    method: str = parameter(
        "fedpg",
        key="method",
        label="Method",
        help="FedPG walks on the manifold of orthonormal bases; FedPE in Euclidean space with "
        "steps about four times shorter.",
        choices={"fedpg": "FedPG", "fedpe": "FedPE"},
    )
    components: int = shared(
        "components",
        default=10,
        help="Rank of the subspace (k in the paper, which does not state its value). A larger one "
        "lowers the loss but not always the number of mistakes.",
    )
    rounds: int = shared(
        "rounds",
        default=200,
        help="Communication rounds.",
        grid=(20, 50, 100, 200, 300, 500, 750, 1000, 1500),
    )
    participation: float = shared(
        "participation",
        default=0.1,
        help="Share of the clients that take part in a round.",
        grid=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0),
    )
    penalty_factor: float = shared(
        "penalty_factor",
        default=4.0,
        help="ρ = factor × mean ‖Sᵢ‖₂. Small: clients part from each other. Large: everything "
        "is slow. The topic “Sweeps” measures both.",
        grid=(0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    )
    local_steps: int = shared(
        "local_steps",
        default=10,
        help="Gradient steps before an upload (C, or local epochs LE, in the paper). FedPG gains "
        "little from more than about 10; FedPE, whose steps are shorter, still does.",
        high=50,
    )
    step_factor: float = parameter(
        1.0,
        key="step",
        label="Step",
        help="Share of the longest safe step; no position diverges.",
        low=0.05,
        high=1.0,
        step=0.05,
    )
    projection: str = parameter(
        "stiefel",
        key="projection",
        label="Tangent projection",
        help="FedPG only. As printed, the projection deletes the only force that turns Uᵢ back "
        "on Z, and the run drifts away.",
        choices={"stiefel": "Corrected", "printed": "As printed"},
    )
    average: str = parameter(
        "mean",
        key="average",
        label="Server's average",
        help="Mean of the uploads; as printed, with Yᵢ/ρ of the sample added (leaves a noise "
        "floor, forgets corruption); over all clients' last uploads (exact, slow); of the "
        "uploads made orthonormal.",
        choices={
            "mean": "Mean",
            "printed": "As printed",
            "memory": "With memory",
            "polar": "Of orthonormal uploads",
        },
    )
    local_start: str = parameter(
        "own",
        key="localstart",
        label="Local start",
        help="Local steps begin at the client's own last frame, or at the orthonormalised average "
        "(better when there are only one or two).",
        choices={"own": "Own last frame", "consensus": "The average"},
    )
    sampling: str = parameter(
        "random",
        key="sampling",
        label="Sampling",
        help="Participants drawn afresh each round, or in turn along shuffled lists.",
        choices={"random": "Random", "round robin": "In turn"},
    )
    initial: str = parameter(
        "orthonormal",
        key="initial",
        label="First frame",
        help="Orthonormal, or uniform in [0, 1) as in the authors' scripts: FedPE then needs five "
        "to ten times as many rounds.",
        choices={"orthonormal": "Orthonormal", "uniform": "Uniform"},
    )
    seed: int = shared("seed")
    # ---------------------------------------------------------------- privacy at the source
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    clip_norm: float = shared("clip_norm", default=10.0)
    mean_share: float = shared("mean_share")
    mean_clip: float = shared("mean_clip")
    # ---------------------------------------------------------------- alarm
    rule: str = parameter(
        "quantile",
        key="rule",
        label="Threshold",
        help="A quantile of the scores of normal training records, which anybody can use; or the "
        "one that suits the labelled test records best, as in the paper: an oracle that nobody "
        "has in the field.",
        choices={"quantile": "Training quantile", "oracle": "Oracle (labels)"},
        view=True,
    )
    share: float = parameter(
        0.95,
        key="quantile",
        label="Quantile",
        help="Share of normal training records that raise no alarm.",
        grid=(0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
        view=True,
    )

    # ---------------------------------------------------------------- what is shown
    topic: str = parameter(
        "detection",
        key="topic",
        label="Show",
        help="One question at a time; each computes only what it needs.",
        choices={
            "detection": "Detection",
            "learning": "Learning",
            "alarms": "Alarms",
            "costs": "Costs",
            "leaks": "Leaks",
            "poisoning": "Poisoning",
            "sweeps": "Sweeps",
            "published": "Published",
        },
        view=True,
    )
    flow: int = parameter(
        100,
        key="flow",
        label="Flow",
        help="The flow of the stream above whose score is taken apart.",
        low=0,
        high=399,
        step=1,
        view=True,
    )
    reconstructed: bool = parameter(
        False,
        key="reconstructed",
        label="After reconstruction",
        help="Replace every record by its projection on the subspace: what an attack and a normal "
        "flow still differ in is not what the detector looks at.",
        view=True,
    )
    client: int = shared(
        "client", help="The client whose traffic statistics the server is after, counted from 0."
    )
    hidden: str = parameter(
        "",
        key="hidden",
        label="Attack to hide",
        help="The liars put the direction into the model that makes this attack look normal.",
        view=True,
    )
    malicious: int = parameter(
        1,
        key="malicious",
        label="Malicious clients",
        help="How many clients lie for 80 rounds, whenever they are drawn.",
        low=1,
        high=5,
        step=1,
        view=True,
    )
    sweep: str = parameter(
        "penalty_factor",
        key="sweep",
        label="Vary",
        help="The setting that varies; all others stay as they are.",
        choices={
            "penalty_factor": "Penalty factor",
            "components": "Components",
            "clients": "Clients",
            "local_steps": "Local steps",
        },
        view=True,
    )
    seeds: int = parameter(
        1,
        key="seeds",
        label="Seeds",
        help="How many seeds every point is run from; bands span all of them.",
        low=1,
        high=10,
        step=1,
        view=True,
    )

    def idle(self) -> Mapping[str, str]:
        own, off = self.problem == "own", math.isinf(self.epsilon)
        of_files = ("label_column", "normal_value", "columns", "client_column")
        return because(
            (not own, foreign(self.problem), of_files),
            (own and self.client_column, CLIENTS_NAMED, ("clients", "split")),
            (off, NO_NOISE, ("delta", "clip_norm", "mean_share", "mean_clip")),
            (self.method != "fedpg", "Only FedPG projects.", "projection"),
            (self.participation == 1, EVERYBODY, "sampling"),
        )

    def algorithm(self) -> ConsensusADMM:
        """The federated method these settings describe."""
        shared: dict[str, Any] = {
            "components": self.components,
            "penalty_factor": self.penalty_factor,
            "step_factor": self.step_factor,
            "local_steps": self.local_steps,
            "average": self.average,
            "local_start": self.local_start,
            "sampling": self.sampling,
            "initial": self.initial,
        }
        if self.method == "fedpe":
            return FedPE(**shared)
        return FedPG(**shared, projection=self.projection)
