"""What Personalise shows: who gains, the three methods along one axis, what uploads give away."""

import math
from typing import Any

import numpy as np

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.metrics.personal import crossover
from fedpca_core.questions.personalise import study
from fedpca_core.questions.personalise.exposure import EXACT, Exposed
from fedpca_core.questions.personalise.settings import (
    ALONE,
    COMPARED,
    PERSONAL,
    SHARED,
    PersonaliseSettings,
)
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Heat, Panel, plot
from fedpca_core.study.sweep import Swept

#: Differences in the error ratio below this are noise of one data set.
TIE = 0.002
COLOURS = {METHODS[key].title: key for key in COMPARED}
#: Under noise at the source, of the method that needs none.
UNCHANGED = parts.words("personal-unchanged")


def comparison(outcome: study.Collaboration, settings: PersonaliseSettings) -> parts.Parts:
    """The verdict, curves and gains, then how far apart the clients are and what it cost."""
    yield verdict(outcome)
    panels = [curves(outcome, settings), gains(outcome)]
    yield parts.Chart("personal_view", panels, rounds=outcome.rounds)
    yield parts.Section("How far apart are they?", distances(outcome))
    yield parts.Chart("personal_angles", angles(outcome))
    yield cards(outcome, settings)
    yield parts.GuaranteeOf(outcome.facts)


def name(key: str) -> str:
    """A method's title within a sentence."""
    title = METHODS[key].title
    return title[0].lower() + title[1:]


def verdict(outcome: study.Collaboration) -> str:
    """One paragraph: does collaborating pay here, and for whom?"""
    mine, limits = float(outcome.fresh[PERSONAL][-1]), outcome.limits
    other = ALONE if limits[ALONE] <= limits[SHARED] else SHARED
    gain = limits[other] - mine
    early = f"{outcome.rounds} of " * (outcome.rounds < outcome.planned)
    rounds = early + plural(outcome.planned, "round")
    scale = parts.names("personal-scales")["own" if outcome.own else "drawn"]
    numbers = parts.words("personal-numbers", rounds=rounds, mine=mine, limits=limits, scale=scale)
    little = "a little " * (abs(gain) <= TIE)
    do = "does" if outcome.better == 1 else "do"
    clients = f"{outcome.better} of {outcome.clients} clients {do} {little}better than alone."
    noisy = outcome.facts.guarantee is not None
    if noisy:
        clients += f" {UNCHANGED}"
    if gain > TIE:
        best = parts.words("personal-pays")
    elif gain > -TIE:
        best = parts.words("personal-level", other=name(other))
    else:
        remedy = "more records or a larger ε" if noisy else "more rounds, or another prior"
        best = f"**{METHODS[other].title} is still ahead here**; allow {remedy}."
    return f"{best} {numbers} {clients}"


def error_title(settings: PersonaliseSettings, measure: str = "") -> str:
    """What the axis of errors says."""
    records = f"{measure or settings.error_on} records"
    if settings.problem == "table":
        return f"share of {records} that is missed"
    return f"error on {records} / noise floor"


def curves(outcome: study.Collaboration, settings: PersonaliseSettings) -> Panel:
    """Mean error of the three methods against rounds, on fresh or on training records."""
    fresh = settings.error_on == "fresh"
    true = Baseline("the true common subspace", outcome.centre, simulation_only=True)
    return Panel.of(
        "personal-error",
        plot(
            study.PersonalComparison().tables(outcome, settings)["curves"],
            *("round", f"{settings.error_on}_ratio", "method"),
            colours=COLOURS,
            spread=False,
        ),
        y_title=error_title(settings),
        baselines=(true,) if fresh and not outcome.own else (),
        axes_id=f"personal-error-{settings.error_on}",
        description=f"Mean error on {settings.error_on} records of personalised PCA, training "
        "alone and one shared model, round by round.",
    )


