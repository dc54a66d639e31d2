"""The settings of the Privacy page: data, budget, run and view as parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedpca_core.algorithms.registry import METHODS, Titles, without_effect
from fedpca_core.papers.fedpower import FIGURES
from fedpca_core.settings import INFINITY, Settings, because, parameter
from fedpca_core.study.own_table import TABLE_FIELDS
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.world import CLIENTS_NAMED, NO_NOISE, NOT_CENTRED, PROBLEMS, foreign, shared

#: Real records, and the visitor's own.
REAL = ("digits", "fashion_mnist", "olivetti", "auto", "table")
#: What seeks the pooled subspace, whether its noise can be accounted or not.
PRIVATE = Titles(lambda method: method.compared or bool(method.accounts))

#: Why parameters make no difference here, and which.
ALONE = "Each client adds all the noise by itself."
AT_SOURCE = "Noise at the source covers any number of rounds and products."
NOTHING_RUNS = "Accountants need the numbers of products and records; nothing is run."
OF_FEDPOWER = ("decaying_gaps", "alignment", "literal", "surplus", "draws")
MEAN = ("mean_share", "mean_clip")

VIEWS = {
    "run": "Convergence",
    "utility": "Price of ε",
    "ways": "Ways to spend ε",
    "budget": "Where the error comes from",
    "attacks": "What an attacker gets",
    "accountants": "Accountants",
    "figures": "The paper's figures",
}


@dataclass(frozen=True)
class PrivacySettings(Settings):
    """Everything that determines a private run, and which view of it is open."""

    kind: ClassVar[str] = "privacy"
    family: ClassVar[str] = "privacy"
    former_keys: ClassVar[Mapping[str, str]] = {
        "model": "problem",
        "dp": "noise",
        "eps": "epsilon",
        "period": "local_steps",
        "decay": "decaying_gaps",
        "mask": "upload_noise",
    }
    former_fields: ClassVar[Mapping[str, str]] = {
        "model": "problem",
        "noise": "noise",
        "period": "local_steps",
        "decay": "decaying_gaps",
        "mask": "upload_noise",
    }

    # ---------------------------------------------------------------- data
    problem: str = shared(
        "problem",
        default="spiked",
        choices={key: PROBLEMS[key] for key in ("spiked", "blocks", "distinct", *REAL)},
        help="Model I: Gaussian records with a few strong directions. Model II: rows of the "
        "adjacency matrices of two-community networks. Distinct clients: shared and private "
        "directions, for attacks. Or real records, clipped, and centred on a noisy mean that is "
        "paid for.",
    )
    features: int = shared(
        "features",
        default=40,
        low=10,
        high=200,
        step=5,
        help="Entries of a record (d in FedPower; the nodes of a network in Model II).",
    )
    clients: int = shared(
        "clients",
        default=20,
        high=50,
        help="How many machines hold data (m in FedPower). Averaging over them averages noise.",
    )
    samples: int = shared(
        "samples",
        default=30000,
        grid=(500, 1000, 2000, 5000, 10000, 20000, 30000, 50000, 100000),
        help="Records of each client (nᵢ in FedPower). Noise is in proportion to 1/nᵢ.",
    )
    networks: int = parameter(
        2,
        key="networks",
        label="Networks per client",
        help="Model II: each network gives as many records as it has nodes. The paper has one.",
        grid=(1, 2, 4, 8, 16, 32, 64, 128, 164, 256),
    )
    components: int = shared(
        "components", default=4, high=8, help="Dimension of the subspace sought (k in FedPower)."
    )
    surplus: int = parameter(
        1,
        key="surplus",
        label="Surplus columns",
        help="Columns of the iterate beyond the components (r − k in FedPower). Published noise "
        "grows with √r, exact noise does not.",
        low=0,
        high=6,
        step=1,
    )
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared(
        "scaling",
        default="centre",
        choices={"centre": "Centre", "none": "As they are"},
        help="Centre: a share of the budget pays for a noisy mean. As they are: nothing is "
        "subtracted, and nothing paid. Dividing by deviations of the records themselves is not "
        "offered, because no ε covers it.",
    )
    treatment: str = parameter(
        "normalised",
        key="records",
        label="Records are",
        help="Done to every record before its client forms Sᵢ, inside the trusted code. "
        "Sensitivity rests on it; raw records have no bound, so no ε can be stated.",
        choices={
            "normalised": "Normalised to the clip norm",
            "clipped": "Clipped at the clip norm",
            "raw": "Left raw",
        },
    )
    clip_norm: float = shared(
        "clip_norm",
        help="Largest Euclidean norm of a record. Sensitivity and noise grow with its square.",
    )
    # ---------------------------------------------------------------- budget
    epsilon: float = shared(
        "epsilon",
        default=1.0,
        help="Total over the whole run, of Gaussian noise on each product with Sᵢ, hidden ones "
        "too. Smaller is more private: below 1 is strong, above 10 weak; ∞ switches the noise off.",
    )
    delta: float = shared("delta")
    mean_share: float = shared("mean_share")
    mean_clip: float = shared("mean_clip")
    calibration: str = parameter(
        "exact",
        key="calibration",
        label="Noise",
        help="Exact: on every product, by true sensitivity and exact composition. Published: by "
        "FedPower's Theorem 6, valid but several times more than needed. At the source: once, on "
        "each client's matrix; covers every method and any number of rounds.",
        choices={"exact": "Exact", "published": "Published", "source": "At the source"},
    )
    unit: str = parameter(
        "record",
        key="unit",
        label="ε protects",
        help="What an adversary cannot tell apart: one record, a person with several records at "
        "one client, or all records of a client.",
        choices={"record": "A record", "person": "A person", "client": "A client"},
    )
    held: int = parameter(
        5,
        key="held",
        label="Records of a person",
        help="All at one client. A person's ε costs as many times the noise of a record's.",
        low=2,
        high=100,
        step=1,
    )
    trusted: str = parameter(
        "nobody",
        key="trusted",
        label="Clients trust",
        help="Nobody: each adds all the noise by itself. Each other: they share it, and secure "
        "aggregation shows the server sums only; it then must not see single uploads.",
        choices={"nobody": "Nobody", "clients": "Each other"},
    )
    colluding: int = parameter(
        0,
        key="colluding",
        label="May collude",
        help="Clients that tell the adversary their share of the noise; the others must add "
        "enough. A curious client knows its own, so 1 also protects from each other.",
        low=0,
        high=49,
        step=1,
    )
    dropouts: int = parameter(
        0,
        key="dropouts",
        label="May drop out",
        help="Clients whose share of the noise may be missing from the sums.",
        low=0,
        high=49,
        step=1,
    )
    # ---------------------------------------------------------------- run
    method: str = parameter(
        "fedpower",
        key="method",
        label="Method",
        help="FedPower, SSI and block Krylov touch the data through products only and can be "
        "accounted. The others cannot: noise on their uploads is masking, and the page says why.",
        choices=PRIVATE,
    )
    products: int = parameter(
        10,
        key="products",
        label="Local products T",
        help="Products each client makes in the whole run, hidden ones included. The budget is "
        "spread over all of them.",
        low=1,
        high=40,
        step=1,
    )
    local_steps: int = shared(
        "local_steps",
        default=2,
        high=10,
        help="Products before the first communication (p in FedPower). 1 communicates after every "
        "product.",
    )
    decaying_gaps: bool = parameter(
        True,
        key="gaps",
        label="Decaying gaps",
        help="Gaps p, p − 1, …, 1, 1, … as in the paper's experiments, rather than p, p, p, …",
    )
    alignment: bool = parameter(
        True,
        key="align",
        label="Align uploads",
        help="Rotate every upload onto the reference client's (orthogonal Procrustes).",
    )
    literal: bool = parameter(
        False,
        key="literal",
        label="Literal uploads",
        help="Send the client's own basis in every round, as the paper's listing does, also where "
        "the server knows it already.",
    )
    draws: int = parameter(
        0,
        key="draws",
        label="Clients drawn per round",
        help="K, drawn with replacement at each communication, so that as many as there are is not "
        "everybody. The reference client uploads always.",
        grid=tuple(range(51)),
        names={0: "everybody"},
    )
    upload_noise: float = shared(
        "upload_noise",
        help="For methods that cannot be accounted: Gaussian noise relative to the size of each "
        "upload. Masking only, no ε follows.",
    )
    repetitions: int = parameter(
        10,
        key="repetitions",
        label="Repetitions",
        help="Starts and noise draws on one data set; bands are over them.",
        low=1,
        high=30,
        step=1,
    )
    seed: int = shared(
        "seed",
        help="Seed of data, start, sampling and noise. A deployment draws noise from secret "
        "entropy instead.",
    )
    # ---------------------------------------------------------------- view
    view: str = parameter(
        "run", key="view", label="Show", help="Which question to look at.", choices=VIEWS, view=True
    )
    multiplier: float = parameter(
        10.0,
        key="nu",
        label="Noise over sensitivity",
        help="The other way round: the ε that a given noise means, with δ and T as set.",
        low=0.05,
        high=500.0,
        step=0.05,
        view=True,
    )
    figure: str = parameter(
        "3a",
        key="figure",
        label="Figure",
        help="The panels of FedPower's Figures 3 and 4, and three of our own.",
        choices={figure.key: figure.menu for figure in FIGURES},
        view=True,
    )
    paper_size: bool = parameter(
        False,
        key="papersize",
        label="At the paper's size",
        help="100 or 1000 features. Drawing the data takes from ten seconds (Model I) to a few "
        "minutes (many networks).",
        view=True,
    )

    def idle(self) -> Mapping[str, str]:
        off, real, own = math.isinf(self.epsilon), self.problem in REAL, self.problem == "table"
        entry, power, ways = METHODS[self.method], self.method == "fedpower", self.view == "ways"
        other, noise = foreign(self.problem), ("calibration", "delta", "unit", "held", "trusted")
        counted, source = self.view == "accountants", not off and self.calibration == "source"
        settings, steps = self.carried(ConvergeSettings), {"local_steps": (1, 10)}
        own_steps = power or ways or not without_effect(settings, (self.method,), steps)
        return because(
            (not own, other, TABLE_FIELDS),
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
            (
                self.view in ("utility", "budget", "attacks"),
                "It changes the bytes alone, which are not shown here.",
                "literal",
            ),
            (self.unit != "person", "ε protects something else than a person here.", "held"),
            (self.trusted != "clients" and not ways, ALONE, ("colluding", "dropouts")),
            (entry.accounts, f"The noise of {entry.title} is on its products.", "upload_noise"),
            (source, AT_SOURCE, "upload_noise"),
            (source and not (entry.accounts or ways or counted), AT_SOURCE, "products"),
            (not power, f"{entry.title} has no such parameter.", OF_FEDPOWER),
            (not own_steps, f"{entry.title} has no such parameter.", "local_steps"),
            (ways, "Every way draws all clients.", "draws"),
        )

    @classmethod
    def _modernised(cls, values: dict[str, Any]) -> dict[str, Any]:
        """A noise that was switched off is an infinite budget."""
        modern = dict(values)
        if str(modern.pop("noise", True)).casefold() == "false":
            modern["epsilon"] = INFINITY
        return modern
