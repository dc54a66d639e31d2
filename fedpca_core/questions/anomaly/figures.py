"""What the Anomalies page shows, topic by topic: charts, tables and words of each result."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.anomaly.evaluation import always_alarm
from fedpca_core.arrays import IntArray
from fedpca_core.papers.registry import quote
from fedpca_core.problems.traffic_table import available
from fedpca_core.questions.anomaly.detection import Alarmed, Findings, Spent
from fedpca_core.questions.anomaly.leaks import FITTED_FEATURES, Leaked
from fedpca_core.questions.anomaly.learning import FULL_ROUNDS, Learnt, best
from fedpca_core.questions.anomaly.poisoned import FIRST, LAST, ROUNDS, RULES, Courses
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.trained import SHARES, level
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.facts import data_note
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Heat, Panel, plot
from fedpca_core.study.sweep import Swept

#: Colours of what is not a method of the registry.
COLOURS = parts.names("detector-colours")


def colour(name: str) -> str:
    """The palette's name for a detector."""
    return COLOURS.get(name, name)


def said(settings: AnomalySettings, *, labelled: bool = True) -> str:
    """The alarm level in words."""
    if settings.rule == "oracle" and labelled:
        return "at the oracle’s threshold"
    return f"at the {100 * settings.share:g}% training quantile"


# ------------------------------------------------------------------ detection

#: Detectors that somebody would have to pool the clients' records for.
POOLED = ("Centralised PCA",)


def detection(found: Findings, settings: AnomalySettings) -> parts.Parts:
    """Curves, confusion table and baselines; without labels the alarms raised."""
    if found.facts.labelled:
        yield from _rates(found, settings)
    else:
        share, at = found.judged[found.title].alarms[settings.share], said(settings, labelled=False)
        numbers = {"share": share, "tested": found.facts.tested, "like": 1 - settings.share}
        yield parts.words("anomaly-unlabelled", at=at, **numbers)
        yield parts.Chart("alarm_rates", [alarm_rates(found)])
    table = found.summary(settings).rename(columns=parts.names("detector-columns"))
    table = parts.written(table, {"AUC": 3, "Average precision": 3}, 1)
    yield parts.Table(table, "Every detector")
    if found.facts.labelled:
        yield parts.Caption(parts.words("anomaly-columns"))
    if found.local is not None:
        own, auc = found.local.false_alarms, found.local.auc
        yield parts.words("anomaly-local", auc=auc, low=float(min(own)), high=float(max(own)))


def _rates(found: Findings, settings: AnomalySettings) -> parts.Parts:
    judged = found.judged[found.title]
    at, best = judged.evaluations[level(settings)], judged.evaluations["oracle"]
    yield verdict(found, settings)
    yield parts.Cards.of(
        "anomaly-rates",
        at=at,
        best="" if settings.rule == "oracle" else f"; oracle's threshold: {best.f1:.1%}",
        alarms=at.fpr * settings.flows_a_day,
        flows=settings.flows_a_day,
        most=judged.caught_at[0.01],
        least=judged.caught_at[0.001],
    )
    yield parts.Chart("curves", roc_and_precision(found))
    title = f"{found.title}: every attack and every normal flow, in %"
    rows = [plural(at.caught + at.missed, "attack"), f"{at.false_alarms + at.quiet:,} normal"]
    shares = 100 * np.array([[at.recall, at.fnr], [at.fpr, 1 - at.fpr]])
    yield parts.Chart(
        "counts", [Heat.of("confusion", shares, rows, ["alarm", "no alarm"], title=title)]
    )


def alarm_rates(found: Findings) -> Panel:
    """Share of alarms at every threshold, beside what records like the trained ones would raise."""
    quantiles = list(SHARES)
    curves = []
    for name, judged in found.judged.items():
        y = [100 * judged.alarms[share] for share in quantiles]
        truth, look = name in POOLED, colour(name)
        curves.append(Curve(name, quantiles, y, colour=look, marker=True, simulation_only=truth))
    like = [100 * (1 - share) for share in quantiles]
    guide = Curve("records like those trained on", quantiles, like, guide=True, colour="guide")
    return Panel.of("alarms", [*curves, guide])


