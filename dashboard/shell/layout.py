"""Small pieces that every page is made of: heading, cards, folds, and friendly refusals."""

import io
import mimetypes
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shell import streamlit_internals
from dashboard.shell.markup import html
from fedpca_core.errors import InvalidInput
from fedpca_core.papers.sources import SOURCES, reference
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import About, Card, Protection

SentenceKind = Literal["remedy", "note", "good"]

#: Megabytes of one's own file: server.maxUploadSize in .streamlit/config.toml, or
#: STREAMLIT_SERVER_MAX_UPLOAD_SIZE.
UPLOAD_MB = int(st.get_option("server.maxUploadSize"))
#: Texts of more signs break into lines in a table.
SENTENCE = 40
#: Columns that fit a wide page at their usual distance; more stand closer together.
MOST_AT_EASE = 9
#: Long enough for a browser to load the player and draw one picture; to draw the next one.
PICTURE_SECONDS = {True: 0.5, False: 0.08}

#: Streamlit's place for a file has a name, takes the focus, and yet has the role of an ornament: a
#: group it is.
_role = st.components.v2.component(
    "fedpca_upload",
    js=(Path(__file__).resolve().parents[1] / "upload.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
mimetypes.add_type("application/x-ipynb+json", ".ipynb")

# Formal privacy and heuristic masking share neither a word nor a colour. The badge colours are
# the theme's blue, orange and violet, which config.toml sets to the roles of
# dashboard.shell.palette.
PROTECTION: Mapping[Protection, Any] = {
    "none": ("Unprotected", "gray", ":material/lock_open:"),
    "heuristic": ("Masked, heuristically", "orange", ":material/blur_on:"),
    "formal": ("Differentially private", "blue", ":material/verified_user:"),
}
#: Box and icon of a sentence.
_BOXES = {
    "remedy": ("warning", "tips_and_updates"),
    "note": ("info", "info"),
    "good": ("success", "check_circle"),
}


def heading(title: str, lead: str = "") -> None:
    st.title(title, anchor=False)
    if lead:
        st.markdown(lead)


def picture_first(opening: bool) -> None:
    """Give the browser a moment to draw what it has before the rest of the page is sent.

    A browser lays out all that has come before it draws any of it: half a second for the first page
    of a visit, a tenth where a dial was turned.
    """
    with streamlit_internals.aside():
        time.sleep(PICTURE_SECONDS[opening])


def section(title: str, lead: str = "") -> None:
    st.header(title, anchor=False)
    if lead:
        st.markdown(lead)


def metric_cards(cards: Sequence[Card]) -> None:
    """Show numbers as cards of even height: four abreast, two on a phone."""
    grid = st.grid(4, min_column_width=150, border=True, gap="small")
    for card in cards:
        grid.metric(card.label, card.value, help=card.help, delta_description=card.note or None)


def small_table(
    table: pd.DataFrame,
    *,
    label: str,
    numbers: Sequence[str] = (),
    wrapped: Sequence[str] = (),
    tall: bool = False,
) -> None:
    """Show rows of finished texts as a plain table, which says ``label`` to screen readers.

    The browser needs no data grid for it, which is a megabyte and a noticeable part of a first
    view, and cuts long texts. Columns ``numbers`` are aligned to the right; those ``wrapped``, and
    those with a text of more than `SENTENCE` signs, break into lines. The many rows of a ``tall``
    one scroll within a frame, under their head; its last column stands below the others.
    """
    texts: list[list[object]] = table.to_numpy(object).tolist()
    sides = [
        "left fp-wrapped"
        if name in wrapped or any(len(str(row[k])) > SENTENCE for row in texts)
        else "right"
        if name in numbers
        else "left"
        for k, name in enumerate(table.columns)
    ]
    # Where it must, it scrolls within its frame beside its first column; the frame takes the
    # keyboard's focus for that.
    look = {"sides": sides, "close": table.shape[1] > MOST_AT_EASE, "tall": tall, "cell": _cell}
    st.html(html("table", label=label, columns=table.columns, rows=texts, **look))


def _cell(text: object) -> str:
    """A text as HTML, with ρ_spec and the like; names of columns keep their underscores."""
    return re.sub(r"((?<![A-Za-z])[α-ωS])_([A-Za-z0-9]+)", r"\1<sub>\2</sub>", escape(str(text)))


def about(told: About) -> None:
    """Fold something away that a first view waits for neither to come nor to be typeset."""
    if fold := opened(told.title, f"about {told.title}"):
        with fold:
            st.markdown(told.text)
            if told.formula is not None:
                st.latex(told.formula)
            if told.source is not None:
                st.caption(f"Source: {told.source}")
            cite(*told.papers)


def opened(title: str, key: str, **look: Any) -> DeltaGenerator | None:
    """A fold whose content travels when it is opened; None as long as it is not."""
    fold = st.expander(title, key=key, on_change="rerun", **look)
    return fold if fold.open else None


def cite(*papers: str) -> None:
    for key in papers:
        st.caption(reference(SOURCES[key]))


def sentence(message: str, kind: SentenceKind = "remedy") -> None:
    """Show a sentence in a friendly box.

    "remedy" is for something the visitor can change (what was wrong, the value, what to do),
    "note" for something to know, "good" for something that worked.
    """
    box, icon = _BOXES[kind]
    getattr(st, box)(message.replace("$", r"\$"), icon=f":material/{icon}:")


def upload(label: str, key: str, **options: Any) -> tuple[Any, OwnData | None]:
    """The file in an upload, and what it holds in the first run that sees it; ``key`` knows it."""
    file = st.file_uploader(label, **options)
    _role(key="upload_role", height="content")
    if file is None or st.session_state.get(key) == file.file_id:
        return file, None
    st.session_state[key] = file.file_id
    return file, OwnData(file.name, file.getvalue())


def download(
    label: str, data: Callable[[], str | bytes], file: str, *, key: str, **look: Any
) -> None:
    """Offer a file, made only when somebody asks for it; ``look`` has its icon and help."""
    mime = mimetypes.guess_type(file)[0]
    st.download_button(label, data, file, mime, key=key, on_click="ignore", **look)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@contextmanager
def guard(otherwise: Callable[[str], object] | None = None) -> Iterator[None]:
    """Turn an `InvalidInput` raised inside the block into its sentence on the page.

    The rest of the block is skipped and the page goes on after it; ``otherwise`` draws what
    should stand in its place, below the sentence, which it is given.
    """
    try:
        yield
    except InvalidInput as refusal:
        sentence(str(refusal))
        if otherwise is not None:
            otherwise(str(refusal))
