"""The documentation: its site builds without a warning, its Python runs, its commands exist."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

import fedpca_core as fp
from fedpca_core.protocol.trace_file import save_trace
from tests.dashboard.asgi import visit

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TRACE = fp.simulate(fp.problems.images("digits", 3), fp.SSI(3), rounds=2)
BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[str]:
    found = BLOCKS.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    save_trace(TRACE, tmp_path / "trace.npz")  # what a run on real machines leaves
    names: dict[str, object] = {}
    for text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), names)


def commands() -> list[tuple[str, list[str]]]:
    """Every ``make`` and ``python -m`` line that README and docs show."""
    shown = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in blocks(page, "", "sh", "bash") for line in block.splitlines()]
        lines += re.findall(r"`((?:make|python -m) [^`\n]+)`", text)
        for line in lines:
            words = line.split("#")[0].split()
            if words[:1] == ["make"] or words[:2] == ["python", "-m"]:
                shown.append((page.name, words))
    return shown


SHOWN = commands()
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_there_are_commands_to_check():
    assert len(SHOWN) > 20


@pytest.mark.parametrize("words", [words for _, words in SHOWN if words[0] == "make"], ids=" ".join)
def test_what_make_is_asked_for_is_there(words):
    asked = [word.strip(",;.)") for word in words[1:] if "=" not in word]
    assert asked == [] or asked[0] in TARGETS


@pytest.mark.parametrize(
    "words", [words for _, words in SHOWN if words[0] == "python"], ids=" ".join
)
def test_modules_that_are_run_are_there_and_know_their_command(words):
    module, given = words[2], words[3:]
    known = {
        "fedpca_core": {"run", "check", "config", "presets", "data", "reproduce"},
        "bench": {path.stem.removeprefix("bench_") for path in (ROOT / "bench").glob("bench_*.py")},
    }
    if module in known:
        assert not given or given[0].startswith("-") or given[0] in known[module]
    elif module.startswith(("scripts", "bench")):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()


def test_options_that_are_shown_exist():
    """Options of the command line, read off its own help."""
    from fedpca_core import __main__ as line

    with pytest.MonkeyPatch.context() as patch:
        made: list[argparse.ArgumentParser] = []
        whole = argparse.ArgumentParser.parse_args

        def seen(self, *arguments, **named):
            made.append(self)
            return whole(self, *arguments, **named)

        patch.setattr(argparse.ArgumentParser, "parse_args", seen)
        line.main(["presets"])
    actions = [one for one in made[0]._actions if isinstance(one, argparse._SubParsersAction)]
    choices = actions[0].choices
    for _, words in SHOWN:
        if words[:3] == ["python", "-m", "fedpca_core"] and len(words) > 3:
            options = {word for word in words[4:] if word.startswith("--")}
            assert options <= set(choices[words[3]]._option_string_actions), words


def test_the_site_builds_strictly_and_is_served(tmp_path, monkeypatch):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert "attack_arrays" in text and "explained_variance_ratio_" in text
    for page in site.rglob("*.html"):
        fetched = re.findall(r'(?:src|href)="(https?://[^"]+)"[^>]*>', page.read_text())
        assert not [one for one in fetched if re.search(r"\.(js|css|woff2?)$|fonts", one)]
    monkeypatch.setenv("FEDPCA_DOCS", str(site))
    from starlette.applications import Starlette

    import app

    server = Starlette(routes=app.routes())
    assert visit(server, "/docs/").status == 200
    assert visit(server, "/docs/api/").status == 200
    monkeypatch.setenv("FEDPCA_DOCS", str(tmp_path / "nowhere"))
    assert visit(Starlette(routes=app.routes()), "/docs/").status == 404
