"""One budget in the eyes of several accountants, and what a given noise means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.errors import require
from fedpca_core.privacy import (
    exact_sensitivity,
    published_multiplier,
    published_sensitivity,
    true_epsilon,
)
from fedpca_core.privacy.accountants import comparison
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study


@dataclass(frozen=True, eq=False)
class Accounts:
    """How much noise a budget takes.

    Attributes
    ----------
    table : pandas.DataFrame
        Columns accountant, multiplier (noise over sensitivity), sensitivity, noise, ratio (to the
        exact noise), true_epsilon (by exact sensitivity and composition).
    columns : int
        r.
    counted : int
        Products that count at full sensitivity.
    published, exact : float
        Sensitivities of one product.
    clip_norm : float
    given_noise, given_epsilon : float
        The other way round: nu of the multiplier that is set, and the epsilon it means.
    """

    table: pd.DataFrame
    columns: int
    counted: int
    published: float
    exact: float
    clip_norm: float
    given_noise: float
    given_epsilon: float


class Accountants(Study[PrivacySettings, Accounts]):
    """Every accountant's noise for the budget, dp-accounting's included."""

    key: ClassVar[str] = "accountants"
    title: ClassVar[str] = "Accountants"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "accountants")
    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=60)
    #: Of the view only the multiplier is read.
    reads: ClassVar[frozenset[str]] = frozenset(
        {"multiplier"} | {name for name, p in PrivacySettings.parameters().items() if not p.view}
    )

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Accounts]:
        c = settings
        build.require_budget(c)
        build.require_single_uploads(c)
        require(
            math.isfinite(c.epsilon),
            "At ε = ∞ there is no noise to account for; choose a finite ε.",
        )
        yield Step(0.1, "Asking every accountant")
        public, bought = build.public_setting(c, data), build.budget(c)
        width, norm, records = build.columns(c), bought.clip, float(public.samples.mean())
        several = float(bought.changed(public.samples).max())
        counted = build.counted(c)
        if counted < c.products:
            width = max(2, width)  # all probes side by side, or the whole matrix
        exact = several * float(exact_sensitivity(width, records, norm))
        published = several * float(published_sensitivity(build.columns(c), records, norm))
        left = bought.for_products
        table = comparison(left, c.delta, counted).drop(columns=["ratio", "true_epsilon"])
        # The paper's theorem has its own sensitivity, and counts every product.
        table.loc[0, "multiplier"] = published_multiplier(left, c.delta, c.products)
        table["sensitivity"] = np.where(np.arange(len(table)) == 0, published, exact)
        table["noise"] = table["multiplier"] * table["sensitivity"]
        table["ratio"] = table["noise"] / table["noise"].iloc[-1]
        table["true_epsilon"] = true_epsilon(
            table["noise"].to_numpy() / several, c.delta, counted, width, records, norm
        )
        given = c.multiplier * exact
        back = float(true_epsilon(given / several, c.delta, counted, width, records, norm))
        return Accounts(table, build.columns(c), counted, published, exact, norm, given, back)

    def tables(self, result: Accounts, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        back = {
            "multiplier": settings.multiplier,
            "noise": result.given_noise,
            "epsilon": result.given_epsilon,
        }
        return {"noise": result.table, "back": pd.DataFrame([back])}
