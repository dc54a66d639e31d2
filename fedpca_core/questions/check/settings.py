"""A deployment in a few public facts: the settings of the leak check."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.questions.which.settings import CANDIDATES
from fedpca_core.settings import Settings, choice, switch
from fedpca_core.study.pca_settings import narrowed
from fedpca_core.study.world import NO_NOISE, shared


@dataclass(frozen=True)
class CheckSettings(Settings):
    """Who runs what with whom; nothing of the data themselves."""

    kind: ClassVar[str] = "check"
    family: ClassVar[str] = "check"

    method: str = choice("ssi", "Method", CANDIDATES)
    clients: int = shared("clients")
    samples: int = shared("samples", 500)
    features: int = shared("features", 20, high=100_000)
    components: int = shared("components", 4)
    rounds: int = shared("rounds", 20)
    participation: float = shared("participation")
    centring: str = choice("pooled", "Centring")
    values: str = choice("grid", "Values are")
    secure_aggregation: bool = shared("secure_aggregation")
    repeats: bool = switch(False, "Run again later")
    upload_noise: float = shared("upload_noise")
    epsilon: float = shared("epsilon")
    delta: float = shared("delta")
    dtype: str = narrowed("dtype", "float64")
    seed: int = shared("seed")

    def idle(self) -> Mapping[str, str]:
        return {} if self.formal else {"delta": NO_NOISE}

    @property
    def formal(self) -> bool:
        """Whether an ε is promised at the source."""
        return not math.isinf(self.epsilon)
