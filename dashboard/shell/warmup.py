"""The work done once per process, before the first visitor."""

import gc
import importlib
import threading
import time
from functools import cache

from threadpoolctl import threadpool_limits

_HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.linalg",
    "sklearn.metrics",
    "scipy.sparse.linalg",
    "fedpca_core",
    "fedpca_core.questions.anomaly.figures",
    "dashboard.shell.layout",
    "dashboard.shell.palette",
    "dashboard.player",
    "dashboard.shell.share",
)
#: Seconds between two collections of garbage, and their largest share of the time: with hundreds of
#: sessions one takes half a second, in which nobody is served.
SWEEP_SECONDS, SWEEP_SHARE = 10.0, 0.02
_BEGUN = threading.Lock()


def _open_pages() -> None:
    """Compute what the pages with a picture above everything else show when they open."""
    from dashboard.shell import jobs
    from fedpca_core.questions.attack.records.study import ClientRecords
    from fedpca_core.questions.home.scene import LivePicture
    from fedpca_core.questions.home.settings import SceneSettings
    from fedpca_core.study.pca_settings import AttackSettings

    jobs.ahead(ClientRecords(), AttackSettings())
    jobs.ahead(LivePicture(), SceneSettings())


def warm() -> None:
    """Do it, once; whoever comes meanwhile waits."""
    with _BEGUN:
        _warm()


@cache
def _warm() -> None:
    """Import what every page needs, use one BLAS thread, and take over the garbage collector.

    The matrices here are small, so threads inside one product cost more than they save, and
    several visitors share the cores. A full collection holds the interpreter lock for everybody:
    what the imports created is frozen, out of its reach, and one thread collects now and then
    instead of every script run (``runner.postScriptGC`` in .streamlit/config.toml).
    """
    for name in _HEAVY:
        importlib.import_module(name)
    threadpool_limits(limits=1)
    if (workers := importlib.import_module("dashboard.shell.workers").pool()) is not None:
        workers.start()
    importlib.import_module("dashboard.shell.log").to_standard_error()
    most = importlib.import_module("dashboard.shell.upload").UPLOAD_MB
    importlib.import_module("dashboard.shell.streamlit_internals").prepare(most)
    _open_pages()
    gc.collect()
    gc.freeze()
    threading.Thread(target=_sweep, name="garbage", daemon=True).start()


def _sweep() -> None:
    """Collect what closed sessions and changed figures leave behind."""
    took = 0.0
    while True:
        time.sleep(max(SWEEP_SECONDS, took / SWEEP_SHARE))
        began = time.perf_counter()
        gc.collect()
        took = time.perf_counter() - began
