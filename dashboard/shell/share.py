"""Taking results away: the link that reproduces a page, and downloads."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from dashboard.player import printed
from dashboard.shell import bundle, handout, jobs, layout
from dashboard.shell.navigation import door
from fedpca_core.questions.catalogue import studies_of
from fedpca_core.settings import Settings
from fedpca_core.study import OwnData, Study
from fedpca_core.study.files import notebook

_SO_FAR = "**So far:** made of a part of the results; the page was still computing."
Parameters: TypeAlias = Mapping[str, str | Sequence[str]]
Results: TypeAlias = Mapping[Study[Any, Any], Any]


def link(parameters: Parameters, base: str = "") -> str:
    """The address of the page (or ``base``) with these parameters; lists repeat the name."""
    whole = urlsplit(base or st.context.url or "")
    return urlunsplit(whole._replace(query=urlencode(parameters, doseq=True), fragment=""))


def results(settings: Settings, more: Results = MappingProxyType({})) -> Results:
    """What the page has of its studies by now, and ``more`` that it has by itself."""
    jobs_of = {study: jobs.asked(study) for study in studies_of(settings)}
    found = {study: None if job is None else job.result for study, job in jobs_of.items()}
    return found | dict(more)


def take_away(
    settings: Settings,
    data: OwnData | None,
    *ways: tuple[Any, ...],
    more: Results = MappingProxyType({}),
) -> None:
    """The end of a page: its script, “Share” with what `offers` has, and ``ways`` on, see `door`.

    ``more``: Results that no job of the page's own settings has.
    """
    fold(settings, data)

    @st.fragment(key="taken")
    def taken() -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            key = f"share-{settings.kind}"
            share = st.popover("Share", icon=":material/share:", key=key, on_change="rerun")
            if share.open:
                with share:
                    offers(settings, results(settings, more), data)
            for way in ways:
                door(*way)

    taken()


def fold(
    settings: Settings,
    data: OwnData | None = None,
    studies: Sequence[Study[Any, Any]] = (),
    *,
    label: str = "The same as a script",
    key: str = "script",
) -> None:
    """The script of a page's studies, or of these alone, folded away."""
    studies = studies or studies_of(settings)
    if place := layout.opened(label, key):
        with place:
            st.markdown("In a notebook, after `pip install .` in the project's folder:")
            code = bundle.script(settings, studies, data)
            st.code(code, language="python")
            title = f"# {', '.join(study.title for study in studies)}"
            file, written = f"{settings.kind}.ipynb", partial(notebook, title, script=code)
            look = {"key": f"{key}-notebook", "icon": ":material/book:"}
            layout.download("As a notebook", written, file, **look)


def offers(settings: Settings, results: Results, data: OwnData | None) -> None:
    """The link, the settings, and of what has a result the sheet, the tables, and an archive."""
    name, here, printers = settings.kind, link(settings.query()), printed.kept()
    copy_link(settings.query())
    asked, icon = settings.to_json().encode, ":material/settings:"
    layout.download("Download configuration", asked, f"{name}.json", key=f"json-{name}", icon=icon)
    done = {study: result for study, result in results.items() if result is not None}
    if not done:
        st.caption("The page as a sheet, and its tables, come with its first result.")
        return
    lead = [_SO_FAR] * any(job is not None and not job.done for job in map(jobs.asked, results))

    def made(form: Callable[[handout.Sheet], str | bytes]) -> Callable[[], Any]:
        more: dict[str, Any] = {"link": here, "data": data, "lead": lead}
        return lambda: form(handout.sheet(settings, done, printers, **more))

    def picture() -> bytes:
        below = bundle.caption(settings, done.values(), data)
        return printed.picture(list(printers.values())[-1], below, -1)

    sheet = "Question, answer, figure, settings and what it rests on, on one sheet."
    kinds = [
        ("Image", "png", picture, "The last figure of the page, in its last round."),
        ("One page as PDF", "pdf", made(handout.pdf), sheet),
        ("One page as HTML", "html", made(handout.page), sheet),
    ]
    for title, kind, make, told in kinds if printers else kinds[1:]:
        look = {"key": f"sheet-{name}-{kind}", "icon": ":material/description:", "help": told}
        layout.download(title, make, f"{name}.{kind}", **look)
    download_archive(
        lambda: {
            f"{title}.csv": table.to_csv(index=False)
            for title, table in bundle.tables(settings, done).items()
        },
        name=f"{name}-tables",
        label="Download tables",
        told="All numbers behind this page as CSV files.",
    )
    layout.download(
        "Download everything",
        lambda: bundle.archive(settings, done, printers, link=here, data=data),
        f"{name}.zip",
        key=f"everything-{name}",
        icon=":material/folder_zip:",
        help="Figures as SVG, PNG and PDF, all numbers with their units, settings, script and "
        "BibTeX in one archive. It takes some seconds to draw them.",
    )


def copy_link(parameters: Parameters) -> None:
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


def download_archive(
    files: Callable[[], Mapping[str, str]], *, name: str, label: str, told: str
) -> None:
    """Offer text files in one archive, written only when somebody asks for it."""
    key, made = f"archive-{name}", lambda: layout.zipped(files())
    layout.download(label, made, f"{name}.zip", key=key, icon=":material/download:", help=told)
