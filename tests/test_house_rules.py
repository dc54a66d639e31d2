"""Rules of the house that reading the sources can prove: who imports what, and who sees what."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fedpca_core
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.theory.settings import ITERATIONS
from fedpca_core.settings import Settings, said_in

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "fedpca_core").rglob("*.py"))
ROOMS = ("app.py", "dashboard", "pages", "fedpca_core")
TOOL_ROOMS = ("tests", "bench", "scripts")

# Modules of the standard library that speak to other machines.
NETWORK = {
    "asyncio", "ftplib", "http.client", "http.server", "imaplib", "multiprocessing.connection",
    "poplib", "smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib.request",
    "webbrowser", "xmlrpc",
}  # fmt: skip
# Packages that do, which one file may import, for one command.
FETCHING = {"httpx", "pooch", "requests", "urllib3"}
FETCHES = "fedpca_core/publishers/fetch.py"

# The other side of an attack: scores of the simulation, which holds the truth.
SIMULATION_ONLY = {"scores.py"}
PRIVATE = re.compile(r"\b(Problem|ClientData)\b")


def tracked() -> list[Path]:
    """Every file of the project that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return [ROOT / name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]


@cache
def imports(source: Path) -> tuple[str, ...]:
    """Dotted names a file imports anywhere in it, inside functions too."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


# Reads the list of files of everything that is installed.
owners_of_packages = cache(packages_distributions)


def distributions(requirements: list[str]) -> set[str]:
    return {Requirement(line).name.lower() for line in requirements}


def lines_of(name: str) -> list[str]:
    """The requirements of a file, with those of the files that it includes."""
    found: list[str] = []
    for line in (ROOT / name).read_text().splitlines():
        text = line.split("#")[0].strip()
        if text.startswith("-r "):
            found += lines_of(text.removeprefix("-r ").strip())
        elif text:
            found.append(text)
    return found


def undeclared(sources: list[Path], declared: set[str]) -> list[str]:
    """Imports of packages that are neither ours, nor Python's, nor declared."""
    ours = {"fedpca_core", "dashboard", "pages", "tests", "bench", "scripts", "app", "__future__"}
    ours |= {"fedpca_flower"}
    owners = {"Crypto": ["pycryptodome"], **owners_of_packages()}
    missing = []
    for source in sources:
        for name in imports(source):
            top = name.split(".")[0]
            if top in ours or top in sys.stdlib_module_names:
                continue
            # What is optional and not installed here is taken by its own name.
            if not declared & {owner.lower() for owner in owners.get(top, [top])}:
                missing.append(f"{source.relative_to(ROOT)} imports {top}")
    return missing


def python_files(*rooms: str) -> list[Path]:
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in rooms
    ]


def core_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies: list[str] = project["dependencies"]
    return dependencies


