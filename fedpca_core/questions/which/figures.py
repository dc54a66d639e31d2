"""The panels of "Which one?" as plain data: the front, small multiples, and what would do."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.questions.which import recommendation, remedies
from fedpca_core.questions.which.frontier import NOTHING, Front, pareto, shown
from fedpca_core.questions.which.look import CLIENTS, RECORDS, TableLook
from fedpca_core.questions.which.recommendation import Advice, meant, named, often, share, titled
from fedpca_core.questions.which.remedies import Remedy
from fedpca_core.questions.which.runs import smaller
from fedpca_core.questions.which.settings import AXES, LINKS, FrontierSettings
from fedpca_core.settings import plural, short, size
from fedpca_core.study import parts
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.panels import Baseline, Curve, Panel, plot

#: Below these nobody asks how much smaller a number is; it is drawn there.
FLOORS: Mapping[str, float] = {
    "sin_theta": 1e-4,
    "relative_error": 1e-9,
    "unexplained": 1e-9,
    "worst_client": 1e-4,
    "leak": 1e-9,
    "records": 0.5,
}
#: Numbers in a ciphertext of CKKS, its bytes, seconds to encrypt and to decrypt it, as published
#: by Di Chai (“he-benchmark”, README): SEAL, degree 8,192, a Xeon E5-2630 at 2.6 GHz.
PACKED, CIPHERTEXT, ENCRYPTION = 4096, 376e3, 0.01251 + 0.00235
#: What the chart calls the line that nothing beats.
FRONT = "Pareto front"
PROTECTION = parts.names("protection")
#: What an axis of the chart says where the dial is shorter.
AXES_IN_FULL = {"sin_theta": "sine of the largest angle", "epsilon": "formal ε of a record"}


def label(row: pd.Series, settings: FrontierSettings) -> str:
    """A configuration in a few words."""
    title = METHODS[row["method"]].title
    if math.isnan(row["value"]):
        return title
    if settings.vary == "epsilon":
        return f"{title}, ε = {short(row['value'])}"
    parameter = settings.parameters()[settings.vary]
    return f"{title}, {parameter.label.lower()} {short(row['value'])}"


def along(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("value", kind="stable")


@lru_cache(maxsize=16)
def picture(front: Front, settings: FrontierSettings) -> tuple[pd.DataFrame, list[int], Panel]:
    """Configurations with their ``label``, those that nothing beats, and how they are drawn: every
    method a point or a path with whiskers over the seeds, the front dashed. Made once for all."""
    across, upward = settings.across, settings.upward
    drawn = shown(front.points(), across, upward).reset_index(drop=True)
    drawn["label"] = [label(row, settings) for _, row in drawn.iterrows()]
    best = pareto(drawn, across, upward)
    titles = {axis: title.lower() for axis, title in AXES.items()} | AXES_IN_FULL

    def curve(name: str, rows: pd.DataFrame, **look: Any) -> Curve:
        labels = [hover(row, settings) for _, row in rows.iterrows()]
        return Curve(name, floored(rows, across), floored(rows, upward), labels=labels, **look)

    curves = []
    for method in dict.fromkeys(drawn["method"]):
        rows = along(drawn[drawn["method"] == method])
        span = {"lower": floored(rows, upward, "_low"), "upper": floored(rows, upward, "_high")}
        look = {"colour": method, "marker": True, "whiskers": True}
        curves.append(curve(METHODS[method].title, rows, **span, **look))
    curves.append(curve(FRONT, drawn.loc[best], colour="guide", guide=True))
    names = {"x_title": titles[across], "y_title": titles[upward]}
    return drawn, best, Panel.of("frontier", curves, **names, axes_id=f"frontier-{across}-{upward}")


def floored(rows: pd.DataFrame, axis: str, end: str = "") -> Any:
    return np.maximum(rows[f"{axis}{end}"].to_numpy(dtype=float), FLOORS.get(axis, 0.0))


def hover(row: pd.Series, settings: FrontierSettings) -> str:
    """Configuration and what crossed the wire, for the pointer."""
    lines = [
        label(row, settings),
        f"{plural(np.round(row['rounds']), 'round')}, {size(row['bytes_client'])} a client, "
        f"{plural(np.round(row['local_products']), 'product')}",
        PROTECTION[row["protection"]],
        protection(row),
    ]
    return "\n".join(line for line in [*lines, str(row["note"])] if line)


def protection(row: pd.Series) -> str:
    """What is known of a client's safety: an ε, or how close the best attack comes."""
    if row["protection"] == "formal":
        return f"ε = {short(round(row['epsilon'], 3))} for one record"
    read, whole = f"the server {row['finding']}", np.round(row["records"])  # NaN: not searched for
    return f"{read}; {plural(whole, 'record')} to the last digit" if whole > 0 else read


