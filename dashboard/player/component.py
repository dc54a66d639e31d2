"""The two functions that put a replay view on a page."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.player import printed
from dashboard.player.encode import encode
from fedpca_core.study.panels import Heat, Images, Panel

FRONTEND = Path(__file__).resolve().parent / "frontend"

#: One module in the browser: the files in the order in which they build on each other.
_ORDER = "tools decode theme figure panel images transport readout stage duel runs lecture view"
SCRIPTS = tuple(f"{name}.js" for name in _ORDER.split())


def frontend_script() -> str:
    return "\n".join((FRONTEND / name).read_text(encoding="utf-8") for name in SCRIPTS)


_mount = st.components.v2.component(
    "fedpca_replay",
    js=frontend_script(),
    css=(FRONTEND / "replay.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def prepared(
    *,
    key: str,
    panels: Sequence[Panel | Heat] = (),
    images: Sequence[Sequence[Images]] = (),
    rounds: int | None = None,
    **view: Any,
) -> Callable[..., None]:
    """Lay a run out once for all who see it, with a transport bar; returns what shows it.

    The view updates in place: a reader's zoom, hidden curves, current round and playing go on
    when the data change. Nothing is sent to the server while scrubbing. Arguments and refusals are
    those of `encode`, but that without ``rounds`` all of it stands still. What shows it calls
    ``on_chosen`` when a reader presses the button of a side, or a point of what is choosable.
    """
    if rounds is None:
        curves = [curve for panel in panels if isinstance(panel, Panel) for curve in panel.curves]
        rounds = max((len(curve.x) - 1 for curve in curves if len(curve.x)), default=0)
        view["playback"] = False
    data = encode(key=key, panels=panels, images=images, rounds=rounds, **view)

    def show(on_chosen: Callable[[], None] | None = None) -> None:
        printed.kept()[key] = partial(printed.printed, key, panels, images)
        mount = _mount if on_chosen is None else partial(_mount, on_chosen_change=on_chosen)
        mount(key=key, data=data, height="content")

    return show


def again(key: str, view: bytes) -> None:
    """Show the bytes of a view made earlier; what is then shown under its key updates it."""
    _mount(key=key, data=view, height="content")


def chart(
    *, key: str, panels: Sequence[Panel | Heat], on_choice: Callable[[str, int], None] | None = None
) -> None:
    """Show panels that stand still; ``on_choice`` gets the curve and the point that is clicked."""

    def chosen() -> None:
        if on_choice and (point := st.session_state[key].get("chosen")):
            on_choice(str(point["curve"]), int(point["point"]))

    prepared(key=key, panels=panels, choosable=on_choice is not None)(on_choice and chosen)
