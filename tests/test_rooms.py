"""The plan of the house, proved from the sources: arrows point down, and pages compute nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parent.parent

#: Rooms of the core, the lowest first; those of one line may lean on each other.
FLOORS = (
    (
        *("errors", "arrays", "streams", "settings", "remembered", "gaussian_privacy"),
        *("guarantee", "shares", "findings", "steps", "version"),
    ),
    ("linalg",),
    ("problems",),
    ("protocol",),
    ("algorithms",),
    ("attacks", "privacy", "metrics", "consensus", "anomaly"),
    ("trial",),
    ("study", "own_messages"),
    ("questions", "papers"),
    ("publishers", "estimator"),
    ("__init__", "__main__"),
)
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

#: What a page may know of the core: settings in, results out.
OPEN = (
    "questions", "papers", "settings", "errors", "arrays", "remembered", "algorithms.registry",
    "algorithms.method", "attacks.registry", "findings", "steps", "study", "version",
)  # fmt: skip
#: Calls that turn numbers into other numbers; they belong into a study.
COMPUTING = {
    "mean", "median", "nanmedian", "nanmean", "quantile", "percentile", "std", "var", "linalg",
    "einsum", "matmul", "dot", "default_rng", "groupby", "fft", "cov", "corrcoef", "average",
}  # fmt: skip


def modules(folder: str) -> dict[str, Path]:
    """Dotted names of all Python files below a folder of the project."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


CORE = modules("fedpca_core")
SCREEN = {**modules("dashboard"), **modules("pages")}


def targets(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of ``known`` that a file imports, anywhere in it, for types too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [
                inner if (inner := f"{node.module}.{alias.name}") in known else node.module
                for alias in node.names
            ]
        else:
            continue
        yield from (name for name in names if name in known)


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def upward(known: dict[str, Path]) -> list[str]:
    return sorted(
        f"{module} -> {target}"
        for module, path in known.items()
        for target in set(targets(path, known))
        if FLOOR[room(target)] > FLOOR[room(module)]
    )


def circles(known: dict[str, Path]) -> list[set[str]]:
    """Groups of files that import each other, directly or around a corner."""
    names = list(known)
    position = {name: at for at, name in enumerate(names)}
    arrows = [
        (position[module], position[target])
        for module, path in known.items()
        for target in targets(path, known)
        # A package's __init__ lists what its files offer; they are imported through it.
        if module != target and not module.startswith(f"{target}.")
    ]
    rows, columns = zip(*arrows, strict=True)
    graph = csr_array(([1] * len(arrows), (rows, columns)), shape=(len(names), len(names)))
    count, labels = connected_components(graph, directed=True, connection="strong")
    groups = [{names[at] for at in range(len(names)) if labels[at] == k} for k in range(count)]
    return [group for group in groups if len(group) > 1]


def test_every_room_has_a_floor():
    assert {room(module) for module in CORE} <= set(FLOOR)


def test_no_arrow_points_up():
    assert upward(CORE) == []


def test_no_files_import_each_other():
    assert circles(CORE) == []
    assert circles(SCREEN) == []


def computing(path: Path) -> list[str]:
    """Places where a file of the screen does more than draw."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append(f"{where} multiplies matrices")
        if isinstance(node, ast.Attribute) and node.attr in COMPUTING:
            found.append(f"{where} calls {node.attr}")
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            inner = name.removeprefix("fedpca_core.")
            if inner != name and not any(f"{inner}.".startswith(f"{one}.") for one in OPEN):
                found.append(f"{where} imports {name}")
            if name.split(".")[0] in ("scipy", "sklearn", "skimage"):
                found.append(f"{where} imports {name}")
    return found


@pytest.mark.parametrize("module", SCREEN)
def test_the_screen_computes_nothing(module):
    assert computing(SCREEN[module]) == []


@pytest.mark.parametrize(
    "code",
    [
        "from fedpca_core.protocol.simulate import simulate",
        "from fedpca_core import attacks",
        "import scipy.linalg",
        "middle = np.median(values)",
        "product = a @ b",
        "values = np.linalg.eigvalsh(matrix)",
    ],
)
def test_a_screen_that_computes_is_found(code, tmp_path, monkeypatch):
    source = tmp_path / "view.py"
    source.write_text(code)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(computing(source)) == 1
