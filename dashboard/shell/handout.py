"""A page on one sheet, for whoever was not there: HTML, and PDF.

The question as it was asked, the answer with its uncertainty, the figure, what is known of leaks,
the guarantee, settings, link and citation. It is made of the parts that the page shows of its
results, or, where a page draws by itself, of its first and last figure and its tables.
"""

import base64
import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dashboard.player import printed
from dashboard.shell.bundle import caption
from dashboard.shell.document import PRODUCT
from dashboard.shell.markup import html
from fedpca_core.papers.sources import SOFTWARE, cited, reference
from fedpca_core.questions.told import TOLD, WITH_FILE, asked
from fedpca_core.settings import Settings, powers, rough
from fedpca_core.study import parts
from fedpca_core.study.facts import read_of
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study
from fedpca_core.version import __version__

#: Rows of a table, and of pictures, on the sheet.
_ROWS, _PICTURES = 40, 1
#: What says what is promised; it follows what came of it.
_PROMISE = "guarantee"
#: Inches of the sheet, and characters of a line of nine points on it.
_SHEET, _LINE = (8.27, 11.69), 107
_STYLE = Path(__file__).resolve().parents[1] / "handout.css"


@dataclass(frozen=True, eq=False)
class Sheet:
    question: str
    #: Paragraphs, in Markdown's bold.
    answer: list[str] = field(default_factory=list)
    #: PNG, the most telling one first.
    pictures: list[bytes] = field(default_factory=list)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    #: Behind these: excerpts of long tables, and what a page has folded away.
    details: dict[str, pd.DataFrame] = field(default_factory=dict)
    #: Remarks, and the guarantee.
    small: list[str] = field(default_factory=list)
    settings: str = ""
    link: str = ""
    #: What it rests on.
    papers: list[str] = field(default_factory=list)


def sheet(
    settings: Settings,
    results: Mapping[Study[Any, Any], Any],
    printers: Mapping[str, printed.Printer],
    *,
    link: str = "",
    data: OwnData | None = None,
    lead: Sequence[str] = (),
) -> Sheet:
    """The sheet of a page whose studies have these results, the most telling first, and a lead."""
    read, prepared = read_of(results.values())
    setting = caption(settings, results.values(), data, whole=True)
    made = Sheet(
        asked(settings, data.name if data is not None else read),
        settings=powers(f"{setting} Made on {date.today()} with version {__version__}."),
        link=link,
        papers=[_plain(reference(one)) for one in cited(settings)],
    )
    shown: list[Any] = []
    for study in sorted(results, key=lambda one: one.key == _PROMISE):
        result, told, before = results[study], TOLD.get(study.key), len(made.answer)
        file = (data,) if study.key in WITH_FILE else ()
        for part in [] if told is None else told(result, settings, *file):
            shown += _put(made, part)
        if before and study.key != _PROMISE:  # of what follows, the first sentence
            del made.answer[before + 1 :]
        guarantee = getattr(getattr(result, "facts", None), "guarantee", None)
        if guarantee is not None and guarantee.sentence() not in made.small:
            made.small.append(guarantee.sentence())
        if told is None and not made.answer:
            for title, table in list(study.tables(result, settings).items())[:2]:
                made.tables[f"{study.title}: {title.replace('_', ' ')}"] = _texts(table)
    if prepared and prepared not in made.small:
        made.small.append(prepared)
    panels = [one for one in shown if not isinstance(one, Sequence)][:1]
    rows = [one for one in shown if isinstance(one, Sequence)][:_PICTURES]
    if panels:
        pictures = [*printed.printed("", panels, rows, "", kinds=("png",)).values()]
    else:
        drawn = [printed.picture(one, "", at) for one in [*printers.values()][:1] for at in (0, -1)]
        pictures = list(dict.fromkeys(drawn))
    return replace(
        made,
        pictures=pictures,
        answer=[powers(text) for text in (*lead, *made.answer)],
        tables={
            label: table.rename(columns=powers).map(powers)
            for label, table in (made.tables | made.details).items()
        },
        small=[powers(text) for text in made.small],
    )


def _put(made: Sheet, part: parts.Part) -> list[Any]:
    """Put one part on the sheet; returns the panel and the rows of pictures that it has, if any."""
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
            named = [f"{word}: {text}." for word, text in facts.items() if text]
            made.small.append(" ".join([f"{title}.", *named]))
        case parts.GuaranteeOf(facts) if facts.guarantee is not None:
            made.small.append(facts.guarantee.sentence())
        case parts.Table(rows, label):
            cut = f" (the first {_ROWS} of {len(rows)})" * (len(rows) > _ROWS)
            made.tables[label + cut] = _texts(rows)
        case parts.Rows(rows, None):
            made.details["First of {} rows, {} columns".format(*rows.shape)] = _texts(rows[:8])
        case parts.Fold(_, folded, _, late) if not late:  # others are of interest to few
            for one in folded:
                _put(replace(made, tables=made.details), one)
        case parts.Framed(title, _, framed):
            inner = [title, *framed]
        case parts.Beside(columns):
            inner = [one for column in columns for one in column]
        case parts.Chart(_, panels, images):
            return [*panels[:1], *images]
    return [drawn for one in inner for drawn in _put(made, one)]


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    shown = table.head(_ROWS).iloc[:, :12].reset_index(drop=True).rename(columns=str)
    return shown.map(lambda one: rough(one + 0.0) if isinstance(one, float) else str(one))


