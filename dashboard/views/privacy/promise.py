"""What a private run promises, in numbers and in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.guarantee import EPSILON, FALSE_ALARMS, NOTICED
from fedpca_core.questions.privacy.guarantee import Promises, Stated
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short


def show_guarantee(promises: Promises, settings: PrivacySettings) -> None:
    """The guarantee with everything that must stand beside epsilon, or why there is none."""
    if promises.refusal:
        _refused(promises.refusal, masked=settings.upload_noise > 0)
        return
    if len(promises.stated) == 1:
        _cards(promises, settings)
    else:
        _table(promises.stated)
    if promises.others:
        # A client that knows its own share of the noise is not protected as from the server.
        _others(promises, open_=settings.trusted == "clients")
    beside = " · ".join(f"**{label}** {text}" for label, text in _shared(promises.stated).items())
    st.markdown(beside)
    if promises.record:
        layout.sentence(promises.record, kind="note")
    if promises.warning:
        layout.sentence(promises.warning)


def _others(promises: Promises, *, open_: bool) -> None:
    """The same noise towards each adversary, and for other units."""
    rows = [
        {
            EPSILON: found.budget,
            "The same noise": text[:1].upper() + text[1:],
            NOTICED: f"{100 * found.noticed(FALSE_ALARMS):.3g}%",
        }
        for text, found in promises.others.items()
    ]
    title = "What this ε means towards others, for a person, a client, two runs"
    with st.expander(title, expanded=open_):
        layout.small_table(pd.DataFrame(rows), label="Other eyes", numbers=[EPSILON, NOTICED])


def _refused(reason: str, *, masked: bool) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**No ε can be stated**", width="content")
            st.badge(
                "Masked, heuristically" if masked else "Unprotected",
                color="orange" if masked else "gray",
            )
        st.markdown(reason)


def _shared(stated: Sequence[Stated]) -> dict[str, str]:
    """The terms that all guarantees have in common."""
    terms = [each.guarantee.terms() for each in stated]
    return {
        label: text
        for label, text in terms[0].items()
        if all(other[label] == text for other in terms)
    }


def _table(stated: Sequence[Stated]) -> None:
    """One row for each curve of a figure."""
    common = _shared(stated)
    rows = [
        {
            "Curve": each.label,
            "ε asked for": short(each.asked),
            "Guaranteed ε": each.guarantee.budget,
            "Noise ν": short(each.guarantee.noise, 3) if each.guarantee.private else "off",
            "Products released": str(each.guarantee.releases),
            **{
                label.capitalize(): text
                for label, text in each.guarantee.terms().items()
                if label not in common
            },
        }
        for each in stated
    ]
    numbers = ["ε asked for", "Guaranteed ε", "Noise ν", "Products released"]
    layout.small_table(pd.DataFrame(rows), label="What each curve guarantees", numbers=numbers)


def _cards(promises: Promises, settings: PrivacySettings) -> None:
    found = promises.stated[0].guarantee
    published = settings.calibration == "published" and found.private
    at_source = settings.calibration == "source" and found.private
    layout.metric_cards(
        [
            layout.Card(
                "Guaranteed ε",
                found.budget,
                f"asked for: {settings.epsilon:g}" if published else "for the whole run",
                help="By exact composition. Published noise buys a smaller ε than it claims."
                if published
                else "Total over all releases, by exact composition.",
            ),
            layout.Card(
                "Noise ν",
                short(found.noise, 3) if found.private else "off",
                "standard deviation, "
                + ("diagonal of a client's matrix" if at_source else "every entry of a product"),
                help=f"Sensitivity here: {short(found.sensitivity, 3)} (exact, Frobenius norm).",
            ),
            layout.Card(
                "Releases" if at_source else "Products released",
                str(found.releases),
                "the matrix"
                + (" and a noisy mean" if found.releases > 1 else "; products cost nothing")
                if at_source
                else "count as one: orthogonal probes"
                if found.composition == 1 < found.releases
                else "hidden ones included",
                help="Every product with S_i reads the data, so each is composed. The probes of "
                "block Krylov are orthogonal to each other, so one record can move all of them "
                "together no more than a single one.",
            ),
            layout.Card(
                "Published noise",
                "–" if promises.excess is None else f"{promises.excess:.1f}×",
                "of the exact one, same budget",
                help="FedPower's Theorem 6 is valid but larger than needed: its sensitivity grows "
                "with √r, it halves a Rényi bound instead of solving it"
                + (
                    ", and it counts every product although the probes are orthogonal."
                    if found.composition == 1 < found.releases
                    else "."
                ),
            ),
        ]
    )


def protection_card(promises: Promises, settings: PrivacySettings) -> None:
    """Who sees what, what the guarantee covers and what it leaves open."""
    private = promises.private
    masked = bool(promises.refusal) and settings.upload_noise > 0
    hidden = settings.method == "fedpower" and settings.local_steps > 1
    layout.threat_card(
        "An honest-but-curious server, alone or together with other clients",
        sees="the sum of all uploads in each round, and nothing else"
        if settings.trusted == "clients" and private
        else "every upload of every client, one by one"
        + (" (with the client's own basis, where gaps are longer than one)" if hidden else ""),
        does="anything at all with them, knowing every record but "
        + {"record": "one", "person": "one person's", "client": "one client's"}[settings.unit],
        outcome=_outcome(promises.stated[0])
        if private
        else "whatever the messages say; nothing is promised",
        protection="formal" if private else "heuristic" if masked else "none",
    )
    left, right = st.columns(2)
    left.markdown(
        "**Protected**\n\n"
        f"- Whether {promises.stated[0].guarantee.unit.split(',')[0].split(':')[0]} is in the "
        "data, and what it says.\n"
        + (
            "- However the sums are used later, as long as as many clients as stated are honest "
            "and secure aggregation hides single uploads."
            if settings.trusted == "clients"
            else "- However the uploads are averaged, aligned or combined later, and whoever else "
            "conspires: each client adds the whole noise by itself."
        )
        if private
        else "**Protected**\n\n- Nothing formally."
    )
    right.markdown(
        "**Not protected**\n\n"
        "- The matrix Sᵢ as such: with many records its coarse shape stays visible.\n"
        "- More than the stated unit: an edge of a network sits in two rows; or the number of "
        "records.\n"
        "- Anything read off raw data: angles, η, ρ and spectra on this page are simulation only.\n"
        "- Floating point: sampled noise is not exactly Gaussian."
    )


def explain() -> None:
    """How the noise follows from the budget, and what the distance is."""
    layout.about(
        "How ν follows from ε, and what the distance measures",
        "Replacing one record of norm at most C changes a client's product with an orthonormal "
        "basis by at most Δ in Frobenius norm. T noisy products together are μ-Gaussian private, "
        "and (ε, δ) fixes μ; no table or simulation is involved. Curves show the sine of the "
        "largest angle between the leading space of the pooled sample and the iterate, which may "
        "have more columns than that space.",
        formula=r"\Delta = \sqrt2\,\frac{C^2}{n_i},\qquad \nu = \frac{\sqrt T\,\Delta}{\mu},\qquad "
        r"\delta = \Phi\!\left(-\frac{\varepsilon}{\mu}+\frac{\mu}{2}\right) - e^{\varepsilon}\,"
        r"\Phi\!\left(-\frac{\varepsilon}{\mu}-\frac{\mu}{2}\right)",
        source="FedPower, Theorem 6 (published calibration, corrected here); Dong, Roth and Su, "
        "Gaussian differential privacy.",
        papers=("fedpower",),
    )


def _outcome(stated: Stated) -> str:
    epsilon = stated.guarantee.epsilon
    factor = short(math.exp(epsilon), 3) if epsilon < 20 else f"10^{epsilon / math.log(10):.0f}"
    return (
        f"no message that is more than {factor} times (e to the ε) as likely with the data as with "
        f"others in their place ({stated.guarantee.unit}), save for a chance of "
        f"{short(stated.guarantee.delta)}"
    )
