"""What a private run promises, in numbers and in plain words."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.shell import layout
from fedpca_core.guarantee import Guarantee, Refusal, short
from fedpca_core.privacy.calibration import exact_sensitivity, true_epsilon, warn_delta
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.settings import METHODS, PrivacySettings


def show_guarantee(configuration: PrivacySettings) -> None:
    """The guarantee with everything that must stand beside epsilon, or why there is none."""
    found = private_run.stated(configuration)
    if isinstance(found, Refusal):
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown("**No ε can be stated**", width="content")
                masked = configuration.mask > 0
                st.badge(
                    "Masked, heuristically" if masked else "Unprotected",
                    color="orange" if masked else "gray",
                )
            st.markdown(found.reason)
        return
    _cards(found, configuration)
    beside = " · ".join(f"**{label}** {text}" for label, text in found.terms().items())
    st.markdown(beside)
    warning = warn_delta(configuration.delta, private_run.public_setting(configuration).samples)
    if warning is not None and found.private:
        layout.sentence(warning)


def _cards(found: Guarantee, configuration: PrivacySettings) -> None:
    c = configuration
    published = c.calibration == "published" and found.private
    layout.metric_cards(
        [
            layout.Card(
                "Guaranteed ε",
                found.budget,
                f"asked for: {c.epsilon:g}" if published else "for the whole run",
                help="By exact composition. Published noise buys a smaller ε than it claims."
                if published
                else "Total over all releases, by exact composition.",
            ),
            layout.Card(
                "Noise ν",
                f"{found.noise:.2e}" if found.private else "off",
                "standard deviation of every entry of a product",
                help="Sensitivity of a product here: "
                f"{found.sensitivity:.2e} (exact, Frobenius norm).",
            ),
            layout.Card(
                "Products released",
                str(found.releases),
                "count as one: orthogonal probes"
                if found.composition == 1 < found.releases
                else "hidden ones included",
                help="Every product with S_i reads the data, so each is composed. The probes of "
                "block Krylov are orthogonal to each other, so one record can move all of them "
                "together no more than a single one.",
            ),
            layout.Card(
                "Published noise",
                f"{_ratio(c):.1f}×" if found.private else "–",
                "of the exact one, same budget",
                help="FedPower's Theorem 6 is valid but larger than needed: its sensitivity grows "
                "with √r, and it halves a Rényi bound instead of solving it"
                + (
                    "; it also counts orthogonal probes one by one."
                    if private_run.composed(c) < c.products
                    else "."
                ),
            ),
        ]
    )


def _ratio(configuration: PrivacySettings) -> float:
    return private_run.noise_for(configuration, "published") / private_run.noise_for(
        configuration, "exact"
    )


def protection_card(configuration: PrivacySettings) -> None:
    """Who sees what, what the guarantee covers and what it leaves open."""
    found = private_run.stated(configuration)
    private = isinstance(found, Guarantee) and found.private
    masked = isinstance(found, Refusal) and configuration.mask > 0
    hidden = configuration.method == "fedpower" and configuration.period > 1
    layout.threat_card(
        "An honest-but-curious server, alone or together with other clients",
        sees="every upload of every client, one by one"
        + (" (with the client's own frame, where gaps are longer than one)" if hidden else ""),
        does="anything at all with them, knowing every record but one",
        outcome=_outcome(found) if private else "whatever the messages say; nothing is promised",
        protection="formal" if private else "heuristic" if masked else "none",
    )
    left, right = st.columns(2)
    left.markdown(
        "**Protected**\n\n"
        "- Whether one record is in a client's data, and what it says.\n"
        "- However the uploads are averaged, aligned or combined later, and whoever else "
        "conspires: each client adds the whole noise by itself."
        if private
        else "**Protected**\n\n- Nothing formally."
    )
    right.markdown(
        "**Not protected**\n\n"
        "- The matrix Sᵢ as such: with many records its coarse shape stays visible.\n"
        "- A person with several records, an edge of a network (it sits in two rows), or the "
        "number of records.\n"
        "- Anything read off raw data: angles, η, ρ and spectra on this page are simulation only.\n"
        "- Floating point: sampled noise is not exactly Gaussian."
    )


def explain() -> None:
    """How the noise follows from the budget, and what the distance is."""
    layout.about(
        "How ν follows from ε, and what the distance measures",
        "Replacing one record of norm at most C changes a client's product with an orthonormal "
        "frame by at most Δ in Frobenius norm. T noisy products together are μ-Gaussian private, "
        "and (ε, δ) fixes μ; no table or simulation is involved. Curves show the sine of the "
        "largest angle between the leading space of the pooled sample and the iterate, which may "
        "have more columns than that space.",
        formula=r"\Delta = \sqrt2\,\frac{C^2}{n_i},\qquad \nu = \frac{\sqrt T\,\Delta}{\mu},\qquad "
        r"\delta = \Phi\!\left(-\frac{\varepsilon}{\mu}+\frac{\mu}{2}\right) - e^{\varepsilon}\,"
        r"\Phi\!\left(-\frac{\varepsilon}{\mu}-\frac{\mu}{2}\right)",
        source="FedPower, Theorem 6 (published calibration, corrected here); Dong, Roth and Su, "
        "Gaussian differential privacy.",
    )


def _outcome(found: Guarantee | Refusal) -> str:
    assert isinstance(found, Guarantee)
    factor = (
        f"{np.exp(found.epsilon):.3g}"
        if found.epsilon < 20
        else f"10^{found.epsilon / np.log(10):.0f}"
    )
    return (
        f"no message that is more than {factor} times (e to the ε) as likely with a record as with "
        f"another in its place, save for a chance of {short(found.delta)}"
    )


def two_way(configuration: PrivacySettings) -> str:
    """The sentence that turns a noise multiplier into epsilon."""
    c = configuration
    samples = private_run.samples(c)
    columns = 2
    norm = private_run.treatment(c)[1]
    step = float(exact_sensitivity(columns, samples, norm))
    counted = private_run.composed(c)
    epsilon = float(true_epsilon(c.multiplier * step, c.delta, counted, columns, samples, norm))
    return (
        f"Noise of {c.multiplier:g} sensitivities, ν = {c.multiplier * step:.3g}, on "
        f"{c.products} products{credit(c)} means **ε = {epsilon:.4g}** at δ = {short(c.delta)} "
        f"for one record (clip norm {norm:g}, no amplification by sampling, exact composition)."
    )


def credit(configuration: PrivacySettings) -> str:
    """What orthogonal probes save, where they do."""
    once = private_run.composed(configuration) < configuration.products
    return ", whose orthogonal probes count as one" if once else ""


def method_name(configuration: PrivacySettings) -> str:
    """Screen name of the configured method."""
    return METHODS[configuration.method]
