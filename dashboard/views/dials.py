"""The dials of the front page: what each means, and what it does over its range."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote

import pandas as pd
import streamlit as st

from dashboard.shell.controls import Controls
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.home.dials import by_dial
from fedpca_core.questions.home.settings import SceneSettings

#: The parameters in the row above the picture.
ROW = (
    *("method", "versus", "clients", "heterogeneity", "penalty_factor", "epsilon"),
    "participation",
)
#: Pixels of a curve; its width is that of its dial.
HIGH, LINE = 40, 1.6
CURVES = {"answer": "none", "attack": "1.5 3"}


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
