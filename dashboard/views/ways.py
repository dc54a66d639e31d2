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
    front = ENTRIES[0].name
    titles = {f"{step.key} · {step.title}": step.settings for step in STORY}
    _draw("steps", [WayCard(front, title, settings=one).html() for title, one in titles.items()])


def doors() -> None:
    """Every page, with its tabs."""
    cards = []
    for name, answer in names("doors").items():
        title = PLACES[name].title
        shown = f"A result of this page: {title}"
        cards.append(_card(name, shown, f"<h3>{escape(title)}</h3>", answer))
        for one in tabs_of(name):
            cards[-1] += WayCard(one.name, one.tab or one.title, one.icon, opens=title).html()
    _draw("questions", cards)


def presets() -> None:
    """Every preset but that of the page as it opens, with its one point."""
    cards = []
    for preset in (one for one in PRESETS if one.name != "default"):
        title, run = preset.title, preset.configuration()
        point, there = absent_data.told(preset.point, run), absent_data.opened(run)
        card = _card(preset.name, f"Curves of the run: {title}", f"<b>{escape(title)}</b>", point)
        way = WayCard(run.kind, "Open", PLACES[run.kind].icon, there, opens=title)
        cards.append(card + way.html())
    _draw("points", cards)


def _draw(kind: str, cards: Iterable[str]) -> None:
    drawn = "".join(f"<div>{card}</div>" for card in cards)
    st.html(f'<div class="fp-ways fp-{kind}">{drawn}</div>')


def _card(name: str, shows: str, title: str, text: str) -> str:
    """A picture that ``scripts/thumbnails.py`` has drawn of a run's result, a title, a text."""
    return (
        f'<img class="fp-thumbnail" loading="lazy" alt="{escape(shows)}" '
        f'src="app/static/thumbnails/{escape(name)}.svg">{title}<p>{escape(text)}</p>'
    )
