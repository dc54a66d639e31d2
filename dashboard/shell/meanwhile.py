"""What is shown meanwhile: a picture computed earlier, a stored one, or the page on other data.

Where a poster of a page's state was made (``make posters``), its picture stands until the page's
first result; without the folder nothing is shown. A picture holds the very bytes of its views, so
it is drawn by the same player under the same key: the result then updates it in place, and the
browser asks for nothing. Where data are missing, there may be a stored picture, or data that come
along.
"""

import base64
import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from dashboard.player import again
from dashboard.player.encode import header
from dashboard.shell.navigation import door
from fedpca_core.questions.catalogue import PRESETS
from fedpca_core.settings import Settings
from fedpca_core.study.here import instead, missing
from fedpca_core.study.study import Study

S = TypeVar("S", bound=Settings)

FOLDER = Path(os.environ.get("FEDPCA_POSTERS") or Path(__file__).resolve().parents[2] / "posters")
#: What progress says over such a picture.
MARK = "Computed earlier; the live result follows. "

#: Pictures of presets whose data do not come along, as `python -m scripts.posters --stored` made
#: them: shown where the data are missing, and marked.
STORED = Path(__file__).resolve().parents[1] / "stored"


def posed(settings: Settings) -> Settings:
    """The state that a poster of a preset shows: a step of the story after its guess."""
    return replace(settings, shown=True) if "shown" in settings.parameters() else settings  # type: ignore[call-arg]


def drawing(study: Study[Any, Any], settings: Settings) -> Callable[[], None] | None:
    """What draws a study of a page in exactly this state from its poster, if there is one."""
    parts = _held(FOLDER, settings)["pictures"].get(study.key)
    return (lambda: _draw(parts)) if parts else None


def kept(settings: Settings) -> bool:
    """Whether there is a stored picture of exactly this state, with all that it shows."""
    return not _held(STORED, settings).get("without_images", True)


def stored(study: Study[Any, Any], settings: Settings) -> Callable[[], None] | None:
    """What draws the stored picture of a study whose data are missing, if there is one."""
    held = _held(STORED, settings)
    if not (parts := held["pictures"].get(study.key)):
        return None
    told = f"**Stored result**, computed with {held['data']} on {held['made']} by version "
    told += f"{held['version']}. Nothing was computed now."
    if held["without_images"]:
        told += " Pictures of the records do not come along: they are not ours to hand on."

    def draw() -> None:
        st.info(told, icon=":material/inventory_2:")
        _draw(parts)

    return draw


def _held(folder: Path, settings: Settings) -> Mapping[str, Any]:
    """What a folder holds of exactly this state: the parts of each study's picture, and of what."""
    file = folder / f"{_names().get(settings)}.json"
    try:
        return _read(file, file.stat().st_mtime_ns)
    except OSError:
        return {"pictures": {}}


@lru_cache(maxsize=128)
def _read(file: Path, changed: int) -> Mapping[str, Any]:
    """As `scripts.posters.keep` has written it; read again where it is made anew."""
    text = file.read_text(encoding="utf-8")
    return json.loads(text, object_hook=lambda one: unpacked(one["view"]) if "view" in one else one)


def packed(content: bytes) -> str:
    """Bytes as a text that a browser opens as well."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


@cache
def _names() -> Mapping[Settings, str]:
    return {posed(preset.settings): name for name, preset in PRESETS.items()}


def _draw(parts: list[str | bytes]) -> None:
    for part in parts:
        if isinstance(part, bytes):
            again(header(part)["key"], part)
        else:
            st.html(part)


# ---------------------------------------------------------------------- where data are missing
def opened(settings: S) -> S:
    """What a link to these settings opens: the same, or what comes along in their place.

    The same too where their data are missing and a result is stored, which is shown then.
    """
    return settings if kept(settings) else instead(settings) or settings


def told(text: str, settings: Settings) -> str:
    """What a link says of itself, and where its data are missing how to get them."""
    absent, other = missing(settings), instead(settings)
    if absent is None:
        return text
    shown = f" Opened with {_title(other)} meanwhile." if other else ""
    if kept(settings):
        shown = " A stored result is shown meanwhile."
    return f"{text} {absent}{shown}"


def offer(settings: Settings, stored: Callable[[], None] | None = None) -> None:
    """A link that opens the page with data that come along, where it has such, and what is stored.

    ``stored``: Draws the result that is stored for exactly these settings.
    """
    if (other := instead(settings)) is not None:
        door(other, f"Show it with {_title(other)}, which is here", "database")
    if stored is not None:
        stored()


def _title(settings: Settings) -> str:
    return settings.parameters()["problem"].text(settings.problem)  # type: ignore[attr-defined]
