"""The pages, their tabs and addresses, in the order ask, see, prove; and their lists as HTML."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlencode

import streamlit as st

from dashboard.shell.controls import packed
from dashboard.shell.markup import html
from fedpca_core.settings import Settings


class Place(NamedTuple):
    """What has an address: ``pages/<name>.py``, at ``/<name>``; the first is the front page.

    ``of`` names the page whose tab it is, ``tab`` what it is called there where that is not its
    title. What pages answer is said in `words.toml`.
    """

    name: str
    title: str
    icon: str
    of: str = ""
    tab: str = ""


ENTRIES: tuple[Place, ...] = (
    Place("home", "Home", "home"),
    Place("which", "Which one?", "alt_route", tab="The answer"),
    Place("converge", "How fast?", "show_chart", of="which"),
    Place("attack", "What leaks?", "visibility", tab="Attack"),
    Place("check", "Leak check", "fact_check", of="attack"),
    Place("trace", "Open a run", "folder_open", of="attack"),
    Place("privacy", "What does privacy cost?", "verified_user"),
    Place("anomaly", "Anomalies", "sensors"),
    Place("personalise", "Who collaborates?", "diversity_3"),
    Place("papers", "Do the papers hold?", "menu_book", tab="The numbers"),
    Place("theory", "What is proved?", "function", of="papers"),
)
PLACES = {entry.name: entry for entry in ENTRIES}


def door(to: str | Settings, label: str, icon: str = "") -> None:
    """A link to a page by its name, or to the page of these settings, which it opens with."""
    name = to if isinstance(to, str) else to.kind if to.kind in PLACES else ENTRIES[0].name
    st.page_link(
        f"../pages/{name}.py",
        label=label,
        icon=f":material/{icon or PLACES[name].icon}:",
        query_params=None if isinstance(to, str) else packed(to),
    )


def tabs_of(name: str) -> tuple[Place, ...]:
    """A page and its tabs, whichever of them is named."""
    page = next((entry.of or entry.name for entry in ENTRIES if entry.name == name), name)
    return tuple(entry for entry in ENTRIES if page in (entry.name, entry.of))


def address(name: str) -> str:
    """Where a page is, from any other page."""
    return "./" if name == ENTRIES[0].name else name


def listed(current: str) -> str:
    """The list of all pages.

    Streamlit would draw its own navigation anew several times whenever a parameter is turned, which
    is a quarter of all that it draws then.
    """
    return _list("fp-pages", "Pages", (one for one in ENTRIES if not one.of), tabs_of(current)[0])


def tabs(current: str) -> str:
    """The list of a page's tabs; empty where it has none."""
    found = tabs_of(current)
    shown = next(one for one in found if one.name == current)
    named = (one._replace(title=one.tab or one.title) for one in found)
    return _list("fp-tabs", found[0].title, named, shown) if len(found) > 1 else ""


def _list(kind: str, label: str, entries: Iterable[Place], current: Place) -> str:
    travels = urlencode(packed(None))  # ``links.js`` adds it to an address that it opens
    named = {"kind": kind, "label": label, "entries": entries, "current": current}
    return html("places", **named, travels=travels, address=address, tabs_of=tabs_of)
