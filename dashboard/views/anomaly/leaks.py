"""What the server reads off FedPE and FedPG about one client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Heat, Panel, chart
from dashboard.shell import layout
from dashboard.shell.controls import Controls, packed
from fedpca_core.questions.anomaly.leaks import FITTED_FEATURES, Leaked
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import present
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData

#: What has few enough features.
SMALL: Mapping[str, Any] = {"problem": "iot23", "components": 4}


def choose(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The attacked client, and who attacks it."""
    controls.parameter("client", high=controls.values["clients"] - 1)
    threat()


def threat() -> None:
    """Who attacks, and what comes of it."""
    layout.threat_card(
        "An honest-but-curious server",
        sees="every basis Uᵢ a client uploads, and its own averages Z",
        knows="the penalty ρ, the step rule, the number of local steps, and the public start",
        does="replays the dual Yᵢ ← Yᵢ + ρ(Uᵢ − Z), which never travels; at the limit "
        "Yᵢ = 2(I − ZZᵀ)SᵢZ; and fits the matrix on which the client's own code would have "
        "landed on its uploads",
        outcome="first how the client's traffic departs from the common model, then its whole "
        "covariance",
        protection="none",
    )


def explain() -> None:
    """How much a participation tells."""
    layout.about(
        "How much does a participation tell?",
        "Each one gives as many equations as the basis has numbers, d·k; a covariance has "
        "d(d+1)/2 unknowns. Once there are enough, the fit is exact. Under secure aggregation the "
        "server sees sums only, which is all these methods need, and neither reading works.",
        formula=r"(I-ZZ^\top)S_iZ=\tfrac12(I-ZZ^\top)Y_i\qquad\text{at the limit}",
    )


def draw(found: Leaked, settings: AnomalySettings) -> None:
    """Errors of both readings, and the covariance beside its reconstruction."""
    chart(key="leak_view", panels=error_panels(found))
    st.markdown(sentence(found))
    if found.facts.features > FITTED_FEATURES:
        layout.sentence(
            f"Fitting the whole covariance is shown for up to {FITTED_FEATURES} features, where it "
            f"takes seconds; these data have {found.facts.features}.",
            kind="note",
        )
        if present(SMALL["problem"]):
            st.page_link(
                "../pages/anomaly.py",
                label="Fit it on IoT-23 with 4 components",
                icon=":material/sensors:",
                query_params=packed(replace(settings, **SMALL)),
            )
    if found.truth is None or found.found is None:
        return
    names = [str(index + 1) for index in range(len(found.truth))]
    chart(
        key="leak_pictures",
        panels=[
            Heat(
                key=key,
                title=title,
                values=matrix,
                row_labels=names,
                column_labels=names,
                palette="diverging",
                low=-found.high,
                high=found.high,
                height=300,
                description=f"{title}, features by features.",
                simulation_only=key == "truth",
            )
            for key, title, matrix in (
                ("truth", "The client's covariance", found.truth),
                ("found", "What the server found", found.found),
            )
        ],
    )


def error_panels(found: Leaked) -> list[Panel]:
    """Relative errors of both readings, which need the truth."""
    readings = [
        (
            "outside",
            "Read off the dual: what the model leaves out",
            "communication round",
            Curve(
                "after each participation",
                found.rounds,
                np.maximum(found.errors, 1e-16),
                colour=found.title,
                marker=True,
            ),
            "Relative error of what the server reads off the replayed dual.",
        )
    ]
    if found.fitted:
        readings.append(
            (
                "fitted",
                "Fitted: the whole covariance",
                "participations used",
                Curve(
                    "Levenberg–Marquardt",
                    np.arange(1, len(found.fitted) + 1),
                    np.maximum(found.fitted, 1e-16),
                    colour="series 1",
                    marker=True,
                ),
                "Relative error of the covariance fitted to the first participations.",
            )
        )
    return [
        Panel(
            key=key,
            title=title,
            x_title=x_title,
            y_title="relative error",
            curves=(curve,),
            baselines=(Baseline("guessing zero", 1.0),),
            follows=False,
            integer_x=True,
            description=description,
            simulation_only=True,
        )
        for key, title, x_title, curve, description in readings
    ]


def sentence(found: Leaked) -> str:
    """What the server has, in words."""
    error = found.errors[-1]
    last = f"{error:.1%}" if error > 1e-3 else short(error, 2)
    text = f"After {len(found.rounds)} participations the dual gives the part outside the model "
    text += f"to **{last}** (simulation only)."
    if found.fitted:
        text += f" The whole covariance is fitted to **{short(found.fitted[-1], 2)}** from "
        text += f"{len(found.fitted)} participations."
    if found.joined is not None:
        near = found.joined.cosine > 0.99
        shown = "that record" if near else "too much besides to show that record"
        text += (
            f" When the client trains again with one more record, the two fits differ by {shown}: "
            f"a cosine of **{found.joined.cosine:.4f}** to the truth (simulation only), and one "
            f"eigenvalue is {found.joined.purity:.1%} of the difference."
        )
    return text
