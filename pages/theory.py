"""What is proved about agreeing on one minimiser, what is false as printed, and what is sharp."""

from __future__ import annotations

import streamlit as st

from dashboard.player import chart, replay
from dashboard.shell import jobs, layout, share
from dashboard.shell.controls import Controls
from dashboard.views import theory as theory_view
from dashboard.views import theory_tables
from fedpca_core.consensus.shift_invert import Exhibit
from fedpca_core.consensus.verdicts import Verdict, verdicts
from fedpca_core.studies.theory import Study, Sweeps, TheorySettings, bridge, study, sweeps

ITERATED = ("scaffnew", "steps", "nine", "fedavg")

controls = Controls(TheorySettings, also_known=("t-family",))
layout.heading(
    "What is proved?",
    "Clients with different functions agree on one minimiser by local work, averages and "
    "corrections. Compare what theorems promise for a round with what rounds do.",
)
controls.show_notes()

with st.sidebar:
    st.header("Problem", anchor=False)
    controls.parameter("problem")
    pair = controls.values["problem"] == "pair"
    controls.parameter("condition")
    controls.draw("heterogeneity", "clients", "features", disabled=pair)
    controls.parameter("seed")
    st.header("Method", anchor=False)
    controls.parameter("method")
    method = controls.values["method"]
    controls.parameter("penalty", disabled=method in ("scaffnew", "proxskip", "fedavg"))
    controls.parameter("local_steps", disabled=method not in ITERATED)
    controls.parameter("step_scale", disabled=method in ("exact", "admm"))
    controls.parameter("dual_scale", disabled=method in ("proxskip", "fedavg"))
    controls.parameter("rounds")

settings = controls.settings()


def draw_study(found: Study) -> None:
    """The chosen method against its claims."""
    text, colour = theory_view.badge(found)
    st.badge(text, color=colour)  # type: ignore[arg-type]
    st.markdown(theory_view.summary(found))
    replay(key="theory_view", rounds=found.trace.rounds, panels=theory_view.convergence(found))
    theory_view.cards(found, settings)


def draw_rivals(found: Study) -> None:
    """All methods on the same problem."""
    st.markdown(theory_view.floor_sentence(found, settings))
    chart(key="theory_rivals", panels=[theory_view.rivals(found)])
    work = theory_tables.work_table(found)
    layout.small_table(work, label="What each method costs", numbers=list(work.columns[1:]))


def draw_sweeps(found: Sweeps) -> None:
    """Factors against penalty and local steps."""
    st.markdown(theory_view.window_sentence(found))
    chart(key="theory_sweeps", panels=theory_view.sweep_panels(found, settings))


def draw_verdicts(rows: list[Verdict]) -> None:
    """The table of statements."""
    table = theory_tables.verdict_table(rows)
    narrow = {
        name: st.column_config.TextColumn(width=190) for name in ("Setting", "Claimed factor")
    }
    st.dataframe(
        table, hide_index=True, width="stretch", height=38 + 35 * len(table), column_config=narrow
    )
    st.caption(
        "Worst: the largest measured factor over the claimed one. Silent: further comparisons "
        "where the claim is 1 or more. Theorem 8 has no statement to check."
    )


def draw_bridge(found: Exhibit) -> None:
    """Shift-and-invert beside its rivals."""
    st.markdown(theory_tables.bridge_sentence(found))
    chart(key="theory_bridge", panels=[theory_tables.bridge_panel(found)])


job = jobs.show(("theory", settings), lambda _: study(settings), draw_study, name="theory")
if job.result is not None:
    layout.section("The wrong fixed point of FedAvg", "Every method on the same problem, L/λ = κ.")
    draw_rivals(job.result)

layout.section("Which penalty, how many local steps?")
jobs.show(
    ("theory sweeps", settings),
    lambda _: sweeps(settings),
    draw_sweeps,
    name="theory_sweeps_job",
    patience=0.2,
)

layout.section(
    "Statements and verdicts",
    "Recomputed here from exact worst cases: an adversarial and a random family of clients, six "
    "condition numbers, six penalties, six numbers of local steps. Where a claim is false as "
    "printed, the next row corrects it.",
)
family = st.number_input(
    "Seed of the random family", 0, 9999, 0, key="t-family", bind="query-params", width=220
)
jobs.show(
    ("theory verdicts", int(family)),
    lambda _: verdicts(seed=int(family)),
    draw_verdicts,
    name="theory_verdicts_job",
    patience=0.2,
)

layout.section("What this has to do with PCA")
st.markdown(
    "**ADMM and FAPS.** With exact local solves and ω = r, the iteration of this page is ADMM, and "
    "the multipliers Hᵢ are its duals: they hold what pulls each client away from the others, they "
    "sum to zero, and they never travel. FAPS splits PCA in the same way, with a penalty and one "
    "dual matrix per client, on frames instead of vectors; there the local problem is not convex "
    "and no factor like those above is proved. The lesson carries over all the same: without the "
    "duals, local steps lead to FedAvg's wrong fixed point; with them, to the common answer."
)
st.markdown(
    "**Personalised PCA.** Its pull towards the common frame is the penalty ½r‖x − z‖² with "
    "r = 1/σ_U², its Uᵢ are the xᵢ and V is z, but the multipliers stay at zero. That is the "
    "point: with H = 0 clients keep their differences, and the average is FedAvg's fixed point on "
    "purpose. Letting H move with ω between 0 and r would lead from personal models to one shared "
    "model."
)
layout.section(
    "An engine for PCA?",
    "Shift-and-invert needs (σI − S)⁻¹x in every step, which is a problem of this page. Turn "
    "heterogeneity down and it beats the power method; turn it up and it fails. Lanczos needs one "
    "product a round and wins throughout.",
)
jobs.show(
    ("theory bridge", settings.clients, settings.heterogeneity, settings.seed),
    lambda _: bridge(settings),
    draw_bridge,
    name="theory_bridge_job",
    patience=0.1,
)
with st.container(horizontal=True, vertical_alignment="center"):
    share.copy_link(key="theory")
    share.download_json(settings.to_json(), name="theory")
    st.page_link("../pages/personalise.py", label="Personalised PCA", icon=":material/diversity_3:")
