"""The two functions that put a replay view on a page."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.player.encode import encode
from dashboard.player.printed import printed
from dashboard.shell import figures
from fedpca_core.study.panels import Heat, Images, Panel

FRONTEND = Path(__file__).resolve().parent / "frontend"

# One module in the browser: the files in the order in which they build on each other.
SCRIPTS = (
    "tools.js",
    "decode.js",
    "theme.js",
    "figure.js",
    "panel.js",
    "images.js",
    "transport.js",
    "readout.js",
    "stage.js",
    "duel.js",
    "runs.js",
    "lecture.js",
    "view.js",
)


def frontend_script() -> str:
    """Return the component's JavaScript, all files joined."""
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
    **view: Any,
) -> Callable[..., None]:
    """Lay a run with a transport bar out, once for all who see it; returns what shows it.

    The view updates in place: a reader's zoom, hidden curves, current round and playing go on
    when the data change. Nothing is sent to the server while scrubbing. Arguments and refusals are
    those of `encode`; what shows it may be given ``on_attack``, which is called when a reader
    presses the button of a side that has one.
    """
    data = encode(key=key, panels=panels, images=images, **view)

    def show(on_attack: Callable[[], None] | None = None) -> None:
        figures.keep(key, partial(printed, key, panels, images))
        mount = _mount if on_attack is None else partial(_mount, on_chosen_change=on_attack)
        mount(key=key, data=data, height="content")

    return show


def replay(**view: Any) -> None:
    """Lay a run out as `prepared` does, and show it."""
    prepared(**view)()


def again(key: str, view: bytes) -> None:
    """Show the bytes of a view made earlier; what is then shown under its key updates it."""
    _mount(key=key, data=view, height="content")


def chart(
    *,
    key: str,
    panels: Sequence[Panel | Heat] = (),
    images: Sequence[Sequence[Images]] = (),
    on_choice: Callable[[str, int], None] | None = None,
) -> None:
    """Show panels and still images without a transport; updates in place like `replay`.

    ``on_choice`` is called with the name of a curve and the number of a point along it when the
    reader clicks on one.
    """
    longest = max(
        (len(curve.x) for panel in panels if isinstance(panel, Panel) for curve in panel.curves),
        default=1,
    )
    rounds = max(longest - 1, 0)
    if on_choice is None:
        replay(key=key, rounds=rounds, panels=panels, images=images, playback=False)
        return

    def chosen() -> None:
        point = st.session_state[key].get("chosen")
        if point:
            on_choice(str(point["curve"]), int(point["point"]))

    _mount(
        key=key,
        data=encode(
            key=key, rounds=rounds, panels=panels, images=images, playback=False, choosable=True
        ),
        height="content",
        on_chosen_change=chosen,
    )
