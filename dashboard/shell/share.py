"""Taking results away: the link that reproduces a page, and downloads."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from dashboard.shell import bundle, figures, handout, jobs, layout
from dashboard.shell.navigation import door
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

_SO_FAR = "**So far:** made of a part of the results; the page was still computing."
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


def link(parameters: Parameters) -> str:
    """Return the address of the page with these parameters."""
    return address(st.context.url or "", parameters)


@st.fragment(key="taken")
def take_away(
    settings: Settings,
    results: Callable[[], Mapping[Study[Any, Any], Any]],
    data: OwnData | None,
    *ways: tuple[Any, ...],
) -> None:
    """One button “Share”, with what `offers` has when it is opened, and ``ways`` on, see `door`."""
    with st.container(horizontal=True, vertical_alignment="center"):
        share = st.popover(
            "Share", icon=":material/share:", key=f"share-{settings.kind}", on_change="rerun"
        )
        if share.open:
            with share:
                offers(settings, results(), data)
        for way in ways:
            door(*way)


def offers(
    settings: Settings, results: Mapping[Study[Any, Any], Any], data: OwnData | None
) -> None:
    """The link, the settings, and of what has a result the sheet, the tables, and an archive."""
    name = settings.kind
    copy_link(settings.query())
    asked, icon = settings.to_json().encode, ":material/settings:"
    layout.download("Download configuration", asked, f"{name}.json", key=f"json-{name}", icon=icon)
    done = {study: result for study, result in results.items() if result is not None}
    if not done:
        st.caption("The page as a sheet, and its tables, come with its first result.")
        return
    hand_out(settings, done, data, [_SO_FAR] * any(map(jobs.computes, results)))
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


def copy_link(parameters: Parameters) -> None:
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
    settings: Settings,
    results: Mapping[Study[Any, Any], Any],
    data: OwnData | None,
    lead: Sequence[str],
) -> None:
    """Offer the picture, and the page on one sheet with a lead, as HTML and as PDF."""
    printers, address_ = figures.kept(), link(settings.query())

    def made(form: Callable[[handout.Sheet], str | bytes]) -> Callable[[], Any]:
        more: dict[str, Any] = {"link": address_, "data": data, "lead": lead}
        return lambda: form(handout.sheet(settings, results, printers, **more))

    def picture() -> bytes:
        below = bundle.caption(settings, results.values(), data)
        return figures.picture(list(printers.values())[-1], below, -1)

    sheet = "Question, answer, figure, settings and what it rests on, on one sheet."
    kinds = [
        ("Image", "png", picture, "The last figure of the page, in its last round."),
        ("One page as PDF", "pdf", made(handout.pdf), sheet),
        ("One page as HTML", "html", made(handout.page), sheet),
    ]
    for title, kind, make, told in kinds if printers else kinds[1:]:
        file, key = f"{settings.kind}.{kind}", f"sheet-{settings.kind}-{kind}"
        layout.download(title, make, file, key=key, icon=":material/description:", help=told)


def download_archive(
    files: Callable[[], Mapping[str, str]], *, name: str, label: str, told: str
) -> None:
    """Offer text files in one archive, written only when somebody asks for it."""
    key, made = f"archive-{name}", lambda: layout.zipped(files())
    layout.download(label, made, f"{name}.zip", key=key, icon=":material/download:", help=told)