def verdict(found: Findings, settings: AnomalySettings) -> str:
    """Two sentences: what was learnt beyond the baselines, and what the threshold makes of it."""
    own, norm, exact = (
        found.judged[name].evaluations["oracle"].auc
        for name in (found.title, "Norm only", "Centralised PCA")
    )
    beside = "better" if own > norm + 0.02 else "same" if own > norm - 0.02 else "worse"
    at, share = found.judged[found.title].evaluations[level(settings)], found.facts.attack_share
    always = always_alarm(share)["f1"]
    numbers: dict[str, Any] = {"at": at, "always": always, "where": said(settings).capitalize()}
    told = (
        parts.words("anomaly-ranks", title=found.title, own=own, exact=exact, norm=norm),
        parts.names("anomaly-beside-length")[beside],
        parts.words("anomaly-f1-below", share=share, spared=1 - at.fpr, **numbers)
        if at.f1 < always
        else parts.words("anomaly-f1", **numbers),
    )
    return " ".join(told)


def roc_and_precision(found: Findings) -> list[Panel]:
    roc, precision, lowest = [], [], []
    for name, judged in found.judged.items():
        drawn, areas = judged.curves, judged.evaluations["oracle"]
        assert drawn is not None
        look: dict[str, Any] = {"colour": colour(name), "simulation_only": name in POOLED}
        rates = drawn.false_positive_rate, drawn.true_positive_rate
        roc.append(Curve(f"{name} ({areas.auc:.3f})", *rates, **look))
        exact = drawn.recall, drawn.precision
        precision.append(Curve(f"{name} ({areas.average_precision:.3f})", *exact, **look))
        # The rest is of a handful of flows.
        lowest += drawn.precision[drawn.recall > 0.03].tolist()
    roc.append(Curve("guessing (0.500)", [0.0, 1.0], [0.0, 1.0], colour="guide", guide=True))
    low = max(0.0, min(*lowest, 0.95) - 0.03) if lowest else 0.0
    return [Panel.of("roc", roc), Panel.of("precision", precision, y_range=(low, 1.005))]


# ------------------------------------------------------------------ alarms

#: Features shown of one score.
LARGEST = 10


def alarms(found: Alarmed, settings: AnomalySettings) -> parts.Parts:
    """A live detector, attack types, and what made one alarm."""
    at = level(settings, found.facts.labelled)
    limit = found.thresholds[at]
    yield parts.Section(
        "A live detector",
        parts.words("anomaly-stream")
        if found.facts.labelled
        else "The first of the tested records.",
    )
    flows = len(found.stream) - 1
    yield parts.Chart("live_view", [live(found, limit)], rounds=flows, round_label="flow")
    if found.caught:
        table = found.caught[at]
        ordered = table.sort_values("caught", ascending=False)
        kinds, caught = list(ordered["type"]), 100 * ordered["caught"]
        bars = (
            Curve("caught", kinds, caught, colour="series 0"),
            Curve("missed", kinds, 100 * (1 - ordered["caught"]), colour="series 1"),
        )
        yield parts.Chart("types_view", [Panel.of("types", bars)])
        called = {"type": "Type", "records": "Flows", "caught": "Caught, %", "auc": "AUC"}
        shown = table.assign(caught=100 * table["caught"]).rename(columns=called)
        shown = parts.written(shown, {"Flows": 0, "AUC": 3}, 1)
        yield parts.Fold("As a table", [parts.Table(shown, "Attack types")])
    yield from _one_alarm(found, settings, limit)
    if found.clouds:
        yield parts.Section("In three coordinates", parts.words("anomaly-clouds"))
        yield clouds(found, after=settings.reconstructed)


def _one_alarm(found: Alarmed, settings: AnomalySettings, limit: float) -> parts.Parts:
    yield parts.Section("What made this score", "Choose a flow of the stream by its number.")
    flow = found.flow(settings)
    last = ", the last of the stream," if flow < settings.flow else ""
    kind, value = found.stream["type"][flow], float(found.stream["score"][flow])
    side, alarm = ("above", "alarm") if value > limit else ("below", "no alarm")
    yield (
        f"Flow {flow}{last} is of type **{kind}**; its score {short(value, 3)} is {side} the "
        f"threshold {short(limit, 3)}: **{alarm}**."
    )
    largest = found.explained(flow).head(LARGEST)
    shown = largest.rename(columns=parts.names("flow-columns"))
    shown["Measured"] = [short(value) for value in shown["Measured"]]
    features = parts.Table(parts.written(shown, {"Standardised": 2}, 1), "Features")
    shares = Curve("share of the score", list(largest["feature"]), largest["share"], "series 2")
    bars = Panel.of("contributions", [shares])
    yield parts.Beside([[parts.Chart("parts_view", [bars])], [features]])


