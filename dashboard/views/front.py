"""The front page around its picture: its states on the screen, its dials, the ways on.

Each section of cards is one element of the page: whenever a parameter is turned the browser goes
several times through every element, and as containers, texts and links of Streamlit's the cards
would be more than all the rest together.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote, urlencode

import pandas as pd
import streamlit as st

from dashboard.shell import meanwhile
from dashboard.shell.controls import Controls, packed
from dashboard.shell.markup import html
from dashboard.shell.navigation import ENTRIES, PLACES, address, tabs_of
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.papers.faps import PRESETS
from fedpca_core.questions.home.dials import by_dial
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import STORY
from fedpca_core.settings import Settings
from fedpca_core.study.parts import names

_SHEETS = Path(__file__).resolve().parent.parent / "front"
_PARTS = {"parameters": ".st-key-scene_sheet", "story": ".st-key-story_strip, .st-key-step"}
#: The parameters in the row above the picture.
ROW = (
    *("method", "versus", "clients", "heterogeneity", "penalty_factor", "epsilon"),
    "participation",
)
#: Pixels of a curve; its width is that of its dial.
HIGH, LINE = 40, 1.6
CURVES = {"answer": "none", "attack": "1.5 3"}


# ---------------------------------------------------------------------- on the screen
def begin() -> None:
    st.html(_SHEETS / "front.css")
    script = (_SHEETS / "dials.js").read_text("utf-8")
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


def look(lecture: bool, story: bool, shown: bool, hidden: Collection[str]) -> None:
    """Set the page for a lecture, for a step of the story (its run shown or not), and hide parts.

    In a lecture everything but the picture and the story is below. Each state has a style sheet,
    which is on the page only while the state lasts: one sheet with ``:has(…)`` for all of them
    would make the browser style the page anew for every stroke of a chart.
    """
    states = {
        "free": not story,
        "story": story,
        "told": story and not (lecture and shown),
        "shown": story and shown,
        "lecture": lecture,
    }
    sheets = [(_SHEETS / f"{name}.css").read_text("utf-8") for name, on in states.items() if on]
    rules = [f"{_PARTS[name]} {{ display: none !important; }}" for name in sorted(hidden)]
    if "parameters" in hidden:  # the play bar stands on nothing
        rules.append(".fp-scene > .fp-transport { bottom: 0 !important; }")
        if shown:  # and there is room for a sentence
            asked = '.fp-scene:not([data-hide~="sentence"]) > .fp-sentence'
            rules.append(f"{asked} {{ display: revert !important; }}")
    # The element is always there: nothing below it moves when a state changes.
    st.html(f"<span></span><style>{' '.join(sheets + rules)}</style>")


# ---------------------------------------------------------------------- dials
def meanings(controls: Controls[SceneSettings]) -> None:
    """What every dial means, and why it makes no difference, for ``dials.js``."""
    words = {
        controls.parameters[name].key: " ".join(
            filter(None, (controls.idle.get(name), controls.parameters[name].help))
        )
        for name in ROW
    }
    _held("fp-dials", words)


def legend() -> None:
    """What the lines behind the dials are; in sight once they are (`curves`)."""
    lines = " ".join(f"<i></i>{what}" for what in CURVES)  # drawn by front.css
    told = "Over the range of each dial, in degrees: how far off the answer and the attack are."
    st.html(f'<p class="fp-dial-legend" title="{told}">{lines} · 0–90°</p>')


def curves(table: pd.DataFrame | None) -> None:
    """Behind every dial the errors that it leads to: a style, which moves and draws nothing."""
    rules, told = ["p.fp-dial-legend { visibility: visible; }"] * (table is not None), {}
    described = SceneSettings.parameters()
    for name, sides in () if table is None else by_dial(table).items():
        key = described[name].key
        rules.append(f".st-key-{key} {{ --fp-curve: url({_picture(sides)}); }}")
        told[key] = {
            METHODS[method].title: own[["place", *CURVES]].round(3).to_numpy().tolist()
            for method, own in sides.items()
        }
    _held("fp-curves", told, f"<style>{' '.join(rules)}</style>")


def _held(name: str, words: object, more: str = "") -> None:
    st.html(f'<i class="{name}" data-held="{escape(json.dumps(words))}"></i>{more}')


def _picture(sides: Mapping[str, pd.DataFrame]) -> str:
    """Degrees over the places of a dial, as the address of an SVG."""
    dark = st.context.theme.type == "dark"
    lines = "".join(
        f'<g stroke="{colour}">'
        f'<path d="M{_points(own["place"], own[what])}" stroke-dasharray="{dashes}"/>'
        f'<path d="{_dots(own["place"][::3], own[what][::3])}" stroke-width="4.5" '
        f'stroke-linecap="{cap}"/></g>'
        # Dots tell the methods apart where colours do not: square for the first, round beside it.
        for cap, (method, own) in zip(("square", "round"), sides.items(), strict=False)
        for look in [METHODS[method].look]
        for colour in [look.dark if dark else look.light]
        for what, dashes in CURVES.items()
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 {HIGH}" '
        f'preserveAspectRatio="none" fill="none" stroke-width="{LINE}">'
        f"<style>path {{ vector-effect: non-scaling-stroke }}</style>{lines}</svg>"
    )
    return f"data:image/svg+xml,{quote(svg)}"


def _dots(places: Iterable[float], angles: Iterable[float]) -> str:
    """Lines without a length, of which their ends alone are drawn, of one size on any dial."""
    return "".join(f"M{point}h0" for point in _points(places, angles).split())


def _points(places: Iterable[float], angles: Iterable[float]) -> str:
    room = HIGH - 2 * LINE
    return " ".join(
        f"{100 * place:.1f},{LINE + room * (1 - angle / 90):.1f}"
        for place, angle in zip(places, angles, strict=True)
    )


# ---------------------------------------------------------------------- ways on
def _way(page: str, label: str, icon: str = "", settings: Settings | None = None) -> dict[str, str]:
    """A link to a page with settings or what travels; ``links.js`` opens it as Streamlit its own.

    On a card it is heard with the card's title, since others are called alike.
    """
    return {"href": f"{address(page)}?{urlencode(packed(settings))}", "label": label, "icon": icon}


def _draw(kind: str, cards: Iterable[Mapping[str, object]], **look: str) -> None:
    """Cards: a picture that ``scripts/thumbnails.py`` has drawn, a title, a text, links.

    ``look``: What the pictures show, and how the titles are marked.
    """
    st.html(html("ways", kind=kind, cards=cards, **look))


def steps() -> None:
    front = ENTRIES[0].name
    ways = [_way(front, f"{step.key} · {step.title}", settings=step.settings) for step in STORY]
    _draw("steps", [{"ways": [way]} for way in ways])


def doors() -> None:
    cards = []
    for name, answer in names("doors").items():
        ways = [_way(one.name, one.tab or one.title, one.icon) for one in tabs_of(name)]
        cards.append({"name": name, "title": PLACES[name].title, "text": answer, "ways": ways})
    _draw("questions", cards, shows="A result of this page", tag="h3")


def presets() -> None:
    cards = []
    for preset in (one for one in PRESETS if one.name != "default"):
        run = preset.configuration()
        ways = [_way(run.kind, "Open", PLACES[run.kind].icon, meanwhile.opened(run))]
        point = meanwhile.told(preset.point, run)
        cards.append({"name": preset.name, "title": preset.title, "text": point, "ways": ways})
    _draw("points", cards, shows="Curves of the run", tag="b")
