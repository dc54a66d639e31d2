"""Pictures computed earlier: a poster of a page's state stands where its first result will.

The operator has them made (``make posters``); without the folder nothing is shown. A poster holds
the very bytes of its views, so it is drawn by the same player under the same key: the result
then updates it in place, and the browser asks for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.player import again
from dashboard.player.poster import header, picture
from fedpca_core.settings import Settings
from fedpca_core.studies.catalogue import PRESETS
from fedpca_core.studies.scene.settings import SceneSettings
from fedpca_core.studies.study import Study

FOLDER = Path(os.environ.get("FEDPCA_POSTERS") or Path(__file__).resolve().parents[2] / "posters")
#: What progress says over such a picture.
MARK = "Computed earlier; the live result follows. "


def posed(settings: Settings) -> Settings:
    """The state that a poster of a preset shows: a step of the story after its guess."""
    return replace(settings, shown=True) if isinstance(settings, SceneSettings) else settings


def drawing(study: Study[Any, Any], settings: Settings) -> Callable[[], None] | None:
    """What draws a study of a page in exactly this state from its poster, if there is one."""
    name = _names().get(settings)
    if name is None:
        return None
    file = FOLDER / f"{name}.html"
    try:
        parts = _parts(file, file.stat().st_mtime_ns, study.key)
    except OSError:
        return None
    return (lambda: _draw(parts)) if parts else None


@cache
def _names() -> Mapping[Settings, str]:
    return {posed(preset.settings): name for name, preset in PRESETS.items()}


@lru_cache(maxsize=128)
def _parts(file: Path, changed: int, study: str) -> list[str | bytes]:
    """Read once, and again where the operator has made it anew."""
    return picture(file.read_text(encoding="utf-8"), study)


def _draw(parts: list[str | bytes]) -> None:
    for part in parts:
        if isinstance(part, bytes):
            again(header(part)["key"], part)
        else:
            st.html(part)
