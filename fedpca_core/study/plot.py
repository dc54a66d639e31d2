"""Charts of tidy tables: say which column goes where, and get a panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.errors import require
from fedpca_core.study.panels import Curve, Panel

#: Below this a curve shows rounding only.
ROUNDING = 1e-16


def plot(
    table: pd.DataFrame,
    x: str,
    y: str,
    by: str = "",
    *,
    key: str,
    names: Mapping[Any, str] | Callable[[Any], str] = str,
    colours: Mapping[Any, str] | None = None,
    floor: float | None = ROUNDING,
    labels: str = "",
    spread: bool = True,
    curve: Mapping[str, Any] | None = None,
    more: Sequence[Curve] = (),
    **panel: Any,
) -> Panel:
    """A curve for each value of a column, over the rows of a tidy table.

    Where several rows share a place on the x axis (seeds, starts) the curve is their median and a
    band spans all of them.

    Parameters
    ----------
    table : pandas.DataFrame
        One observation a row.
    x, y : str
        Columns.
    by : str
        Column whose values part the curves, in the order in which they come; empty: one curve.
    key : str
        Of the panel.
    names : mapping or callable
        What the legend calls a value of ``by``; of one curve, its name is ``y``'s.
    colours : mapping, optional
        Colour names by the values of ``by``; the values themselves where left out.
    floor : float, optional
        Values below are drawn at it, on a logarithmic axis; None draws them as they are.
    labels : str
        Column with a text for every point.
    spread : bool
        False leaves the band out.
    curve : mapping, optional
        What else holds for every curve, as of `Curve`.
    more : sequence of Curve
        Curves that stand in no table: guides, bounds.
    **panel
        As of `Panel`.

    Raises
    ------
    InvalidInput
        A column that is not there, or nothing to draw.
    """
    for column in filter(None, (x, y, by, labels)):
        require(
            column in table.columns,
            f"The figure “{key}” needs the column “{column}”, and its table has "
            f"{', '.join(map(str, table.columns))}.",
        )
    log = panel.get("log_y", True)
    least = floor if log and floor is not None else -np.inf
    called = names if callable(names) else lambda value: names.get(value, str(value))
    groups = table.groupby(by, sort=False) if by else [(y, table)]
    curves = []
    for value, rows in groups:
        known = rows[rows[y].notna()]
        if known.empty:
            continue
        places = known.groupby(x, sort=isinstance(known[x].iloc[0], int | float))[y]
        middle = places.median()
        several = spread and int(places.size().max()) > 1
        texts = tuple(known.drop_duplicates(x).set_index(x)[labels][middle.index]) if labels else ()
        asked: dict[str, Any] = {
            "colour": (colours or {}).get(value, str(value)) if by else None,
            "lower": np.maximum(places.min().to_numpy(float), least) if several else None,
            "upper": np.maximum(places.max().to_numpy(float), least) if several else None,
            "labels": texts,
        }
        curves.append(
            Curve(
                called(value),
                middle.index.tolist(),
                np.maximum(middle.to_numpy(float), least),
                **{**asked, **(curve or {})},
            )
        )
    return Panel(key=key, curves=(*curves, *more), **{"title": "", **panel})
