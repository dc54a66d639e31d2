"""Drawing the comparison of the Personalise page: curves, gains, angles, costs."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Heat, Panel, chart, replay
from dashboard.shell import guarantee, layout
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.papers.personal import plateau
from fedpca_core.questions.personalise.comparison import Collaboration
from fedpca_core.questions.personalise.settings import (
    ALONE,
    COMPARED,
    PERSONAL,
    SHARED,
    PersonaliseSettings,
)
from fedpca_core.settings import short

#: Differences in the error ratio below this are noise of one data set.
TIE = 0.002
#: Under noise at the source, of the method that needs none.
UNCHANGED = "Training alone sends nothing, so it keeps its records without clipping and noise."


def draw(outcome: Collaboration, settings: PersonaliseSettings) -> None:
    """The verdict, curves and gains, then how far apart the clients are and what it cost."""
    st.markdown(verdict(outcome))
    replay(
        key="personal_view",
        rounds=outcome.rounds,
        panels=[curves(outcome, settings), gains(outcome)],
    )
    figure = plateau(settings)
    if figure is not None:
        st.caption(
            f"At the size of Figure {figure[0]} personalised PCA ends at {figure[1]:.3f} on "
            f"{settings.measure} records (a mean over many data sets)."
        )
    layout.section("How far apart are they?", distances(outcome))
    chart(key="personal_angles", panels=angles(outcome))
    facts(outcome, settings)
    guarantee.card(outcome.facts)


def name(key: str) -> str:
    """A method's title within a sentence."""
    title = METHODS[key].title
    return title[0].lower() + title[1:]


def verdict(outcome: Collaboration) -> str:
    """One paragraph: does collaborating pay here, and for whom?"""
    mine, limits = float(outcome.fresh[PERSONAL][-1]), outcome.limits
    other = ALONE if limits[ALONE] <= limits[SHARED] else SHARED
    gain = limits[other] - mine
    rounds = f"{outcome.rounds} rounds"
    if outcome.rounds < outcome.planned:
        rounds = f"{outcome.rounds} of {outcome.planned} rounds"
    numbers = (
        f"After {rounds} personalised PCA is at **{mine:.3f}** on fresh records; "
        f"{name(ALONE)} settles at "
        f"{limits[ALONE]:.3f}, one shared model ({name(SHARED)}) at {limits[SHARED]:.3f} "
        + (
            "(the share of fresh records that a model misses)."
            if outcome.own
            else "(1 is what perfect knowledge of each client would reach)."
        )
    )
    little = "a little " * (abs(gain) <= TIE)
    clients = f"{outcome.better} of {outcome.clients} clients do {little}better than alone."
    if outcome.facts.guarantee is not None:
        clients += f" {UNCHANGED}"
    if gain > TIE:
        best = (
            "**Personalised collaboration pays here.** It beats both staying alone and one "
            "shared model."
        )
    elif gain > -TIE:
        best = (
            f"**Nothing to gain over {name(other)} here**: personalised PCA follows the better of "
            "the two extremes and ends level with it."
        )
    else:
        noisy = outcome.facts.guarantee is not None
        remedy = "more records or a larger ε" if noisy else "more rounds, or another prior"
        best = f"**{METHODS[other].title} is still ahead here**; allow {remedy}."
    return f"{best} {numbers} {clients}"


def error_title(settings: PersonaliseSettings, measure: str = "") -> str:
    """What the axis of errors says."""
    records = f"{measure or settings.measure} records"
    if settings.problem == "table":
        return f"share of {records} that is missed"
    return f"error on {records} / noise floor"


