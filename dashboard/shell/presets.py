"""Presets on the pages: links that lead to them, and what to say when one is open."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout, meanwhile
from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from fedpca_core.papers.faps import PRESETS, FapsPreset
from fedpca_core.settings import Value
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.preset import Preset


def buttons(controls: Controls[Any], presets: Iterable[Preset], **look: Any) -> None:
    """A button for each preset, which opens it, or what comes along in the place of its data."""
    for preset in presets:
        st.button(
            preset.title,
            on_click=controls.changer(meanwhile.opened(preset.settings)),
            key=preset.name,
            help=meanwhile.told(preset.point, preset.settings),
            **look,
        )


@cache
def _known() -> Mapping[ConvergeSettings, tuple[FapsPreset, Value | None]]:
    """What is computed for every preset, and for every value that it varies."""
    known: dict[ConvergeSettings, tuple[FapsPreset, Value | None]] = {}
    for preset in PRESETS:
        if preset.name == "default":
            continue  # the page as it opens needs no explanation
        for value in (None, *preset.values):
            configuration = preset.configuration(value)
            chosen = getattr(configuration, preset.varied) if preset.varied else None
            known.setdefault(configuration.run_key(), (preset, chosen))
    return known


def found(settings: ConvergeSettings) -> tuple[FapsPreset, Value | None] | None:
    """The preset (and the value it varies) that these settings are, whatever is shown of them."""
    return _known().get(settings.run_key())


def note(settings: ConvergeSettings) -> None:
    """If these settings are a preset: its point, its other values, and the published numbers."""
    place = st.container()  # always there, so that leaving a preset moves nothing below
    match = found(settings)
    if match is None:
        return
    preset, chosen = match
    with place.container(border=True, key="preset_note"):
        st.markdown(f"**{preset.title}.** {preset.point}")
        if len(preset.values) > 1:
            parameter = settings.parameters()[preset.varied]
            with st.container(horizontal=True):
                for value in preset.values:
                    mark = " (open)" if value == chosen else ""
                    named = f"{parameter.label} {parameter.text(value)}{mark}"
                    door(preset.configuration(value), named)
        if preset.published:
            # Folded, so that the chart stands on the first screen.
            with st.expander("Printed in the paper, at its size and by its own stopping rule"):
                table = published(preset)
                layout.small_table(table, label="Printed", numbers=list(table.columns[1:]))


def published(preset: FapsPreset) -> pd.DataFrame:
    titles = {"rounds": "Rounds", "kkt": "KKT violation", "relative_error": "Relative error"}
    rows: dict[str, dict[str, str]] = {}
    for one in preset.published:
        cells = rows.setdefault(one.method, dict.fromkeys(titles.values(), "–"))
        cells[titles[one.measure.partition(",")[0]]] = one.printed
    return pd.DataFrame(rows).T.rename_axis("Method").reset_index()
