"""The section of the Attack page where the server replays FAPS, and the study of defences."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import pictures
from fedpca_core.questions.attack.defences import Defences
from fedpca_core.questions.attack.replay import ReplayAttack, Replayed
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings

STUDY = ReplayAttack()
DEFENCES = Defences()
#: Starts whose fit is drawn: the last ones.
_SHOWN = 6


def show(
    controls: Controls[AttackSettings], data: OwnData | None
) -> tuple[Replayed | None, pd.DataFrame | None]:
    """Draw the parameters of the replay and, once switched on, its jobs and results."""
    layout.section(
        "The adversary who replays",
        "FAPS's uploads are not products with Sᵢ, so solving linear equations fails. But the "
        "update itself is public: the server can run it with any candidate covariance and keep "
        "the one whose uploads match.",
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.draw("replay", "seeded", "defences")
        controls.parameter("budget")
    settings = controls.settings()
    replayed = defended = None
    if STUDY.wanted(settings):
        replayed = jobs.study(STUDY, settings, draw, data=data).result
    elif settings.replay:
        layout.sentence(STUDY.obstacle(settings), kind="note")
    if DEFENCES.wanted(settings):
        defended = jobs.study(DEFENCES, settings, table, data=data).result
    if not (settings.replay or settings.defences):
        st.caption(
            "Switch it on to start the search. Up to about 20 features, or where the client holds "
            "few records, it takes seconds; at 50 it can take the better part of a minute."
        )
    return replayed, defended


def draw(replayed: Replayed) -> None:
    """What came of it, as a sentence, pictures and the course of the fit."""
    st.markdown(sentence(replayed))
    row = pictures.row(
        replayed.pictures,
        truth="True covariance of the client",
        caption="what the server must not learn",
        titles={"prior": "The prior it starts from", "replay": "Reconstruction by replay"},
        captions={
            name: [f"error {short(errors[0], 2)}"]
            for name, errors in replayed.pictures.errors.items()
        },
    )
    chart(key="replay_view", images=[row], panels=[panel(replayed)])


def sentence(replayed: Replayed) -> str:
    """What came of it, and how the server itself would know."""
    result = replayed.attack
    how = f"after {result.evaluations} evaluations from " + (
        "one start" if result.starts == 1 else f"{result.starts} starts"
    )
    judged = (
        "and the residual tells it so"
        if result.succeeded
        else f"and a residual of {short(result.residual, 2)} tells it that the fit is not exact"
        if result.residual > result.tolerance
        else "but the messages it read leave other covariances possible"
        if result.ended
        else "and it goes on"
    )
    fitted = []
    if result.frame is not None:
        fitted.append("the client's private start")
    if result.inner_steps is not None:
        fitted.append("its numbers of inner steps")
    if result.penalty is not None:
        fitted.append(f"its penalty β = {short(result.penalty, 3)}")
    also = f" It also knows {' and '.join(fitted)}." if fitted and result.succeeded else ""
    if replayed.released != replayed.error:
        return (
            f"The server has what the client released to **{short(replayed.released, 2)}** {how}, "
            f"{judged}. To the client's own covariance it is off by {short(replayed.error, 2)}: "
            "that is clipping and noise at the source."
        )
    return (
        f"The server has the client's covariance to **{short(replayed.error, 2)}** {how}, "
        f"{judged}. The prior cI it started from, with the stated trace, was off by "
        f"{short(replayed.prior_error, 2)}.{also}"
    )


def panel(replayed: Replayed) -> Panel:
    """Residual of the fit against the evaluations, a curve for each start."""
    fit = replayed.fit
    curves = []
    for position, start in enumerate(sorted(set(fit["start"]))[-_SHOWN:]):
        rows = fit[fit["start"] == start]
        curves.append(
            Curve(
                name=f"start {start}",
                x=rows["evaluation"].to_numpy(),
                y=rows["residual"].clip(lower=1e-17).to_numpy(),
                colour=f"series {position}",
                marker=True,
            )
        )
    return Panel(
        key="replay_residual",
        title="The fit",
        x_title="evaluations",
        y_title="relative residual over the rounds fitted",
        curves=tuple(curves),
        baselines=(Baseline("explained", replayed.attack.tolerance),),
        follows=False,
        integer_x=True,
        description="Relative residual of the replay against evaluations; each start is a curve.",
    )


#: Why there is no replay, and why one ended.
_ENDED = {
    "sums": "no single upload to replay",
    "products": "answers are plain products",
    "explained": "explains the uploads",
    "starts": "all starts used",
    "budget": "all evaluations used",
}


def table(found: pd.DataFrame) -> None:
    """The defences with what two attacks recover."""
    rows = pd.DataFrame(
        {
            "Defence": found["defence"],
            "Angle reached": [short(angle, 2) for angle in found["method_sine"]],
            "Linear attack": [short(error, 2) for error in found["linear_error"]],
            "Replay, hidden part fitted": [
                "–" if ended in ("sums", "products") else short(error, 2)
                for error, ended in zip(found["replay_error"], found["ended"], strict=True)
            ],
            "Replay ended": [
                _ENDED[ended] + (f" after {count} evaluations" if count else "")
                for ended, count in zip(found["ended"], found["evaluations"], strict=True)
            ],
        }
    )
    layout.small_table(rows, label="Defences of FAPS", numbers=list(rows.columns[1:4]))
    st.caption(
        "Errors are relative, 1 is what guessing zero achieves. The linear attack is the "
        "symmetric completion with the stated trace; under secure aggregation it reads "
        "sums. None of these defences gives a privacy guarantee."
    )