def live(found: Alarmed, limit: float) -> Panel:
    """Scores of a stream of flows, attacks and normal ones apart."""
    x, attack = found.stream["flow"], found.stream["attack"]
    values = found.stream["score"].clip(1e-3)
    normal = "normal flow" if found.facts.labelled else "record"
    curves = [Curve(normal, x, np.where(attack, np.nan, values), colour="series 0")]
    if found.facts.labelled:
        seen = np.where(attack, values, np.nan)
        curves.append(Curve("attack", x, seen, colour="series 1", dash="solid"))
    return Panel.of(
        "live", curves, baselines=(Baseline(f"alarm above {short(limit, 3)}", max(limit, 1e-3)),)
    )


def clouds(found: Alarmed, *, after: bool) -> parts.Space:
    """Records of each class before or after reconstruction, which leaves only the plane."""
    kept = [1.0, 1.0, float(not after)]
    return parts.Space(
        "scatter",
        {
            name: cloud[["first", "second", "distance"]].to_numpy() * kept
            for name, cloud in found.clouds.items()
        },
        {name: tuple(cloud["type"]) for name, cloud in found.clouds.items()},
        ("direction 1", "direction 2", "distance"),
        # The same before and after, so that what falls away can be seen.
        1.05 * max(float(cloud["distance"].max()) for cloud in found.clouds.values()),
        "Normal flows and attacks in three dimensions: two directions of the subspace and the "
        "distance to it.",
    )


# ------------------------------------------------------------------ costs


def costs(found: Spent, settings: AnomalySettings) -> parts.Parts:
    _, once, own, *_ = found.costs.to_dict("records")
    numbers = {"a_round": own["bytes_up"], "once": once["bytes_up"], "title": own["method"]}
    numbers["break_even"] = (found.facts.features + 1) / 2 / settings.components
    yield parts.words("anomaly-spent", taken=settings.participation * settings.rounds, **numbers)
    table = found.costs.rename(columns=parts.names("spent-columns"))
    table = parts.written(table, {"Bytes up": 0, "µs a flow": 3})
    yield parts.Table(table, "What each method costs")
    yield parts.Caption(parts.words("anomaly-bytes"))


# ------------------------------------------------------------------ learning

#: Digits as indices.
LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def learning(found: Learnt, settings: AnomalySettings) -> parts.Parts:
    """Corrected and printed rules, and the progress measure."""
    look: dict[str, Any] = {"colours": {name: colour(name) for name in found.approach["method"]}}
    panels = [
        Panel.of(
            name, plot(found.approach, "round", what, "method", least=least, spread=False, **look)
        )
        for name, what, least in (
            ("approach", "excess_loss", 1e-14),
            ("anomaly-distance", "distance", 1e-12),
        )
    ]
    yield parts.Chart("learning_view", panels, rounds=settings.rounds)
    if found.progress is not None:
        if settings.rounds > FULL_ROUNDS:
            yield parts.Caption(f"Below: the first {FULL_ROUNDS} rounds.")
        yield parts.Chart("progress_view", progress(found.progress))
    last, after = (str(settings.components + more).translate(LOW) for more in (0, 1))
    yield (
        f"The gap at this rank, λ{last}/λ{after}, is **{found.gap:.2f}** (simulation only). "
        + (parts.words("anomaly-close") if found.gap < 1.2 else "The subspace is well determined.")
    )


def progress(table: pd.DataFrame) -> list[Panel]:
    """The two parts of the progress measure, the Lagrangian, the duals, and how far Z is off.

    All but the last need what only the clients hold.
    """
    # At the start everything agrees, and a logarithm has no zero.
    tidy = table[table["round"] > 0].melt("round")
    shown: Mapping[str, Mapping[str, str]] = {
        "progress": {"consensus": "series 0", "stationarity": "series 1"},
        "lagrangian": {"lagrangian": "series 2"},
        "duals": {"dual_sum": "series 4", "dual_size": "series 3"},
        "departure": {"departure": "series 5"},
    }
    titles = parts.names("progress-curves")
    panels = []
    for name, colours in shown.items():
        called = {column: titles[column] for column in colours}
        look: dict[str, Any] = {"names": called, "colours": colours, "spread": False}
        least = -np.inf if name == "lagrangian" else 1e-18
        panels.append(Panel.of(name, plot(tidy, "round", "value", "variable", least=least, **look)))
    return panels


