"""The figures of a page, kept as they are drawn, for whoever takes them away.

A view that draws itself in the browser also knows how to print itself; what stands on the page at
the moment is kept in the session, in the order in which it stands there.
"""

from collections.abc import Callable, Mapping
from typing import cast

import streamlit as st

#: Prints a view: the caption in, and which kinds and figures; files out, by name.
Printer = Callable[..., Mapping[str, bytes]]

_STATE = "_figures"


def forget() -> None:
    """Start a page anew: nothing is drawn yet."""
    st.session_state[_STATE] = {}


def keep(key: str, printer: Printer) -> None:
    """Remember how to print the view ``key``; one drawn again takes the place of the former."""
    st.session_state.setdefault(_STATE, {})[key] = printer


def kept() -> Mapping[str, Printer]:
    """Printers by key; filled further while the page is drawn."""
    return cast(Mapping[str, Printer], st.session_state.setdefault(_STATE, {}))


def picture(printer: Printer, caption: str, at: int) -> bytes:
    """One figure of a view as PNG, by its place."""
    return next(iter(printer(caption, kinds=("png",), only=at).values()))