# ---------------------------------------------------------------------- more of the picture
def hidden(front: Front) -> parts.Parts:
    """What secure sums hide, and whose data these are."""
    rows = front.table[front.table["in_sums"] != ""].drop_duplicates("method")
    if len(rows):
        yield parts.Section("What secure sums hide", parts.words("which-sums"))
        told = {
            "Method": [METHODS[key].title for key in rows["method"]],
            "A client, from its own uploads": rows["finding"].to_list(),
            "A client, from sums": rows["in_sums"].to_list(),
            "The record that joined, from sums": rows["joins_sums"].to_list(),
        }
        yield parts.Table(pd.DataFrame(told), "What secure sums hide", (), tuple(told)[1:])
    yield parts.Caption(front.facts.note)


def floors(*axes: str) -> list[str]:
    """What is drawn higher than it is."""
    some = (axis for axis in axes if axis in FLOORS)
    return [f"{AXES[axis]}: what is below {short(FLOORS[axis])} is drawn there." for axis in some]


# ---------------------------------------------------------------------- what to use
def advice(found: Advice, settings: FrontierSettings, data: OwnData | None = None) -> parts.Parts:
    """The recommendation, what every candidate costs, loses, leaks and trusts, and the rules."""
    first, *others = recommendation.sentences(found, settings)
    best = found.place(1)
    first = first.replace("ε = ", "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")  # stays in one line
    yield parts.Note(first, kind="remedy" if best is None else "good")
    if found.table.empty:
        return
    yield from others
    if fewer := smaller(settings, data, found.facts.clients):
        yield parts.Note(fewer)
    yield parts.Caption(parts.words("which-lost", seeds=plural(found.seeds, "seed")))
    yield parts.Chart("advice_view", [speed(found, settings)])
    table = judged(found, settings)
    yield parts.Table(table, "Every candidate", ("Loses", "Worst client", "Bytes", "On the line"))
    if found.table["sums"].any():
        unit = {"packed": PACKED, "bytes": size(CIPHERTEXT), "seconds": ENCRYPTION}
        yield parts.Caption(parts.words("which-encrypted", **unit))
    rules = {
        "Rule": [rule.title for rule in recommendation.RULES],
        "Asks that": [rule.demand(settings) or "nothing here" for rule in recommendation.RULES],
        "Leaves out": [_left_out(found, rule.key) for rule in recommendation.RULES],
    }
    leaks = found.table.drop_duplicates(["method", "way"])
    told = {
        "Configuration": [named(row) for _, row in leaks.iterrows()],
        "Of a client's covariance the server": leaks["finding"].to_list(),
    }
    sure, right = recommendation.SURE, 1 - recommendation.WRONG
    shares = {"nothing": 100 * NOTHING, "sure": 100 * sure, "right": 100 * right}
    known: list[parts.Part] = [
        parts.Table(pd.DataFrame(told), "What leaks", (), tuple(told)[1:]),
        parts.Table(pd.DataFrame(rules), "The rules"),
        parts.Caption(parts.words("which-order", **shares)),
    ]
    whys = [parts.Caption(f"{name}: {why}") for name, why in found.refusals.items()]
    if not math.isinf(settings.needed_epsilon):
        yield parts.Caption(meant(settings))
    yield parts.Fold("What leaks, the rules, and what could not run", [*known, *whys])


def speed(found: Advice, settings: FrontierSettings) -> Panel:
    """How fast: what every candidate has lost after every round, and what it may lose."""
    runs = found.runs.set_index("run")
    ways, noise = runs["way"], runs["noise"]
    several = ways.nunique() > 1
    paths = found.paths[(found.paths["round"] > 0) & found.paths["run"].isin(ways.index)]
    kinds = zip(paths["method"], paths["run"].map(noise), strict=True)
    titles = pd.Series([titled(*kind) for kind in kinds], paths.index, dtype=object)
    names = titles + ", " + paths["run"].map(ways) if several else titles
    named_paths = paths.assign(name=names)
    limit = settings.most_lost
    return Panel.of(
        "advice",
        plot(
            named_paths,
            "round",
            "unexplained",
            "name",
            colours=None if several else dict(zip(names, paths["method"], strict=True)),
            least=FLOORS["unexplained"],
            marker=True,
        ),
        y_title=AXES["unexplained"].lower(),
        baselines=() if math.isinf(limit) else (Baseline("at most", limit),),
    )


def judged(found: Advice, settings: FrontierSettings) -> pd.DataFrame:
    """Every configuration as finished texts, the first one first."""
    rate, delay = LINKS[settings.link]

    def on_the_line(row: pd.Series) -> str:  # without computing
        return f"{short(float(row['bytes_client'] / rate + 2 * delay * row['rounds']), 2)} s"

    return pd.DataFrame(
        [
            {
                "Place": "–" if math.isnan(row["rank"]) else f"{row['rank']:.0f}",
                "Configuration": named(row),
                "As good in": often(row, "alike"),
                "Passes in": often(row, "passes"),
                "Loses": share(row["unexplained"]),
                "Worst client": share(row["worst_client"]),
                "Bytes": size(row["bytes_client"]),
                "On the line": on_the_line(row),
                "Sums encrypted (published)": encrypted(row),
                "Trusts": trusted(row),
                "Left out because it": row["reason"] or "–",
            }
            for _, row in found.table.iterrows()
        ]
    )


