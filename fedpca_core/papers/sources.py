"""The five papers, and this software, as somebody cites them.

Only what was looked up or is known for certain is stated; ``unsure`` says what is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedpca_core.errors import require
from fedpca_core.version import __version__


@dataclass(frozen=True)
class Source:
    """A paper.

    Attributes
    ----------
    key : str
        What every quoted number names it by; also the key of its BibTeX entry.
    name : str
        Its short name on the pages.
    authors : tuple of str
        "Given names Family name" each.
    title, venue : str
    year : int
    doi, arxiv : str
        Identifiers, empty where not verified.
    kind : str
        Type of its BibTeX entry.
    where : mapping of str to str
        Fields of that type besides authors, title, year and identifiers.
    unsure : str
        What could not be verified and is therefore left out.
    """

    key: str
    name: str
    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    doi: str = ""
    arxiv: str = ""
    kind: str = "misc"
    where: tuple[tuple[str, str], ...] = ()
    unsure: str = ""

    @property
    def link(self) -> str:
        """Address of the paper, empty where no identifier is verified."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""

    @property
    def bibtex(self) -> str:
        """Its BibTeX entry."""
        fields = {
            "author": " and ".join(self.authors),
            "title": "{" + self.title + "}",
            "year": str(self.year),
            **dict(self.where),
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
            "note": self.unsure,
        }
        return _entry(self.kind, self.key, fields)


SOURCES: Mapping[str, Source] = {
    source.key: source
    for source in (
        Source(
            "faps",
            "FAPS",
            ("Lei Wang", "Xin Liu", "Yin Zhang"),
            "Seeking Consensus on Subspaces in Federated Principal Component Analysis",
            "arXiv 2012.03461, version 4",
            2022,
            arxiv="2012.03461",
        ),
        Source(
            "fedpower",
            "FedPower",
            ("Xiao Guo", "Xiang Li", "Xiangyu Chang", "Shusen Wang", "Zhihua Zhang"),
            "FedPower: Privacy-Preserving Distributed Eigenspace Estimation",
            "Machine Learning",
            2024,
            doi="10.1007/s10994-024-06620-0",
            arxiv="2103.00704",
            kind="article",
            where=(("journal", "Machine Learning"),),
        ),
        Source(
            "iot",
            "FedPE and FedPG",
            (
                "Tung-Anh Nguyen",
                "Long Tan Le",
                "Tuan Dung Nguyen",
                "Wei Bao",
                "Suranga Seneviratne",
                "Choong Seon Hong",
                "Nguyen H. Tran",
            ),
            "Federated PCA on Grassmann Manifold for IoT Anomaly Detection",
            "arXiv 2407.07421",
            2024,
            arxiv="2407.07421",
        ),
        Source(
            "perpca",
            "PerPCA",
            ("Kaan Ozkara", "Bruce Huang", "Suhas Diggavi"),
            "Personalized PCA for Federated Heterogeneous Data",
            "IEEE International Symposium on Information Theory",
            2023,
            kind="inproceedings",
            where=(("booktitle", "IEEE International Symposium on Information Theory (ISIT)"),),
            unsure="Identifier and pages not verified.",
        ),
        Source(
            "dfl",
            "DFL",
            (),
            "Deterministic federated learning as an inexact Uzawa method",
            "",
            2023,
            unsure="The title is a description of ours: authors, title, venue and identifier of "
            "this paper could not be found, so that this is no citation.",
        ),
    )
}


def source(key: str) -> Source:
    """The paper with this key.

    Raises
    ------
    InvalidInput
        There is none.
    """
    known = ", ".join(SOURCES)
    require(key in SOURCES, f"There is no paper “{key}”; choose one of {known}.")
    return SOURCES[key]


def software_bibtex() -> str:
    """BibTeX entry of this software, with the version that runs."""
    fields = {
        "author": "{The federated-PCA laboratory authors}",
        "title": "{The federated-PCA laboratory}",
        "year": "2026",
        "version": __version__,
        "note": "Apache-2.0",
    }
    return _entry("software", "fedpca_laboratory", fields)


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    body = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items() if text)
    return f"@{kind}{{{key},\n{body}\n}}\n"
