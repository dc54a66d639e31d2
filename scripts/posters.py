"""Every preset and every story step as one HTML file that plays without a server: ``make posters``.

python -m scripts.posters                     all of them, and a gallery
python -m scripts.posters story-1 uneven      these, and a gallery of what lies in the folder
python -m scripts.posters --out site --live https://lab.example.org
python -m scripts.posters --stored anomaly-ton   and its pictures into dashboard/stored
python -m scripts.posters --check             and open each without a network, in a browser

The page itself is run, without a browser, on results that are computed first; what it would mount
in a browser is what a poster holds. The folder needs nothing else: any static host will do, and a
file opens from disk, in a slide or in an iframe. What a server shows until its own result is there
lies beside it, as JSON.
"""

import argparse
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from html import escape
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from dashboard.player.encode import header
from dashboard.shell import jobs, meanwhile, share
from dashboard.shell.bundle import caption
from dashboard.shell.controls import packed
from dashboard.shell.document import PRODUCT
from dashboard.shell.navigation import ENTRIES
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.data_sets import DATA_SETS
from fedpca_core.questions.catalogue import PRESETS, studies_of
from fedpca_core.questions.home.dials import DIALS, at
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.files import write_whole
from fedpca_core.study.here import MissingData, named, require_here
from fedpca_core.study.preset import Preset
from fedpca_core.version import __version__
from scripts.poster import Turn, dials, document, markup, page, views
from scripts.thumbnails import CURVES, chosen, svg

ROOT = Path(__file__).resolve().parent.parent
LIMIT_BYTES = 3_000_000
#: Values of a dial that travel with a picture, that of the run itself besides.
TURNS = 4
#: A page that computes something besides its studies is looked at again until it rests.
PATIENCE_SECONDS = 900.0
#: Every view that a poster holds is in the page, by the digest of its numbers, and drawn.
DRAWN = """(held) => {
  const views = [...document.querySelectorAll('[data-digest]')].map((one) => one.dataset.digest);
  return JSON.stringify(views.sort()) === JSON.stringify(held)
    && [...document.querySelectorAll('.fp-plot')].every((plot) => plot.dataset.drawn);
}"""
#: The front page as it opens, and all presets.
FRONT = Preset("front", "No record is sent. What does the server hold?", "", SceneSettings())
POSTERS: Mapping[str, Preset] = {"front": FRONT, **PRESETS}
#: Folded away: controls, and explanations that the live page has.
FOLDED = ("popover", "expander")
#: HTML or a view, and the study whose picture it is in, if any.
Part: TypeAlias = tuple[str, str | bytes]
#: Words about controls, which a poster has not.
CONTROLS = re.compile("sidebar|^Switch it on")


def poster(preset: Preset, live: str, turned: bool = True) -> tuple[str, list[Part]]:
    """Run the studies of a preset, then its page on their results; returns the file's text,
    and the parts of the studies' pictures.

    ``live``: The address of the laboratory, to which the poster leads.
    ``turned``: Take along what the dials of the front page do.

    Raises InvalidInput: data are missing (`MissingData`), a study refuses, the page shows something
    else than the whole run, or nothing, or the file would be too large.
    """
    settings = preset.settings
    for study in studies_of(settings):
        require_here(study.needs(settings))
        result = outcome(study.run(settings))
        # The page finds it where it looks for what another visitor has computed.
        jobs.registry().submit(study.identity(settings), _handed(result), 60.0).wait(60.0)
    lead = "" if isinstance(settings, SceneSettings) else preset.point
    parts = _sections(opened(settings), settings, lead)
    if not parts:
        raise InvalidInput("The page shows no picture and no table.")
    shown = [part for _, part in parts]
    if isinstance(settings, SceneSettings) and turned:
        first = next(at for at, part in enumerate(shown) if isinstance(part, bytes))
        shown.insert(first, dials(_turned(settings, live)))
    text = document(
        preset.title, lead, shown, live=_live(settings, live), colophon=caption(settings)
    )
    if (size := len(text.encode())) > LIMIT_BYTES:
        raise InvalidInput(f"The poster has {size:,} bytes, more than {LIMIT_BYTES:,}.")
    return text, [part for part in parts if part[0]]


