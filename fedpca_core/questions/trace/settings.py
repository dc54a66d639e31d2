"""The settings of a run that is opened from its file: which client is read, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.settings import Settings, parameter
from fedpca_core.study.pca_settings import narrowed
from fedpca_core.study.world import shared

#: Steps of the records' grid by key; None where the server knows none.
GRIDS: dict[str, float | None] = {"real": None, "guess": None, "1": 1.0, "0.1": 0.1, "0.01": 0.01}


@dataclass(frozen=True)
class OpenedSettings(Settings):
    """What a reader of a run's file may choose; the run itself is in the file."""

    kind: ClassVar[str] = "trace"

    client: int = shared("client")
    grid: str = parameter(
        "real",
        key="grid",
        label="Values of the records",
        help="What everybody knows of the records. Whole numbers and fixed decimals give records "
        "away where a client holds fewer of them than features. Records are taken as they were in "
        "the run, so a mean must not have been subtracted.",
        choices={
            "real": "Any real numbers",
            "guess": "On a grid, step unknown",
            "1": "Whole numbers",
            "0.1": "One decimal",
            "0.01": "Two decimals",
        },
    )
    unmask: bool = parameter(
        False,
        key="unmask",
        label="Replay FAPS",
        help="The uploads of FAPS are no products, so its public update is rerun until it explains "
        "them. Needs the trace of the client's matrix; seconds where the client holds few records, "
        "minutes at 60 features else.",
    )
    stated_trace: float = parameter(
        0.0,
        key="trace",
        label="Trace of the matrix",
        help="Mean squared norm of the client's records, where the replay starts from. 0: one for "
        "each feature, as of standardised records.",
        low=0.0,
        high=1e12,
        step=0.1,
    )
    budget: int = narrowed("budget", default=500)
