"""The ways on from the front page: each section of cards is one element of the page.

Whenever a parameter is turned the browser goes several times through every element of the page. As
containers, texts and links of Streamlit's the cards would be more than all the rest together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

import streamlit as st

from dashboard.shell import absent_data
from dashboard.shell.controls import packed
from dashboard.shell.navigation import ENTRIES, PLACES, address, tabs_of
from fedpca_core.papers.faps import PRESETS
from fedpca_core.questions.home.story import STORY
from fedpca_core.settings import Settings
from fedpca_core.study.parts import names


@dataclass(frozen=True)
class WayCard:
    """A link to a page with settings or what travels.

    Where several links are called alike, ``opens`` tells them apart for who hears them only.
    """

    page: str
    label: str
    icon: str = ""
    settings: Settings | None = None
    opens: str = ""

    def html(self) -> str:
        """The link, which ``links.js`` opens as Streamlit opens its own."""
        target = f"{address(self.page)}?{urlencode(packed(self.settings))}"
        icon = f'<i aria-hidden="true" translate="no">{escape(self.icon)}</i>' * bool(self.icon)
        heard = f' aria-label="{escape(f"{self.label}: {self.opens}")}"' if self.opens else ""
        return f'<a class="fp-way" href="{escape(target)}"{heard}>{icon}{escape(self.label)}</a>'


def story() -> None:
    """All steps of the story."""
    _draw(
        "steps",
        [
            WayCard(ENTRIES[0].name, f"{step.key} · {step.title}", settings=step.settings).html()
            for step in STORY
        ],
    )


def doors() -> None:
    """Every page, with its tabs."""
    _draw(
        "questions",
        [
            _card(
                page.name,
                f"A result of this page: {page.title}",
                f"<h3>{escape(page.title)}</h3>",
                answer,
            )
            + "".join(
                WayCard(one.name, one.tab or one.title, one.icon, opens=page.title).html()
                for one in tabs_of(page.name)
            )
            for page, answer in ((PLACES[name], text) for name, text in names("doors").items())
        ],
    )


def presets() -> None:
    """Every preset but that of the page as it opens, with its one point."""
    _draw(
        "points",
        [
            _card(
                preset.name,
                f"Curves of the run: {preset.title}",
                f"<b>{escape(preset.title)}</b>",
                absent_data.told(preset.point, preset.configuration()),
            )
            + WayCard(
                preset.configuration().kind,
                "Open",
                PLACES[preset.configuration().kind].icon,
                absent_data.opened(preset.configuration()),
                opens=preset.title,
            ).html()
            for preset in PRESETS
            if preset.name != "default"
        ],
    )


def _draw(kind: str, cards: Iterable[str]) -> None:
    drawn = "".join(f"<div>{card}</div>" for card in cards)
    st.html(f'<div class="fp-ways fp-{kind}">{drawn}</div>')


def _card(name: str, shows: str, title: str, text: str) -> str:
    """A picture that ``scripts/thumbnails.py`` has drawn of a run's result, a title, a text."""
    return (
        f'<img class="fp-thumbnail" loading="lazy" alt="{escape(shows)}" '
        f'src="app/static/thumbnails/{escape(name)}.svg">{title}<p>{escape(text)}</p>'
    )
