"""What Converge shows: curves with guide lines, the table of costs, and ε on four federations."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.metrics.faps_theorem import BesideTheorem
from fedpca_core.questions.converge.study import SHORTEST_GUIDE, Comparison, levels, measure_at
from fedpca_core.settings import plural, short, size
from fedpca_core.study import parts
from fedpca_core.study.build import beside_epsilon
from fedpca_core.study.facts import data_note
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Panel, plot
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.sweep import Swept

MEASURES = parts.names("converge-measures")

AXES = parts.names("converge-axes")


def comparison(found: Comparison, settings: ConvergeSettings) -> parts.Parts:
    """The sentence and the chart of a finished, stopped or unfinished comparison."""
    said = [*parts.refusals(found.refusals), *chain(*found.notes.values())]
    if said:
        yield parts.Note("\n\n".join(said))
    # A consensus gap needs local frames.
    if not any(found.line(method, settings.measure, "round") for method in found.tables):
        yield parts.Note(parts.words("converge-no-measure"), kind="remedy")
        return
    summary = found.summary(settings.measure, settings.accuracy)
    yield verdict(summary, settings.accuracy, found.facts.guarantee is not None)
    yield parts.Chart("converge_view", [panel(found, settings)], rounds=found.rounds)
    if settings.guide and settings.axis == "round" and found.complete:
        yield from map(parts.Caption, undrawn(found, settings.measure))


def undrawn(comparison: Comparison, measure: str) -> list[str]:
    """Why methods have a curve and no predicted run: a sentence for each reason."""
    titles: dict[str, list[str]] = {}
    too_short = parts.words("converge-too-short", rounds=SHORTEST_GUIDE)
    for method in comparison.tables:
        drawn = comparison.line(method, measure, "round") is not None
        if drawn and method != comparison.unfinished and comparison.guide(method, measure) is None:
            why = comparison.unpredicted.get(method, too_short)
            titles.setdefault(why, []).append(METHODS[method].title)
    return [f"No predicted run of {', '.join(of)}: {why}" for why, of in titles.items()]


def panel(comparison: Comparison, settings: ConvergeSettings) -> Panel:
    measure, axis = settings.measure, settings.axis
    lines = {method: comparison.line(method, measure, axis) for method in comparison.tables}
    curves = []
    for method, line in lines.items():
        if line is None:
            continue
        title = METHODS[method].title
        ended = axis != "round" and method != comparison.unfinished
        ended = ended and len(line.x) <= comparison.rounds
        middle, low, high = (
            np.maximum(one, ROUNDING) for one in (line.middle, line.lower, line.upper)
        )
        several = len(comparison.tables[method]) > 1
        band: dict[str, Any] = {"lower": low, "upper": high} if several else {}
        curves.append(Curve(title, line.x, middle, colour=method, marker=ended, **band))
    if settings.guide and axis == "round":
        curves += _guide(comparison, measure)
    return Panel.of(
        "convergence",
        curves,
        x_title=AXES[axis],
        y_title=MEASURES[measure],
        baselines=tuple(_floors(comparison, settings)),
        description=f"{MEASURES[measure]} of each method against {AXES[axis]}, "
        "median over the random starts with a band over all of them.",
        axes_id=f"{measure}-{axis}",
        integer_x=axis == "round",
    )


def _guide(comparison: Comparison, measure: str) -> Iterator[Curve]:
    """The predicted runs, dashed: in the colour of texts, for they lie on the curves.

    One curve with gaps, so that the legend has one entry; a tooltip says whose prediction it is.
    """
    found = {method: comparison.guide(method, measure) for method in comparison.tables}
    lines = [(METHODS[key].title, *line) for key, line in found.items() if line is not None]
    if lines:
        x = np.concatenate([[*x, x[-1]] for _, x, _ in lines])
        y = np.concatenate([[*y, np.nan] for _, _, y in lines])
        whose = [title for title, x, _ in lines for _ in range(len(x) + 1)]
        yield Curve("predicted", x, y, labels=whose, colour="text", guide=True)


def _floors(comparison: Comparison, settings: ConvergeSettings) -> Iterator[Baseline]:
    """Measured floors of a run that sums present clients only."""
    if settings.participation == 1 or settings.absent == "memory":
        return
    for method in comparison.tables:
        floor = comparison.floor(method, settings.measure)
        if floor is not None and floor > ROUNDING:
            label = f"floor of {METHODS[method].title}: {short(floor, 2)}"
            yield Baseline(label, floor, colour=method, simulation_only=True)


def costs(comparison: Comparison, settings: ConvergeSettings) -> parts.Parts:
    """Whose data these are, the guarantee, the table of costs, and what the curves depend on."""
    yield parts.Caption(data_note(comparison.facts.note, comparison.facts))
    yield parts.GuaranteeOf(comparison.facts)
    table = cost_table(comparison.summary(settings.measure, settings.accuracy))
    yield parts.Table(table, "What it costs")
    found, p = comparison.facts, settings.components
    values = found.eigenvalues
    width = 4 if settings.dtype == "float32" else 8
    yield parts.Cards.of(
        "converge-costs",
        found=found,
        samples=short(found.least_samples / found.features, 3),
        ratio=values[p] / values[p - 1],
        kilobytes=short(width * found.features * p / 1e3, 3),
        components=p,
        width=width,
    )
    if comparison.theorem is not None:
        yield from theorem(comparison.theorem, settings)


def theorem(found: BesideTheorem, settings: ConvergeSettings) -> parts.Parts:
    """Where the penalties of FAPS lie beside what its theorem asks for, and what follows then."""
    lines = [Curve("least so far", np.arange(len(found.least)) + 1.0, found.least, colour="faps")]
    told = {"share": short(found.share, 3), "omega": short(found.omega, 3)}
    if np.isfinite(found.bound).all():
        ratio = float((found.least / found.bound).max())
        said = parts.words("converge-covered", ratio=short(ratio, 2), **told)
        lines.append(Curve("C/N", lines[0].x, found.bound, colour="text", guide=True))
    else:
        enough = settings.penalty_factor / found.share
        grid = settings.parameters()["penalty_factor"].grid
        why = [f"penalty factor {short(one)} is enough" for one in grid if one >= enough][:1]
        why = [*(why if found.share < 1 else []), *filter(None, [found.unmet])]
        said = parts.words("converge-uncovered", why="; ".join(why), **told)
    value = Curve("ℒ", np.arange(len(found.lagrangian)), found.lagrangian, colour="faps")
    charts = parts.Chart("theorem", [Panel.of("theorem", lines), Panel.of("lagrangian", [value])])
    asks = parts.Caption(parts.words("converge-theorem"))
    yield parts.Fold(
        "FAPS beside its convergence theorem", [parts.Note(said), charts, asks], late=True
    )


def cost_table(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary of a comparison as texts for the page."""
    rows = []
    for row in _rows(summary):
        got = row["reached"] > 0
        rows.append(
            {
                "Method": row["method"],
                "Reached": f"{row['reached']} of {row['starts']}",
                "Rounds": f"{row['round']:,.0f}" if got else "–",
                "Sent": size(row["bytes"]) if got else "–",
                "Local products": f"{row['local_products']:,.0f}" if got else "–",
                "Seconds": f"{row['seconds']:.3f}" if got else "–",
                "Last value": short(row["final"], 2),
            }
        )
    return pd.DataFrame(rows)


