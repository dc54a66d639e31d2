"""The lecturer's side of a room: the way in for phones, the guesses as they come, the answer."""

from collections.abc import Callable
from html import escape
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from dashboard.classroom import phones
from dashboard.classroom.rooms import ROOMS, Question, Refused, View

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
    """The button that opens a room for the class, or closes it."""
    if not phones.served:
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

    ``show``: What the button below does, with the step and the middle of all guesses.
    """
    ROOMS.ask(code, Question(asked, options))
    with st.container(horizontal=True, vertical_alignment="center", key="room"):
        _way_in(code)

        @st.fragment(run_every=0.7)
        def guesses() -> None:
            """The guesses as they come."""
            try:
                st.html(_bars(ROOMS.view(code), options))
            except Refused as ended:
                st.caption(str(ended))

        with st.container():
            guesses()
            st.button(
                "Show us",
                key="story_show",
                type="primary",
                on_click=lambda: show(step, _middle(code, options)),
            )


def reveal(code: str, asked: str, options: tuple[str, ...], answer: str) -> str:
    """Tell the phones the answer; returns how the class did, in a sentence."""
    truth = options.index(answer)
    ROOMS.ask(code, Question(asked, options, truth))
    view = ROOMS.view(code)
    if view.middle is None:
        return f"Nobody guessed. It was {answer}."
    right = view.counts[truth]
    return (
        f"At least half of you said {options[view.middle]} or less. It was {answer}; {right} of "
        f"{view.guessed} said so."
    )


def address(code: str) -> str:
    """The room's address, as phones reach it; behind several servers it names the right one."""
    here = urlsplit(st.context.url or "")
    seat = st.context.cookies.get("replica")
    path = f"{here.path.rstrip('/')}/room/{code}"
    return urlunsplit(here._replace(path=path, query=urlencode({"at": seat} if seat else {})))


def _way_in(code: str) -> None:
    """The picture for phones, and the same to be typed."""
    where = address(code)
    picture = segno.make(where, error="m").svg_data_uri(border=2, dark="#000", light="#fff")
    host = urlsplit(where)
    alone = host.hostname in ("localhost", "127.0.0.1", "::1")
    hint = (
        "<small>Phones cannot reach this address: start with <code>make app ADDRESS=0.0.0.0</code> "
        "and open this machine's name instead.</small>"
        if alone
        else f"<small>{escape(host.netloc + host.path.rsplit('/', 1)[0])}</small>"
    )
    st.html(
        f'<div class="fp-room" role="group" aria-label="The way into the room">'
        f'<a href="{escape(where)}" target="_blank" aria-label="The room\'s page for phones">'
        f'<img src="{escape(picture)}" alt="The same address as a QR code"></a>'
        f"<p><b>{code}</b>{hint}</p></div>",
        width="content",
    )


def _bars(view: View, options: tuple[str, ...]) -> str:
    """The guesses as bars above the options."""
    most = max(view.counts, default=0) or 1
    bars = "".join(
        f'<i style="height:{100 * count / most:.0f}%" title="{escape(option)}: {count}"></i>'
        for option, count in zip(options, view.counts, strict=False)
    )
    told = f"{view.guessed} of {view.phones} phones have guessed"
    return (
        f'<div class="fp-guesses" role="img" aria-label="{told}"><div>{bars}</div>'
        f"<p><span>{escape(options[0])}</span><b>{told}</b><span>{escape(options[-1])}</span></p>"
        "</div>"
    )


def _middle(code: str, options: tuple[str, ...]) -> str | None:
    middle = ROOMS.view(code).middle
    return None if middle is None else options[middle]


def _open() -> None:
    try:
        st.session_state[CODE] = ROOMS.open()
    except Refused as refused:
        st.session_state["classroom_refused"] = str(refused)


def _close() -> None:
    ROOMS.close(st.session_state.pop(CODE))
