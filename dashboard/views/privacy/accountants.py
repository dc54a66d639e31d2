"""The Privacy page's accountants side by side."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.accountants import Accounts
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short


def draw(settings: PrivacySettings, result: Accounts) -> None:
    """The table, both sensitivities, and the other way round."""
    together, unit = result.counted < settings.products, build.unit(settings)
    columns = {
        "Accountant": result.table["accountant"],
        "Noise over sensitivity": [f"{value:.4f}" for value in result.table["multiplier"]],
        "Noise ν": [short(value, 4) for value in result.table["noise"]],
        "Times the exact one": [f"{value:.3f}×" for value in result.table["ratio"]],
        "ε this noise really gives": [f"{value:.4g}" for value in result.table["true_epsilon"]],
    }
    st.markdown(
        f"One budget, ε = {short(settings.epsilon)} at δ = {short(settings.delta)}, for "
        f"**{settings.products} products**: five ways of asking how much noise it takes. All are "
        "valid; a larger figure is noise wasted."
        + (
            " The probes of block Krylov are orthogonal to each other, so all but the published "
            "theorem **count them as one**."
            if together
            else ""
        )
    )
    layout.small_table(
        pd.DataFrame(columns), label="Noise by accountant", numbers=list(columns)[1:]
    )
    st.caption(
        f"Unit: {unit}. Clip norm {result.clip_norm:g}. Sensitivity of one product: published "
        f"{short(result.published, 4)} (for each record 2√r C²/nᵢ, r = {result.columns}), exact "
        f"{short(result.exact, 4)} (√2 C²/nᵢ for two columns or more, C²/nᵢ for one). The "
        "first row's ν uses the published sensitivity, the others the exact one; the last column "
        "uses the exact one and exact composition throughout. Sampling gives no amplification."
    )
    layout.section("And back: what does a given noise mean?")
    st.markdown(
        f"Noise of {settings.multiplier:g} sensitivities, ν = {short(result.given_noise, 3)}, on "
        f"{settings.products} products"
        + (", which count as one," if together else "")
        + f" means **ε = {result.given_epsilon:.4g}** at δ = {short(settings.delta)} for {unit} "
        f"(clip norm {result.clip_norm:g}, no amplification by sampling, exact composition)."
    )
