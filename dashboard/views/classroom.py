"""The lecturer's side of a room: the way in for phones, the guesses as they come, the answer."""

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from dashboard.classroom.rooms import ROOMS, Question, Refused, served
from dashboard.shell.markup import html

#: Where a session keeps the code of its room.
CODE = "classroom"


def opened() -> str | None:
    """The room of this session; None without one, or where it has ended."""
    code = st.session_state.get(CODE)
    if code is not None:
        try:
            ROOMS.version(code)
        except Refused as ended:
            st.caption(str(ended))
            del st.session_state[CODE]
            return None
    return code


def door() -> None:
    if not served:
        return
    if CODE in st.session_state:
        st.button("Close the room", key="room_close", on_click=_close)
    else:
        st.button(
            "Ask a class",
            key="room_open",
            icon=":material/qr_code_2:",
            on_click=_open,
            help="Opens a room: students guess on their phones, by a code and without a name. It "
            "holds numbers only, and ends when you close it.",
        )
    if said := st.session_state.pop("classroom_refused", ""):
        st.caption(said)


def ask(
    code: str,
    asked: str,
    options: tuple[str, ...],
    show: Callable[[str, str | None], None],
    step: str,
) -> None:
    """The question in the room, how to come in, and who has guessed what so far.

    The button below calls ``show`` with the step and the middle of all guesses.
    """
    ROOMS.ask(code, Question(asked, options))

    def shown() -> None:
        middle = ROOMS.view(code).middle
        show(step, None if middle is None else options[middle])

    with st.container(horizontal=True, vertical_alignment="center", key="room"):
        _way_in(code)

        @st.fragment(run_every=0.7)
        def guesses() -> None:
            try:
                room = ROOMS.view(code)
                most = max(room.counts, default=0) or 1
                st.html(html("guesses", room=room, options=options, most=most))
            except Refused as ended:
                st.caption(str(ended))

        with st.container():
            guesses()
            st.button("Show us", key="story_show", type="primary", on_click=shown)


def reveal(code: str, asked: str, options: tuple[str, ...], answer: str) -> str:
    """Tell the phones the answer; returns how the class did, in a sentence."""
    truth = options.index(answer)
    ROOMS.ask(code, Question(asked, options, truth))
    room = ROOMS.view(code)
    if room.middle is None:
        return f"Nobody guessed. It was {answer}."
    return (
        f"At least half of you said {options[room.middle]} or less. It was {answer}; "
        f"{room.counts[truth]} of {len(room.guesses)} said so."
    )


def address(code: str) -> str:
    """The room's address, as phones reach it; behind several servers it names the right one."""
    here = urlsplit(st.context.url or "")
    seat = st.context.cookies.get("replica")
    path = f"{here.path.rstrip('/')}/room/{code}"
    return urlunsplit(here._replace(path=path, query=urlencode({"at": seat} if seat else {})))


def _way_in(code: str) -> None:
    where = address(code)
    picture = segno.make(where, error="m").svg_data_uri(border=2, dark="#000", light="#fff")
    host = urlsplit(where)
    place = host.netloc + host.path.rsplit("/", 1)[0]
    alone = host.hostname in ("localhost", "127.0.0.1", "::1")
    room = html("room", where=where, picture=picture, code=code, alone=alone, place=place)
    st.html(room, width="content")


def _open() -> None:
    try:
        st.session_state[CODE] = ROOMS.open()
    except Refused as refused:
        st.session_state["classroom_refused"] = str(refused)


def _close() -> None:
    ROOMS.close(st.session_state.pop(CODE))
