"""The two functions that put a replay view on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from dashboard.player.encode import encode
from dashboard.player.printed import printed
from dashboard.player.stage import Lecture, Run, Stage
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


def replay(
    *,
    key: str,
    rounds: int,
    panels: Sequence[Panel | Heat] = (),
    images: Sequence[Sequence[Images]] = (),
    round_label: str = "round",
    start: int | None = None,
    playback: bool = True,
    stage: Stage | None = None,
    sentences: Sequence[str] = (),
    autoplay: bool = False,
    run: Run | None = None,
    lecture: Lecture | None = None,
    on_attack: Callable[[], None] | None = None,
) -> None:
    """Show a run with a transport bar: images, charts and a read-out at the current round.

    The view updates in place: a reader's zoom, hidden curves, current round and playing go on
    when the data change. Nothing is sent to the server while scrubbing.

    Parameters
    ----------
    key : str
        Unique on the page; keeps the view's identity over reruns.
    rounds : int
        K; frames and curves have K + 1 entries, the first is the start.
    panels : sequence of Panel or Heat
        Shown side by side where there is room.
    images : sequence of rows of Images
        Shown above the panels, every row on its own line.
    round_label : str
        What a step is called ("round", "iteration").
    start : int, optional
        The round shown first; default the last. Later runs keep the reader's round, cut to the
        new length; as long as nobody has moved, the default keeps showing the last.
    playback : bool
        False leaves out the transport, the cursor and the read-out.
    stage : Stage, optional
        Clients, messages and the server, above everything else; the view becomes one scene that
        fits on a screen, with the pictures beside the charts and without the read-out.
    sentences : sequence of str
        One for each round, the start included: what has just happened; none for no line.
    autoplay : bool
        Play once when the view opens, or when it has got more than a start, unless the reader
        prefers less motion.
    run : Run, optional
        With it the curves of the run before stay as a ghost, and a run can be pinned.
    lecture : Lecture, optional
        How it is shown to a room.
    on_attack : callable, optional
        Called when a reader presses the button of a side that has one.

    Raises
    ------
    InvalidInput
        If lengths do not fit together; the sentence says which.
    """
    figures.keep(key, lambda caption: printed(key, panels, images, caption))
    mount = _mount if on_attack is None else partial(_mount, on_chosen_change=on_attack)
    mount(
        key=key,
        data=encode(
            key=key,
            rounds=rounds,
            panels=panels,
            images=images,
            round_label=round_label,
            start=start,
            playback=playback,
            stage=stage,
            sentences=sentences,
            autoplay=autoplay,
            run=run,
            lecture=lecture,
        ),
        height="content",
    )


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