def sweeps(found: Swept, settings: AnomalySettings) -> parts.Parts:
    """AUC and distance along one setting, and where they are best."""
    parameter = settings.parameters()[found.parameter]
    yield parts.Chart("sweep_view", along(found, parameter.label, settings.algorithm().title))
    near, smallest = best(found, "distance", lowest=True)
    where = f"{short(smallest, 2)}, at {parameter.label.lower()} {short(near)}"
    text = parts.words("anomaly-nearest", rounds=settings.rounds, where=where)
    if "norm" in found.series:
        (at, high), (_, low) = best(found, "auc"), best(found, "auc", lowest=True)
        text += " " + parts.words("anomaly-highest", at=short(at), high=high, low=low)
    yield text
    yield from parts.reasons(found.refusals)


def along(found: Swept, label: str, title: str) -> list[Panel]:
    """AUC, distance and time along one setting."""
    several = found.table["seed"].nunique() > 1
    timed = found.parameter in ("clients", "local_steps")
    drawn = {"sweep_auc": "norm" in found.series, "sweep_distance": True, "sweep_seconds": timed}
    names = {"federated": title, "centralised": "centralised PCA", "norm": "norm only"}
    looks = {"federated": title, "centralised": "Centralised PCA", "norm": "Norm only"}
    truths = {"auc": ("centralised",), "distance": ("federated",)}
    axis: dict[str, Any] = {
        "x_title": label.lower(),
        "log_x": found.parameter in ("penalty_factor", "local_steps"),
        "integer_x": found.parameter != "penalty_factor",
    }
    panels = []
    for name in (name for name, shown in drawn.items() if shown):
        measure = name.removeprefix("sweep_")
        curves = plot(
            found.of(measure),
            *("value", "result", "series"),
            names=names,
            colours={series: colour(look) for series, look in looks.items()},
            truths=truths.get(measure, ()),
            least=1e-12 if measure == "distance" else 0.0,
            spread=several,
        )
        marked = [replace(curve, marker=curve.name == title) for curve in curves]
        panels.append(Panel.of(name, marked, **axis))
    return panels


# ------------------------------------------------------------------ leaks

#: What has few enough features.
SMALL: Mapping[str, Any] = {"problem": "iot23", "components": 4}
#: Who attacks, and what comes of it.
THREAT = parts.FactsCard.of("anomaly-attacker")


def leaks(found: Leaked, settings: AnomalySettings) -> parts.Parts:
    """Errors of both readings, and the covariance beside its reconstruction."""
    yield parts.Chart("leak_view", error_panels(found))
    yield what_is_read(found)
    if found.facts.features > FITTED_FEATURES:
        have = found.facts.features
        yield parts.Note(parts.words("anomaly-unfitted", most=FITTED_FEATURES, have=have))
        if SMALL["problem"] in available():
            yield parts.Link(replace(settings, **SMALL), "Fit it on IoT-23 with 4 components")
    if found.truth is None or found.found is None:
        return
    names, top = [str(index + 1) for index in range(len(found.truth))], np.abs(found.truth).max()
    yield parts.Chart(
        "leak_pictures",
        [
            Heat.of(key, matrix, names, names, low=-float(top), high=float(top))
            for key, matrix in (("truth", found.truth), ("found", found.found))
        ],
    )


def error_panels(found: Leaked) -> list[Panel]:
    """Relative errors of both readings, which need the truth."""
    readings = [
        ("outside", "after each participation", "round", found.outside, found.title),
        ("fitted", "Levenberg–Marquardt", "participations", found.fitted, "series 1"),
    ]
    guess = Baseline("guessing zero", 1.0)
    return [
        Panel.of(
            key,
            [Curve(name, read[x], read["error"].clip(ROUNDING), colour=look, marker=True)],
            baselines=(guess,),
        )
        for key, name, x, read, look in readings
        if read is not None
    ]


