"""The environment's limits of what one visitor gets; workers read them, without Streamlit."""

import os
from dataclasses import fields, replace
from typing import Any

from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Settings
from fedpca_core.study import Cost, OwnData, Study
from fedpca_core.study.limits import Limits

#: How to do without this server.
ELSEWHERE = (
    "run it on your own machine, which has no limits: download the configuration below and start "
    "“python -m fedpca_core run” with it"
)


def number(name: str, default: int, least: int = 1) -> int:
    """A whole number of the environment.

    Raises InvalidInput: something else stands there; the server does not start.
    """
    text = os.environ.get(name, "").strip() or str(default)
    if not text.isdecimal() or len(text) > 9 or int(text) < least:
        raise InvalidInput(
            f"The environment variable {name} is “{text[:40]}”; give a whole number from {least}."
        )
    return int(text)


#: What one run may have.
LIMITS = Limits(
    **{
        one.name: number(f"FEDPCA_MAX_{one.name.upper().replace('MEGABYTES', 'MB')}", one.default)  # type: ignore[arg-type]
        for one in fields(Limits)
    }
)
#: Worker processes; 0 computes in the server's own process.
WORKERS = number("FEDPCA_WORKERS", 2, least=0)
#: Jobs that compute at the same time; the others wait their turn.
AT_ONCE = number("FEDPCA_JOBS", WORKERS or 2)
#: Jobs that may wait for their turn, several times what a lecture hall asks for: each holds a few
#: threads. Whoever comes then is asked to try again.
WAITING = number("FEDPCA_WAITING", 1000, least=0)
#: Megabytes of finished results that are kept for the next visitor.
CACHE_MB = number("FEDPCA_CACHE_MB", 256)
# Arrow's own allocator takes a gigabyte of addresses with the first table of texts, which the limit
# of a worker counts: the Anomalies page was refused its own default.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def check(study: Study[Any, Any], settings: Settings, data: OwnData | None) -> Cost:
    """What a run will take; refuse one that is too large for this server, see `Limits.check`."""
    cost = study.cost(settings, data)
    sized = None if hasattr(study, "most") else settings
    try:
        LIMITS.check(study.title, cost, sized, ELSEWHERE)
    except InvalidInput:
        if switch := _switch(study, settings, data):
            LIMITS.check(study.title, cost, sized, f"{switch}, or {ELSEWHERE}")
        raise
    return cost


def _switch(study: Study[Any, Any], settings: Settings, data: OwnData | None) -> str:
    """The switch without which a run fits, or is not asked for; empty where there is none."""
    for name, parameter in settings.parameters().items():
        if getattr(settings, name) is not True:
            continue
        off: Any = {name: False}
        turned = replace(settings, **off)
        cost = study.cost(turned, data)
        fits = cost.megabytes <= LIMITS.megabytes and cost.seconds <= LIMITS.seconds
        if fits or not study.wanted(turned):
            return f"switch “{parameter.label}” off"
    return ""


def check_file(data: OwnData) -> None:
    """Refuse a file that is too large to be parsed, after a look at its header."""
    LIMITS.check_file(data.name[:80], *data.shape, ELSEWHERE)
