"""The five papers and this software as somebody cites them, and which papers a page rests on."""

from collections.abc import Mapping

from fedpca_core.papers.entries import PAPERS, Paper, paper
from fedpca_core.settings import Settings
from fedpca_core.study.parts import names
from fedpca_core.version import __version__

SOURCES: Mapping[str, Paper] = {key: paper(key) for key in PAPERS}
#: This software, with the version that runs.
SOFTWARE = Paper(
    key="fedpca_laboratory",
    name="The federated-PCA laboratory",
    title="The federated-PCA laboratory",
    year=2026,
    authors=("{The federated-PCA laboratory authors}",),
    kind="software",
    fields={"version": __version__},
    note="Apache-2.0",
)

#: Papers by the kind of settings, whatever is chosen there.
_OF_PAGE = names("page-papers")
#: Papers by method.
OF_METHOD: Mapping[str, str] = {
    "faps": "faps",
    "fedpower": "fedpower",
    "fedpe": "iot",
    "fedpg": "iot",
    "personalized": "perpca",
}


def cited(settings: Settings) -> tuple[Paper, ...]:
    """The papers of the page and of the methods that these settings choose, each once."""
    values = settings.as_dict()
    one = values.get("paper", "")
    chosen: list[str] = [one] if one in SOURCES else _OF_PAGE.get(settings.kind, "").split()
    for field in ("method", "methods", "attacked"):
        given = values.get(field, ())
        methods = (given,) if isinstance(given, str) else given
        chosen += [OF_METHOD[method] for method in methods if method in OF_METHOD]
    return tuple(SOURCES[key] for key in dict.fromkeys(chosen))


def reference(one: Paper) -> str:
    """Authors, title, venue, year and identifier in one line of Markdown."""
    names = [name.split()[-1] for name in one.authors]
    several = " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)
    who = f"{names[0]} et al." if len(names) > 4 else several
    identifier = f"doi:{one.doi}" if one.doi else f"arXiv:{one.arxiv}"
    parts = [
        who,
        f"*{one.title}*",
        one.venue if not one.venue.startswith("arXiv") else "",
        str(one.year),
        f"[{identifier}]({one.link})" if one.link else "",
    ]
    return ", ".join(filter(None, parts)) + f". {one.note}" * bool(one.note and not one.link)