def _rows(summary: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows by name; pandas' own way takes a millisecond, and every run of a page asks twice."""
    columns = [summary[name].tolist() for name in summary]
    return [dict(zip(summary.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def verdict(summary: pd.DataFrame, accuracy: float, noisy: bool = False) -> str:
    """One sentence on who got there first, or that nobody did (perhaps for noise)."""
    rows = _rows(summary)
    reached = sorted((row for row in rows if row["reached"] > 0), key=lambda row: row["round"])
    if not reached:
        name = "converge-floor" if noisy else "converge-late"
        return parts.words(name, accuracy=short(accuracy))
    best, *later = reached
    text = f"**{best['method']}** needs the fewest rounds to reach {short(accuracy)}: "
    text += f"{best['round']:.0f}"
    if later:
        others = [f"{row['method']} ({row['round']:.0f})" for row in later]
        text += "; then come " + ", ".join(others)
    missed = [row["method"] for row in rows if row["reached"] == 0]
    if missed:
        text += f". {', '.join(missed)} {'does' if len(missed) == 1 else 'do'} not get there"
    return f"{text} (medians over {plural(best['starts'], 'start')})."


def budgets(swept: Swept, settings: ConvergeSettings) -> parts.Parts:
    """ε against heterogeneity: small multiples on common axes."""
    if found := budget_panels(swept, settings):
        yield parts.Chart("budgets_map", found)
    yield from parts.reasons(swept.refusals)
    if found:
        yield parts.Caption(
            parts.words(
                "converge-budgets",
                rounds=settings.rounds,
                delta=short(settings.delta),
                clip=short(settings.clip_norm),
                beside=beside_epsilon(settings),
            )
        )


def budget_panels(swept: Swept, settings: ConvergeSettings) -> list[Panel]:
    """One panel a heterogeneity, all methods in each; the same range of angles in all."""
    finite = np.isfinite(swept.table["value"].astype(float))
    noisy, silent = swept.table[finite], swept.table[~finite]
    if noisy.empty:
        return []
    lowest = max(float(noisy["result"].min()) / 3, ROUNDING)
    panels = []
    for eta in levels(settings):
        here, quiet = (part[part["measure"] == measure_at(eta)] for part in (noisy, silent))
        curves: list[Curve] = []
        for curve in plot(here, "value", "result", "series", least=ROUNDING, marker=True):
            curves.append(curve)
            # Its level without noise, where that lies within the axis.
            for level in plot(quiet, "value", "result", "series", names={curve.name: curve.name}):
                if level.y[0] > lowest:
                    name, ends = f"{curve.name}, ε = ∞", [curve.x[0], curve.x[-1]]
                    line = [level.y[0]] * 2
                    curves.append(Curve(name, ends, line, colour=curve.name, guide=True))
        said = {"key": f"budgets-{eta:g}", "title": f"Heterogeneity {eta:g}"}
        said["description"] = f"Final angle of each method against ε at heterogeneity {eta:g}."
        panels += [Panel.of("budgets", curves, y_range=(lowest, 1.5), **said)] if curves else []
    return panels