def extras() -> list[str]:
    """What pip installs with it where somebody asks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [one for wanted in project["optional-dependencies"].values() for one in wanted]


def test_the_core_imports_only_what_pip_installs_with_it():
    assert len(CORE) > 20
    assert undeclared(CORE, distributions([*core_dependencies(), *extras()])) == []


def test_nothing_imports_an_extra_before_it_is_used():
    for source in CORE:
        top = [node for node in ast.parse(source.read_text(encoding="utf-8")).body
               if isinstance(node, ast.Import | ast.ImportFrom)]  # fmt: skip
        said = " ".join(map(ast.unparse, top))
        assert not [one for one in extras() if Requirement(one).name in said.split()], source


def fetching(source: Path) -> list[str]:
    """What a file imports or calls that asks for something over a network."""
    found = [name for name in imports(source) if name.split(".")[0] in FETCHING]
    found += re.findall(r"\bfetch_(?:openml|[a-z0-9]+_faces|[a-z]+_people)\b", source.read_text())
    return found + [name for name in imports(source) if name.startswith("fedpca_core.publishers")]


def test_only_the_data_command_fetches():
    assert fetching(ROOT / FETCHES)
    found = {
        source.relative_to(ROOT).as_posix()
        for source in python_files("fedpca_core", "dashboard", "pages", "engines")
        if fetching(source) and source.parent.name != "publishers"
    }
    assert found == {"fedpca_core/__main__.py"}


@pytest.mark.parametrize(
    "code",
    [
        "import requests",
        "def data():\n    from sklearn.datasets import fetch_openml",
        "import sklearn\nsklearn.datasets.fetch_olivetti_faces()",
        "from fedpca_core.publishers.fetch import provide",
    ],
)
def test_whatever_else_fetched_would_be_found(code, tmp_path):
    source = tmp_path / "page.py"
    source.write_text(code)
    assert fetching(source)


def test_the_core_opens_no_connection_and_hides_no_import():
    found = [
        f"{source.relative_to(ROOT)} imports {name}"
        for source in CORE
        for name in imports(source)
        if any(f"{name}.".startswith(f"{module}.") for module in (*NETWORK, "importlib"))
        and not name.startswith(("importlib.metadata.", "importlib.resources"))
    ]
    found += [str(source) for source in CORE if "__import__" in source.read_text()]
    assert found == []


def test_importing_the_whole_core_loads_no_dashboard():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in CORE
        if path.stem != "__main__"
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*sorted({'streamlit', 'plotly', 'pooch', 'requests', 'dashboard'} & {*sys.modules}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout.strip()) == (0, ""), answer.stderr


def test_the_rooms_import_only_what_the_requirements_name():
    installed = distributions([*lines_of("requirements.txt"), *extras()])
    assert undeclared(python_files(*ROOMS), installed) == []
    tools = distributions(lines_of("requirements-dev.txt")) | {"packaging"}  # comes with pytest
    optional = distributions(lines_of("requirements-flower.txt"))
    optional |= distributions(lines_of("requirements-peers.txt"))
    assert undeclared(python_files(*TOOL_ROOMS), tools | optional) == []
    assert undeclared(python_files("engines"), optional) == []


def test_one_file_uses_streamlits_insides():
    """The others import what its reference names: `st.errors`, `st.delta_generator`, `st`."""
    public = ("streamlit.errors.", "streamlit.delta_generator.DeltaGenerator")
    found = {
        source.relative_to(ROOT).as_posix()
        for source in python_files(*ROOMS)
        for name in imports(source)
        if name.startswith("streamlit.") and not name.startswith(public)
    }
    assert found <= {"dashboard/shell/streamlit_internals.py"}
    inside = re.compile(r"streamlit\.(runtime|proto|web|delta_generator_singletons)|file_storage")
    assert [
        str(source.relative_to(ROOT))
        for source in python_files(*ROOMS)
        if source.name != "streamlit_internals.py" and inside.search(source.read_text("utf-8"))
    ] == []


def test_flower_is_imported_by_its_public_names_only():
    """What Flower does not publish may be gone with its next version; tests may look behind."""
    names = {name for source in python_files("engines") for name in imports(source)}
    flower = {name for name in names if name.split(".")[0] == "flwr"}
    public = ("flwr.app.", "flwr.serverapp.", "flwr.clientapp.")
    assert flower and {name for name in flower if not name.startswith(public)} == set()
    assert {name for name in flower if name.count(".") > 2} == set()


def test_requirements_are_pinned_and_within_the_ranges_of_the_core():
    pins = {}
    for line in lines_of("requirements-dev.txt"):
        requirement = Requirement(line)
        specifiers = list(requirement.specifier)
        assert [one.operator for one in specifiers] == ["=="], f"{line} is not pinned"
        pins[requirement.name] = specifiers[0].version
    for dependency in map(Requirement, core_dependencies()):
        assert dependency.specifier.contains(pins[dependency.name]), (
            f"{dependency} excludes the pin"
        )


def inputs(source: Path) -> Iterator[tuple[str, str, ast.expr | None]]:
    """What a module can be handed: where, under which name, of which type.

    That is parameters of public functions and of the methods of public classes, constructors
    included, and fields. Protocols run nothing; the classes that fulfil them are checked.
    """
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if node_name(node).startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            members = [] if "Protocol" in map(ast.unparse, node.bases) else node.body
        else:
            members = [node]
        for member in members:
            where = f"{source.stem}.{node_name(node)}, line {member.lineno}"
            if isinstance(member, ast.FunctionDef):
                given = member.args
                every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs]
                for one in [*every, given.kwarg]:
                    if one is not None:
                        yield where, one.arg, one.annotation
            elif isinstance(member, ast.AnnAssign):
                yield where, ast.unparse(member.target), member.annotation


def node_name(node: ast.stmt) -> str:
    return node.name if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else ""


def ways_to_the_truth(source: Path) -> list[str]:
    """Inputs and imports through which a module could see private data."""
    found = []
    for where, name, annotation in inputs(source):
        kind = "" if annotation is None else ast.unparse(annotation)
        untyped = kind in ("", "Any", "object") and name not in ("self", "cls")
        named = name in ("problem", "client_data", "blocks", "truth")
        if untyped or named or PRIVATE.search(kind):
            found.append(f"{where}: {name} is {kind or 'anything'}")
    for name in imports(source):
        if name.endswith(".Problem") or re.search(r"\.attacks\.scores\b", name):
            found.append(f"{source.stem} imports {name}")
    return found


ATTACKS = [
    path
    for path in CORE
    if "attacks" in path.parts and path.name not in SIMULATION_ONLY | {"__init__.py"}
]


@pytest.mark.parametrize("source", ATTACKS, ids=[path.stem for path in ATTACKS])
def test_an_attack_is_never_handed_the_private_data(source):
    assert ways_to_the_truth(source) == []


@pytest.mark.parametrize(
    "code",
    [
        "def attack(transcript: Transcript, problem: int): ...",
        "def attack(transcript: Transcript, hint): ...",
        "def attack(transcript: Transcript, *, hint: Any): ...",
        "def attack(transcript: Transcript, **hint: ClientData | None): ...",
        "class Attack:\n    def __init__(self, hint: Problem): ...",
        "class Attack:\n    hint: list[ClientData]",
        "from fedpca_core.problems.problem import Problem",
        "from fedpca_core.attacks import scores",
    ],
)
def test_an_attack_that_is_handed_the_private_data_is_found(code, tmp_path):
    source = tmp_path / "attack.py"
    source.write_text(code)
    assert len(ways_to_the_truth(source)) == 1


def test_a_transcript_has_no_way_back_to_the_problem():
    source = ROOT / "fedpca_core" / "protocol" / "transcript.py"
    assert [name for name in imports(source) if "problems" in name or PRIVATE.search(name)] == []


ALGORITHMS = ROOT / "fedpca_core" / "algorithms"


#: Where a class of ours is asked for after all: what comes from outside, and closed sums.
ASKED = {
    # What a file, a person's script or a hint in a file's format hands over.
    ("fedpca_core/__main__.py", "CheckSettings"),
    ("fedpca_core/estimator.py", "Algorithm"),
    ("fedpca_core/protocol/described.py", "Algorithm"),
    # Panels and parts are values that know nothing of who draws or prints them.
    ("dashboard/player/component.py", "Panel"),
    ("dashboard/player/printed.py", "Heat"),
    ("dashboard/player/printed.py", "Panel"),
}
#: Words that are keys of methods and of other things too: "exact" solves, gradients, calibrations.
SHARED_WORDS = {
    "fedpca_core/problems/personal_model.py": {"exact"},
    "fedpca_core/questions/privacy/build.py": {"exact"},
    "fedpca_core/questions/privacy/figures.py": {"exact"},
}


def classes_of(sources: Iterable[Path]) -> frozenset[str]:
    """Names of the classes that some files define."""
    trees = (ast.parse(source.read_text(encoding="utf-8")) for source in sources)
    return frozenset(
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )


OUR_CLASSES = classes_of(python_files(*ROOMS))


def asked_classes(source: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every class of ours that a file asks an object for.

    An object says by its capabilities what it is: `Algorithm.uploads`, `Study.in_pieces`, ... What
    is asked of builtins and arrays sorts values, and is not counted.
    """
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            names = {ast.unparse(one).split(".")[-1] for one in ast.walk(node.args[1])}
            yield from ((node.lineno, name) for name in sorted(names & OUR_CLASSES))
        elif isinstance(node, ast.Compare):  # type(one) is Other
            types = [one for one in node.comparators if ast.unparse(node.left).startswith("type(")]
            names = {ast.unparse(one).split(".")[-1] for one in types}
            yield from ((node.lineno, name) for name in sorted(names & OUR_CLASSES))


