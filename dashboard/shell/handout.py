"""A page on one sheet, for whoever was not there: HTML, and PDF.

The question as it was asked, the answer with its uncertainty, the figure, what is known of leaks,
the guarantee, settings, link and citation. It is made of the parts that the page shows of its
results, or, where a page draws by itself, of its first and last figure and its tables.
"""

import base64
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dashboard.player import printed
from dashboard.shell.bundle import caption
from dashboard.shell.document import PRODUCT
from dashboard.shell.markup import html
from fedpca_core.papers.sources import SOFTWARE, cited, reference
from fedpca_core.questions.told import TOLD, WITH_FILE, asked
from fedpca_core.settings import Settings, powers, rough
from fedpca_core.study import OwnData, Study, parts
from fedpca_core.study.facts import read_of
from fedpca_core.version import __version__

#: Rows of a table, and of pictures, on the sheet.
_ROWS, _PICTURES = 40, 1
#: What says what is promised; it follows what came of it.
_PROMISE = "guarantee"
#: Rows of tables, and paragraphs, that a PDF may have, until it fits on one page.
_FEWER = ((_ROWS, 40), (20, 40), (12, 40), (6, 40), (3, 40), (1, 40), (0, 40), (0, 8), (0, 2))
#: Millimetres of a point.
_POINT = 25.4 / 72
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
def pdf(made: Sheet) -> bytes:
    """The sheet as a PDF of one page; what does not fit on it is left to the link."""
    for rows, texts in _FEWER:
        content, pages = _paper(made, rows, texts)
        if pages == 1:
            break
    return content


def _paper(made: Sheet, most_rows: int, most_texts: int) -> tuple[bytes, int]:
    """The sheet with so many rows of its tables, and paragraphs, and the pages that it takes."""
    from fpdf import FPDF
    from fpdf.fonts import TTFFont
    from matplotlib import get_data_path  # where a font with our signs lies

    paper = FPDF()
    paper.set_title(made.question)
    paper.set_creation_date(datetime(2000, 1, 1, tzinfo=UTC))  # the same sheet, the same bytes
    for style, name in (("", ""), ("B", "-Bold")):
        paper.add_font(
            "sans", style, Path(get_data_path(), "fonts", "ttf", f"DejaVuSans{name}.ttf")
        )
    paper.set_auto_page_break(True, margin=12)
    paper.add_page()

    def write(text: str, points: float = 7.0, style: Literal["", "B"] = "", link: str = "") -> None:
        paper.set_font("sans", style, points)
        high = points * 1.3 * _POINT
        paper.multi_cell(0, high, _plain(text), align="L", link=link, new_x="LMARGIN", new_y="NEXT")
        paper.ln(high / 3)

    write(made.question, 14.0, "B")
    for text in made.answer[:most_texts]:
        write(text, 9.5)
    for picture in made.pictures:
        paper.image(io.BytesIO(picture), w=paper.epw, h=0.4 * paper.epw, keep_aspect_ratio=True)
    for label, table in made.tables.items() if most_rows else ():
        write(label, 8.5, "B")
        paper.set_font("sans", "", 7.0)
        rows = [[*table], *table.head(most_rows).to_numpy().tolist()]
        wide = [_wide(column) for column in zip(*rows, strict=True)]
        with paper.table(
            rows, align="L", text_align="L", v_align="T", borders_layout="NONE",
            col_widths=wide, width=min(paper.epw, 1.5 * sum(wide)), line_height=3.2,
        ):  # fmt: skip
            pass  # it is drawn where this ends
        paper.ln(2.0)
    for text in made.small[:most_texts]:
        write(text)
    longest = max(map(len, made.tables.values()), default=0)
    if most_rows < longest or most_texts < max(len(made.answer), len(made.small)):
        write("… more behind the link")
    write(made.settings)
    # A link is followed where it is read on a screen; on paper its end helps nobody.
    write(f"{made.link[:200]}…" if len(made.link) > 200 else made.link, link=made.link)
    write(f"Rests on {'; '.join(made.papers)}")
    write(f"Cite as {' '.join(SOFTWARE.bibtex.split())}")
    content = bytes(paper.output())
    for font in paper.fonts.values():
        if isinstance(font, TTFFont):  # its file
            font.close()
    return content, paper.pages_count


def _wide(cells: Sequence[str]) -> int:
    """Characters of a column: texts break into lines, and words do not."""
    return 4 + max(min(max(map(len, cells)), 45), *map(len, [*" ".join(cells).split(), ""]))


def _plain(text: str) -> str:
    """Markdown as plain text; bold words of a list are what the rest of an entry is about."""
    if " · " in text:
        text = re.sub(r"\*\*(.+?)\*\* ", r"\1: ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("`", "")
    return re.sub(r"(?m)^- ", "• ", re.sub(r"(?<!\w)\*([^*\n]+)\*(?!\w)", r"\1", text))
