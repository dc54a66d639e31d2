"""The settings of a run that is opened from its file: which client is read, and how."""

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.settings import Settings, choice, number, switch
from fedpca_core.study.pca_settings import narrowed
from fedpca_core.study.world import shared

#: Steps of the records' grid by key; None where the server knows none.
GRIDS: dict[str, float | None] = {"real": None, "guess": None, "1": 1.0, "0.1": 0.1, "0.01": 0.01}


@dataclass(frozen=True)
class OpenedSettings(Settings):
    """What a reader of a run's file may choose; the run itself is in the file."""

    kind: ClassVar[str] = "trace"

    client: int = shared("client")
    grid: str = choice("real", "Values of the records")
    unmask: bool = narrowed("unmask", False, view=False)
    stated_trace: float = number(0.0, "Trace of the matrix, if known", 0.0, 1e12, 0.1, key="trace")
    budget: int = narrowed("budget", 500)
    remedy: bool = switch(False, "Try what would have stopped it", view=True)
