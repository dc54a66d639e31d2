"""One colour, one dash and one marker per algorithm, kept on every page.

Colour alone never carries the meaning: two curves that a colour-blind reader may confuse differ
in dash, and no two algorithms share both dash and marker. Every colour has a contrast of at least
3 to 1 (WCAG, graphical objects) against the paper of its scheme.

Formal privacy (a differential-privacy guarantee) and heuristic masking are two different things;
each has a colour of its own that nothing else uses, and so have values that only a simulation can
know because they need the clients' private data.
"""

import re
import tomllib
from pathlib import Path

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput

_READ = tomllib.loads((Path(__file__).resolve().parents[1] / "palette.toml").read_text("utf-8"))
ROLES = {name: Look(**look) for name, look in _READ["roles"].items()}
#: For anything without a name of its own (clients, data sets, seeds), in this order; they repeat.
FALLBACKS = tuple(Look(**look) for look in _READ["series"].values())


def style(name: str) -> Look:
    """The style of a method by its key or title, a role, ``"series 3"``, or a colour.

    Series are counted from 0; a colour, ``#rrggbb``, is the same in both schemes.

    Raises InvalidInput: the name is none of these.
    """
    if (found := method(name)) is not None:
        return found.look
    if name in ROLES:
        return ROLES[name]
    if series := re.fullmatch(r"series (\d+)", name):
        return FALLBACKS[int(series[1]) % len(FALLBACKS)]
    if re.fullmatch("#[0-9a-fA-F]{6}", name):
        return Look(name, name)
    known = ", ".join([*METHODS, *ROLES])
    raise InvalidInput(
        f"There is no colour called {name!r}; use one of {known}, "
        'a "series N" with N from 0, or a colour written as #rrggbb.'
    )


def method(name: str) -> Method | None:
    return METHODS.get(name) or {entry.title: entry for entry in METHODS.values()}.get(name)


def knows(name: str) -> bool:
    return method(name) is not None or name in ROLES