def _live(settings: Settings, live: str) -> str:
    """Where the live page of settings is."""
    place = "/" if isinstance(settings, SceneSettings) else f"/{settings.kind}"
    return share.link(settings.query(), live.rstrip("/") + place)


def _turned(settings: SceneSettings, live: str) -> dict[str, list[Turn]]:
    """What each dial that is not idle does over its range, with the others as they are."""
    found: dict[str, list[Turn]] = {}
    for name in (dial for dial in DIALS if dial not in settings.idle()):
        described, own = settings.parameters()[name], getattr(settings, name)
        turns = []
        few = TURNS - (settings.opponent is not None)  # two runs a value
        ends = {at(described, place)[1] for place in np.linspace(0.0, 1.0, few)}
        for value in sorted({*ends, own}):
            other = replace(settings, **{name: value})
            with suppress(InvalidInput):  # a value at which there is no run
                view = None if value == own else _picture_of(other)
                turns.append(Turn(described.text(value), view, _live(other, live)))
        found[described.label] = turns
    return found


def _picture_of(settings: SceneSettings) -> bytes:
    """The first view of the page."""
    return next(part for _, part in _parts(opened(settings).main) if isinstance(part, bytes))


def shown(context: Any, file: Path, width: int = 1440) -> Any:
    """A poster opened from disk in a browser; every view in it is drawn, with its own numbers.

    ``context``: Offline, so that whatever a poster asked for would be missed.

    Raises InvalidInput: something is not drawn, asked for, or wrong in the page's own eyes.
    """
    from playwright.sync_api import TimeoutError as TooLate

    held = sorted(header(view)["digest"] for view in views(file.read_text(encoding="utf-8")))
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("requestfailed", lambda request: wrong.append(f"asked for {request.url[:80]}"))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(file.resolve().as_uri())
    try:
        page.wait_for_function(DRAWN, arg=held)
    except TooLate:
        wrong.append(f"its {len(held)} views are not all drawn")
    if wrong:
        raise InvalidInput("Opened without a network: " + "; ".join(wrong))
    return page


def check(names: list[str], folder: Path) -> int:
    """Open posters one by one; returns how many are not what they should be."""
    from scripts.browser import chromium

    refused = 0
    with chromium() as browser:
        context = browser.new_context(offline=True)
        for name in names:
            try:
                shown(context, folder / f"{name}.html").close()
            except InvalidInput as refusal:
                print(f"{name}: {refusal}", file=sys.stderr, flush=True)
                refused += 1
    print(f"{len(names) - refused} of {len(names)} posters open without a network, all drawn")
    return refused


def _handed(result: Any) -> Any:
    return lambda job: result


def opened(settings: Settings) -> AppTest:
    """The page as a link opens it, once nothing computes any more."""
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=PATIENCE_SECONDS)
    if isinstance(settings, SceneSettings):
        app.query_params.update(meanwhile.posed(settings).query())
    else:
        app.run().switch_page(f"../pages/{settings.kind}.py")
        app.query_params.update(packed(settings))
    app.run()
    begun = time.monotonic()
    while app.get("skeleton") or app.get("progress"):
        if time.monotonic() - begun > PATIENCE_SECONDS:
            raise InvalidInput(f"The page still computes after {PATIENCE_SECONDS:g} seconds.")
        time.sleep(0.3)
        app.run()
    wrong = [*(error.message for error in app.exception), *(text.value for text in app.warning)]
    wrong += [text.value for text in app.caption if text.value.startswith("Stopped early")]
    if wrong:
        raise InvalidInput(" ".join(wrong))
    return app