def encrypted(row: pd.Series) -> str:
    """What a client's sums would take under homomorphic encryption in place of masks."""
    if not row["sums"]:
        return "–"
    ways = 1 if METHODS[row["method"]].algorithm.uploads is Uploads.MATRIX else 2  # that travel
    numbers = row["bytes_client"] / (8 * ways * row["rounds"])
    many = row["rounds"] * math.ceil(numbers / PACKED)
    return f"{size(2 * many * CIPHERTEXT)}, {short(many * ENCRYPTION, 2)} s"


def trusted(row: Mapping[str, Any] | pd.Series) -> str:
    """Whom a client trusts with what, in a few words."""
    if row["sums"]:
        return "the secure sum" + ", and all clients but one for their noise" * bool(row["noise"])
    return "nobody with a record" if row["noise"] else "the server with every upload"


def _left_out(found: Advice, key: str) -> str:
    rows = found.table[found.table["excluded"] == key]
    titles = rows["method"].map(lambda method: METHODS[method].title)
    if rows["way"].nunique() > 1:
        titles += " " + rows["way"]
    return "; ".join(titles + ": " + rows["reason"]) or "–"


# ---------------------------------------------------------------------- what would do
def would_do(found: Mapping[str, Remedy], settings: FrontierSettings) -> parts.Parts:
    """What relaxing one demand comes to, a sentence and a curve each."""
    if not found:
        return
    told = "\n\n".join(f"- {one}" for one in remedies.sentences(found, settings))
    yield parts.Note(told, "remedy")
    drawn = [remedy_panel(one, settings) for one in found.values() if one.tried["lost"].count() > 1]
    if drawn:
        yield parts.Chart(f"remedies-{'-'.join(found)}", drawn)


def remedy_panel(remedy: Remedy, settings: FrontierSettings) -> Panel:
    """What the best candidate loses at every value that was tried, and what it may lose."""
    tried = remedy.tried[np.isfinite(remedy.tried["value"].astype(float))]
    tried = tried[tried["lost"].notna()]
    described = settings.parameters()[remedy.name].label
    x, *ys = (tried[name].astype(float) for name in ("value", "lost", "low", "high"))
    lost, low, high = (one.clip(FLOORS["unexplained"]) for one in ys)
    titles = [METHODS[key].title for key in tried["method"]]
    look: dict[str, Any] = {"colour": "centralized", "marker": True, "labels": titles}
    curve = Curve("Best candidate", x, lost, lower=low, upper=high, **look)
    limit = settings.most_lost
    return Panel.of(
        "remedy",
        [curve],
        key=f"remedy-{remedy.name}",
        title=f"Variance lost over {described.split(',')[0].lower()}",
        x_title=described.lower(),
        baselines=() if math.isinf(limit) else (Baseline("at most", limit),),
    )


# ---------------------------------------------------------------------- a table of one's own
#: A component that weighs one feature so much is little else than that feature.
ALONE = 0.95


def look(found: TableLook, settings: FrontierSettings) -> parts.Parts:
    """Spectrum, scores and loadings, and what an ε leaves of the first."""
    two = found.spectrum["share"].head(2)
    yield parts.Chart("first-look", [scree(found, settings), scores(found)])
    first, second = map(share, two)
    yield parts.Caption(
        parts.words("which-look", first=first, second=second, records=RECORDS, clients=CLIENTS)
    )
    heaviest = found.loadings.iloc[int(found.loadings["first"].abs().argmax())]
    if abs(heaviest["first"]) > ALONE:
        yield parts.Note(parts.words("which-alone", feature=heaviest["feature"]))
    if found.refusal:
        yield parts.Note(f"What ε = {short(settings.needed_epsilon)} leaves: {found.refusal}")
    titles = {"feature": "Feature", "first": "Component 1", "second": "Component 2"}
    rows = parts.written(found.loadings.rename(columns=titles), {}, 2)
    yield parts.Table(rows, "The features that weigh most in the first two components")


def scree(found: TableLook, settings: FrontierSettings) -> Panel:
    """The variance of every component, without noise and as an ε leaves it."""
    rows = found.spectrum[["component", "variance", "noisy"]].where(lambda one: one > 0)
    titles, noise = {"variance": "Your records"}, tuple[Baseline, ...]()
    if rows["noisy"].notna().any():
        titles["noisy"] = f"Released under ε = {short(settings.needed_epsilon)}"
        noise = (Baseline("largest of the noise", found.noise, simulation_only=True),)
    curves = plot(
        rows.melt("component"),
        *("component", "value", "variable"),
        names=titles,
        colours={"variance": "centralized", "noisy": "fedpower"},
        truths=("variance",),
        spread=False,
        marker=True,
    )
    return Panel.of("scree", curves, baselines=noise)


def scores(found: TableLook) -> Panel:
    """Records on the first two components, a colour a client."""
    records = found.scores.groupby("client", sort=False)
    curves = [Curve(str(name), one["first"], one["second"]) for name, one in records]
    return Panel.of("first_scores", curves, key="scores")