def gains(outcome: study.Collaboration) -> Panel:
    """Each client's gain over both baselines, sorted by the gain over training alone."""
    place = np.arange(1, outcome.clients + 1)
    who = [outcome.facts.client(number) for number in outcome.order]
    return Panel.of(
        "personal-gain",
        tuple(
            Curve(f"over {name(key)}", place, outcome.gains[key], colour=key, labels=who)
            for key in (ALONE, SHARED)
        ),
        baselines=(Baseline("no gain", 0.0),),
    )


def distances(outcome: study.Collaboration) -> str:
    """What the two heat maps show, and of how many clients."""
    shown, every = len(outcome.angles), outcome.clients
    of = f"{shown}" if shown == every else f"first {shown} of {every}"
    unseen = "the records of all" if outcome.own else "the true subspaces"
    return parts.words("personal-angles", of=of, unseen=unseen)


def angles(outcome: study.Collaboration) -> list[Heat]:
    """Largest principal angles between clients: the truth, and what the models say."""
    shown = len(outcome.angles)
    labels = [outcome.facts.label(client) for client in range(shown)]
    return [
        Heat.of(
            "personal-angles",
            *(values, labels, labels),
            key=f"personal-angles-{key}",
            title=title,
            description=f"{title}: largest principal angle between every two of {shown} clients, "
            "in degrees from 0 to 90.",
        )
        for key, title, values in (
            ("true", "All their records" if outcome.own else "True subspaces", outcome.angles),
            ("learned", "Personalised models", outcome.learned),
        )
    ]


def cards(outcome: study.Collaboration, settings: PersonaliseSettings) -> parts.Cards:
    """What it costs, next to what the raw data would."""
    features, components = outcome.facts.features, settings.components
    frame, records = features * components, features * settings.samples
    sent = outcome.bytes_sent[PERSONAL] / 1e6
    moment = features * (features + 1) // 2
    return parts.Cards.of(
        "personal-costs",
        sent=f"{sent:,.1f} MB" if sent >= 0.1 else f"{short(1e3 * sent, 3)} kB",
        frame=frame,
        kilobytes=short(8 * frame / 1e3, 3),
        records=records,
        uploads="one upload" if records == frame else f"{short(records / frame, 2)} uploads",
        angle=float(np.median(outcome.angles[np.triu_indices(len(outcome.angles), 1)])),
        moment=moment,
    )


AXIS_TITLES = parts.names("personal-axes")


def sweep(found: Swept, settings: PersonaliseSettings) -> parts.Parts:
    """The three methods along one axis, and where they cross."""
    yield where_they_cross(found)
    yield parts.Chart("personal_sweep", [along(found, settings)])
    yield parts.Caption(size(settings))
    yield from parts.reasons(found.refusals)


def size(settings: PersonaliseSettings) -> str:
    """How the sweep was measured, where that differs from the chart above."""
    sets = "one data set" if settings.datasets == 1 else f"{settings.datasets} data sets"
    text = f"Medians over {sets}; baselines at their limits, personalised PCA when it has settled."
    if settings.sweep != "clients" and settings.clients > study.MOST_CLIENTS:
        text += f" With {study.MOST_CLIENTS} of the {settings.clients} clients, to answer soon."
    if not math.isinf(settings.epsilon):
        text += f" Every run has noise at the source, ε = {short(settings.epsilon)}. {UNCHANGED}"
    return text


def along(found: Swept, settings: PersonaliseSettings) -> Panel:
    """Fresh error of the three methods along one axis, with a mark at the page's setting."""
    look: dict[str, Any] = {"spread": settings.datasets > 1, "marker": True, "colours": COLOURS}
    look["names"] = {title: title for title in COLOURS}
    lines = list(plot(found.of(study.FRESH), "value", "result", "series", **look))
    here, axis = float(getattr(settings, found.parameter)), lines[0].x
    if axis[0] <= here <= axis[-1]:
        ends = [float(found.table["result"].min()), float(found.table["result"].max())]
        lines.append(Curve("this page's setting", [here, here], ends, colour="guide", guide=True))
    return Panel.of(
        "personal-sweep",
        lines,
        x_title="heterogeneity that personalised PCA assumes"
        if (found.parameter, settings.problem) == ("heterogeneity", "table")
        else AXIS_TITLES[found.parameter],
        y_title=error_title(settings, "fresh"),
        axes_id=f"personal-sweep-{found.parameter}",
    )


