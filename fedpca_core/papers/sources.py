"""The five papers, and this software, as somebody cites them."""

from collections.abc import Mapping

from fedpca_core.papers.entries import Paper, bibtex_entry
from fedpca_core.papers.files import PAPERS, paper
from fedpca_core.version import __version__

SOURCES: Mapping[str, Paper] = {key: paper(key) for key in PAPERS}


def software_bibtex() -> str:
    """BibTeX entry of this software, with the version that runs."""
    fields = {
        "author": "{The federated-PCA laboratory authors}",
        "title": "{The federated-PCA laboratory}",
        "year": "2026",
        "version": __version__,
        "note": "Apache-2.0",
    }
    return bibtex_entry("software", "fedpca_laboratory", fields)
