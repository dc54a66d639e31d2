"""The section of the Attack page where the server replays FAPS, and the study of defences."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard.player import chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import adversary
from dashboard.views import replay as replaying
from fedpca_core.problems import Problem
from fedpca_core.studies.pca_settings import AttackSettings


def show(controls: Controls[AttackSettings], settings: AttackSettings, problem: Problem) -> None:
    """Draw the parameters of the replay and, once switched on, its job and result."""
    layout.section(
        "The adversary who replays",
        "FAPS' uploads are not products with Sᵢ, so solving linear equations fails. But the "
        "update itself is public: the server can run it with any candidate covariance and keep "
        "the one whose uploads match.",
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.draw("replay", "seeded", "study")
        controls.parameter("budget")
    chosen = controls.settings()
    truth = adversary.private_matrix(problem, settings.client)
    # What the replay does not depend on may change while it runs.
    asked = replace(settings.run_key(), attack="linear", attacked=(), colluders=1, starts=1)
    about = (asked, chosen.seeded, chosen.budget, problem.digest)
    if chosen.replay:

        def draw(replayed: replaying.Replayed) -> None:
            st.markdown(replaying.sentence(replayed))
            chart(
                key="replay_view",
                images=replaying.pictures(replayed, truth, problem),
                panels=[replaying.panel(replayed)],
            )

        jobs.show(
            ("replay", *about),
            lambda job: replaying.run(chosen, problem, truth, job),
            draw,
            name="replay",
            seconds=chosen.budget + 30,
        )
    if chosen.study:

        def table(found: pd.DataFrame) -> None:
            wide = {"Defence": st.column_config.TextColumn(width="medium")}
            st.dataframe(found, hide_index=True, width="stretch", column_config=wide)
            st.caption(
                "Errors are relative, 1 is what guessing zero achieves. The linear attack is the "
                "symmetric completion with the stated trace; under secure aggregation it reads "
                "sums. None of these defences gives a privacy guarantee."
            )

        jobs.show(
            ("defences", *about),
            lambda job: replaying.study(chosen, problem, truth, job),
            table,
            name="study",
            seconds=(chosen.budget + 10) * len(replaying.DEFENCES),
        )
    if not (chosen.replay or chosen.study):
        st.caption(
            "Switch it on to start the search. Up to about 20 features it takes seconds; at 50 it "
            "can take the better part of a minute."
        )
