"""A page on one sheet, for whoever was not there: HTML, and PDF.

Question, answer with its uncertainty, the figure, what is known of leaks, the guarantee, settings,
link and citation. It is made of the parts that the page shows of its results, or, where a page
draws by itself, of its first figure and its tables.
"""

import base64
import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dashboard.player.printed import printed
from dashboard.shell import figures
from dashboard.shell.bundle import caption
from dashboard.shell.document import PRODUCT
from dashboard.shell.navigation import ENTRIES
from fedpca_core.papers.sources import software_bibtex
from fedpca_core.questions.told import TOLD, WITH_FILE
from fedpca_core.settings import Settings, powers, rough
from fedpca_core.study import parts
from fedpca_core.study.facts import read_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.panels import Heat, Panel
from fedpca_core.study.study import Study
from fedpca_core.version import __version__

#: Rows of a table, and characters of a cell, that fit on the sheet.
_ROWS, _CELL = 12, 60
#: Inches of the sheet, and characters of a line on it.
_SHEET, _LINE = (8.27, 11.69), 112
_STYLE = Path(__file__).resolve().parents[1] / "handout.css"


@dataclass(frozen=True, eq=False)
class Sheet:
    """What is on the sheet."""

    question: str
    #: Paragraphs, in Markdown's bold.
    answer: list[str] = field(default_factory=list)
    #: PNG of the figure.
    picture: bytes | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    #: Remarks, and the guarantee.
    small: list[str] = field(default_factory=list)
    settings: str = ""
    link: str = ""
    citation: str = ""


def sheet(
    settings: Settings,
    results: Mapping[Study[Any, Any], Any],
    printers: Mapping[str, figures.Printer],
    *,
    link: str = "",
    data: OwnData | None = None,
) -> Sheet:
    """The sheet of a page whose studies have these results, the most telling one first."""
    titles = {entry.name: entry.title for entry in ENTRIES}
    titles["scene"] = "No record is sent. What does the server hold?"
    first = next(iter(results))
    made = Sheet(
        titles.get(settings.kind, first.title),
        settings=f"{caption(settings, results.values(), data)} Made on {date.today()} with version "
        f"{__version__}.",
        link=link,
        citation=software_bibtex(),
    )
    panel: Panel | Heat | None = None
    for study, result in results.items():
        told = TOLD.get(study.key)
        also, before = study is not first and bool(made.answer), len(made.answer)
        file = (data,) if study.key in WITH_FILE else ()
        for part in [] if told is None else told(result, settings, *file):
            shown = _put(made, part)
            panel = panel or shown
        if also:  # of what follows, the first sentence
            del made.answer[before + 1 :]
        guarantee = getattr(getattr(result, "facts", None), "guarantee", None)
        if guarantee is not None and guarantee.sentence() not in made.small:
            made.small.append(guarantee.sentence())
        if told is None and not made.answer:
            for title, table in list(study.tables(result, settings).items())[:2]:
                made.tables[f"{study.title}: {title.replace('_', ' ')}"] = _texts(table)
    _, prepared = read_of(results.values())
    if prepared and prepared not in made.small:
        made.small.append(prepared)
    draws = [*printers.values()] if panel is None else [partial(printed, "", [panel], [])]
    picture = figures.picture(draws[0], "", 0) if draws else None
    return replace(
        made,
        picture=picture,
        answer=[powers(text) for text in made.answer],
        tables={
            label: table.rename(columns=powers).map(powers) for label, table in made.tables.items()
        },
        small=[powers(text) for text in made.small],
    )


def _put(made: Sheet, part: parts.Part) -> Panel | Heat | None:
    """Put one part on the sheet; returns the panel that it has, if any."""
    inner: Iterable[parts.Part] = ()
    match part:
        case str() | parts.Note() | parts.Badge():
            text = part if isinstance(part, str) else part.text
            made.answer.append(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", ""))
        case parts.Cards(cards):
            said = (
                f"{one.label}: **{one.value}**" + f" ({one.note})" * bool(one.note) for one in cards
            )
            made.answer.append("; ".join(said) + ".")
        case parts.Caption(text):
            made.small.append(text)
        case parts.FactsCard(title, facts):
            made.small.append(
                f"{title}. " + " ".join(f"{word}: {text}." for word, text in facts.items() if text)
            )
        case parts.GuaranteeOf(facts) if facts.guarantee is not None:
            made.small.append(facts.guarantee.sentence())
        case parts.Table(rows, label):
            cut = f" (the first {_ROWS} of {len(rows)})" * (len(rows) > _ROWS)
            made.tables[label + cut] = _texts(rows)
        case parts.Rows(rows, None):
            made.tables["Rows"] = _texts(rows)
        case parts.Fold(_, folded):
            inner = [one for one in folded if not isinstance(one, parts.Chart)]
        case parts.Framed(title, _, framed):
            inner = [title, *framed]
        case parts.Beside(columns):
            inner = [one for column in columns for one in column]
        case parts.Chart(_, panels):
            return panels[0] if panels else None
    found = [_put(made, one) for one in inner]
    return next((one for one in found if one is not None), None)


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """The first rows of a table as short texts."""
    shown = table.head(_ROWS).iloc[:, :8].reset_index(drop=True).rename(columns=str)
    return shown.map(lambda one: rough(one) if isinstance(one, float) else str(one))


# ---------------------------------------------------------------------- as a web page
def page(made: Sheet) -> str:
    """The sheet as one HTML file that needs nothing else."""
    said = "".join(f"<p>{_bold(text)}</p>" for text in made.answer)
    image = ""
    if made.picture:
        code = base64.b64encode(made.picture).decode()
        image = f'<img alt="The figure of this page" src="data:image/png;base64,{code}">'
    tables = "".join(
        f"<h2>{escape(label)}</h2>{table.to_html(index=False, border=0)}"
        for label, table in made.tables.items()
    )
    small = "".join(f"<p>{_bold(text.replace('`', ''))}</p>" for text in made.small)
    link = f'<p><a href="{escape(made.link)}">{escape(made.link)}</a></p>' if made.link else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(made.question)} · '
        f"{PRODUCT}</title><style>{_STYLE.read_text('utf-8')}</style><h1>{escape(made.question)}</h1>{said}{image}"
        f"{tables}<footer>{small}<p>{escape(made.settings)}</p>{link}"
        f"<pre>{escape(made.citation)}</pre></footer></html>"
    )


