"""What does privacy cost, and what does it protect?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout, share
from dashboard.shell.controls import Controls
from dashboard.views.privacy.attacks import attack, draw_attacks
from dashboard.views.privacy.budget import decompose, draw_budget
from dashboard.views.privacy.figures import account_all, draw_accountants, draw_figure, reproduce
from dashboard.views.privacy.price import draw_price, price
from dashboard.views.privacy.promise import explain, protection_card, show_guarantee
from dashboard.views.privacy.run import converge, draw_convergence, table
from fedpca_core.studies.private.run import accountable, build_problem
from fedpca_core.studies.private.settings import PrivacySettings

controls = Controls(PrivacySettings)
layout.heading(
    "What does privacy cost?",
    "Noise on every product with a client's data hides single records, provably. Turn ε and watch "
    "what it does to the answer, and to an attacker.",
)
controls.show_notes()
view = controls.parameter("view", as_buttons=True)

with st.sidebar:
    figures = view == "figures"
    if not figures:
        st.header("Budget", anchor=False)
        method = controls.parameter("method")
        accounted = accountable(PrivacySettings(method=method))
        if accounted:
            private = controls.parameter("noise")
            controls.parameter("epsilon", disabled=not private)
            controls.draw("delta", "calibration", disabled=not private)
        else:
            controls.parameter("mask")
        st.header("Run", anchor=False)
        controls.parameter("products")
        if method == "fedpower":
            controls.draw("period", "draws")
            with st.expander("Schedule and messages"):
                controls.draw("decay", "alignment", "literal", "surplus")
        st.header("Data", anchor=False)
        model = controls.parameter("model")
        controls.draw("features", "clients", "components")
        controls.parameter("networks" if model == "blocks" else "samples")
        if model == "spiked":
            controls.draw("treatment", "clip_norm")
    else:
        controls.draw("figure", "paper_size")
    controls.draw("repetitions", "seed")
    if view == "accountants":
        controls.parameter("multiplier")

settings = controls.settings()
if not figures:
    with layout.guard(otherwise=st.stop):
        show_guarantee(settings)


def on_data(work: Callable[..., Any]) -> Callable[[jobs.Job], Any]:
    """The work of a view that needs the problem, drawn in the background too."""

    def both(job: jobs.Job) -> Any:
        job.report(0.0, "Drawing the data")
        return work(settings, build_problem(settings), job)

    return both


WORK: dict[str, Callable[[jobs.Job], Any]] = {
    "run": on_data(converge),
    "utility": on_data(price),
    "budget": on_data(decompose),
    "attacks": on_data(attack),
    "accountants": lambda job: account_all(settings, job),
    "figures": lambda job: reproduce(settings, job),
}
DRAW: dict[str, Callable[[Any, PrivacySettings], None]] = {
    "run": draw_convergence,
    "utility": draw_price,
    "budget": draw_budget,
    "attacks": draw_attacks,
    "accountants": draw_accountants,
    "figures": draw_figure,
}
shown = settings if figures else settings.run_key()
job = jobs.show(
    ("privacy", view, shown),
    WORK[view],
    lambda result: DRAW[view](result, settings),
    name="privacy",
    seconds=300,
)

if not figures:
    layout.section("What this protects, and what not")
    protection_card(settings)
    explain()
with st.container(horizontal=True, vertical_alignment="center"):
    share.copy_link(key="privacy")
    share.download_json(settings.to_json(), name="privacy")
    if view == "run" and job.result is not None:
        share.download_csv(lambda: table(job.result), name="distances")
