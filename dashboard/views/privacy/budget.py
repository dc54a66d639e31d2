"""The Privacy page's error budget: exact decompositions, and the theory's terms."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from fedpca_core.questions.privacy.error_budget import ABLATION, Budget
from fedpca_core.questions.privacy.round_identity import RoundIdentity
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.theory_terms import TheoryTerms
from fedpca_core.settings import short

_COLOURS = ("series 9", "series 1", "series 7", "formal")
_ZERO = 1e-14


def draw(settings: PrivacySettings, result: Budget) -> None:
    """Stacked areas of the ablation, the identity's norms, and the terms."""
    panels = [_ablation(result)]
    lines = () if result.identity is None else _lines(result.identity)
    if lines:
        panels.append(
            Panel(
                key="identity",
                title="What one average is made of",
                x_title="communication",
                y_title="spectral norm over the eigengap",
                curves=lines,
                integer_x=True,
                follows=False,
                description="Norms of the three error terms of each synchronised average.",
            )
        )
    chart(key="privacy_budget", panels=panels)
    st.caption(
        "The squared distance: an ablation, four runs that share every random draw, each with one "
        f"effect more; mean of {result.repetitions}; sin² θ itself falls from "
        f"{short(result.squared[0], 2)} to {short(result.squared[-1], 2)}. An effect can also "
        "help: decreases are drawn as zero"
        + (f" (largest here: {short(-result.lowest, 2)})" if result.lowest < -5e-4 else "")
        + ". One average: one run, an identity that holds to rounding; terms that are exactly zero "
        "(E and H at single products with everybody) are not drawn. Both need raw data."
    )
    if result.identity is not None and not lines:
        st.caption("Every term of the identity is zero here: no noise, no sampling, no gaps.")
    if result.terms is not None:
        _draw_terms(result.terms, settings)


def _ablation(result: Budget) -> Panel:
    return Panel(
        key="ablation",
        title="What the squared distance is made of",
        x_title="communication",
        y_title="share of sin² θ",
        curves=tuple(
            Curve(name, np.arange(len(share)), share, colour=colour, simulation_only=True)
            for name, share, colour in zip(ABLATION, result.shares, _COLOURS, strict=True)
        ),
        log_y=False,
        y_range=(0.0, 1.0),
        kind="area",
        integer_x=True,
        description="Stacked areas: shares of the squared distance that the centralised power "
        "method, local drift, client sampling and privacy noise account for.",
    )


def _lines(identity: RoundIdentity) -> tuple[Curve, ...]:
    """Terms of the identity that are not zero throughout, with gaps where they are."""
    parts = {
        "drawing some clients, E": (identity.sampling, "series 7"),
        "clients differ, H": (identity.heterogeneity, "series 1"),
        "privacy noise, N": (identity.noise, "formal"),
    }
    return tuple(
        Curve(
            name,
            np.arange(1, len(values) + 1),
            np.where(values > _ZERO, values, np.nan),
            colour=colour,
            marker=True,
            simulation_only=True,
        )
        for name, (values, colour) in parts.items()
        if values.max(initial=0.0) > _ZERO
    )


def _draw_terms(terms: TheoryTerms, settings: PrivacySettings) -> None:
    """I1, I2, I3, eta and rho as cards, vacuous where they say nothing."""
    theorem = 9 if settings.draws else 7
    layout.section(
        "What theory says",
        f"FedPower's Theorem {theorem}: orders of magnitude with hidden constants, not bounds; "
        "simulation only."
        + (
            " Here they are **vacuous**: local bases drift so far apart (ρ) that the "
            "denominator 1 − cρ is not positive. The proofs treat hidden steps as free of noise; "
            "they are not."
            if terms.vacuous
            else ""
        ),
    )
    layout.metric_cards(
        [
            layout.Card("I₁, privacy noise", _term(terms.noise, terms), "over the eigengap"),
            layout.Card("I₂, local drift", _term(terms.drift, terms), "not 0 even at p = 1"),
            layout.Card(
                "I₃, client sampling",
                _term(terms.sampling, terms) if settings.draws else "none",
                f"K = {settings.draws}" if settings.draws else "everybody takes part",
            ),
            layout.Card(
                "Sum must stay below",
                short(terms.allowed, 2),
                "met" if terms.met else "not met: nothing is promised",
                help="min{½, (√r − √(k−1))/√d}: otherwise the theorem does not apply.",
            ),
            layout.Card("Heterogeneity η", short(terms.eta, 2), "largest ‖Sᵢ − S‖/‖S‖"),
            layout.Card("Drift ρ", short(terms.rho, 2), "measured; √2 is the most with alignment"),
            layout.Card(
                "Predicted floor",
                short(terms.floor, 2) if terms.floor > 0 else "none",
                "sine of the final angle (ours)",
                help="To first order: what clipping takes of the target, and how far noise on T "
                "products turns the rest, ν²/(m_eff σᵢ²) Σₜ (σⱼ/σᵢ)²ᵗ for directions i and j.",
            ),
        ]
    )


def _term(value: float | None, terms: TheoryTerms) -> str:
    return "vacuous" if terms.vacuous or value is None else short(value, 2)
