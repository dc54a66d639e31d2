"""The pages in the order of the navigation: file and address, title, icon; and their list."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode


class Entry(NamedTuple):
    """One page: ``pages/<name>.py``, at ``/<name>``; the first is the front page."""

    name: str
    title: str
    icon: str


ENTRIES: tuple[Entry, ...] = (
    Entry("home", "Home", "home"),
    Entry("converge", "How fast?", "show_chart"),
    Entry("attack", "What leaks?", "visibility"),
    Entry("which", "Which one?", "alt_route"),
    Entry("check", "Leak check", "fact_check"),
    Entry("anomaly", "Anomalies", "sensors"),
    Entry("privacy", "What does privacy cost?", "verified_user"),
    Entry("personalise", "Who collaborates?", "diversity_3"),
    Entry("theory", "What is proved?", "function"),
    Entry("papers", "Do the papers hold?", "menu_book"),
    Entry("trace", "Open a run", "folder_open"),
)


def address(name: str) -> str:
    """Where a page is, from any other page."""
    return "./" if name == ENTRIES[0].name else name


def listed(current: str, query: Mapping[str, str]) -> str:
    """The list of all pages as HTML.

    Streamlit would draw its own navigation anew several times whenever a parameter is turned, which
    is a quarter of all that it draws then.

    Parameters
    ----------
    current : str
        The title of the page that is shown.
    query : mapping of str to str
        What ``links.js`` adds to an address that it opens in the session that is there.
    """
    items = "".join(
        f'<li><a href="{address(entry.name)}"'
        f"{' aria-current=page' if entry.title == current else ''}>"
        f'<i aria-hidden="true" translate="no">{entry.icon}</i>'
        f"<span>{escape(entry.title)}</span></a></li>"
        for entry in ENTRIES
    )
    return (
        f'<nav class="fp-pages" aria-label="Pages" data-query="{escape(urlencode(query))}">'
        f"<ul>{items}</ul></nav>"
    )
