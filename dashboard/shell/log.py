"""What the operator reads: one JSON line for every job, without settings, data or visitors."""

import json
import logging
from collections.abc import Hashable

_LOG = logging.getLogger("fedpca")


def job(key: Hashable, seconds: float, ending: str, megabytes: float) -> None:
    """Say that a job has ended: which study, how, after how long, how large its result is."""
    study = key[0] if isinstance(key, tuple) and isinstance(key[0], str) else "job"
    line = {
        "event": "job",
        "study": study,
        "ending": ending,
        "seconds": round(seconds, 2),
        "result_mb": round(megabytes, 2),
    }
    _LOG.info(json.dumps(line))


def to_standard_error() -> None:
    """Write these lines to standard error, for whoever collects them."""
    if not _LOG.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter('{"time": "%(asctime)s", "line": %(message)s}'))
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)
        _LOG.propagate = False
