"""How well attacks are told from normal traffic, beside what needs no learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from dashboard.player import Curve, Heat, Panel, chart
from dashboard.shell import layout
from dashboard.shell.controls import Controls
from dashboard.views.anomaly.common import colour, said, threshold, written
from fedpca_core.papers.registry import quote
from fedpca_core.questions.anomaly.detection import Findings
from fedpca_core.questions.anomaly.judged import SHARES, level
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.study.own_data import OwnData

__all__ = ["choose", "draw", "explain"]

TITLES = {
    "detector": "Detector",
    "auc": "AUC",
    "average_precision": "Average precision",
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "fnr": "Missed (FNR)",
    "fpr": "False alarms (FPR)",
    "alarms": "Alarms, %",
}
#: Decimals; one for shares.
DIGITS = {"AUC": 3, "Average precision": 3}
#: Detectors that somebody would have to pool the clients' records for.
POOLED = ("Centralised PCA",)


def choose(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The threshold."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        threshold(controls, data)


def draw(found: Findings, settings: AnomalySettings) -> None:
    """Curves, confusion table and baselines; without labels the alarms raised."""
    if found.facts.labelled:
        _rates(found, settings)
    else:
        _alarms(found, settings)
    table = written(found.summary(settings).rename(columns=TITLES), DIGITS, 1)
    layout.small_table(table, label="Every detector", numbers=list(table.columns[1:]))
    if found.facts.labelled:
        st.caption("AUC and average precision lie between 0 and 1; all other columns are in %.")
    if found.local is not None:
        st.markdown(self_learning_story(found))


def explain() -> None:
    """How to read the curves."""
    layout.about(
        "How to read this",
        "A flow's score is its squared distance to the subspace learnt from normal traffic. The "
        "area under the ROC curve (AUC) is the probability that an attack scores above a normal "
        "flow. Two baselines belong into every comparison: **always alarm**, whose accuracy is "
        "the share of attacks, and **norm only**, the length of the standardised record, for "
        "which nothing is learnt. On the raw UNSW-NB15 data norm only reaches the published AUC, "
        f"{quote('iot/area/unsw').printed}. The paper names no rank. The true subspace of "
        "rank 2, that of its public scripts, reaches 0.72 there, and of rank 12 0.81. So that "
        "figure alone does not show that a subspace was learnt.",
        formula=r"a(x) = \|x - \hat Z \hat Z^\top x\|^2 = \|x\|^2 - \|\hat Z^\top x\|^2",
        source="Z is orthonormalised first (corrected here).",
        papers=("iot",),
    )


def _rates(found: Findings, settings: AnomalySettings) -> None:
    judged = found.judged[found.title]
    at = judged.evaluations[level(settings)]
    oracle = judged.evaluations["oracle"]
    st.markdown(verdict(found, settings))
    best = "" if settings.rule == "oracle" else f"; oracle's threshold: {oracle.f1:.1%}"
    layout.metric_cards(
        [
            layout.Card("AUC", f"{at.auc:.3f}", "needs no threshold"),
            layout.Card("Attacks caught", f"{at.recall:.1%}", "recall"),
            layout.Card("False alarms", f"{at.false_positive_rate:.1%}", "of normal flows"),
            layout.Card(
                "F1", f"{at.f1:.1%}", f"always alarm: {found.facts.always_alarm_f1:.1%}{best}"
            ),
        ]
    )
    chart(key="curves", panels=roc_and_precision(found))
    attacks, normal = at.caught + at.missed, at.false_alarms + at.quiet
    shares = [
        [at.recall, at.false_negative_rate],
        [at.false_positive_rate, 1 - at.false_positive_rate],
    ]
    chart(
        key="counts",
        panels=[
            Heat(
                key="confusion",
                title=f"{found.title}: every attack and every normal flow, in %",
                values=100 * np.array(shares),
                row_labels=[f"{attacks:,} attacks", f"{normal:,} normal"],
                column_labels=["alarm", "no alarm"],
                low=0.0,
                high=100.0,
                show_values=True,
                height=230,
                description="Confusion table at the chosen threshold.",
            )
        ],
    )


def _alarms(found: Findings, settings: AnomalySettings) -> None:
    """What can be said where nobody knows which records are attacks."""
    share = found.judged[found.title].alarms[level(settings, labelled=False)]
    st.markdown(
        f"**{share:.1%} of the {found.facts.tested:,} tested records raise the alarm** "
        f"{said(settings, labelled=False)}; {1 - settings.share:.1%} would if they were like "
        "those trained on. Nobody says which of them are attacks, so nobody can say how many "
        "alarms are right."
    )
    chart(key="alarm_rates", panels=[alarm_rates(found)])


def alarm_rates(found: Findings) -> Panel:
    """Share of alarms at every threshold, beside what records like the trained ones would raise."""
    quantiles = list(SHARES)
    return Panel(
        key="alarms",
        title="Alarms among the tested records",
        x_title="share of training records that stay below the threshold",
        y_title="% of tested records above it",
        curves=(
            *(
                Curve(
                    name,
                    quantiles,
                    [100 * judged.alarms[share] for share in quantiles],
                    colour=colour(name),
                    marker=True,
                    simulation_only=name in POOLED,
                )
                for name, judged in found.judged.items()
            ),
            Curve(
                "records like those trained on",
                quantiles,
                [100 * (1 - share) for share in quantiles],
                guide=True,
                colour="guide",
            ),
        ),
        log_y=False,
        follows=False,
        height=380,
        description="Share of the tested records that raise an alarm at each training quantile.",
    )


def verdict(found: Findings, settings: AnomalySettings) -> str:
    """Two sentences: what was learnt beyond the baselines, and what the threshold makes of it."""
    areas = {name: judged.areas for name, judged in found.judged.items()}
    own, norm, exact = (
        (areas[name] or (0.0, 0.0))[0] for name in (found.title, "Norm only", "Centralised PCA")
    )
    text = (
        f"**{found.title} ranks an attack above a normal flow with probability {own:.3f}**; "
        f"centralised PCA of the same rank with {exact:.3f}, the length of the record alone "
        f"with {norm:.3f}. "
    )
    if own > norm + 0.02:
        text += "The subspace ranks better than the length alone. "
    elif own > norm - 0.02:
        text += "The subspace adds nothing to the length of the record. "
    else:
        text += "The length of the record, for which nothing is learnt, ranks better. "
    at = found.judged[found.title].evaluations[level(settings)]
    always = found.facts.always_alarm_f1
    text += f"{said(settings).capitalize()} its F1 is {at.f1:.1%}"
    if at.f1 < always:
        return text + (
            f", less than the {always:.1%} of always raising the alarm, because "
            f"{found.facts.attack_share:.0%} of the tested flows are attacks: it spares "
            f"{1 - at.false_positive_rate:.1%} of the normal flows an alarm but misses "
            f"{at.false_negative_rate:.1%} of the attacks."
        )
    return text + f"; always raising the alarm has {always:.1%}."


def self_learning_story(found: Findings) -> str:
    """Why a client on its own does worse."""
    assert found.local is not None
    low, high = found.own_false_alarms
    return (
        "**A client on its own** (self-learning; means over ten clients) has an AUC of "
        f"{found.local.auc:.3f}, but it also sets its threshold from its own "
        "narrow traffic: at its own 95% quantile between "
        f"{low:.0%} and {high:.0%} of the common normal flows raise a false alarm instead of 5%."
    )


def roc_and_precision(found: Findings) -> list[Panel]:
    """ROC and precision-recall curves of all detectors."""
    roc, precision = [], []
    for name, judged in found.judged.items():
        assert judged.curves is not None and judged.areas is not None
        look: dict[str, Any] = {"colour": colour(name), "simulation_only": name in POOLED}
        drawn = judged.curves
        rates = drawn.false_positive_rate, drawn.true_positive_rate
        roc.append(Curve(f"{name} ({judged.areas[0]:.3f})", *rates, **look))
        exact = drawn.recall, drawn.precision
        precision.append(Curve(f"{name} ({judged.areas[1]:.3f})", *exact, **look))
    roc.append(Curve("guessing (0.500)", [0.0, 1.0], [0.0, 1.0], colour="guide", guide=True))
    return [
        Panel(
            key="roc",
            title="ROC (area)",
            x_title="false alarms among normal flows",
            y_title="attacks caught",
            curves=tuple(roc),
            log_y=False,
            follows=False,
            x_range=(0, 1),
            y_range=(0, 1.01),
            height=380,
            description="Share of attacks caught against share of false alarms over all "
            "thresholds, one curve for each detector.",
        ),
        Panel(
            key="precision",
            title="Precision and recall (average precision)",
            x_title="recall: attacks caught",
            y_title="precision: alarms that are attacks",
            curves=tuple(precision),
            log_y=False,
            follows=False,
            x_range=(0, 1),
            y_range=(max(0.0, min(found.lowest_precision, 0.95) - 0.03), 1.005),
            height=380,
            description="Precision against recall over all thresholds, one curve for each "
            "detector.",
        ),
    ]