def what_is_read(found: Leaked) -> str:
    error, times = found.outside["error"].iloc[-1], len(found.outside)
    last = f"{error:.1%}" if error > 1e-3 else short(error, 2)
    told = [parts.words("anomaly-outside", times=times, last=last)]
    if found.fitted is not None:
        error, times = short(found.fitted["error"].iloc[-1], 2), len(found.fitted)
        told.append(parts.words("anomaly-fitted", times=times, error=error))
    if found.joined is not None:
        joined = found.joined.iloc[0]
        shown = "that record" if joined.cosine > 0.99 else "too much besides to show that record"
        told.append(parts.words("anomaly-joined", shown=shown, joined=joined))
    return " ".join(told)


# ------------------------------------------------------------------ poisoning


LIARS = parts.FactsCard.of("anomaly-liars")


def poisoning(found: Courses, settings: AnomalySettings) -> parts.Parts:
    """Detection of the hidden attack under every rule, and what the duals remember."""
    yield parts.Chart("poison_view", poison_panels(found))
    stages = found.stages()
    before, worst, after = stages.pop("nothing")
    lie = "lies" if found.malicious == 1 else "lie"
    rounds: dict[str, Any] = {"first": FIRST, "last": LAST, "later": ROUNDS - LAST, "lie": lie}
    aucs = {"before": before, "worst": worst, "after": after}
    story = parts.words("anomaly-lied", found=found, **rounds, **aucs)
    others = (f"; **{end:.2f}** ({RULES[rule].lower()})" for rule, (*_, end) in stages.items())
    yield f"{story}{''.join(others)}."


def poison_panels(found: Courses) -> list[Panel]:
    """AUC of the hidden attack and the sum of the duals under every server rule."""
    window = Curve(
        "the liars are there", [FIRST, FIRST, LAST, LAST], [0.02, 1.0, 1.0, 0.02], guide=True
    )
    colours = {rule: f"series {index}" for index, rule in enumerate(RULES)}
    look: dict[str, Any] = {"names": RULES, "colours": colours, "spread": False}
    courses = found.poisoning
    return [
        Panel.of(
            "poisoned",
            (*plot(courses, "round", "auc", "rule", **look), window),
            title=f"AUC on “{found.hidden}”",
            baselines=(Baseline("guessing", 0.5),),
        ),
        Panel.of("dualsum", plot(courses, "round", "dual_sum", "rule", least=1e-12, **look)),
    ]


# ------------------------------------------------------------------ whatever the topic


def holdings(held: IntArray) -> Heat:
    """How the records of every kind are shared out among the first clients."""
    shown = held[:40]
    kinds = [f"kind {kind + 1}" for kind in range(held.shape[1])]
    shares = 100 * (shown / shown.sum(axis=1, keepdims=True)).T
    return Heat.of("holdings", shares, kinds, [str(client) for client in range(len(shown))])


def whose_records(result: Any, settings: AnomalySettings) -> parts.Parts:
    """Whose records these are, and the guarantee, or why there is none under a finite ε."""
    if hasattr(result, "facts"):
        first = f", of the first 40 of {len(held)}" if len(held := result.facts.held) > 40 else ""
        yield parts.Fold(
            f"What each client holds{first}",
            [parts.Chart("holdings", [holdings(result.facts.held)])],
        )
        promised = getattr(result.facts, "promised", None) if settings.view != "sweeps" else None
        yield parts.Caption(data_note(result.facts.note, promised))
    if math.isinf(settings.epsilon):
        return
    if settings.view == "sweeps":
        yield parts.Caption(parts.words("anomaly-sweep-noise", epsilon=short(settings.epsilon)))
    elif result.facts.promised is not None:
        yield parts.GuaranteeOf(result.facts.promised)
        yield parts.Caption(parts.words("anomaly-covered"))


#: How each topic is to be read, whatever the result.
READING: Mapping[str, tuple[parts.About, ...]] = {
    "detection": (parts.About.of("anomaly-curves", auc=quote("iot/area/unsw").printed),),
    "learning": (parts.About.of("anomaly-rules"), parts.About.of("anomaly-measures")),
    "alarms": (parts.About.of("anomaly-scores"),),
    "costs": (parts.About.of("anomaly-costs"),),
    "leaks": (parts.About.of("anomaly-participation"),),
    "poisoning": (parts.About.of("anomaly-healing"),),
    "sweeps": (parts.About.of("anomaly-sweeps"),),
}
