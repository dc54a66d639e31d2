"""The pages in the order of the navigation: file and address, title, icon."""

from __future__ import annotations

from typing import NamedTuple


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