def _sections(app: AppTest, settings: Settings, lead: str) -> list[Part]:
    """The sections of the page with a picture or a table; first the one that makes the point."""
    sections: list[list[Part]] = [[]]
    for study, part in _parts(app.main):
        words = part if isinstance(part, str) else ""
        if words.startswith("<h2>") and not study:  # a picture stays whole
            sections.append([])
        if not (lead and escape(lead, quote=False) in words):
            sections[-1].append((study, part))
    point = chosen(settings).study if settings.kind in CURVES else ""
    sections.sort(key=lambda section: all(study != point for study, _ in section))
    return [
        part
        for section in sections
        if any(isinstance(one, bytes) or "fp-table" in one for _, one in section)
        for part in section
    ]


def _parts(block: Any, study: str = "") -> Iterator[Part]:
    """What is read and what is drawn, in order; without controls, and without the page's title."""
    before = ""
    for child in block.children.values():
        kind, before = child.type, child.type if before != "title" else ""
        if hasattr(child, "children"):
            within = re.search(r"ID-\w+-(.+)_picture$", getattr(child.proto, "id", ""))
            if kind not in FOLDED:
                yield from _parts(child, within[1] if within else study)
        elif kind == "bidi_component":
            yield study, child.proto.bytes
        elif kind in ("header", "subheader"):
            yield study, f"<h2>{markup(child.value)}</h2>"
        elif kind == "markdown" and before:  # what follows a title belongs to the page, not the run
            yield study, f"<div>{markup(child.value)}</div>"
        elif kind == "metric":
            yield study, f"<p>{markup(child.label)}: <b>{escape(child.value)}</b></p>"
        elif kind == "caption" and not CONTROLS.search(child.value):
            yield study, f'<p class="poster-small">{markup(child.value)}</p>'
        elif kind in ("info", "success"):
            yield study, f'<p class="poster-note">{markup(child.value)}</p>'
        elif kind == "html" and 'class="fp-table"' in child.value:
            yield study, child.value
        elif kind == "dataframe":
            yield study, _table(child.value)


def _table(rows: pd.DataFrame) -> str:
    html = rows.to_html(index=False, border=0, na_rep="–", float_format="{:.4g}".format)
    return f'<div class="fp-table" role="region" tabindex="0" aria-label="Table">{html}</div>'