def _bold(text: str) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    return re.sub(r"\n+(- )?", "<br>", bold)


# ---------------------------------------------------------------------- as a PDF
def pdf(made: Sheet) -> bytes:
    """The sheet as a PDF of one page; what does not fit on it is left to the link."""
    from matplotlib import image as images
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SHEET, facecolor="white")
    top = 0.96

    def broken(text: str, points: float) -> list[str]:
        width = int(_LINE * 9 / points)
        return [
            part for one in _plain(text).split("\n") for part in textwrap.wrap(one, width) or [""]
        ]

    def high(points: float) -> float:
        return points * 1.3 / 72 / _SHEET[1]

    def write(text: str, points: float, weight: str = "normal") -> None:
        nonlocal top
        step, lines = high(points), broken(text, points)
        room = max(0, math.floor((top - foot) / step))
        for number, line in enumerate(lines[:room], 1):
            if number == room < len(lines):
                line = f"{line} …"  # the rest is behind the link
            figure.text(0.07, top, line, fontsize=points, weight=weight, va="top", parse_math=False)
            top -= step

    # A link is followed where it is read on a screen; on paper its end helps nobody.
    link = f"{made.link[:_LINE]}…" if len(made.link) > _LINE else made.link
    cited = f"Cite as {' '.join(made.citation.split())}"
    ending = [
        line
        for text in (made.settings, link, cited)
        for line in textwrap.wrap(text, int(_LINE * 9 / 6.5))
    ][:10]
    foot = 0.05 + 0.011 * len(ending)
    # What an ε means is said whole; the picture and the tables leave it room.
    remarks = high(6.5) * sum(len(broken(text, 6.5)) for text in made.small)
    first = high(7) * (len(next(iter(made.tables.values()), ())) + 3)
    end = foot + min(remarks, 0.3) + 0.01
    write(made.question, 18, "bold")
    top -= 0.01
    for text in made.answer:
        write(text, 9)
        top -= 0.006
    if made.picture:
        picture = images.imread(io.BytesIO(made.picture))
        height = 0.86 * _SHEET[0] / _SHEET[1] * picture.shape[0] / picture.shape[1]
        height = min(height, max(top - end - first, 0.22), top - foot - 0.02)
        if height > 0.08:
            axes = figure.add_axes((0.07, top - height, 0.86, height))
            axes.imshow(picture, interpolation="antialiased")
            axes.axis("off")
            top -= height + 0.01
    for label, table in made.tables.items():
        if top > end + 0.05:
            write(label, 8.5, "bold")
            short = table.map(lambda text: textwrap.shorten(str(text), _CELL, placeholder="…"))
            rows = [[str(name) for name in short], *short.to_numpy().tolist()]
            # Bold letters are wider.
            wide = [
                max([1.15 * len(head), *map(len, cells)]) + 2
                for head, *cells in zip(*rows, strict=True)
            ]
            points = min(7.0, 7.0 * 1.18 * _LINE / sum(wide))
            for number, row in enumerate(rows):
                if top < end + 0.02 and number + 1 < len(rows):
                    row = ["…"]
                for before, cell in zip(np.cumsum([0, *wide]), row, strict=False):
                    figure.text(
                        0.07 + before * points * 0.55 / 72 / _SHEET[0], top, cell, va="top",
                        fontsize=points, parse_math=False,
                        weight="normal" if number else "bold",
                    )  # fmt: skip
                top -= high(points) * 1.04
                if row == ["…"]:
                    break
            top -= 0.006
    for text in made.small:
        write(text, 6.5)
    for number, line in enumerate(ending):
        at = foot - 0.011 * (number + 1)
        figure.text(
            0.07, at, line, fontsize=6.5, color="#444444", va="bottom", parse_math=False,
            url=made.link if line == link else None,
        )  # fmt: skip
    out = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(out, format="pdf", metadata={"CreationDate": None, "Title": made.question})
    return out.getvalue()


def _plain(text: str) -> str:
    """Markdown as plain text; bold words of a list are what the rest of an entry is about."""
    if " · " in text:
        text = re.sub(r"\*\*(.+?)\*\* ", r"\1: ", text)
    return re.sub(r"(?m)^- ", "• ", text.replace("**", "").replace("`", ""))
