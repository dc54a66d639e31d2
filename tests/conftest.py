"""What every test needs: one BLAS thread, the folder of real data, browser tests last."""

import functools
import gc
import os
import sys
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

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

if "FEDPCA_DATA" not in os.environ and SHARED_DATA.is_dir():
    os.environ["FEDPCA_DATA"] = str(SHARED_DATA)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data files; tests that read one are skipped without it."""
    folder = os.environ.get("FEDPCA_DATA")
    if not folder:
        pytest.skip(f"FEDPCA_DATA is not set and {SHARED_DATA} does not exist")
    if not Path(folder).is_dir():
        pytest.fail(f"FEDPCA_DATA={folder} is not a folder. Correct it or unset it.")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def components_looked_for_once() -> Iterator[None]:
    """Streamlit reads what every installed package says of itself, for each page under test anew:
    more work than most of the pages are."""
    try:
        from streamlit.components.v2 import manifest_scanner
    except ModuleNotFoundError:  # the environment of the Flower app has no pages
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield


@pytest.fixture(autouse=True)
def computing_ends_with_the_test() -> Iterator[None]:
    """What a page under test has begun would go on during the tests after it."""
    yield
    if jobs := sys.modules.get("dashboard.shell.jobs"):
        for job in list(jobs.registry()._open.values()):
            job._seen.clear()  # nobody looks any more


def pytest_collection_finish() -> None:
    """What is imported stays: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: the quick ones answer first, and Playwright keeps an event loop open."""
    items.sort(key=lambda item: "browser" in item.path.relative_to(ROOT).parts)