def thumbnail(shown: list[bytes]) -> str:
    """The first curves of a poster's views, small; nothing where they have none."""
    for view in shown:
        about = header(view)
        start = -(-(4 + int.from_bytes(view[:4], "little")) // 8) * 8
        for panel in about["panels"]:
            rows = []
            for curve in panel.get("curves", ()):
                if isinstance(curve["x"], dict) and not curve["frames"] and not curve["guide"]:
                    x, y = (
                        np.frombuffer(view, f"<{kind}", count, start + offset)
                        for offset, count, kind in (curve["x"]["block"], curve["y"]["block"])
                    )
                    rows.append(pd.DataFrame({"series": curve["name"], "x": x, "y": y}))
            if rows:
                drawn = pd.concat(rows).replace([np.inf, -np.inf], np.nan).dropna()
                powers = "x" * panel["logX"] + "y" * panel["logY"]
                return svg(drawn.reset_index(drop=True), powers)
    return ""


def gallery(folder: Path) -> str:
    """The page that leads to every poster in a folder, by the page that each is a picture of."""
    body, count = [], 0
    for entry in ENTRIES:
        kind = "scene" if entry is ENTRIES[0] else entry.name
        cards = [
            _card(preset, folder / f"{name}.html")
            for name, preset in POSTERS.items()
            if preset.settings.kind == kind and (folder / f"{name}.html").exists()
        ]
        count += len(cards)
        if cards:
            title = "The story" if kind == "scene" else entry.title
            body.append(f'<h2>{escape(title)}</h2>\n<ul class="poster-gallery">')
            body += [*cards, "</ul>"]
    lead = (
        f"{count} runs of the {PRODUCT}, each one file that plays without a server and without a "
        "network, and leads to its live page."
    )
    return page("Posters", f"<header><h1>Posters</h1><p>{lead}</p></header>\n" + "\n".join(body))


def _card(preset: Preset, file: Path) -> str:
    content = file.read_text(encoding="utf-8")
    return (
        f'<li>{thumbnail(views(content))}<a href="{file.name}"><b>{escape(preset.title)}</b></a>'
        f"<p>{escape(preset.point)}</p><small>{file.stat().st_size / 1e6:.2f} MB</small></li>"
    )


def keep(file: Path, pictures: Iterable[Part], **about: Any) -> Path:
    """Write pictures, and what they are of, as `dashboard.shell.meanwhile` reads them."""
    found: dict[str, list[Any]] = {}
    for study, part in pictures:
        shown = part if isinstance(part, str) else {"view": meanwhile.packed(part)}
        found.setdefault(study, []).append(shown)
    whole = {**about, "version": __version__, "pictures": found}
    write_whole(file, json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
    return file


def earlier(pictures: Iterable[Part]) -> Iterator[Part]:
    """The parts of pictures that stand exactly as they will: views and plain sentences.

    From the first other part on (cards, captions, a table) heights differ, and what is in sight
    would move when the result comes.
    """
    for _, group in groupby(pictures, key=lambda part: part[0]):
        plain = list(takewhile(lambda part: _stands(part, "<div>"), group))
        if any(isinstance(part, bytes) for _, part in plain):
            yield from plain


def _stands(part: Part, begins: str) -> bool:
    return isinstance(part[1], bytes) or part[1].startswith(begins)


def stored(preset: Preset, pictures: Iterable[Part]) -> Path:
    """Keep pictures for machines that have not their data, but for views that show records
    themselves, and for cards, which look well in a poster only."""
    shown = [part for part in pictures if _stands(part, "<div")]
    ours = [part for part in shown if isinstance(part[1], str) or not header(part[1])["images"]]
    title = ", ".join(DATA_SETS[key].title for key in named(preset.settings))
    about = {"data": title, "made": date.today().isoformat()}
    file = meanwhile.STORED / f"{preset.name}.json"
    return keep(file, ours, **about, without_images=len(ours) < len(shown))


def main(arguments: list[str] | None = None) -> int:
    """Make all, or those that are named; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("names", nargs="*", metavar="NAME", help="presets and steps; all without")
    options.add_argument("--out", type=Path, default=ROOT / "posters", help="folder for the files")
    options.add_argument("--check", action="store_true", help="open each in a browser, offline")
    options.add_argument("--still", action="store_true", help="without what the dials do")
    options.add_argument("--live", default="http://localhost:8501", help="address they lead to")
    options.add_argument(
        "--stored",
        action="store_true",
        help="keep their pictures in dashboard/stored, for machines without their data",
    )
    asked = options.parse_args(arguments)
    for name in asked.names:
        if name not in POSTERS:
            options.error(f"there is no preset {name!r}; “python -m fedpca_core presets” lists all")
    os.environ["FEDPCA_WORKERS"] = "0"  # one run after the other, here
    # Streamlit misses a visitor at every look into its cache.
    log = logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context")
    log.addFilter(lambda record: "missing ScriptRunContext" not in record.getMessage())
    logging.getLogger("fedpca").disabled = True  # lines for the operator of a server
    asked.out.mkdir(parents=True, exist_ok=True)
    refused, made = 0, []
    for name in asked.names or POSTERS:
        begun = time.monotonic()
        try:
            text, pictures = poster(POSTERS[name], asked.live, turned=not asked.still)
        except MissingData as absent:
            print(f"{name} is left out: {absent}", file=sys.stderr, flush=True)
            continue
        except InvalidInput as refusal:
            print(f"{name}: {refusal}", file=sys.stderr, flush=True)
            refused += 1
            continue
        file = asked.out / f"{name}.html"
        write_whole(file, text)
        keep(file.with_suffix(".json"), earlier(pictures))
        made.append(name)
        if asked.stored:
            print(stored(POSTERS[name], pictures), flush=True)
        took = time.monotonic() - begun
        print(f"{file}: {file.stat().st_size / 1e6:.2f} MB, {took:.0f} s", flush=True)
    write_whole(asked.out / "index.html", gallery(asked.out))
    if asked.check:
        refused += check(made, asked.out)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
