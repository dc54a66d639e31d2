"""The work done once per process, before the first visitor."""

import gc
import importlib
import threading
import time
from functools import cache

from threadpoolctl import threadpool_limits

#: What pages import, and what reads their tables.
_HEAVY = ("dashboard.shell.share", "pyarrow.dataset", "pyarrow.parquet")
#: Seconds between two collections of garbage, and their largest share of the time: with hundreds of
#: sessions one takes half a second, in which nobody is served.
SWEEP_SECONDS, SWEEP_SHARE = 10.0, 0.02
_BEGUN = threading.Lock()


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
    from dashboard.shell import jobs, layout, log, streamlit_internals, workers
    from fedpca_core.questions.attack.records.study import ClientRecords
    from fedpca_core.questions.home.scene import LivePicture
    from fedpca_core.questions.home.settings import SceneSettings
    from fedpca_core.study.pca_settings import AttackSettings

    workers.pool().start()
    log.to_standard_error()
    streamlit_internals.prepare(layout.UPLOAD_MB)
    # What the pages with a picture above everything else show when they open.
    jobs.ahead(ClientRecords(), AttackSettings())
    jobs.ahead(LivePicture(), SceneSettings())
    gc.collect()
    gc.freeze()
    threading.Thread(target=_sweep, name="garbage", daemon=True).start()


def _sweep() -> None:
    took = 0.0
    while True:
        time.sleep(max(SWEEP_SECONDS, took / SWEEP_SHARE))
        began = time.perf_counter()
        gc.collect()
        took = time.perf_counter() - began
