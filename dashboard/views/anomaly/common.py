"""What several topics of the Anomalies page draw alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dashboard.shell.controls import Controls
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.study.own_data import OwnData

#: Colours of what is not a method of the registry.
_COLOURS: Mapping[str, str] = {
    "Centralised PCA": "centralized",
    "Norm only": "guide",
    "Random subspace": "series 7",
    "FedAE": "series 5",
    "FedAE-2": "series 4",
    "FedPG, corrected": "fedpg",
    "FedPE, corrected": "fedpe",
    "FedPG, printed average": "series 2",
    "FedPG, printed projection": "series 1",
}


def colour(name: str) -> str:
    """The palette's name for a detector."""
    return _COLOURS.get(name, name)


def threshold(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The controls of the alarm level, in one row with those that follow."""
    if controls.parameter("rule", as_buttons=True) == "quantile":
        controls.parameter("share")


def said(settings: AnomalySettings, *, labelled: bool = True) -> str:
    """The alarm level in words."""
    if settings.rule == "oracle" and labelled:
        return "at the oracle’s threshold"
    return f"at the {100 * settings.share:g}% training quantile"


def floor(values: pd.Series) -> np.ndarray:
    """Values for a logarithmic axis: zero becomes rounding."""
    return np.maximum(values.to_numpy(dtype=float), 1e-18)


def written(table: pd.DataFrame, digits: Mapping[str, int], others: int) -> pd.DataFrame:
    """Numbers as texts, with as many decimals as a column asks for."""
    texts = table.copy()
    for name in table.select_dtypes("number").columns:
        decimals = digits.get(name, others)
        texts[name] = ["–" if pd.isna(value) else f"{value:,.{decimals}f}" for value in table[name]]
    return texts
