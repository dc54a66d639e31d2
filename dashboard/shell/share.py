"""Taking results away: the link that reproduces a page, and downloads."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from dashboard.shell import bundle, figures, handout
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

Parameters = Mapping[str, str | int | float | bool | Sequence[str]]


def address(base: str, parameters: Parameters) -> str:
    """Return ``base`` with the query string made of ``parameters`` (lists repeat the name)."""
    parts = urlsplit(base)
    pairs = [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in parameters.items()
        for one in ([value] if isinstance(value, (str, int, float, bool)) else value)
    ]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(pairs), ""))


def link(parameters: Parameters | None = None) -> str:
    """Return the address of the page as it is set now.

    Without ``parameters`` the query string is the one in the visitor's address bar, where widgets
    made with ``bind="query-params"`` keep every setting that is not the default.
    """
    if parameters is None:
        parameters = {name: st.query_params.get_all(name) for name in st.query_params}
    return address(st.context.url or "", parameters)


def take_away(
    settings: Settings,
    results: Mapping[Study[Any, Any], Any],
    data: OwnData | None,
    folded: bool = True,
) -> None:
    """One button “Share”: the link, the configuration file, the page on one sheet, every table of
    the studies that have a result, and all of it with the figures in one archive.

    Without ``folded`` they stand where this is called, which is folded itself.
    """
    if folded:
        with st.popover("Share", icon=":material/share:", key=f"share-{settings.kind}"):
            take_away(settings, results, data, folded=False)
        return
    name = settings.kind
    copy_link(settings.query())
    download_json(settings.to_json(), name=name)
    done = {study: result for study, result in results.items() if result is not None}
    if done:
        hand_out(settings, done, data)
        download_archive(
            lambda: {
                f"{study.key}-{title}.csv": table.to_csv(index=False)
                for study, result in done.items()
                for title, table in study.tables(result, settings).items()
            },
            name=f"{name}-tables",
            label="Download tables",
            told="All numbers behind this page as CSV files.",
        )
        bundle.download(settings, done, link=link(settings.query()), data=data)


def copy_link(parameters: Parameters | None = None) -> None:
    """A button that copies the page's address, with the round of a scene, and the address."""
    address = link(parameters)
    # What it does is in ``links.js``: the browser alone knows the round.
    st.html(
        f'<button type="button" class="fp-copy" data-link="{escape(address)}">Copy link</button>'
        '<span role="status"></span>'
    )
    st.caption(
        "Opens the page with exactly these settings, seed included. With embed=true added it opens "
        "with the controls folded away."
    )
    st.code(address, language=None, wrap_lines=True)


def hand_out(
    settings: Settings, results: Mapping[Study[Any, Any], Any], data: OwnData | None
) -> None:
    """Offer the picture, and the page on one sheet, as HTML and as PDF."""
    printers, address_ = figures.kept(), link(settings.query())

    def made(form: Callable[[handout.Sheet], str | bytes]) -> Callable[[], Any]:
        return lambda: form(handout.sheet(settings, results, printers, link=address_, data=data))

    def picture() -> bytes:
        return figures.picture(list(printers.values())[-1], bundle.caption(settings, data), -1)

    sheet = "Question, answer, figure, settings and what it rests on, on one sheet."
    kinds: Mapping[str, tuple[str, Callable[[], Any], str, str]] = {
        "One page as PDF": ("pdf", made(handout.pdf), "application/pdf", sheet),
        "One page as HTML": ("html", made(handout.page), "text/html", sheet),
    }
    if printers:
        figure = "The last figure of the page, in its last round."
        kinds = {"Image": ("png", picture, "image/png", figure), **kinds}
    for title, (kind, make, mime, told) in kinds.items():
        st.download_button(
            title,
            data=make,
            file_name=f"{settings.kind}.{kind}",
            mime=mime,
            icon=":material/description:",
            on_click="ignore",
            key=f"sheet-{settings.kind}-{kind}",
            help=told,
        )


def download_archive(
    files: Callable[[], Mapping[str, str]], *, name: str, label: str, told: str
) -> None:
    """Offer text files in one archive, written only when somebody asks for it."""

    def data() -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for title, content in files().items():
                packed.writestr(title, content)
        return archive.getvalue()

    st.download_button(
        label,
        data=data,
        file_name=f"{name}.zip",
        mime="application/zip",
        icon=":material/download:",
        on_click="ignore",
        key=f"archive-{name}",
        help=told,
    )


def download_json(text: str, *, name: str) -> None:
    """Offer a configuration as a file; no rerun."""
    st.download_button(
        "Download configuration",
        data=text.encode,
        file_name=f"{name}.json",
        mime="application/json",
        icon=":material/settings:",
        on_click="ignore",
        key=f"json-{name}",
    )
