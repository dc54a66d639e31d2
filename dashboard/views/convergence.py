"""Drawing a comparison of methods: curves, guide lines, and the table of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dashboard.player import Baseline, Curve, Panel
from dashboard.shell import layout
from fedpca_core.arrays import Array
from fedpca_core.problems import Problem
from fedpca_core.settings import short
from fedpca_core.studies.laboratory import Comparison
from fedpca_core.studies.pca import METHODS, Configuration

#: Names in `dashboard.shell.palette` of the method keys.
COLOURS: Mapping[str, str] = {
    "ssi": "SSI",
    "local_power": "LocalPower",
    "local_power_decay": "LocalPower (decay)",
    "faps": "FAPS",
    "variable_splitting": "VariableSplitting",
    "variable_splitting_free": "VariableSplitting (free)",
    "block_krylov": "BlockKrylov",
    "one_shot": "OneShot",
    "one_shot_stacked": "OneShot (stacked)",
    "centralized": "Centralized",
    "fedpe": "FedPE",
    "fedpg": "FedPG",
}

MEASURES: Mapping[str, str] = {
    "relative_error": "relative error of the singular values",
    "kkt": "scaled KKT violation",
    "sin_theta": "sine of the largest principal angle",
    "consensus_gap": "mean squared consensus gap",
}

AXES: Mapping[str, str] = {
    "round": "communication round",
    "bytes": "bytes, all clients, both directions",
    "local_products": "local products with Sᵢ, all clients",
    "seconds": "seconds of computation",
}

#: Below this a curve shows rounding only.
ROUNDING = 1e-16


def panel(comparison: Comparison, configuration: Configuration, guides: Sequence[Curve]) -> Panel:
    """The chart of the chosen measure against the chosen axis."""
    measure, axis = configuration.measure, configuration.axis
    curves = [
        curve
        for method in comparison.tables
        if (curve := _curve(comparison, method, measure, axis)) is not None
    ]
    return Panel(
        key="convergence",
        title="",
        x_title=AXES[axis],
        y_title=MEASURES[measure],
        curves=(*curves, *guides),
        baselines=tuple(_floors(comparison, configuration)),
        description=f"{MEASURES[measure]} of each method against {AXES[axis]}, "
        "median over the random starts with a band over all of them.",
        axes_id=f"{measure}-{axis}",
        integer_x=axis == "round",
        height=460,
    )


def drawable(comparison: Comparison, measure: str) -> bool:
    """Whether any method has this measure (a consensus gap needs local frames)."""
    return any(
        bool(np.isfinite(table[measure]).any())
        for tables in comparison.tables.values()
        for table in tables
    )


def _curve(comparison: Comparison, method: str, measure: str, axis: str) -> Curve | None:
    tables, rounds = comparison.tables[method], comparison.rounds
    values = np.stack([table[measure].to_numpy(dtype=float) for table in _even(tables)])
    if not np.isfinite(values).any():
        return None
    values = np.maximum(values, ROUNDING)
    positions = np.median(np.stack([_position(table, axis) for table in _even(tables)]), axis=0)
    stopped = values.shape[1] <= rounds and method != comparison.unfinished
    if stopped and axis == "round":
        # A method that has finished keeps its estimate while the others go on.
        missing = rounds + 1 - values.shape[1]
        values = np.pad(values, ((0, 0), (0, missing)), mode="edge")
        positions = np.arange(rounds + 1.0)
    several = len(tables) > 1
    return Curve(
        name=METHODS[method],
        x=positions,
        y=np.median(values, axis=0),
        lower=values.min(axis=0) if several else None,
        upper=values.max(axis=0) if several else None,
        colour=COLOURS[method],
        marker=stopped and axis != "round",
    )


def _even(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Tables cut to the shortest, so that a stopped comparison can still be averaged."""
    shortest = min(len(table) for table in tables)
    return [table.iloc[:shortest] for table in tables]


def _position(table: pd.DataFrame, axis: str) -> Array:
    if axis == "bytes":
        return (table["bytes_up"] + table["bytes_down"]).to_numpy(dtype=float)
    return table[axis].to_numpy(dtype=float)


def _floors(comparison: Comparison, configuration: Configuration) -> list[Baseline]:
    """Measured floors of a run that sums present clients only: median of the last fifth."""
    if configuration.participation == 1 or configuration.absent == "memory":
        return []
    floors = []
    for method, tables in comparison.tables.items():
        tail = [table[configuration.measure].iloc[-max(2, len(table) // 5) :] for table in tables]
        floor = float(np.median(np.concatenate(tail)))
        if np.isfinite(floor) and floor > ROUNDING and len(tables[0]) > 2:
            floors.append(
                Baseline(f"floor of {METHODS[method]}: {floor:.1e}", floor, colour=COLOURS[method])
            )
    return floors


def facts(problem: Problem, configuration: Configuration) -> None:
    """Cards with what the curves depend on."""
    p, n = configuration.components, problem.features
    values = problem.eigenvalues
    layout.metric_cards(
        [
            layout.Card(
                "Measured heterogeneity η",
                f"{problem.heterogeneity:.2f}",
                "largest ‖Sᵢ − S‖ / ‖S‖",
                help="0 would mean that all clients hold the same second moments. Small clients "
                "differ by chance, so it is not 0 even for random shares.",
            ),
            layout.Card(
                "Samples per feature",
                f"{problem.client_data.samples.min() / n:.3g}",
                "at the smallest client",
                help="FAPS wants about 20 or more.",
            ),
            layout.Card(
                "Ratio at the cut",
                f"{values[p] / values[p - 1]:.4f}",
                "λ of component p + 1 over p",
                help="SSI's angle shrinks by this factor in every round.",
            ),
            layout.Card(
                "One upload",
                f"{8 * n * p / 1e3:.3g} kB",
                f"{n} × {p} floats of 8 bytes",
                help="What each participating client sends in a round, float64.",
            ),
        ]
    )


def cost_table(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary of a comparison as texts for the page."""
    rows = []
    for row in summary.itertuples():
        got = int(row.reached) > 0  # type: ignore[arg-type]
        rows.append(
            {
                "Method": row.method,
                "Reached": f"{row.reached} of {row.starts}",
                "Rounds": f"{row.round:,.0f}" if got else "–",
                "Megabytes": f"{row.bytes / 1e6:,.2f}" if got else "–",  # type: ignore[operator]
                "Local products": f"{row.local_products:,.0f}" if got else "–",
                "Seconds": f"{row.seconds:.3f}" if got else "–",
                "Last value": f"{row.final:.1e}",
            }
        )
    return pd.DataFrame(rows)


def verdict(summary: pd.DataFrame, accuracy: float) -> str:
    """One sentence on who got there first, or that nobody did."""
    reached = summary[summary["reached"] > 0].sort_values("round")
    if reached.empty:
        return (
            f"No method reaches {short(accuracy)} within these rounds; allow more rounds or "
            "a larger error."
        )
    best = reached.iloc[0]
    text = f"**{best['method']}** needs the fewest rounds to {short(accuracy)}: {best['round']:.0f}"
    if len(reached) > 1:
        others = [f"{row.method} {row.round:.0f}" for row in reached.iloc[1:].itertuples()]
        text += ", against " + ", ".join(others)
    missed = summary[summary["reached"] == 0]["method"]
    if len(missed):
        text += f". {', '.join(missed)} {'does' if len(missed) == 1 else 'do'} not get there"
    return text + "."
