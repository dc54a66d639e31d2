"""The settings of the Privacy page: data, budget, run and view as parameters; its presets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fedpca_core.algorithms.registry import METHODS, titles, without_effect
from fedpca_core.papers.fedpower import FIGURES
from fedpca_core.settings import Settings, because, choice, number, scale, switch
from fedpca_core.study.own_table import TABLE_FIELDS
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.preset import Preset
from fedpca_core.study.world import (
    CLIENTS_NAMED,
    EMPTY_IS_ZERO,
    NO_NOISE,
    NOT_CENTRED,
    foreign,
    shared,
)

#: Real records, and the visitor's own.
REAL = ("digits", "fashion_mnist", "olivetti", "auto", "table")
#: What seeks the pooled subspace, whether its noise can be accounted or not.
PRIVATE = titles(lambda method: method.compared or bool(method.accounts))

#: Why parameters make no difference here, and which.
ALONE = "Each client adds all the noise by itself."
AT_SOURCE = "Noise at the source covers any number of rounds and products."
BYTES_ALONE = "It changes the bytes alone, which are not shown here."
NOTHING_RUNS = "Accountants need the numbers of products and records; nothing is run."
COIN_OF_CLIENTS = "The other records of a client give away how its coin fell."
OF_FEDPOWER = ("decaying_gaps", "alignment", "public_reference", "literal", "surplus", "draws")
MEAN = ("mean_share", "mean_clip")


@dataclass(frozen=True)
class PrivacySettings(Settings):
    """Everything that determines a private run, and which view of it is open."""

    kind: ClassVar[str] = "privacy"
    family: ClassVar[str] = "privacy"

    # ---------------------------------------------------------------- data
    problem: str = shared("problem", "spiked")
    features: int = shared("features", 40, low=10, high=200, step=5)
    clients: int = shared("clients", 20, high=50)
    samples: int = shared("samples", 30000)
    networks: int = scale(2, "Networks per client")
    components: int = shared("components", 4, high=8)
    surplus: int = number(1, "Surplus columns", 0, 6)
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling", "centre")
    missing: str = shared("missing")
    treatment: str = choice("normalised", "Records are", key="records")
    clip_norm: float = shared("clip_norm")
    # ---------------------------------------------------------------- budget
    epsilon: float = shared("epsilon", 1.0)
    delta: float = shared("delta")
    mean_share: float = shared("mean_share")
    mean_clip: float = shared("mean_clip")
    calibration: str = choice("exact", "Noise")
    unit: str = choice("record", "ε protects")
    held: int = number(5, "Records of a person", 2, 100)
    trusted: str = choice("nobody", "Clients trust")
    colluding: int = number(0, "May collude", 0, 49)
    dropouts: int = number(0, "May drop out", 0, 49)
    # ---------------------------------------------------------------- run
    method: str = choice("fedpower", "Method", PRIVATE)
    products: int = number(10, "Local products T", 1, 40)
    local_steps: int = shared("local_steps", 2, high=10)
    decaying_gaps: bool = switch(True, "Decaying gaps", key="gaps")
    alignment: bool = switch(True, "Align uploads", key="align")
    public_reference: bool = switch(False, "Reference is public", key="public")
    literal: bool = switch(False, "Literal uploads")
    draws: int = scale(0, "Clients drawn per round", grid=tuple(range(51)), names={0: "everybody"})
    upload_noise: float = shared("upload_noise")
    repetitions: int = number(10, "Repetitions", 1, 30)
    seed: int = shared("seed")
    # ---------------------------------------------------------------- view
    view: str = choice("run", "Show", view=True)
    multiplier: float = number(
        10.0, "Noise over sensitivity", 0.05, 500.0, 0.05, key="nu", view=True
    )
    coin: float = scale(1.0, "If a secret coin chose", names={1.0: "no coin"}, view=True)
    figure: str = choice("3a", "Figure", {figure.key: figure.menu for figure in FIGURES}, view=True)
    paper_size: bool = switch(False, "At the paper's size", view=True)

    def idle(self) -> Mapping[str, str]:
        off, real, own = math.isinf(self.epsilon), self.problem in REAL, self.problem == "table"
        entry, ways = METHODS[self.method], self.view == "ways"
        power = entry.plans_products
        other, noise = foreign(self.problem), ("calibration", "delta", "unit", "held", "trusted")
        counted, source = self.view == "accountants", not off and self.calibration == "source"
        settings, steps = self.carried(ConvergeSettings), {"local_steps": (1, 10)}
        own_steps = power or ways or not without_effect(settings, (self.method,), steps)
        return because(
            (not own, other, TABLE_FIELDS),
            (not off, EMPTY_IS_ZERO, "missing"),
            (own and self.client_column, CLIENTS_NAMED, "clients"),
            (real, other, "features"),
            (real or self.problem == "blocks", other, "samples"),
            (self.problem != "blocks", other, "networks"),
            (self.problem != "spiked", other, "treatment"),
            (self.problem in ("blocks", "distinct"), other, "clip_norm"),
            (not real and self.treatment == "raw", "The records are left raw.", "clip_norm"),
            (real and off, NO_NOISE, "clip_norm"),
            (not real or (own and self.scaling == "none"), NOT_CENTRED, MEAN),
            (off and not counted, NO_NOISE, (*noise, "colluding", "dropouts", *MEAN)),
            (off, NO_NOISE, "calibration"),
            (ways, "Every way has noise of its own.", ("calibration", "trusted")),
            (counted, NOTHING_RUNS, ("features", "clients", "repetitions", "seed")),
            (counted, NOTHING_RUNS, ("decaying_gaps", "alignment", "literal")),
            (counted and off, NOTHING_RUNS, ("components", "surplus")),
            (self.view == "attacks", "An attack reads one run.", "repetitions"),
            (self.view in ("utility", "budget", "attacks"), BYTES_ALONE, "literal"),
            (self.public_reference, "No client sends its basis.", "literal"),
            (self.unit != "person", "ε protects something else than a person here.", "held"),
            (self.trusted != "clients" and not ways, ALONE, ("colluding", "dropouts")),
            (entry.accounts, f"The noise of {entry.title} is on its products.", "upload_noise"),
            (source, AT_SOURCE, "upload_noise"),
            (source and not (entry.accounts or ways or counted), AT_SOURCE, "products"),
            (not power, f"{entry.title} has no such parameter.", OF_FEDPOWER),
            (not own_steps, f"{entry.title} has no such parameter.", "local_steps"),
            (ways, "Every way draws, and protects, all clients.", ("draws", "public_reference")),
            (self.unit != "client", COIN_OF_CLIENTS, "coin"),
        )


#: FAPS stands for the methods that have an ε only at the source; ten seeds.
_WAYS = PrivacySettings(view="ways", method="faps", repetitions=10)
#: Real records with clip norms that suit their units: most records around their mean are shorter.
_REAL = {
    "digits": replace(_WAYS, problem="digits", clip_norm=3.0, mean_clip=5.0),
    "garments": replace(_WAYS, problem="fashion_mnist", clip_norm=5.0, mean_clip=10.0),
    "faces": replace(_WAYS, problem="olivetti", clip_norm=3.0, mean_clip=10.0),
    "traffic": replace(_WAYS, problem="auto", clip_norm=10.0, mean_clip=20.0),
}

#: All ways to spend one ε, for sizes of Model I and for each real data set.
PRESETS = (
    *(
        Preset(
            f"ways-{features}-{records}",
            f"Ways to spend ε: {features} features, {records:,} records",
            "A noisy covariance in one round beats noise on every product; noise that is shared "
            "beats both.",
            replace(_WAYS, features=features, samples=records),
        )
        for records in (30_000, 2_000)
        for features in (40, 100, 200)
    ),
    *(
        Preset(
            f"ways-{name}",
            f"Ways to spend ε: {name}",
            "Records as they come: clipped, centred on a noisy mean that is paid for.",
            settings,
        )
        for name, settings in _REAL.items()
    ),
)
