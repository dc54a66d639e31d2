"""The work done once per process, before the first visitor."""

from __future__ import annotations

import gc
import importlib
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
    "dashboard.views.anomaly",
    "dashboard.shell.layout",
    "dashboard.shell.palette",
    "dashboard.player",
    "dashboard.shell.share",
)


def _open_pages() -> None:
    """Compute what the pages with a picture above everything else show when they open."""
    from dashboard.shell import jobs
    from fedpca_core.studies.pca_settings import AttackSettings
    from fedpca_core.studies.records.study import ClientRecords
    from fedpca_core.studies.scene.scene import LivePicture
    from fedpca_core.studies.scene.settings import SceneSettings

    jobs.ahead(ClientRecords(), AttackSettings())
    jobs.ahead(LivePicture(), SceneSettings())


@cache
def warm() -> None:
    """Import what every page needs, use one BLAS thread, and freeze the garbage collector.

    The matrices here are small, so threads inside one product cost more than they save, and
    several visitors share the cores. Streamlit collects garbage after every script run while
    holding the interpreter lock; freezing what the imports created takes those objects out of
    each of these collections.
    """
    for name in _HEAVY:
        importlib.import_module(name)
    threadpool_limits(limits=1)
    if (workers := importlib.import_module("dashboard.shell.workers").pool()) is not None:
        workers.start()
    _open_pages()
    gc.collect()
    gc.freeze()
