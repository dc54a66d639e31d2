"""One colour, one dash and one marker per algorithm, kept on every page.

Colour alone never carries the meaning: two curves that a colour-blind reader may confuse differ
in dash, and no two algorithms share both dash and marker. Every colour has a contrast of at least
3 to 1 (WCAG, graphical objects) against the paper of its scheme.

Formal privacy (a differential-privacy guarantee) and heuristic masking are two different things;
each has a colour of its own that nothing else uses, and so have values that only a simulation can
know because they need the clients' private data.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from fedpca_core.algorithms.method import Method
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput

Dash = Literal["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"]


@dataclass(frozen=True)
class Style:
    """How one algorithm or role is drawn: hex colours per scheme, a Plotly dash and marker."""

    light: str
    dark: str
    dash: Dash = "solid"
    marker: str = "circle"


_READ = tomllib.loads((Path(__file__).resolve().parents[1] / "palette.toml").read_text("utf-8"))
ROLES = {name: Style(**look) for name, look in _READ["roles"].items()}
#: For anything without a name of its own (clients, data sets, seeds), in this order.
FALLBACKS = tuple(Style(**look) for look in _READ["series"].values())


def fallback(index: int) -> Style:
    """Return the style of the ``index``-th thing that has no name of its own (they repeat)."""
    return FALLBACKS[index % len(FALLBACKS)]


def style(name: str) -> Style:
    """Return the style of a method, a role, ``"series 3"``, or a plain ``#rrggbb`` colour.

    ``name``: Key or title of a registered method, a key of `ROLES`, ``"series N"`` with N counted
        from 0, or ``#rrggbb`` (used as it is in both schemes).

    Raises InvalidInput: if the name is none of these.
    """
    found = method(name)
    if found is not None:
        look = found.look
        return Style(look.light, look.dark, cast(Dash, look.dash), look.marker)
    if name in ROLES:
        return ROLES[name]
    if name.startswith("series ") and name.removeprefix("series ").isdecimal():
        return fallback(int(name.removeprefix("series ")))
    if len(name) == 7 and name[0] == "#" and all(c in "0123456789abcdefABCDEF" for c in name[1:]):
        return Style(name, name)
    known = ", ".join([*METHODS, *ROLES])
    raise InvalidInput(
        f"There is no colour called {name!r}; use one of {known}, "
        'a "series N" with N from 0, or a colour written as #rrggbb.'
    )


def method(name: str) -> Method | None:
    """The registered method with this key or title, if there is one."""
    titled = {entry.title: entry for entry in METHODS.values()}
    return METHODS.get(name) or titled.get(name)


def knows(name: str) -> bool:
    """Say whether ``name`` is a method or a role with a style of its own."""
    return method(name) is not None or name in ROLES


def colour(name: str, scheme: Literal["light", "dark"]) -> str:
    """Return the hex colour of ``name`` (as in `style`) in one scheme."""
    chosen = style(name)
    return chosen.dark if scheme == "dark" else chosen.light