def where_they_cross(found: Swept) -> str:
    """Where the baselines cross and where personalised PCA gains most."""
    mine, alone, shared = (
        found.band(METHODS[key].title, study.FRESH) for key in (PERSONAL, ALONE, SHARED)
    )
    if len(mine.x) + len(found.refusals) < len(study.AXES[found.parameter]):
        return "Still running: values further to the right are on their way."

    def at(value: float) -> str:
        if found.parameter == "heterogeneity":
            return f"a heterogeneity of {short(value, 2)}"
        return f"{value:.0f} {AXIS_TITLES[found.parameter]}"

    where = crossover(alone.x, shared.middle, alone.middle)
    if where is not None:
        extremes = f"Training alone and one shared model ({name(SHARED)}) cross at **{at(where)}**."
    else:
        who = "One shared model" if shared.middle[-1] < alone.middle[-1] else "Training alone"
        extremes = f"{who} is the better extreme all along."
    gains = np.minimum(alone.middle, shared.middle) - mine.middle
    gain, place = float(gains.max()), at(float(mine.x[gains.argmax()]))
    most = f"gains most over the better one, **{gain:.3f}**, at {place}"
    never = f"never gains more than {TIE} over the better one"
    return f"{extremes} Personalised PCA {most if gain > TIE else never}."


def threat(noisy: bool = False) -> parts.FactsCard:
    """Who attacks, and what comes of it, without or with noise at the source."""
    return parts.FactsCard.of(
        "personal-attacker",
        "formal" if noisy else "none",
        outcome=parts.words("personal-noisy" if noisy else "personal-bare"),
    )


def exposure(found: Exposed, settings: PersonaliseSettings) -> parts.Parts:
    yield what_is_recovered(found)
    yield parts.Chart("personal_exposure", [recovered(found)])


def recovered(found: Exposed) -> Panel:
    """How far the recovered basis is from the client's own, message by message."""
    names, colours = parts.names("personal-recovered"), parts.names("personal-recovered-colours")
    curves = []
    for column, look in colours.items():
        x, y, marker = found.frames["round"], found.frames[column].clip(ROUNDING), look != "guide"
        curves.append(Curve(names[column], x, y, colour=look, marker=marker))
    return Panel.of(
        "personal-exposure",
        curves,
        y_range=(ROUNDING, 2.0),
        description=f"Median distance between {len(found.data)} clients' private bases and what "
        "the server recovers from their uploads, after a common and after independent starts.",
    )


def what_is_recovered(found: Exposed) -> str:
    first, attacked = float(found.frames["common_start"][1]), len(found.data)
    last = found.frames.iloc[-1]
    whole = "the whole noisy covariance Sᵢ + Eᵢ" if found.noisy else "the whole covariance Sᵢ"
    said = [
        parts.words("personal-basis", error=short(first, 1)),
        f"For {found.moments} of {attacked} clients a few rounds give {whole} as well."
        if found.moments
        else f"These few rounds give {whole} of none of the {attacked} clients.",
    ]
    if found.noisy and np.isfinite(found.own):
        said.append(parts.words("personal-source", own=short(found.own, 2)))
    if found.records is not None:
        said.append(parts.words("personal-sample", found=found.records, attacked=attacked))
    little = last["independent_start"] >= last["common_frame_only"] / 2
    said.append(parts.names("personal-independent")["little" if little else "later"])
    if last["common_start"] > EXACT:
        said.append(parts.words("personal-jumps"))
    return " ".join(said)
