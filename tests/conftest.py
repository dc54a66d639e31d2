"""What every test needs: one BLAS thread, no data but those it asks for, browser tests last."""

import atexit
import functools
import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

# Before numpy is imported: small matrices are fastest, and repeatable, on one thread.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Pages under test compute in their own process: there, a patch or a registered toy is seen.
# The servers of the browser tests have workers, as a deployment has.
os.environ.setdefault("FEDPCA_WORKERS", "0")

# What hypothesis makes up is the same in every run, and no clock counts, as its own profile for
# continuous integration has it. The environment of the Flower app is without it.
with suppress(ModuleNotFoundError):
    import hypothesis

    hypothesis.settings.load_profile("ci")
    if "FEDPCA_SEED" in os.environ:  # others than in every run
        hypothesis.settings.register_profile("fresh", derandomize=False)
        hypothesis.settings.load_profile("fresh")

ROOT = Path(__file__).resolve().parent.parent
#: Files of few tests that wait for processes of their own: servers, kernels, builds.
LONG = ("test_plain_host.py", "test_notebooks.py", "test_package.py", "test_workers.py")

# A test sees what a bare clone has, whatever lies on this machine: FEDPCA_DATA is unset, and the
# user's folder is an empty one, for the servers under test too. Only one that is marked
# `@pytest.mark.data("unsw")` sees the folder of real data. Processes of pytest-xdist inherit all.
if "FEDPCA_TEST_DATA" not in os.environ:
    from fedpca_core.problems.data_sets import data_folder as folder_of_data

    os.environ["FEDPCA_TEST_DATA"] = str(folder_of_data())
    os.environ.pop("FEDPCA_DATA", None)
    os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="no-data-")
    atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)
REAL_DATA = Path(os.environ["FEDPCA_TEST_DATA"])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test whose data are not here is skipped, and says which they are."""
    from fedpca_core.problems.data_sets import COMMAND, DATA_SETS

    for marker in item.iter_markers("data"):
        for key in marker.args:
            one = DATA_SETS[key]
            if not all((REAL_DATA / name).is_file() for name in one.files):
                pytest.skip(f"“{one.title}” is not here ({COMMAND} {one.name})")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data files, for tests with the marker `data`."""
    return REAL_DATA


@pytest.fixture(autouse=True)
def data_that_were_asked_for(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let a marked test find the real data, and the next test nothing of them."""
    if request.node.get_closest_marker("data") is None:
        yield
        return
    from fedpca_core.remembered import forget_everything

    forget_everything()
    monkeypatch.setenv("FEDPCA_DATA", str(REAL_DATA))
    yield
    forget_everything()


@pytest.fixture(scope="session", autouse=True)
def pages_without_a_browser() -> Iterator[None]:
    """Streamlit reads what every installed package says of itself, for each page under test anew:
    more work than most of the pages are. And no browser is there that needs a moment to draw."""
    try:
        from streamlit.components.v2 import manifest_scanner

        from dashboard.shell import layout
    except ModuleNotFoundError:  # the environment of the Flower app has no pages
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        patch.setattr(layout, "PICTURE_SECONDS", dict.fromkeys((True, False), 0.0))
        yield


@pytest.fixture(autouse=True)
def computing_ends_with_the_test() -> Iterator[None]:
    """What a page under test has begun would go on during the tests after it."""
    yield
    if jobs := sys.modules.get("dashboard.shell.jobs"):
        for job in list(jobs.registry()._open.values()):
            job._seen.clear()  # nobody looks any more


@pytest.fixture
def two_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An advice from fewer seeds than visitors get, for tests of all but what it advises."""
    from fedpca_core.questions.which import recommendation

    monkeypatch.setattr(recommendation, "SEEDS", ((float("inf"), (2,)),))


def pytest_collection_finish() -> None:
    """What is imported stays: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: the quick ones answer first, and Playwright keeps an event loop open.

    Before them the files of which one test takes longer than most others whole, then the large
    ones: whichever comes last keeps one process of pytest-xdist alone.
    """
    for item in items:
        asks = item.get_closest_marker("data") is not None
        if "data_folder" in getattr(item, "fixturenames", ()) and not asks:
            raise pytest.UsageError(f"{item.nodeid} reads real data without the marker “data”.")
    size = Counter(item.path for item in items)

    def order(item: pytest.Item) -> tuple[bool, bool, int]:
        browser = "browser" in item.path.relative_to(ROOT).parts
        return browser, item.path.name not in LONG, 0 if browser else -size[item.path]

    items.sort(key=order)
