"""Settings whose data are not on this machine: what is shown instead, and how to get them."""

from collections.abc import Callable
from typing import TypeVar

from dashboard.shell import earlier
from dashboard.shell.navigation import door
from fedpca_core.settings import Settings
from fedpca_core.study.here import instead, missing

S = TypeVar("S", bound=Settings)


def opened(settings: S) -> S:
    """What a link to these settings opens: the same, or what comes along in their place.

    The same too where their data are missing and a result is stored, which is shown then.
    """
    return settings if earlier.kept(settings) else instead(settings) or settings


def told(text: str, settings: Settings) -> str:
    """What a link says of itself, and where its data are missing how to get them."""
    absent, other = missing(settings), instead(settings)
    if absent is None:
        return text
    shown = f" Opened with {_title(other)} meanwhile." if other else ""
    if earlier.kept(settings):
        shown = " A stored result is shown meanwhile."
    return f"{text} {absent}{shown}"


def offer(settings: Settings, stored: Callable[[], None] | None = None) -> None:
    """A link that opens the page with data that come along, where it has such, and what is stored.

    ``stored``: Draws the result that is stored for exactly these settings.
    """
    if (other := instead(settings)) is not None:
        door(other, f"Show it with {_title(other)}, which is here", "database")
    if stored is not None:
        stored()


def _title(settings: Settings) -> str:
    described = settings.parameters()["problem"]
    return described.text(settings.problem)  # type: ignore[attr-defined]
