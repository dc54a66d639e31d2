"""The questions a visitor may come with, and the page that answers each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Door:
    """A way in: the question, what the page shows, and where it is."""

    question: str
    answer: str
    label: str
    page: str
    icon: str


DOORS: tuple[Door, ...] = (
    Door(
        "How fast?",
        "Seven methods from the same start, against rounds, bytes, local products or seconds; "
        "with the rates that theory predicts.",
        "Compare methods",
        "../pages/converge.py",
        ":material/show_chart:",
    ),
    Door(
        "What leaks?",
        "The server's view of one client, sharpening round by round, beside the truth; and what "
        "each defence changes.",
        "Watch an attack",
        "../pages/attack.py",
        ":material/visibility:",
    ),
)
