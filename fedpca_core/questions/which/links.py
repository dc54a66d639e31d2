"""A point of the frontier as the settings of the pages that look closer."""

import math
from dataclasses import replace

from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED, METHODS, replayable
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings


def point(settings: FrontierSettings, method: str, value: float) -> FrontierSettings:
    """The settings of one point: the method alone, at a value of what varies, from all seeds."""
    alone = replace(settings.alone(method), seeds=settings.seeds)
    if settings.vary == "none" or math.isnan(value):
        return alone
    return replace(alone, **{settings.vary: value})  # type: ignore[arg-type]


def destinations(alone: FrontierSettings) -> dict[str, Settings]:
    """Where the same state can be seen, by the name of the page.

    FedPower runs on the Privacy page only, on that page's own data.
    """
    (method,) = alone.candidates
    found: dict[str, Settings] = {}
    if method in COMPARED:
        found["converge"] = replace(alone.carried(ConvergeSettings), methods=(method,))
    if method in ATTACKABLE:
        found["attack"] = replace(
            alone.carried(AttackSettings),
            attacked=(method,),
            attack="pooled" if alone.secure_aggregation else "symmetric",
            replay=replayable(method) and not alone.secure_aggregation,
        )
    own_noise = METHODS[method].plans_products
    if not math.isinf(alone.epsilon) or own_noise:
        there = replace(alone.carried(PrivacySettings), method=method)
        found["privacy"] = there if own_noise else replace(there, view="ways")
    return found
