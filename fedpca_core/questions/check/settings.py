"""A deployment in a few public facts: the settings of the leak check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.questions.which.settings import CANDIDATES
from fedpca_core.settings import Settings, parameter
from fedpca_core.study.pca_settings import narrowed
from fedpca_core.study.world import NO_NOISE, shared


@dataclass(frozen=True)
class CheckSettings(Settings):
    """Who runs what with whom; nothing of the data themselves."""

    kind: ClassVar[str] = "check"
    family: ClassVar[str] = "check"

    method: str = parameter(
        "ssi",
        key="deployed",
        label="Method",
        help="What the clients and the server run.",
        choices=CANDIDATES,
    )
    clients: int = shared("clients")
    samples: int = shared("samples", default=500, help="Records of the client in question (m_i).")
    features: int = shared("features", default=20, high=100_000)
    components: int = shared("components", default=4)
    rounds: int = shared("rounds", default=20)
    participation: float = shared("participation")
    centring: str = parameter(
        "pooled",
        key="centring",
        label="Centring",
        help="What is subtracted from the records before: nothing; each client's own mean; the "
        "mean of all records, which every client is told and the server with them; the same mean "
        "kept from the server.",
        choices={
            "none": "None",
            "own": "Each client's own mean",
            "pooled": "Pooled mean, announced",
            "secret": "Pooled mean, kept from the server",
        },
    )
    values: str = parameter(
        "grid",
        key="values",
        label="Values are",
        help="On a known grid: whole numbers, pixels, ages, prices. Codes: one-hot columns, a 1 in "
        "each group. Real: measured to more digits than anybody can count.",
        choices={"grid": "On a known grid", "codes": "One-hot codes", "real": "Real numbers"},
    )
    secure_aggregation: bool = shared("secure_aggregation")
    repeats: bool = parameter(
        False,
        key="repeats",
        label="Run again later",
        help="The same federation runs once more after one record has joined the client.",
    )
    upload_noise: float = shared("upload_noise")
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    dtype: str = narrowed("dtype", default="float64")
    seed: int = shared("seed")

    def idle(self) -> Mapping[str, str]:
        return {} if self.formal else {"delta": NO_NOISE}

    @property
    def formal(self) -> bool:
        """Whether an ε is promised at the source."""
        return not math.isinf(self.epsilon)
