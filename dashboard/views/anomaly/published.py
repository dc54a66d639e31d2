"""The paper's Table I beside our runs."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from fedpca_core.papers import iot
from fedpca_core.papers.registry import quote
from fedpca_core.questions.anomaly.published import Beside
from fedpca_core.questions.anomaly.settings import AnomalySettings

TITLES = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "fnr": "FNR",
    "auc": "AUC",
    "average_precision": "Average precision",
}


def draw(found: Beside, settings: AnomalySettings) -> None:
    """Table I beside ours."""
    if found.facts.published_as not in iot.TABLE_I:
        layout.sentence(
            "The paper's Table I covers UNSW-NB15 and TON-IoT. Our runs on these data stand alone.",
            kind="note",
        )
    table = beside(found.table)
    layout.small_table(table, label="Table I beside ours", numbers=list(table.columns[1:]))
    text = "All rates are at the oracle's threshold, as in the paper, not at a training quantile."
    if found.facts.published_as in iot.TABLE_I:
        text += (
            " Each cell: ours / the paper's, rates in per cent. The paper gives no false-alarm "
            "rate, and AUC and average precision for FedPG only."
        )
    st.caption(text)


def _implied() -> str:
    """FedPE's accuracies: what its own precision and recall imply, and what is printed."""
    return "; ".join(
        f"{iot.implied_accuracy(iot.TABLE_I[data]['FedPE'], *iot.TEST_RECORDS[data]):.2f}% implied "
        f"on {title}, {quote(f'iot/table-1/{data}/fedpe/accuracy').printed}% given"
        for data, title in (("unsw", "UNSW-NB15"), ("ton", "TON-IoT"))
    )


def _implied_false_alarms() -> str:
    """Smallest and largest false-alarm rate that precision and recall of a printed row imply."""
    rates = [
        iot.implied_false_alarm_rate(row, *iot.TEST_RECORDS[data])
        for data, rows in iot.TABLE_I.items()
        for row in rows.values()
    ]
    return f"{min(rates):.0f} and {max(rates):.0f}%"


def explain() -> None:
    """What is the same as in the paper, and what is not."""
    layout.about(
        "The same split, the same settings?",
        "All thresholds are the label-chosen oracle's, as in the paper. It states neither rank nor "
        "step, rounds and batch size; ours are those in the sidebar. Every published row agrees "
        f"with its own precision and recall except FedPE's ({_implied()}). The paper omits "
        "false-alarm rates, which follow from precision and recall of a row: they lie between "
        f"{_implied_false_alarms()}. {iot.FEDBIGAN}",
        source="Table I.",
        papers=("iot",),
    )


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """Ours and the published value in one cell, which fits on a screen."""
    shown = pd.DataFrame({"Method": table["method"]})
    for name, title in TITLES.items():
        digits = 3 if name in ("auc", "average_precision") else 1
        published = table[f"published_{name}"]
        pairs = zip(table[name], published, strict=True)
        shown[title] = [
            _number(ours, digits)
            if pd.isna(paper)
            else f"{_number(ours, digits)} / {_number(paper, min(digits, 2))}"
            for ours, paper in pairs
        ]
        if name == "fnr":
            shown["FPR"] = [_number(value) for value in table["fpr"]]
    return shown


def _number(value: float, digits: int = 1) -> str:
    return "–" if pd.isna(value) else f"{value:.{digits}f}"
