"""How the live picture speaks: angles, things, and what has just happened."""

import math

import numpy as np
import pandas as pd

from fedpca_core.settings import short
from fedpca_core.study.facts import Facts
from fedpca_core.study.pca_settings import ConvergeSettings

_THINGS = {"digits": "digits", "fashion_mnist": "garments", "olivetti": "faces", "table": "rows"}


def things(settings: ConvergeSettings) -> str:
    return _THINGS.get(settings.problem, "images")


def who(settings: ConvergeSettings, facts: Facts | None = None) -> str:
    """The client under attack, counted from 0 as in settings; with its name where facts know it."""
    return f"client {settings.client}" if facts is None else facts.client(settings.client)


def degrees(sine: float) -> float:
    return math.degrees(math.asin(min(max(sine, 0.0), 1.0)))


def angle(sine: float) -> str:
    """The largest angle to the true subspace, in degrees while one can see it."""
    found = degrees(sine)
    return f"{found:.1f}°" if found >= 0.05 else f"{short(found, 1)}°"


def within(rounds: pd.DataFrame, limit: float) -> int | None:
    """The first round after which the answer stays within so many degrees; None if none."""
    far = np.flatnonzero(rounds["sin_theta"].map(degrees).to_numpy() > limit)
    first = 0 if len(far) == 0 else int(far[-1]) + 1
    return first if first < len(rounds) else None


def known(rounds: pd.DataFrame) -> int | None:
    """The first round after which the server has every record; None if none."""
    all_of_them = np.flatnonzero(rounds["records_held"].to_numpy() > 0)
    return int(all_of_them[0]) if len(all_of_them) else None
