"""The settings of the Privacy page: data, budget, run and view as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.settings import Settings, parameter

MODELS = {
    "spiked": "Spiked covariance (Model I)",
    "blocks": "Block model (Model II)",
    "distinct": "Distinct clients",
}

METHODS = {
    "fedpower": "FedPower",
    "ssi": "SSI",
    "block_krylov": "Block Krylov",
    "faps": "FAPS",
    "local_power": "LocalPower",
    "fedpe": "FedPE",
    "fedpg": "FedPG",
}

VIEWS = {
    "run": "Convergence",
    "utility": "Price of ε",
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

    # ---------------------------------------------------------------- data
    model: str = parameter(
        "spiked",
        key="model",
        label="Data",
        help="Model I: Gaussian records with a few strong directions. Model II: rows of the "
        "adjacency matrices of two-community networks. Distinct clients: shared and private "
        "directions, for attacks.",
        choices=MODELS,
    )
    features: int = parameter(
        40,
        key="features",
        label="Features",
        help="Entries of a record (d in FedPower; the nodes of a network in Model II).",
        low=10,
        high=200,
        step=5,
    )
    clients: int = parameter(
        20,
        key="clients",
        label="Clients",
        help="How many machines hold data (m in FedPower). Averaging over them averages noise.",
        low=2,
        high=50,
        step=1,
    )
    samples: int = parameter(
        30000,
        key="samples",
        label="Samples per client",
        help="Records of each client (n_i in FedPower). Noise is in proportion to 1/n_i.",
        grid=(500, 1000, 2000, 5000, 10000, 20000, 30000, 50000, 100000),
    )
    networks: int = parameter(
        2,
        key="networks",
        label="Networks per client",
        help="Model II: each network gives as many records as it has nodes. The paper has one.",
        grid=(1, 2, 4, 8, 16, 32, 64, 128, 164, 256),
    )
    components: int = parameter(
        4,
        key="components",
        label="Components",
        help="Dimension of the subspace sought (k in FedPower).",
        low=1,
        high=8,
        step=1,
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
    treatment: str = parameter(
        "normalised",
        key="records",
        label="Records are",
        help="Done to every record before its client forms S_i, inside the trusted code. "
        "Sensitivity rests on it; raw records have no bound, so no ε can be stated.",
        choices={
            "normalised": "Normalised to the clip norm",
            "clipped": "Clipped at the clip norm",
            "raw": "Left raw",
        },
    )
    clip_norm: float = parameter(
        1.0,
        key="clip",
        label="Clip norm",
        help="Largest Euclidean norm of a record. Sensitivity and noise grow with its square.",
        grid=(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
    )
    # ---------------------------------------------------------------- budget
    noise: bool = parameter(
        True,
        key="dp",
        label="Noise on every product",
        help="Gaussian noise on each product with S_i, hidden ones too. Off: ε is infinite.",
    )
    epsilon: float = parameter(
        1.0,
        key="eps",
        label="Budget ε",
        help="Total over the whole run. Smaller is more private; below 1 is strong, above 10 weak.",
        grid=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    )
    delta: float = parameter(
        1e-6,
        key="delta",
        label="Failure probability δ",
        help="Total over the whole run; should be well below one over a client's records.",
        grid=(1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    )
    calibration: str = parameter(
        "exact",
        key="calibration",
        label="Calibration",
        help="Published: FedPower's Theorem 6, valid but several times more noise than needed. "
        "Exact: true sensitivity and exact composition.",
        choices={"exact": "Exact", "published": "Published"},
    )
    # ---------------------------------------------------------------- run
    method: str = parameter(
        "fedpower",
        key="method",
        label="Method",
        help="FedPower, SSI and block Krylov touch the data through products only and can be "
        "accounted. The others cannot: noise on their uploads is masking, and the page says why.",
        choices=METHODS,
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
    period: int = parameter(
        2,
        key="period",
        label="Local steps p",
        help="Products before the first communication. 1 communicates after every product.",
        low=1,
        high=10,
        step=1,
    )
    decay: bool = parameter(
        True,
        key="decay",
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
        help="Send the client's own frame in every round, as the paper's listing does, also where "
        "the server knows it already.",
    )
    draws: int = parameter(
        0,
        key="draws",
        label="Clients drawn per round",
        help="0: everybody takes part. K: drawn with replacement at each communication, so that "
        "K = m is not everybody. The reference client uploads always.",
        low=0,
        high=50,
        step=1,
    )
    mask: float = parameter(
        0.0,
        key="mask",
        label="Noise on uploads",
        help="For methods that cannot be accounted: Gaussian noise relative to the size of each "
        "upload. Masking only, no ε follows.",
        grid=(0.0, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0),
    )
    repetitions: int = parameter(
        10,
        key="repetitions",
        label="Repetitions",
        help="Starts and noise draws on one data set; bands are quartiles over them.",
        low=1,
        high=30,
        step=1,
    )
    seed: int = parameter(
        0,
        key="seed",
        label="Seed",
        help="Seed of data, start, sampling and noise. A deployment draws noise from secret "
        "entropy instead.",
        low=0,
        high=99999,
        step=1,
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
        choices={
            "3a": "3(a) Model I, local products p",
            "3b": "3(b) Model I, budget ε",
            "3c": "3(c) Model I, clients drawn K",
            "3d": "Model I with exact noise (ours)",
            "4a": "4(a) Model II, local products p",
            "4b": "4(b) Model II, budget ε",
            "4c": "4(c) Model II, clients drawn K",
            "4d": "Model II without noise (ours)",
            "4e": "Model II that works (ours)",
        },
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
