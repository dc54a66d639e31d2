"""The notebooks run from the first cell to the last, and a page's own notebook is one."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from dashboard.shell import bundle
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.study.files import notebook
from fedpca_core.study.pca_settings import ConvergeSettings

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
SMALL = ConvergeSettings(features=8, components=2, samples=50, clients=3, rounds=10)

pytestmark = pytest.mark.filterwarnings("ignore")


def executed(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    nbformat.validate(book)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": FOLDER.parent}}).execute()
    return book


def test_there_are_three():
    assert NAMES == ["add_epsilon.ipynb", "attack_my_messages.ipynb", "choose_a_method.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name):
    book = nbformat.read(FOLDER / name, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "kept without its outputs"
    shown = [cell.outputs for cell in executed(book).cells if cell.cell_type == "code"]
    assert sum(map(bool, shown)) >= 4


def test_a_pages_notebook_runs():
    text = notebook("# Convergence", script=bundle.script(SMALL, [Convergence()]))
    book = executed(nbformat.reads(text, as_version=4))
    assert "Convergence" in book.cells[0].source and book.cells[1].outputs
