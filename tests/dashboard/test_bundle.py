"""Everything of a page in one archive: figures that open, numbers with units, what repeats them."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from dashboard.player.printed import printed
from dashboard.shell import bundle
from fedpca_core.papers.sources import SOURCES, cited, reference
from fedpca_core.questions.catalogue import PAGES, read_settings
from fedpca_core.questions.converge import figures as convergence
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.panels import Baseline, Curve, Heat, Images, Panel, to_uint8
from fedpca_core.study.pca_settings import ConvergeSettings
from tests.test_rooms import ROOT

QUICK = ConvergeSettings(
    features=10, components=2, samples=50, clients=3, rounds=10, methods=("ssi", "fedpg"), seed=7
)


@pytest.fixture(scope="module")
def archive():
    study = Convergence()
    result = outcome(study.run(QUICK))
    panel = convergence.panel(result, QUICK)
    printers = {"converge_view": partial(printed, "converge_view", [panel], [])}
    content = bundle.archive(QUICK, {study: result}, printers, link="https://here/converge?seed=7")
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        return {name: files.read(name) for name in files.namelist()}


def test_a_figure_comes_in_three_formats_with_its_legend_settings_and_seed(archive):
    drawing = ElementTree.fromstring(archive["figures/convergence.svg"])
    words = " ".join("".join(node.itertext()) for node in drawing.iter() if "text" in node.tag)
    for said in ("SSI", "FedPG", "communication round", "Features 10", "seed 7", "simulation only"):
        assert said in words, said
    picture = imread(io.BytesIO(archive["figures/convergence.png"]))
    assert picture.shape[1] > 1000 and (picture[0, 0] == 1.0).all()  # white
    assert archive["figures/convergence.pdf"].startswith(b"%PDF")


def test_the_numbers_are_tidy_and_have_units(archive):
    curves = pd.read_csv(io.BytesIO(archive["figures/convergence.csv"]))
    assert set(curves["x_quantity"]) == {"communication round"}
    assert (curves[curves["curve"] == "SSI"]["x"] == np.arange(11)).all()
    columns = pd.read_csv(io.BytesIO(archive["columns.csv"])).set_index(["table", "column"])["unit"]
    assert columns["convergence-curves", "bytes_up"] == "B"
    assert columns["convergence-curves", "sin_theta"] == "1"
    assert columns["convergence-curves", "method"] == "text"
    for name in {name for name, _ in columns.index}:
        table = pd.read_csv(io.BytesIO(archive[f"tables/{name}.csv"]))
        assert list(columns[name].index) == list(table.columns)


def test_settings_script_and_citations_come_along(archive):
    assert read_settings(archive["settings.json"].decode()) == QUICK
    assert json.loads(archive["settings.json"])["seed"] == 7
    compile(archive["script.py"], "script.py", "exec")
    citations = archive["references.bib"].decode()
    assert "@misc{faps," in citations and "@misc{iot," in citations and "@software{" in citations
    assert "https://here/converge?seed=7" in archive["README.txt"].decode()


def test_a_file_s_name_is_one_word_of_the_command():
    name = "a b; rm -rf ~ '$(id)'.csv"
    content = bundle.archive(QUICK, {}, {}, data=OwnData(name, b"a,b\n1,2\n"))
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        (line,) = (x for x in files.read("README.txt").decode().splitlines() if "--table" in x)
    assert f"--table={name}" in shlex.split(line.strip(" `"))


def test_an_own_file_is_named_by_its_content():
    said = bundle.caption(QUICK, data=OwnData("mine.csv", b"a,b\n1,2\n"))
    assert "mine.csv" in said and OwnData("", b"a,b\n1,2\n").digest[:12] in said


X = ["first", "second"]
PANELS = [
    Panel("bars", "Bars", "client", "MB", (Curve("a", X, [1, 2]), Curve("b", X, [2, None])),
          kind="bars", log_y=False),
    Panel("rows", "Spectrum", "component", "value", (Curve("a", X, [[3, 4], [5, 6]]),),
          kind="bars", log_y=False),
    Panel("area", "", "round", "ε", (Curve("a", [0, 1], [0, 1]), Curve("b", [0, 1], [1, 2])),
          kind="area", log_y=False),
    Panel("points", "Points", "x", "y", (Curve("a", [1, 2], [3, 4], labels=X),), kind="scatter",
          log_y=False, baselines=(Baseline("none", 0.0),)),
    Panel("empty", "All gaps", "x", "y", (Curve("a", [1, 2], [np.nan, np.nan]),)),
    Heat("heat", "Heat", [[0.0, 1.0], [np.nan, 0.5]], X, X, palette="diverging", show_values=True),
    Heat("moving", "Moving", np.zeros((3, 2, 2)), X, X),
]  # fmt: skip


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.key)
def test_every_kind_of_panel_can_be_printed(panel):
    # All formats are those of the archive above.
    files = printed("view", [panel], [], "Below.", kinds=("csv", "svg"))
    assert list(files) == [f"{panel.key}.{kind}" for kind in ("csv", "svg")]
    assert len(pd.read_csv(io.BytesIO(files[f"{panel.key}.csv"]))) >= 2


def test_pictures_are_printed_in_the_values_they_stand_for():
    frames = to_uint8(np.linspace(-1, 1, 12).reshape(2, 2, 3), -1, 1)
    row = [Images("Found", frames, -1, 1, "diverging"), Images("Truth", frames[1:], palette="grey")]
    files = printed("view", [], [row], "Below.")
    table = pd.read_csv(io.BytesIO(files["view-pictures-1.csv"]))
    found = table[table["picture"] == "Found"]["value"]
    assert np.allclose(found, np.linspace(-1, 1, 12)[6:], atol=1 / 255)


@pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.kind)
def test_every_page_cites_its_papers(kind: type[Settings]):
    papers = cited(kind())
    assert papers and all(paper.bibtex.startswith("@") for paper in papers)


def test_a_reference_has_authors_title_year_and_link():
    said = reference(SOURCES["fedpower"])
    assert said.startswith("Guo et al., *FedPower: Privacy-Preserving")
    assert "2024" in said and "https://doi.org/10.1007/s10994-024-06620-0" in said
    assert reference(SOURCES["faps"]).startswith("Wang, Liu and Zhang, ")


def test_the_citation_file_agrees_with_the_list_of_papers():
    file = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "license: Apache-2.0" in file
    known = [paper for paper in SOURCES.values() if paper.authors]
    entries = file.split("  - type: ")[1:]
    for paper, entry in zip(known, entries, strict=True):
        assert paper.title in entry and f"year: {paper.year}" in entry
        assert (paper.doi or paper.arxiv) in entry
        assert entry.count("family-names") == len(paper.authors)
