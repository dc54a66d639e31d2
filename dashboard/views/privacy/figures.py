"""The Privacy page's accountants side by side, and the paper's figures with a verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from dashboard.shell.jobs import Job
from dashboard.views.privacy.promise import credit, two_way
from fedpca_core.algorithms import FedPower
from fedpca_core.guarantee import short
from fedpca_core.privacy import accountants
from fedpca_core.privacy.calibration import exact_sensitivity, published_sensitivity
from fedpca_core.studies.papers.fedpower import DELTA, MODELS, Band, curves, figure
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.settings import PrivacySettings

#: Floor of a log axis: below it a curve shows rounding only.
ROUNDING = 1e-16


# ---------------------------------------------------------------------- accountants
def account_all(c: PrivacySettings, job: Job) -> pd.DataFrame:
    """Every accountant's noise for the budget, dp-accounting's included."""
    private_run.require_budget(c)
    job.report(0.1, "Asking every accountant")
    return accountants.comparison(c.epsilon, c.delta, private_run.composed(c))


def draw_accountants(result: pd.DataFrame, c: PrivacySettings) -> None:
    """The table, both sensitivities, and the other way round."""
    run = private_run.method(c, 0.0)
    columns = run.width if isinstance(run, FedPower) else c.components
    records, norm = private_run.samples(c), private_run.treatment(c)[1]
    exact = float(exact_sensitivity(columns, records, norm))
    published = float(published_sensitivity(columns, records, norm))
    steps = np.where(np.arange(len(result)) == 0, published, exact)
    shown = pd.DataFrame(
        {
            "Accountant": result["accountant"],
            "Noise over sensitivity": [f"{value:.4f}" for value in result["multiplier"]],
            "Times the exact one": [f"{value:.3f}×" for value in result["ratio"]],
            "ε this noise really gives": [f"{value:.4g}" for value in result["true_epsilon"]],
            "Noise ν": [f"{value:.3e}" for value in steps * result["multiplier"].to_numpy()],
        }
    )
    st.markdown(
        f"One budget, ε = {c.epsilon:g} at δ = {short(c.delta)}, for **{c.products} products**"
        f"{credit(c)}: five ways of asking how much noise it takes. All are valid; a larger "
        "figure is noise wasted."
    )
    st.dataframe(shown, hide_index=True, width="stretch")
    st.caption(
        "Unit: one record, replaced. "
        f"Clip norm {norm:g}. Sensitivity of one product: {published:.3e} published (2√r C²/nᵢ, "
        f"r = {columns}), {exact:.3e} exact (√2 C²/nᵢ for r ≥ 2). The first row's ν uses the "
        "published sensitivity, the others the exact one. Sampling gives no amplification."
    )
    layout.section("And back: what does a given noise mean?")
    st.markdown(two_way(c))


# ---------------------------------------------------------------------- the paper's figures
def reproduce(c: PrivacySettings, job: Job) -> tuple[Band, ...]:
    """Run a panel of Figure 3 or 4, publishing curves as they finish."""
    found: list[Band] = []
    size = "paper" if c.paper_size else "live"
    for band in curves(
        figure(c.figure),
        size=size,
        data_seeds=(c.seed,),
        repetitions=c.repetitions,
        progress=job.report,
    ):
        found.append(band)
        job.publish(tuple(found))
    return tuple(found)


def draw_figure(result: Sequence[Band], c: PrivacySettings) -> None:
    """The panel with its verdict."""
    entry = figure(c.figure)
    st.markdown(entry.verdict)
    if not result:
        return
    drawn = tuple(
        Curve(
            band.label,
            np.arange(len(band.median)),
            np.maximum(band.median, ROUNDING),
            lower=np.maximum(band.quartiles[0], ROUNDING),
            upper=np.maximum(band.quartiles[1], ROUNDING),
            colour=f"series {index}",
            marker=True,
            simulation_only=True,
        )
        for index, band in enumerate(result)
    )
    chart(
        key="privacy_figure",
        panels=[
            Panel(
                key="figure",
                title=entry.title,
                x_title="communication",
                y_title="projection distance, sin θ",
                curves=drawn,
                integer_x=True,
                follows=False,
                height=420,
                axes_id=f"{c.figure}-{c.paper_size}",
                description=f"{entry.title}: median and quartiles of {c.repetitions} repetitions.",
            )
        ],
    )
    ends = ", ".join(f"{band.label}: {band.plateau:.3g}" for band in result)
    st.markdown(f"Plateaus here: {ends}.")
    size = "the paper's size" if c.paper_size else "live size (same noise relative to the gap)"
    noise = (
        "no noise, ε = ∞"
        if all(setting.epsilon is None for setting in entry.settings)
        else f"ε per record (replaced), δ = {short(DELTA)}, {entry.calibration} calibration "
        f"({'exact composition' if entry.calibration == 'exact' else 'accountant: Theorem 6'}), "
        "clip norm 1, no amplification by sampling"
    )
    st.caption(
        f"{MODELS[entry.model].title}, {size}; {noise}. T = 10, decaying gaps; {c.repetitions} "
        "starts and noise draws on one data set (the paper does not say how many it used)."
    )
