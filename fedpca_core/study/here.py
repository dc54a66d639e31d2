"""Which data are on this machine, and what settings show instead where theirs are not."""

from dataclasses import replace
from typing import Any, TypeVar

from fedpca_core.problems.data_sets import COMMAND, DATA_SETS, MissingData, find, require_here
from fedpca_core.problems.images import SOURCES
from fedpca_core.settings import Settings

#: Pages ask here for these, which are of another room.
__all__ = ["COMMAND", "MissingData", "require_here"]

S = TypeVar("S", bound=Settings)

#: Components that the eight features of IoT-23 have room for.
FEW_COMPONENTS = 4


def named(settings: Settings) -> tuple[str, ...]:
    """Keys of the public data sets that settings name."""
    problem = getattr(settings, "problem", "")
    return (problem,) if problem in DATA_SETS else ()


def missing(settings: Settings) -> MissingData | None:
    """What settings name that is not on this machine, as the sentence that helps; None if none."""
    absent = next((key for key in named(settings) if find(key) is None), None)
    return None if absent is None else MissingData(absent)


def instead(settings: S) -> S | None:
    """The same on a data set that comes along, where that of the settings is missing.

    None where nothing is missing, or where the page does not offer the other one.
    """
    if (absent := missing(settings)) is None:
        return None
    other = DATA_SETS[absent.key].instead
    return on(settings, other) if other in settings.parameters()["problem"].choices else None


def on(settings: S, other: str) -> S:
    """The same on another data set, no larger than that has room for."""
    changes: dict[str, Any] = {"problem": other}
    if other in SOURCES and getattr(settings, "resolution", 0) > SOURCES[other].side:
        changes["resolution"] = 0
    if other == "iot23":
        changes["components"] = min(getattr(settings, "components", 1), FEW_COMPONENTS)
    return replace(settings, **changes)
