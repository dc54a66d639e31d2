"""A new method is one file and one line: a toy of a few lines is found wherever methods are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shell import palette
from fedpca_core.__main__ import main
from fedpca_core.algorithms import SSI, registry
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED, METHODS
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Toy(SSI):
    """Subspace iteration under another name."""

    title: ClassVar[str] = "Toy"


# What the toy's file would end with, and the line that lists it.
TOY = Method(
    key="toy",
    title="Toy",
    algorithm=Toy,
    look=Look("#123456", "#abcdef", "dot", "star"),
    attacked=True,
)


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    METHODS["toy"] = TOY
    COMPARED["toy"] = ATTACKABLE["toy"] = TOY.title
    yield
    for listed in (METHODS, COMPARED, ATTACKABLE):
        del listed["toy"]


def test_it_is_in_links_and_files():
    chosen = ConvergeSettings(methods=("toy", "ssi"))
    link = parse_qs(chosen.query_string())
    assert link["methods"] == ["Toy", "SSI"]
    assert ConvergeSettings.from_query(link).configuration == chosen
    assert ConvergeSettings.from_file(chosen.to_json()) == chosen
    assert "Toy" in COMPARED.values() and "Toy" in ATTACKABLE.values()
    assert AttackSettings(attacked=("toy",)).attacked == ("toy",)


def test_it_has_a_colour_by_key_and_by_title():
    assert palette.style("toy").light == palette.style("Toy").light == "#123456"


def test_it_runs_from_the_command_line(tmp_path, capsys):
    sizes = ["features=10", "clients=3", "components=2", "rounds=20", "starts=1", "decay=1.3"]
    assert main(["config", "converge", "methods=toy,ssi", *sizes]) == 0
    file = tmp_path / "toy.json"
    file.write_text(capsys.readouterr().out)
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    assert "Toy" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["methods"] == ["toy", "ssi"]


def test_it_is_on_the_page():
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60)
    app.query_params["methods"] = ["Toy"]
    app.query_params["features"] = "10"
    app.run().switch_page("../pages/converge.py").run()
    assert not app.exception
    offered = next(each for each in app.get("button_group") if each.label == "Methods")
    assert "Toy" in [option.content for option in offered.proto.options]
    assert any("**Toy**" in text.value for text in app.markdown)


def test_a_key_is_given_once():
    assert len(registry._LISTED) == len(METHODS) - 1
