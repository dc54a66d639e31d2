"""The pages, their tabs and addresses, in the order ask, see, prove; and their lists as HTML."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode


class Place(NamedTuple):
    """What has an address: ``pages/<name>.py``, at ``/<name>``; the first is the front page.

    ``of`` names the page whose tab it is, ``tab`` what it is called there where that is not its
    title, and ``answer`` what a page answers.
    """

    name: str
    title: str
    icon: str
    of: str = ""
    tab: str = ""
    answer: str = ""


ENTRIES: tuple[Place, ...] = (
    Place("home", "Home", "home"),
    Place(
        "which",
        "Which one?",
        "alt_route",
        tab="The answer",
        answer="All methods on your sizes and your demands: an answer by rules that you can read, "
        "with the code to use it; and how fast each gets there.",
    ),
    Place("converge", "How fast?", "show_chart", of="which"),
    Place(
        "attack",
        "What leaks?",
        "visibility",
        tab="Attack",
        answer="The server's view of one client, sharpening round by round, beside the truth. "
        "Check your own deployment, or open the file of your own run.",
    ),
    Place("check", "Leak check", "fact_check", of="attack"),
    Place("trace", "Open a run", "folder_open", of="attack"),
    Place(
        "privacy",
        "What does privacy cost?",
        "verified_user",
        answer="An ε that is accounted: how much noise a budget takes, what it does to accuracy, "
        "and what an attacker still learns.",
    ),
    Place(
        "anomaly",
        "Anomalies",
        "sensors",
        answer="Federated PCA tells attacks from normal network traffic, or not: beside the "
        "baseline that learns nothing.",
    ),
    Place(
        "personalise",
        "Who collaborates?",
        "diversity_3",
        answer="One subspace for all, one for each, or something in between: when personalised "
        "PCA pays.",
    ),
    Place(
        "papers",
        "Do the papers hold?",
        "menu_book",
        tab="The numbers",
        answer="Every number that the source papers print beside ours, with its spread and a "
        "verdict; and the theorems, some of which are false as printed.",
    ),
    Place("theory", "What is proved?", "function", of="papers"),
)


def tabs_of(name: str) -> tuple[Place, ...]:
    """A page and its tabs, whichever of them is named."""
    page = next((entry.of or entry.name for entry in ENTRIES if entry.name == name), name)
    return tuple(entry for entry in ENTRIES if page in (entry.name, entry.of))


def address(name: str) -> str:
    """Where a page is, from any other page."""
    return "./" if name == ENTRIES[0].name else name


def listed(current: str, query: Mapping[str, str]) -> str:
    """The list of all pages.

    Streamlit would draw its own navigation anew several times whenever a parameter is turned, which
    is a quarter of all that it draws then.

    Parameters
    ----------
    current : str
        The name of the page, or the tab, that is shown.
    query : mapping of str to str
        What ``links.js`` adds to an address that it opens in the session that is there.
    """
    page = tabs_of(current)[0]
    return _list("fp-pages", "Pages", (one for one in ENTRIES if not one.of), page, query)


def tabs(current: str, query: Mapping[str, str]) -> str:
    """The list of a page's tabs; empty where it has none."""
    found = tabs_of(current)
    shown = next(one for one in found if one.name == current)
    named = (one._replace(title=one.tab or one.title) for one in found)
    return _list("fp-tabs", found[0].title, named, shown, query) if len(found) > 1 else ""


def _list(
    kind: str, label: str, entries: Iterable[Place], current: Place, query: Mapping[str, str]
) -> str:
    items = "".join(
        f'<li><a href="{address(entry.name)}"'
        f' data-tabs="{" ".join(one.name for one in tabs_of(entry.name))}"'
        f"{' aria-current=page' if entry.name == current.name else ''}>"
        f'<i aria-hidden="true" translate="no">{entry.icon}</i>'
        f"<span>{escape(entry.title)}</span></a></li>"
        for entry in entries
    )
    return (
        f'<nav class="{kind}" aria-label="{escape(label)}" '
        f'data-query="{escape(urlencode(query))}"><ul>{items}</ul></nav>'
    )
