"""The ways on from the front page: each section of cards is one element of the page.

Whenever a parameter is turned the browser goes several times through every element of the page. As
containers, texts and links of Streamlit's the cards would be more than all the rest together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from dashboard.shell import absent_data
from dashboard.shell.controls import packed
from dashboard.shell.doors import DOORS
from dashboard.shell.navigation import ENTRIES, address
from dashboard.shell.presets import ICONS, PAGES
from fedpca_core.papers.faps import PRESETS
from fedpca_core.questions.home.story import STORY
from fedpca_core.settings import Settings


@dataclass(frozen=True)
class Way:
    """A link to a page (a file) with settings or what travels, and the HTML above it.

    Where several links are called alike, ``opens`` tells them apart for who hears them only.
    """

    page: str
    label: str
    icon: str = ""
    settings: Settings | None = None
    card: str = ""
    opens: str = ""

    def html(self) -> str:
        """The card and its link, which ``links.js`` opens as Streamlit opens its own."""
        target = f"{address(Path(self.page).stem)}?{urlencode(packed(self.settings))}"
        name = self.icon.removeprefix(":material/").removesuffix(":")
        icon = f'<i aria-hidden="true" translate="no">{escape(name)}</i>' if name else ""
        heard = f' aria-label="{escape(f"{self.label}: {self.opens}")}"' if self.opens else ""
        link = f'<a class="fp-way" href="{escape(target)}"{heard}>{icon}{escape(self.label)}</a>'
        return f"<div>{self.card}{link}</div>"


def story() -> None:
    """All steps of the story."""
    home = f"../pages/{ENTRIES[0].name}.py"
    _draw(
        "steps",
        [
            Way(home, f"{chapter.key} · {chapter.title}", settings=chapter.settings)
            for chapter in STORY
        ],
    )


def doors() -> None:
    """Every question with its page."""
    _draw(
        "questions",
        [
            Way(
                door.page,
                door.label,
                door.icon,
                card=_card(
                    Path(door.page).stem,
                    f"A result of this page: {door.label}",
                    f"<h3>{escape(door.question)}</h3>",
                    door.answer,
                ),
            )
            for door in DOORS
        ],
    )


def presets() -> None:
    """Every preset but that of the page as it opens, with its one point."""
    _draw(
        "points",
        [
            Way(
                PAGES[preset.attack],
                "Open",
                ICONS[preset.attack],
                absent_data.opened(preset.configuration()),
                _card(
                    preset.name,
                    f"Curves of the run: {preset.title}",
                    f"<b>{escape(preset.title)}</b>",
                    absent_data.told(preset.point, preset.configuration()),
                ),
                opens=preset.title,
            )
            for preset in PRESETS
            if preset.name != "default"
        ],
    )


def _draw(kind: str, ways: Iterable[Way]) -> None:
    st.html(f'<div class="fp-ways fp-{kind}">{"".join(way.html() for way in ways)}</div>')


def _card(name: str, shows: str, title: str, text: str) -> str:
    """A picture that ``scripts/thumbnails.py`` has drawn of a run's result, a title, a text."""
    return (
        f'<img class="fp-thumbnail" loading="lazy" alt="{escape(shows)}" '
        f'src="app/static/thumbnails/{escape(name)}.svg">{title}<p>{escape(text)}</p>'
    )
