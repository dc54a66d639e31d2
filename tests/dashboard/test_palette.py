"""Colours: readable on their paper, distinct, the same in the theme file and in the palette."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dashboard.shell import palette
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]
THEME = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
SCHEMES = ("light", "dark")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def all_styles() -> dict[str, palette.Style]:
    fallbacks = {f"series {at}": style for at, style in enumerate(palette.FALLBACKS)}
    methods = {key: palette.style(key) for key in METHODS}
    return {**methods, **palette.ROLES, **fallbacks}


def colour(name: str, scheme: str) -> str:
    return str(getattr(palette.style(name), scheme))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", all_styles())
def test_every_colour_can_be_seen_on_page_and_sidebar(name, scheme):
    for surface in ("backgroundColor", "secondaryBackgroundColor"):
        assert contrast(colour(name, scheme), THEME[scheme][surface]) >= 3.0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("role", ["formal", "heuristic", "simulation", "guide", "text", "accent"])
def test_colours_that_write_words_have_text_contrast(role, scheme):
    assert contrast(colour(role, scheme), THEME[scheme]["backgroundColor"]) >= 4.5


def test_no_two_algorithms_share_a_colour_or_both_dash_and_marker():
    for one, other in combinations([palette.style(key) for key in METHODS], 2):
        assert one.light != other.light
        assert one.dark != other.dark
        assert (one.dash, one.marker) != (other.dash, other.marker)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_formal_and_heuristic_colours_belong_to_them_alone(scheme):
    for role in ("formal", "heuristic", "simulation"):
        mine = colour(role, scheme)
        others = [colour(name, scheme) for name in all_styles() if name != role]
        assert mine not in others


#: Linear red, green and blue as they are seen without one kind of cone (Machado et al. 2009).
SEEN = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, sight: str) -> np.ndarray:
    """Lightness and the two opponent axes (CIE 1976) of #rrggbb as somebody sees it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SEEN[sight]) @ linear, 0.0, 1.0)
    x, y, z = np.cbrt(XYZ @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SEEN)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_colour_alone_tells_apart_is_told_apart_without_one_kind_of_cone(scheme, sight):
    """On the first screen a dash tells answer from attack, so that colour tells SSI from FAPS."""
    pairs = [("ssi", "faps"), *combinations(("formal", "heuristic", "simulation"), 2)]
    for one, other in pairs:
        seen = [lab(colour(name, scheme), sight) for name in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) >= 15, f"{one} and {other}"


@pytest.mark.parametrize("sight", SEEN)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_clients_of_one_shape_are_told_apart_without_one_kind_of_cone(scheme, sight):
    script = (ROOT / "dashboard/player/frontend/duel.js").read_text(encoding="utf-8")
    hues = json.loads(re.search(rf"const HUES = .*{scheme}: (\[[^\]]*\])", script)[1])
    assert len(hues) == len(set(hues)) == 5
    for one, other in combinations(hues, 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) >= 12, f"{one} and {other}"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_theme_names_the_palette_and_has_whole_scales(scheme):
    theme = THEME[scheme]
    expected = [getattr(style, scheme) for style in palette.FALLBACKS]
    assert theme["chartCategoricalColors"] == expected
    assert len(theme["chartCategoricalColors"]) >= 10
    assert len(theme["chartSequentialColors"]) == 10
    assert len(theme["chartDivergingColors"]) == 10
    assert theme["blueColor"] == colour("formal", scheme)
    assert theme["orangeColor"] == colour("heuristic", scheme)
    assert theme["violetColor"] == colour("simulation", scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_accent_is_legible_on_a_tinted_segment(scheme):
    theme = THEME[scheme]
    primary, paper = theme["primaryColor"], theme["backgroundColor"]
    mixed = [
        round(0.15 * int(primary[at : at + 2], 16) + 0.85 * int(paper[at : at + 2], 16))
        for at in (1, 3, 5)
    ]
    assert contrast(primary, "#" + "".join(f"{part:02x}" for part in mixed)) >= 4.5


def test_fonts_and_licences_are_committed():
    static = ROOT / "dashboard" / "static"
    for face in THEME["fontFaces"]:
        assert (static / face["url"].removeprefix("app/static/")).is_file()
    for name in ("inter", "fraunces", "jetbrains-mono"):
        assert "SIL OPEN FONT LICENSE" in (static / "fonts" / f"{name}.LICENSE.txt").read_text()
    assert (static / "plotly-charts.LICENSE.txt").is_file()


def test_unknown_colours_are_refused():
    assert palette.style("#a1B2c3").dark == "#a1B2c3"
    assert palette.style("series 11") == palette.FALLBACKS[1]
    for name in ("mauve", "#12345", "#12345g", "series x"):
        with pytest.raises(InvalidInput, match="no colour called"):
            palette.style(name)
