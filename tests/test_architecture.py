"""The walk of docs/architecture.md: what it names is there, and its toys are added as it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = ("fedpca_core", "dashboard", "pages")
#: A piece of a toy begins so: a new file, or lines after one or at the end of one that is there.
PIECE = re.compile(r'^# ([\w/]+\.(?:py|toml))(?: after "(.*)"| (at its end))?$')


@dataclass
class Toy:
    """What is added: new files, and lines by file, each with the line that it follows."""

    files: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def changed(self) -> Counter[str]:
        """How many lines each file gets that was there before."""
        return Counter({name: 0 for name, *_ in self.lines}) + Counter(
            {
                name: sum(text.count("\n") for other, _, text in self.lines if other == name)
                for name, *_ in self.lines
            }
        )


def toys() -> dict[str, Toy]:
    """The toys of the page by the word that their heading begins with."""
    found = {}
    for heading, block in re.findall(r"^### An? (\w+).*?\n.*?```py\n(.*?)^```", PAGE, re.M | re.S):
        found[heading] = toy = Toy()
        for line in block.splitlines():
            if begins := PIECE.match(line):
                name, after, end = begins.groups()
                if after is None and end is None:
                    toy.files[name] = ""
                else:
                    toy.lines.append((name, after or "", ""))
            elif name in toy.files:
                toy.files[name] += f"{line}\n"
            else:
                where, anchor, text = toy.lines[-1]
                toy.lines[-1] = where, anchor, f"{text}{line}\n"
    return found


TOYS = toys()
#: What each may touch: new files outside its own folder, and lines of files that are there.
COSTS = {
    "method": (1, {"fedpca_core/algorithms/registry.py": 2}),
    "attack": (1, {"fedpca_core/attacks/registry.py": 2}),
    "dial": (
        0,
        {
            "fedpca_core/study/pca_settings.py": 1,
            "fedpca_core/help.toml": 1,
            "pages/converge.py": 1,
        },
    ),
    "question": (
        4,
        {
            "fedpca_core/help.toml": 2,
            "fedpca_core/questions/catalogue.py": 2,
            "dashboard/shell/navigation.py": 1,
        },
    ),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Iterator[Path]:
    """A copy of the sources with all toys in them."""
    copy = tmp_path_factory.mktemp("house")
    for name in ROOMS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "assets", copy / "assets")
    for toy in TOYS.values():
        for name, text in toy.files.items():
            assert not (copy / name).exists(), f"{name} is there already"
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8")
        for name, anchor, text in toy.lines:
            whole = (copy / name).read_text(encoding="utf-8")
            if anchor:
                assert whole.count(f"{anchor}\n") == 1, f"{name} has no line “{anchor}”"
                whole = whole.replace(f"{anchor}\n", f"{anchor}\n{text}")
            else:
                whole += f"\n{text}"
            (copy / name).write_text(whole, encoding="utf-8")
    yield copy


def said(tree: Path, code: str) -> str:
    """What a program prints that runs in the copy."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "FEDPCA_WORKERS": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_there_is_a_toy_for_everything_that_is_added():
    assert set(TOYS) == set(COSTS)


@pytest.mark.parametrize("name", COSTS)
def test_a_toy_touches_no_more_than_the_page_promises(name):
    files, lines = COSTS[name]
    assert (len(TOYS[name].files), dict(TOYS[name].changed)) == (files, lines)
    if name == "question":
        outside = [one for one in TOYS[name].files if "questions/toy/" not in one]
        assert outside == ["pages/toy.py"]


def test_a_method_and_an_attack_are_in_every_trial(tree):
    code = """
from types import SimpleNamespace
import numpy as np
import fedpca_core as fp
from fedpca_core.steps import outcome
from fedpca_core.study.deployed import deployment_of
from fedpca_core.trial import trial
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.attacks.registry import ATTACKS
assert "toy" in COMPARED and "toy" in ATTACKS
draw = np.random.default_rng(0)
rows = draw.standard_normal((400, 8)) * [5, 4, 3, 1, 1, 1, 1, 1]
problem = fp.problems.from_records(rows, np.arange(400) // 100, centre=False)
run = fp.simulate(problem, METHODS["toy"].algorithm(3), rounds=60)
print(fp.metrics.frame(run, problem)["sin_theta"].iloc[-1] < 1e-6)
public = SimpleNamespace(
    participation=1.0, secure_aggregation=False, dtype="float64", upload_noise=0.0
)
known = deployment_of(problem, METHODS["toy"].algorithm(3), public, 0, rounds=60)
print({"toy", "linear"} <= set(outcome(trial(run.transcript, known)).beliefs))
"""
    assert said(tree, code).split() == ["True", "True"]


def page(name: str, more: str) -> str:
    return f"""
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("dashboard/main.py", default_timeout=120).run()
app.switch_page("../pages/{name}.py").run()
assert not app.exception, app.exception
{more}
"""


def test_a_dial_is_on_its_page_with_its_words_and_in_the_link(tree):
    code = """
dial = next(one for one in app.slider if one.label == "Toy")
assert dial.help == "A number that nothing reads yet." and dial.value == 3
from fedpca_core.study.pca_settings import ConvergeSettings
print(ConvergeSettings.from_query({"toy": ["5"]}).configuration.query_string())
"""
    assert said(tree, page("converge", code)).split() == ["toy=5"]


def test_a_question_is_a_page_and_a_command(tree):
    code = """
print(app.title[0].value, [one.label for one in app.slider if one.key == "upto"])
print(any(one.value == "The last one is 25." for one in app.markdown))
from fedpca_core.__main__ import main
main(["config", "toy", "upto=7"])
"""
    told = said(tree, page("toy", code))
    assert "How does the square grow? ['Up to']\nTrue\n" in told and '"upto": 7' in told


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.(?:py|toml))`", PAGE))))
def test_a_file_that_the_page_names_is_there(name):
    assert any((ROOT / place / name).is_file() for place in (".", "fedpca_core", "dashboard/shell"))


# ---------------------------------------------------------------------- the size of the house
#: Lines of Python that a visitor's page may hang on, and of all that is no test. Lower them when
#: the house has become smaller; nothing raises them.
MOST_LINES, MOST_OF_ALL = 47_692, 54_708
LARGEST_ROOM, MOST_ROOMS = 8_000, 20


def sizes() -> Counter[str]:
    """Lines by room: folders of the core and of the dashboard, and each question by itself."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found: Counter[str] = Counter()
    for name in filter(None, listing.stdout.split("\0")):
        parts = Path(name).parts
        if parts[0] == "tests" or not (ROOT / name).is_file():
            continue
        deep = 3 if parts[:2] == ("fedpca_core", "questions") and len(parts) > 3 else 2
        room = parts[: min(deep, len(parts) - 1)] if parts[0] in ROOMS else parts[:1]
        found["/".join(room)] += (ROOT / name).read_text(encoding="utf-8").count("\n")
    return found


def test_the_house_does_not_grow():
    found = sizes()
    large = {room: lines for room, lines in found.items() if lines > LARGEST_ROOM}
    assert large == {}
    core = sum(lines for room, lines in found.items() if room.split("/")[0] in (*ROOMS, "app.py"))
    assert core <= MOST_LINES and found.total() <= MOST_OF_ALL, (core, found.total())
    floors = {"/".join(room.split("/")[:2]) for room in found if room.split("/")[0] in ROOMS[:2]}
    assert len(floors | {"pages"}) <= MOST_ROOMS, sorted(floors)
