"""The documentation: its site builds without a warning, its Python runs, its commands exist."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import pytest

import fedpca_core as fp
from fedpca_core.protocol.trace_file import save_trace
from tests.dashboard.asgi import visit

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
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


#: Commands that no test runs as they stand, for they take hours or ask a publisher: their options
#: are looked up. `tests/publishers` fetches from a server of its own.
LOOKED_UP = ("--paper-size", "data olivetti", "data ton-iot")


def lines(page: Path) -> list[str]:
    """Commands of the core as a page shows them, in its order."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    inside = "\n".join(blocks(page, "", "sh", "bash")).replace("\\\n", " ")
    found = [*inside.splitlines(), *re.findall(r"`(python -m fedpca_core [^`\n]+)`", text)]
    shown = [line.split("#")[0].strip() for line in found]
    return [line for line in shown if line.startswith("python -m fedpca_core")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if lines(page)], ids=lambda page: page.name
)
def test_commands_of_the_core_run_as_shown(page, tmp_path, monkeypatch):
    """One after the other in one folder, as somebody who reads the page types them."""
    monkeypatch.chdir(tmp_path)
    save_trace(TRACE, tmp_path / "trace.npz")
    (tmp_path / "trace.json").write_text(
        said("fedpca_core", "config", "trace", "client=1", "grid=1"), encoding="utf-8"
    )
    for line in lines(page):
        if not any(part in line for part in LOOKED_UP):
            command, _, file = line.partition(">")
            out = said(*shlex.split(command)[2:])
            if file:
                Path(file.strip()).write_text(out, encoding="utf-8")


def test_a_command_runs_in_a_shell(tmp_path):
    line = next(line for page in PAGES for line in lines(page) if ">" in line)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{BIN}:{os.environ['PATH']}"}
    subprocess.run(line, check=True, shell=True, cwd=tmp_path, env=environment)
    assert json.loads((tmp_path / line.split()[-1]).read_text(encoding="utf-8"))


def said(module: str, *words: str) -> str:
    """What a module says that is run with these words; in this process, which has read it."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("FEDPCA_STATUS_TOKEN", "told")  # both are what `bench` would leave behind
        run = import_module(module)
        run = import_module(f"{module}.__main__") if hasattr(run, "__path__") else run
        try:
            code = run.main(list(words))
        except SystemExit as end:
            code = end.code
    assert not code, f"{module} {' '.join(words)} ends with {code}"
    return out.getvalue()


helped = cache(said)


def asked(words: list[str]) -> tuple[str, ...]:
    """The module of a command, and the part of it that has options of its own."""
    return (words[2], *(word for word in words[3:4] if word.isalpha()))


OPTIONS = sorted(
    {
        (*asked(words), option)
        for _, words in SHOWN
        if words[0] == "python"
        for option in words[3:]
        if option.startswith("--")
    }
)


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_an_option_that_is_shown_exists(words):
    """As its own help lists it."""
    *command, option = words
    assert re.search(rf"{option}\b", helped(*command, "--help"))


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
