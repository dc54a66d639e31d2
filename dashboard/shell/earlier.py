"""Pictures computed earlier: a poster of a page's state stands where its first result will.

The operator has them made (``make posters``); without the folder nothing is shown. A poster holds
the very bytes of its views, so it is drawn by the same player under the same key: the result
then updates it in place, and the browser asks for nothing.
"""

import base64
import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.player import again
from dashboard.player.poster import header, picture
from fedpca_core.questions.catalogue import PRESETS
from fedpca_core.settings import Settings
from fedpca_core.study.study import Study
from fedpca_core.version import __version__

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
        gzip.decompress(base64.b64decode(part["view"])) if isinstance(part, dict) else part
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
    packed: dict[str, list[str | dict[str, str]]] = {}
    without_images = False
    for key, parts in pictures.items():
        packed[key] = []
        for part in parts:
            if isinstance(part, str):
                packed[key].append(part)
            elif header(part)["images"]:
                without_images = True
            else:
                view = base64.b64encode(gzip.compress(part, 9, mtime=0)).decode()
                packed[key].append({"view": view})
    file = STORED / f"{name}.json"
    whole = {
        "data": data,
        "made": made,
        "version": __version__,
        "without_images": without_images,
        "pictures": packed,
    }
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
