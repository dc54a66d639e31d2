"""What is shown meanwhile: a picture computed earlier, a stored one, or the page on other data.

A poster of a page's state stands where its first result will. The operator has them made (``make
posters``); without the folder nothing is shown. A poster holds the very bytes of its views, so it
is drawn by the same player under the same key: the result then updates it in place, and the browser
asks for nothing. Where data are missing, there may be a stored picture, or data that come along.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from dashboard.player import again
from dashboard.player.poster import header, packed, picture, unpacked
from dashboard.shell.navigation import door
from fedpca_core.questions.catalogue import PRESETS
from fedpca_core.settings import Settings
from fedpca_core.study.here import instead, missing
from fedpca_core.study.study import Study
from fedpca_core.version import __version__

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
    if (name := _names().get(settings)) is None:
        return None
    file = FOLDER / f"{name}.html"
    try:
        parts = _parts(file, file.stat().st_mtime_ns, study.key)
    except OSError:
        return None
    return (lambda: _draw(parts)) if parts else None


def kept(settings: Settings) -> bool:
    """Whether there is a stored picture of exactly this state, with all that it shows."""
    return (held := _held(settings)) is not None and not held["without_images"]


@lru_cache(maxsize=128)
def _held(settings: Settings) -> Any:
    name = _names().get(settings)
    if name is None or not (file := STORED / f"{name}.json").is_file():
        return None
    return json.loads(file.read_text(encoding="utf-8"))


def stored(study: Study[Any, Any], settings: Settings) -> Callable[[], None] | None:
    """What draws the stored picture of a study whose data are missing, if there is one."""
    if (held := _held(settings)) is None:
        return None
    parts = [
        unpacked(part["view"]) if isinstance(part, dict) else part
        for part in held["pictures"].get(study.key, [])
        if isinstance(part, dict) or part.startswith("<div")  # cards look well in a poster only
    ]
    told = f"**Stored result**, computed with {held['data']} on {held['made']} by version "
    told += f"{held['version']}. Nothing was computed now."
    if held["without_images"]:
        told += " Pictures of the records do not come along: they are not ours to hand on."

    def draw() -> None:
        st.info(told, icon=":material/inventory_2:")
        _draw(parts)

    return draw if parts else None


def store(pictures: Mapping[str, list[str | bytes]], name: str, data: str, made: str) -> Path:
    """Write what a preset shows into `STORED`, without views that show records themselves."""
    whole: dict[str, Any] = {"data": data, "made": made, "version": __version__}
    whole |= {"without_images": False, "pictures": {key: [] for key in pictures}}
    for key, parts in pictures.items():
        for part in parts:
            if isinstance(part, str):
                whole["pictures"][key].append(part)
            elif header(part)["images"]:
                whole["without_images"] = True
            else:
                whole["pictures"][key].append({"view": packed(part)})
    file = STORED / f"{name}.json"
    file.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return file


def plain(whole: list[str | bytes]) -> list[str | bytes]:
    """The parts that stand exactly as they will: views and plain sentences.

    From the first other part on (cards, captions, a table) heights differ, and what is in sight
    would move when the result comes.
    """
    parts = list(takewhile(lambda part: isinstance(part, bytes) or part.startswith("<div>"), whole))
    return parts if any(isinstance(part, bytes) for part in parts) else []


@cache
def _names() -> Mapping[Settings, str]:
    return {posed(preset.settings): name for name, preset in PRESETS.items()}


@lru_cache(maxsize=128)
def _parts(file: Path, changed: int, study: str) -> list[str | bytes]:
    """The plain parts of a poster; read again where it is made anew."""
    return plain(picture(file.read_text(encoding="utf-8"), study))


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
