"""What the operator reads: one JSON line for every job, without settings, data or visitors."""

import json
import logging
from collections.abc import Hashable

_LOG = logging.getLogger("fedpca")


def job(key: Hashable, seconds: float, ending: str, megabytes: float) -> None:
    line = {
        "event": "job",
        "study": key[0] if isinstance(key, tuple) and isinstance(key[0], str) else "job",
        "ending": ending,
        "seconds": round(seconds, 2),
        "result_mb": round(megabytes, 2),
    }
    _LOG.info(json.dumps(line))


def to_standard_error() -> None:
    if not _LOG.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter('{"time": "%(asctime)s", "line": %(message)s}'))
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)
        _LOG.propagate = False
