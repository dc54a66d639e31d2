"""Guide lines: the local rate that theory predicts, drawn through the later part of a curve."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.player import Curve
from dashboard.views.convergence import COLOURS
from fedpca_core.metrics.rates import faps_rate, ssi_rate
from fedpca_core.studies.laboratory import Comparison
from fedpca_core.studies.pca import METHODS, Configuration

#: Guides are fitted to the part of a curve above this, where rounding plays no part.
ABOVE_ROUNDING = 1e-11


def guide_curves(comparison: Comparison, configuration: Configuration) -> tuple[Curve, ...]:
    """Dashed lines of the predicted rates of SSI and FAPS, against rounds only."""
    whole = configuration.participation == 1 and configuration.upload_noise == 0
    if configuration.axis != "round" or configuration.measure == "consensus_gap" or not whole:
        return ()
    values, p = comparison.eigenvalues, configuration.components
    curves = []
    for method, tables in comparison.tables.items():
        if method == "ssi":
            rate = ssi_rate(values, p)
        elif method == "faps":
            penalty = configuration.penalty_factor * float(values[0])
            rate = faps_rate(values, p, penalty, _inner_steps(tables[0], comparison))
        else:
            continue
        line = _guide(method, tables, configuration.measure, rate)
        if line is not None:
            curves.append(line)
    return tuple(curves)


def _inner_steps(table: pd.DataFrame, comparison: Comparison) -> int:
    """Products a client makes in a late round: the inner steps that the rule settled on."""
    products = np.diff(table["local_products"].to_numpy())[-10:].mean()
    return max(1, round(float(products) / comparison.clients))


def _guide(
    method: str, tables: tuple[pd.DataFrame, ...], measure: str, rate: float
) -> Curve | None:
    """A line of ``rate`` a round (of the angle) through the middle of the settled part."""
    if not 0 < rate < 1:
        return None
    factor = rate**2 if measure == "relative_error" else rate
    shortest = min(len(table) for table in tables)
    values = np.median([table[measure].to_numpy()[:shortest] for table in tables], axis=0)
    settled = np.flatnonzero(values > ABOVE_ROUNDING)
    if len(settled) < 6:
        return None
    last = int(settled[-1])
    first = last // 3
    anchor = (first + last) // 2
    rounds = np.arange(first, last + 1)
    return Curve(
        name=f"{METHODS[method]}, predicted",
        x=rounds,
        y=values[anchor] * factor ** (rounds - anchor).astype(float),
        colour=COLOURS[method],
        guide=True,
    )