def curves(outcome: Collaboration, settings: PersonaliseSettings) -> Panel:
    """Mean error of the three methods against rounds, on fresh or on training records."""
    fresh = settings.measure == "fresh"
    source = outcome.fresh if fresh else outcome.training
    true = Baseline("the true common subspace", outcome.centre, simulation_only=True)
    return Panel(
        key="personal-error",
        title="Error against rounds",
        x_title="communication round",
        y_title=error_title(settings),
        curves=tuple(
            Curve(METHODS[key].title, np.arange(len(source[key])), source[key], colour=key)
            for key in COMPARED
        ),
        baselines=(true,) if fresh and not outcome.own else (),
        log_y=False,
        integer_x=True,
        axes_id=f"personal-error-{settings.measure}",
        description=f"Mean error on {settings.measure} records of personalised PCA, training alone "
        "and one shared model, round by round.",
        height=400,
        simulation_only=True,
    )


def gains(outcome: Collaboration) -> Panel:
    """Each client's gain over both baselines, sorted by the gain over training alone."""
    place = np.arange(1, outcome.clients + 1)
    who = [outcome.facts.client(number) for number in outcome.order]
    return Panel(
        key="personal-gain",
        title="Who gains?",
        x_title="clients, by gain over training alone",
        y_title="fall of its error",
        curves=tuple(
            Curve(f"over {name(key)}", place, outcome.gains[key], colour=key, labels=who)
            for key in (ALONE, SHARED)
        ),
        baselines=(Baseline("no gain", 0.0),),
        log_y=False,
        integer_x=True,
        kind="scatter",
        follows=False,
        description="How much lower each client's fresh error is with personalised PCA than with "
        "training alone and with one shared model; below zero the client loses.",
        height=400,
        simulation_only=True,
    )


def distances(outcome: Collaboration) -> str:
    """What the two heat maps show, and of how many clients."""
    shown = len(outcome.angles)
    who = (
        f"every two of the {shown} clients"
        if shown == outcome.clients
        else f"every two of the first {shown} of {outcome.clients} clients"
    )
    unseen = "the records of all" if outcome.own else "the true subspaces"
    return (
        f"The largest principal angle, in degrees, between the subspaces of {who}. Simulation "
        f"only: nobody in the federation sees {unseen}."
    )


def angles(outcome: Collaboration) -> list[Heat]:
    """Largest principal angles between clients: the truth, and what the models say."""
    shown = len(outcome.angles)
    labels = [outcome.facts.label(client) for client in range(shown)]
    return [
        Heat(
            key=f"personal-angles-{key}",
            title=title,
            values=values,
            row_labels=labels,
            column_labels=labels,
            x_title="client",
            y_title="client",
            low=0.0,
            high=90.0,
            description=f"{title}: largest principal angle between every two of {shown} clients, "
            "in degrees from 0 to 90.",
            simulation_only=True,  # the models are the clients' own
        )
        for key, title, values in (
            ("true", "All their records" if outcome.own else "True subspaces", outcome.angles),
            ("learned", "Personalised models", outcome.learned),
        )
    ]


def facts(outcome: Collaboration, settings: PersonaliseSettings) -> None:
    """What it costs, next to what the raw data would."""
    features, components = outcome.facts.features, settings.components
    frame, records = features * components, features * settings.samples
    sent = outcome.bytes_sent[PERSONAL] / 1e6
    moment = features * (features + 1) // 2
    layout.metric_cards(
        [
            layout.Card(
                "Sent in all",
                f"{sent:,.1f} MB" if sent >= 0.1 else f"{short(1e3 * sent, 3)} kB",
                "personalised PCA, both directions",
                help="As much as one shared model; training alone sends nothing.",
            ),
            layout.Card(
                "One upload", f"{frame:,} floats", f"{short(8 * frame / 1e3, 3)} kB in each round"
            ),
            layout.Card(
                "What a client learns from",
                f"{records:,} floats",
                _uploads(records / frame),
                help="Bandwidth is no argument for this method at such sizes.",
            ),
            layout.Card(
                "Between two clients",
                f"{outcome.median_angle:.0f}°",
                "median largest angle; simulation only",
                help=f"Median over the pairs of the left map. A whole Sᵢ has {moment:,} floats.",
            ),
        ]
    )


def _uploads(count: float) -> str:
    return "as much as one upload" if count == 1 else f"as much as {short(count, 2)} uploads"
