"""The settings of the front page: every parameter of the experiment, one method at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.algorithms.registry import COMPARED
from fedpca_core.settings import parameter
from fedpca_core.studies.pca_settings import ConvergeSettings, narrowed


@dataclass(frozen=True)
class SceneSettings(ConvergeSettings):
    """The settings of Converge for one method, on images of which each client holds few."""

    kind: ClassVar[str] = "scene"
    former_kinds: ClassVar[tuple[str, ...]] = ()

    problem: str = narrowed("problem", default="digits")
    clients: int = narrowed("clients", default=8, high=40)
    records_per_client: float = narrowed("records_per_client", default=30.0)
    components: int = narrowed("components", default=10)
    rounds: int = narrowed("rounds", default=20, grid=(10, 20, 30, 50, 75, 100))
    starts: int = narrowed("starts", default=1)
    client: int = narrowed("client", default=3, high=39)
    method: str = parameter(
        "ssi",
        key="algorithm",
        label="Method",
        help="How the clients find their common subspace. All of them send matrices and no record; "
        "what the server makes of the matrices is another matter.",
        choices=COMPARED,
    )