# ---------------------------------------------------------------------- as a web page
def page(made: Sheet) -> str:
    """The sheet as one HTML file that needs nothing else."""
    return html(
        "handout",
        made=made,
        pictures=[base64.b64encode(one).decode() for one in made.pictures],
        bold=_bold,
        citation=SOFTWARE.bibtex,
        product=PRODUCT,
        style=_STYLE.read_text("utf-8"),
    )


def _bold(text: str) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    return re.sub(r"\n+(- )?", "<br>", bold)


# ---------------------------------------------------------------------- as a PDF
class _Line(NamedTuple):
    """A line on the paper: its size, and texts by where they begin, as shares of the width."""

    points: float
    cells: Sequence[tuple[float, str]] = ()
    weight: str = "normal"
    url: str | None = None

    @property
    def high(self) -> float:
        """Its share of the sheet."""
        return self.points * 1.3 / 72 / _SHEET[1]


def pdf(made: Sheet) -> bytes:
    """The sheet as a PDF of one page; what does not fit on it is left to the link."""
    from matplotlib import image, rc_context
    from matplotlib.figure import Figure

    # A link is followed where it is read on a screen; on paper its end helps nobody.
    link = f"{made.link[:_LINE]}…" if len(made.link) > _LINE else made.link
    rests = f"Rests on {'; '.join(made.papers)}\nCite as {' '.join(SOFTWARE.bibtex.split())}"
    foot = _fitted([*_lines(made.settings, 7.0), *_lines(link, 7.0, url=made.link)], 0.15)
    foot += _fitted(_lines(rests, 7.0), 0.1)
    # What an ε means is said whole; pictures and tables leave it room.
    small = _fitted([line for text in made.small for line in _lines(text, 7.0)], 0.24)
    head = [*_lines(made.question, 14.0, "bold"), _Line(6.0)]
    head += [line for text in made.answer for line in [*_lines(text, 9.5), _Line(4.0)]]
    head = _fitted(head, 0.9 - _high([*small, *foot]))
    room = 0.9 - _high([*head, *small, *foot])
    rows = [line for label, table in made.tables.items() for line in _table(label, table)]
    rows = _fitted(rows, room - 0.24 * bool(made.pictures))
    room -= _high(rows)
    figure = Figure(figsize=_SHEET, facecolor="white")
    top = _write(figure, head, 0.96)
    for picture in made.pictures:
        pixels = image.imread(io.BytesIO(picture))
        natural = 0.86 * _SHEET[0] / _SHEET[1] * pixels.shape[0] / pixels.shape[1]
        if (height := min(natural, room - 0.01)) > natural / 2:  # nobody reads a smaller one
            axes = figure.add_axes((0.07, top - height, 0.86, height))
            axes.imshow(pixels, interpolation="none")
            axes.axis("off")
            top, room = top - height - 0.01, room - height - 0.01
    _write(figure, [*rows, *small], top)
    _write(figure, foot, 0.045 + _high(foot), "#444444")
    out = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(out, format="pdf", metadata={"CreationDate": None, "Title": made.question})
    return out.getvalue()


def _lines(text: str, points: float, weight: str = "normal", url: str | None = None) -> list[_Line]:
    """A text in lines; bold letters are wider."""
    width = int(_LINE * 9 / points / (1.15 if weight == "bold" else 1.0))
    broken = [part for one in _plain(text).split("\n") for part in textwrap.wrap(one, width)]
    return [_Line(points, [(0.0, part)], weight, url) for part in broken]


def _table(label: str, table: pd.DataFrame) -> list[_Line]:
    """A table in columns as wide as there is room for; longer texts break into lines."""
    rows = [[str(name) for name in table], *table.to_numpy(dtype=object).tolist()]
    wide = [  # bold letters are wider
        int(max([1.25 * len(head), *map(len, cells)])) + 2
        for head, *cells in zip(*rows, strict=True)
    ]
    while sum(wide) > 1.18 * _LINE and max(wide) > 16:
        wide[wide.index(max(wide))] -= 1
    points = min(7.0, 7.0 * 1.18 * _LINE / sum(wide))
    starts = np.cumsum([0, *wide]) * points * 0.55 / 72 / _SHEET[0]
    found = _lines(label, 8.5, "bold")
    for number, row in enumerate(rows):
        cells = [textwrap.wrap(text, width - 2) for text, width in zip(row, wide, strict=True)]
        for texts in zip_longest(*cells, fillvalue=""):
            beside = list(zip(starts, texts, strict=False))
            found.append(_Line(points, beside, "normal" if number else "bold"))
    return [*found, _Line(4.0)]


def _high(lines: Iterable[_Line]) -> float:
    return sum(line.high for line in lines)


def _fitted(lines: Sequence[_Line], room: float) -> list[_Line]:
    kept = [line for at, line in enumerate(lines) if _high(lines[: at + 2]) <= room]
    more = _Line(7.0, [(0.0, "… more behind the link")])
    return list(lines) if _high(lines) <= room else [*kept, more]


def _write(figure: Any, lines: Iterable[_Line], top: float, colour: str = "black") -> float:
    """Write lines from the top down; returns where the next one stands."""
    for line in lines:
        for start, text in line.cells:
            figure.text(
                0.07 + start, top, text, fontsize=line.points, weight=line.weight, color=colour,
                url=line.url, va="top", parse_math=False,
            )  # fmt: skip
        top -= line.high
    return top


def _plain(text: str) -> str:
    """Markdown as plain text; bold words of a list are what the rest of an entry is about."""
    if " · " in text:
        text = re.sub(r"\*\*(.+?)\*\* ", r"\1: ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("`", "")
    return re.sub(r"(?m)^- ", "• ", re.sub(r"(?<!\w)\*([^*\n]+)\*(?!\w)", r"\1", text))