def asked_keys(source: Path) -> Iterator[tuple[int, str]]:
    """Line and key of every comparison with the key of a method, federated PCA's or Theory's."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        sides: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        for one in [each for side in sides for each in getattr(side, "elts", [side])]:
            if isinstance(one, ast.Constant) and one.value in METHODS.keys() | ITERATIONS.keys():
                yield one.lineno, str(one.value)


def outside_algorithms() -> list[Path]:
    return [one for one in python_files(*ROOMS) if not one.is_relative_to(ALGORITHMS)]


def test_nobody_asks_which_method_it_is():
    assert [
        f"{name}:{line}: {key}"
        for source in outside_algorithms()
        for name in [source.relative_to(ROOT).as_posix()]
        for line, key in asked_keys(source)
        if key not in SHARED_WORDS.get(name, ())
    ] == []


def test_nobody_asks_an_object_for_its_class():
    found = {
        (source.relative_to(ROOT).as_posix(), name)
        for source in outside_algorithms()
        for _, name in asked_classes(source)
    }
    assert found - ASKED == set()
    assert ASKED - found == set(), "no longer asked, so it goes from the list"


@pytest.mark.parametrize(
    ("code", "classes", "keys"),
    [
        ("if isinstance(algorithm, FAPS | SSI): pass", ["FAPS", "SSI"], []),
        ("if isinstance(run, algorithms.FedPower): pass", ["FedPower"], []),
        ("if issubclass(kind, (str, InPieces)): pass", ["InPieces"], []),
        ("if type(method) is ProxSkip: pass", ["ProxSkip"], []),
        ("assert isinstance(self.method, JointUzawa)", ["JointUzawa"], []),
        ("found = method == 'faps'", [], ["faps"]),
        ("found = 'faps' in settings.attacked", [], ["faps"]),
        ("found = method in ('ssi', 'faps')", [], ["ssi", "faps"]),
        ("found = settings.method not in ('exact', 'admm')", [], ["exact", "admm"]),
        ("match method:\n    case 'proxskip': pass", [], ["proxskip"]),
        ("if isinstance(value, float): pass", [], []),
        ("if isinstance(error, np.ndarray): pass", [], []),
        ("found = algorithm.replayable", [], []),
        ("made = METHODS['faps']", [], []),
    ],
)
def test_who_asks_which_method_or_class_it_is_is_found(tmp_path, code, classes, keys):
    source = tmp_path / "study.py"
    source.write_text(code)
    assert [name for _, name in asked_classes(source)] == classes
    assert [key for _, key in asked_keys(source)] == keys


def test_every_algorithm_fits_on_a_few_screens():
    """What a file declares for the registry does not count; it is read once, not checked."""
    files = (ROOT / "fedpca_core" / "algorithms").rglob("*.py")
    sources = {path.name: path.read_text().split("\nMETHODS = (")[0] for path in files}
    long = {name: lines for name, text in sources.items() if (lines := text.count("\n")) > 180}
    assert long == {}


def meanings_of(sources: Iterable[Path]) -> dict[str, list[str]]:
    """Files that define each public class, by its name."""
    found: dict[str, list[str]] = {}
    for source in sources:
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(source.name)
    return found


def test_a_class_name_has_one_meaning():
    product = [one for one in tracked() if one.suffix == ".py" and "tests" not in one.parts]
    found = meanings_of(product)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_a_class_name_with_two_meanings_is_found(tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("class Round: ...\n")
    assert meanings_of(sorted(tmp_path.glob("*.py"))) == {"Round": ["one.py", "two.py"]}


def test_no_pages_folder_stands_beside_the_navigation():
    """Streamlit would take such a folder for its own navigation and cover deep links."""
    assert (ROOT / "dashboard" / "main.py").is_file()
    assert not (ROOT / "dashboard" / "pages").exists()


def settings_classes() -> list[type[Settings]]:
    """Every configuration of the core, whichever module declares it."""
    for module in pkgutil.walk_packages(fedpca_core.__path__, "fedpca_core."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = [], [Settings]
    while waiting:
        waiting += (children := waiting.pop().__subclasses__())
        found += children
    assert found
    # Tests declare settings of their own.
    return [one for one in found if one.__module__.startswith("fedpca_core.")]


def test_every_key_of_a_configuration_is_its_own():
    for settings in settings_classes():
        keys = Counter(parameter.key for parameter in settings.parameters().values())
        twice = [key for key, times in keys.items() if times > 1]
        assert twice == [], f"{settings.__name__}: two parameters share a name in the link"


def test_a_key_a_name_and_a_title_belong_to_one_parameter() -> None:
    """Whatever page or file: what is called alike is the same, and one thing has one name."""
    meant: dict[tuple[str, str], tuple[str, str, str, str, str]] = {}
    for settings in settings_classes():
        for name, parameter in settings.parameters().items():
            default = parameter.default
            many, kind = ("many " * parameter.many), type(default).__name__
            kind = many + ("choice" if parameter.choices else "number" if kind == "int" else kind)
            same = (name, parameter.key, parameter.label, kind, str(parameter.travels))
            for what in ("name", name), ("key", parameter.key), ("title", parameter.label):
                here = f"{settings.__name__}.{name}"
                assert meant.setdefault(what, same) == same, f"{here}: the {what[0]} {what[1]!r}"


def test_every_parameter_has_a_text_of_help_and_every_text_a_parameter():
    said, used = said_in("help"), set()
    for settings in settings_classes():
        for name, parameter in settings.parameters().items():
            assert parameter.help.endswith((".", "…")), f"{settings.__name__}.{name}"
            if " ".join(said.get(settings.kind, {}).get(name, "").split()) == parameter.help:
                used.add((settings.kind, name))
    unused = {(kind, name) for kind, part in said.items() for name in part} - used
    assert unused == set()


def test_values_of_a_file_are_those_of_a_parameter():
    declared = {(one.kind, name) for one in settings_classes() for name in one.parameters()}
    assert {(kind, name) for kind, part in said_in("values").items() for name in part} <= declared


def bound_keys(source: Path) -> list[str]:
    """Keys of the widgets that a file binds to the link; those of parameters are checked above."""
    keys = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        options = {option.arg: option.value for option in node.keywords}
        if "bind" in options:
            assert "key" in options, f"{source.name}, line {node.lineno}: bound without a key"
            keys.append(ast.unparse(options["key"]))
    return keys


def test_every_bound_key_is_its_own_on_a_page():
    for page in sorted((ROOT / "pages").glob("*.py")):
        parameters = {
            repr(parameter.key)
            for one in settings_classes()
            for parameter in one.parameters().values()
        }
        keys = Counter(bound_keys(page))
        assert [key for key, times in keys.items() if times > 1] == [], page.name
        assert parameters & set(keys) == set(), (
            f"{page.name} uses the name of a parameter in its link"
        )


def test_no_file_names_a_machine_or_leaves_work_undone():
    places = re.compile(r"(?<![\w.])/(work|root|farm|opt/wheels|opt/pypi[\w-]*|tmp/[a-z])\b")
    undone = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X]|NotImplemented[E]rror|no co[v]er)\b")
    found = []
    for path in tracked():
        if path.suffix in (".woff2", ".png", ".ico", ".npz", ".parquet") or ".min." in path.name:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if places.search(line) or (path.suffix == ".py" and undone.search(line)):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


SPEAKS_OF_A_PAPER = re.compile(r"\b(papers?|published|publishes|prints?|printed)\b", re.IGNORECASE)
#: Table 1, Figures 3(a) and 4, rule (27), ...: places, not measured numbers.
A_PLACE = re.compile(
    r"\b(tables?|figures?|theorems?|lemmas?|corollary|remark|algorithm|eqs?|sections?|rule|model)"
    r"\s*\(?[\dIVX]+(\([a-z]\))?\)?((,|\s*and|\s*to)\s*[\dIVX]+(\([a-z]\))?)*",
    re.IGNORECASE,
)
#: Decimals, powers of ten and numbers of two digits and more; a single digit counts something.
A_NUMBER = re.compile(r"(?<![\w{.])(\d+\.\d+|\d+e-?\d+|\d{2,})(?![\w-])")


def sentences(source: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every sentence that a file may show: its texts, without docstrings."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    documented = [n for n in nodes if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    skipped = {
        id(n.body[0].value) for n in documented if n.body and isinstance(n.body[0], ast.Expr)
    }
    skipped |= {id(v) for n in nodes if isinstance(n, ast.JoinedStr) for v in n.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in skipped else node.value
        else:
            continue
        yield from ((node.lineno, one) for one in re.split(r"(?<=[.;!?])\s+", text))


def unquoted(source: Path) -> list[str]:
    """Sentences that speak of a paper and write a number themselves."""
    return [
        f"{source.name}, line {line}: {text}"
        for line, text in sentences(source)
        if SPEAKS_OF_A_PAPER.search(text) and A_NUMBER.search(A_PLACE.sub("", text))
    ]


def test_numbers_of_papers_come_from_the_registry():
    """Pages quote by `fedpca_core.papers.registry.quote`; the numbers stand in papers/."""
    papers = ROOT / "fedpca_core" / "papers"
    shown = [path for path in python_files("dashboard", "pages") if path.exists()]
    shown += [path for path in CORE if not path.is_relative_to(papers)]
    assert [fault for source in shown for fault in unquoted(source)] == []


def texts_in(said):
    """All texts of a file of words, however deep they stand."""
    if isinstance(said, dict | list):
        inner = said.values() if isinstance(said, dict) else said
        return [text for one in inner for text in texts_in(one)]
    return [said] if isinstance(said, str) else []


@pytest.mark.parametrize(
    ("file", "asks"),
    [
        ("panels", r"\b(?:Panel|Heat)\.of"),
        ("about", r"About\.of"),
        ("words", r"\b(?:words|names|Cards\.of|FactsCard\.of)"),
    ],
)
def test_every_text_in_a_file_is_shown_and_no_paper_is_quoted_there(file, asks):
    written = tomllib.loads((ROOT / "fedpca_core" / f"{file}.toml").read_text("utf-8"))
    code = "".join(path.read_text("utf-8") for path in python_files(*ROOMS))
    assert set(re.findall(rf'{asks}\(\s*"([\w-]+)"', code)) <= written.keys()
    assert [name for name in written if f'"{name}"' not in code] == []
    said = [one for text in texts_in(written) for one in re.split(r"(?<=[.;!?])\s+", text)]
    speaking = [one for one in said if SPEAKS_OF_A_PAPER.search(one)]
    assert [one for one in speaking if A_NUMBER.search(A_PLACE.sub("", one))] == []


@pytest.mark.parametrize(
    ("text", "faulty"),
    [
        ("'The paper counts 207 rounds.'", True),
        ("f'Published: {ours:.2f} against 0.82.'", True),
        ("'An error of 1e-7, as printed.'", True),
        ("'As in Table 2 of the paper, Figures 3(a) and 4.'", False),
        ("f'The paper counts {quote(name)} rounds.'", False),
        ("'We measure 207 rounds. The paper says more.'", False),
    ],
)
def test_the_rule_on_papers_sees_numbers_and_not_places(tmp_path, text, faulty):
    source = tmp_path / "page.py"
    source.write_text(f"shown = {text}\n")
    assert bool(unquoted(source)) is faulty
