"""One world: the parameters that several pages share, each declared once.

Whatever page shows one of them, it has the same name, link key and meaning; a page may narrow its
range, change its default or add to its help (`shared`). Those that describe who takes part in what
travel with the visitor from page to page.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from fedpca_core.settings import Parameter

#: Where data come from, on any page.
PROBLEMS = {
    "decay_geometric": "Geometric spectrum",
    "decay_arithmetic": "Arithmetic spectrum",
    "digits": "Digits",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10 (grey)",
    "olivetti": "Olivetti faces",
    "table": "Your own table",
    "spiked": "Spiked covariance (Model I)",
    "blocks": "Block model (Model II)",
    "distinct": "Distinct clients",
    "latent": "Personal subspaces",
    "quadratics": "Quadratics",
    "pair": "Two scalar clients",
    "ridge": "Ridge regression",
    "logistic": "Logistic regression",
    "auto": "Best available traffic",
    "ton": "TON-IoT",
    "unsw": "UNSW-NB15",
    "nsl": "NSL-KDD",
    "iot23": "IoT-23",
    "synthetic": "Synthetic traffic",
    "own": "Your own file",
}

#: Why parameters make no difference, on any page (`Settings.idle`).
NO_NOISE = "There is no noise at ε = ∞."
EVERYBODY = "Everybody takes part in every round."
CLIENTS_NAMED = "A column of the table says who the clients are."
NOT_CENTRED = "The records are not centred, so no mean is paid for."


def foreign(problem: str) -> str:
    """Why a parameter of other problems makes no difference."""
    return f"“{PROBLEMS[problem]}” has no such parameter."


WORLD: dict[str, Parameter] = {
    "problem": Parameter(
        "decay_geometric",
        key="problem",
        label="Problem",
        help="Where the clients' private data come from.",
        choices=PROBLEMS,
        travels=True,
    ),
    "clients": Parameter(
        10,
        key="clients",
        label="Clients",
        help="How many parties hold data. FAPS calls it d, FedPower and PerPCA m, FedPG and the "
        "theory of deterministic methods N.",
        low=2,
        high=300,
        step=1,
        travels=True,
    ),
    "heterogeneity": Parameter(
        0.0,
        key="heterogeneity",
        label="Heterogeneity",
        help="How much the clients differ. 0: all alike, or random shares of one population. "
        "1: as far apart as this problem has them.",
        low=0.0,
        high=1.0,
        step=0.05,
        travels=True,
    ),
    "participation": Parameter(
        1.0,
        key="participation",
        label="Participation",
        help="Share of the clients that take part in a round; a new subset is drawn each round.",
        low=0.02,
        high=1.0,
        step=0.02,
        travels=True,
    ),
    "components": Parameter(
        5,
        key="components",
        label="Components",
        help="Dimension of the subspace that is sought. FAPS calls it p, FedPower and FedPG k, "
        "PerPCA r.",
        low=1,
        high=30,
        step=1,
        travels=True,
    ),
    "seed": Parameter(
        0,
        key="seed",
        label="Seed",
        help="Seed of all randomness: data, start, sampling and noise, each from a stream of its "
        "own.",
        low=0,
        high=99999,
        step=1,
        travels=True,
    ),
    "epsilon": Parameter(
        math.inf,
        key="epsilon",
        label="Budget ε",
        help="Differential privacy of one record, for the whole run. Smaller is more "
        "private: below 1 is strong, above 10 weak; ∞ switches the noise off.",
        grid=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, math.inf),
        travels=True,
    ),
    "delta": Parameter(
        1e-6,
        key="delta",
        label="Failure probability δ",
        help="Total over the whole run; should be well below one over a client's records.",
        grid=(1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
        travels=True,
    ),
    "clip_norm": Parameter(
        1.0,
        key="clip",
        label="Clip norm",
        help="Largest Euclidean norm of a record; longer ones are shortened to it inside the "
        "client. Sensitivity and noise grow with its square.",
        grid=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 50.0),
    ),
    "mean_share": Parameter(
        0.1,
        key="meanshare",
        label="Share for the mean",
        help="Images, centred tables and traffic are centred on a mean of their own, which says "
        "something of every record: this share of the budget (of squared noise) pays for a noisy "
        "one.",
        grid=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    ),
    "mean_clip": Parameter(
        50.0,
        key="meanclip",
        label="Clip norm for the mean",
        help="Largest norm of a record before it is centred, where the noisy mean is formed. "
        "Records may lie far from the origin; a bound that is too short bends the mean.",
        grid=(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0),
    ),
    "features": Parameter(
        50,
        key="features",
        label="Features",
        help="Entries of a record. FAPS calls it n, FedPower and the others d.",
        low=2,
        high=100_000,
        step=1,
    ),
    "samples": Parameter(
        1000,
        key="samples",
        label="Samples per client",
        help="Records each client holds, on average. FAPS calls it mᵢ, FedPower nᵢ, FedPG Dᵢ, "
        "PerPCA n.",
        low=1,
        high=100_000,
        step=1,
    ),
    "records_per_client": Parameter(
        math.inf,
        key="perclient",
        label="Records per client",
        help="How many images each client holds; ∞ deals out all there are. With fewer records "
        "than features, a second-moment matrix determines the records themselves.",
        grid=(2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100, 200, math.inf),
        travels=True,
    ),
    "rounds": Parameter(
        75,
        key="rounds",
        label="Rounds",
        help="Communication rounds: one message down and one up for each participating client.",
        low=1,
        high=3000,
        step=1,
    ),
    "penalty_factor": Parameter(
        0.15,
        key="penalty",
        label="Penalty factor",
        help="Strength of the pull to consensus (β in FAPS, ρ in FedPE and FedPG, r in the theory "
        "of deterministic methods), relative to the scale of the clients' problems.",
        low=0.0,
        high=1000.0,
        step=0.01,
    ),
    "local_steps": Parameter(
        8,
        key="localsteps",
        label="Local steps",
        help="Work of a client between two messages.",
        low=1,
        high=100,
        step=1,
    ),
    "secure_aggregation": Parameter(
        False,
        key="secure",
        label="Secure aggregation",
        help="The server receives only the sum of the participants' uploads.",
        travels=True,
    ),
    "upload_noise": Parameter(
        0.0,
        key="noise",
        label="Noise on uploads",
        help="Gaussian noise each client adds to every upload, relative to the root mean "
        "square of the upload itself. Masking only: no ε follows from it.",
        grid=(0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0),
    ),
    "client": Parameter(
        0,
        key="client",
        label="Attacked client",
        help="The client whose data the server tries to reconstruct, counted from 0.",
        low=0,
        high=299,
        step=1,
    ),
    "client_column": Parameter(
        "",
        key="clientcolumn",
        label="Client column",
        help="Column of your own table whose values name the clients (a station, a hospital); "
        "empty: the rows are split.",
    ),
    "columns": Parameter(
        (),
        key="columns",
        label="Features",
        help="Numeric columns of your own table that are used; none chosen: all of them.",
    ),
    "scaling": Parameter(
        "standardise",
        key="scaling",
        label="Scaling",
        help="Standardise: every feature of your own table gets mean 0 and standard deviation 1 "
        "over all clients (this needs two secure sums).",
        choices={"standardise": "Standardise", "centre": "Centre only", "none": "As they are"},
    ),
}


def shared(name: str, **narrowed: Any) -> Any:
    """Field of a settings class with the world's parameter of this name.

    Parameters
    ----------
    name : str
        Key of `WORLD`; the field must be called the same.
    **narrowed
        Another ``default``, a smaller ``low``, ``high``, ``step``, ``grid`` or ``choices``, other
        ``help``.
    """
    description = WORLD[name].narrowed(**narrowed) if narrowed else WORLD[name]
    return field(default=description.default, metadata={"parameter": description})
