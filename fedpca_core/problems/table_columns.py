"""Columns of a visitor's table as numbers: the one reading that every page shares.

`plain` is applied to whatever a file holds, once, where it is read; `features` makes numbers of the
columns that are analysed, and `handled` says what becomes of cells that hold none.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from fedpca_core.errors import require, require_choice
from fedpca_core.settings import plural

#: A column of more distinct texts than this makes no features.
MOST_CATEGORIES = 20
#: What may become of missing cells.
MISSING_CELLS = ("drop", "columns", "fill", "refuse")
_NUMBERS = ("decimal", "integer", "floating", "mixed-integer-float", "boolean", "empty")
_DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with nothing but numbers, dates and texts in it, as the types of its file decide.

    True is 1 and False 0, a duration is its seconds, categories are their values; columns of lists
    and other tables are left out, which ``attrs["reading"]`` says.
    """
    others = {
        place: frame.iloc[:, place]
        for place, dtype in enumerate(frame.dtypes)
        if not types.is_any_real_numeric_dtype(dtype)
    }
    made = {place: _plain(cells) for place, cells in others.items()}
    if all(made[place] is cells for place, cells in others.items()):
        return frame
    lists = [str(frame.columns[place]) for place, cells in made.items() if cells is None]
    kept = [made.get(place, frame.iloc[:, place]) for place in range(frame.shape[1])]
    require(
        len(lists) < len(kept),
        f"The table holds nothing but lists ({listed(lists)}); give every number a column.",
    )
    found = pd.concat([cells for cells in kept if cells is not None], axis=1)
    said = f"Left out, lists and no numbers: {listed(lists)}." if lists else ""
    found.attrs = {"reading": " ".join(part for part in (frame.attrs.get("reading"), said) if part)}
    return found


def _plain(cells: pd.Series) -> pd.Series | None:
    """One column that is not numeric by its type; None for one of lists."""
    if types.is_bool_dtype(cells.dtype):
        return cells.astype("float64" if cells.isna().any() else "int8")
    if types.is_datetime64_any_dtype(cells.dtype):
        return pd.to_datetime(cells, utc=True)
    if types.is_timedelta64_dtype(cells.dtype):
        return cells.dt.total_seconds()
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    kind = types.infer_dtype(cells, skipna=True)
    if kind in _NUMBERS:
        return cells.map(_number, na_action="ignore").astype("float64")
    if kind in ("date", "datetime", "datetime64"):
        return pd.to_datetime(cells, utc=True, errors="coerce")
    if kind == "string":
        return cells
    if any(isinstance(cell, list | dict | tuple | set | np.ndarray) for cell in cells):
        return None
    return cells.map(str, na_action="ignore")  # times of a day, bytes, and what is mixed


def _number(cell: Any) -> float:
    """The cell as float64; infinite, which is refused by name, where it is too large for one."""
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")


def features(
    frame: pd.DataFrame, chosen: Sequence[str] = (), without: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """The columns that are analysed as numbers, NaN where a cell holds none.

    ``chosen``: None: every column of numbers. Chosen columns may be dates, which count in days, and
        texts, each of which becomes a feature that is 1 where a record has it and 0 elsewhere.
    ``without``: Columns that are no features: clients, labels.

    Returns the numbers, float64, and the columns of dates and texts that nobody chose.
    """
    names = [name for name in dict.fromkeys(chosen or frame.columns) if name not in without]
    kinds = dict(frame.dtypes)
    numeric = {name for name in names if types.is_any_real_numeric_dtype(kinds[name])}
    if len(numeric) == len(names) or not chosen:
        numbers = frame[[name for name in names if name in numeric]].astype("float64")
        return numbers, [name for name in names if name not in numeric]
    made: list[pd.Series] = []
    for name in names:
        if name in numeric:
            made.append(frame[name].astype("float64"))
        elif (days := dates(frame[name])) is not None:
            made.append(days)
        else:
            made.extend(_categories(frame[name]))
    return pd.concat(made, axis=1), []


def dates(cells: pd.Series) -> pd.Series | None:
    """Days since 1970 where every cell that is filled holds a date, else None."""
    if not types.is_datetime64_any_dtype(cells.dtype):
        texts = cells.dropna().astype(str)
        if not len(texts) or not texts.str.fullmatch(_DATE).all():
            return None
        cells = pd.to_datetime(cells, utc=True, errors="coerce", format="ISO8601")
    if cells.isna().all():
        return None
    # In the cells' own unit: nanoseconds end in 2262, and 9999-12-31 often means “open”.
    since: pd.Series = cells - pd.Timestamp(0, tz="UTC").as_unit(cells.dt.unit)
    return since.dt.total_seconds() / 86_400.0


def _categories(cells: pd.Series) -> list[pd.Series]:
    found = sorted(cells.dropna().astype(str).unique())
    require(
        1 < len(found) <= MOST_CATEGORIES,
        f"Not numeric: {cells.name}. It holds {len(found):,} different texts; choose columns of "
        f"numbers, of dates, or of 2 to {MOST_CATEGORIES} texts, each of which becomes a feature.",
    )
    texts = cells.astype(str)
    return [
        (texts == one).astype("float64").where(cells.notna()).rename(f"{cells.name} = {one}")
        for one in found
    ]


def handled(numbers: pd.DataFrame, missing: str) -> tuple[pd.DataFrame, str]:
    """What becomes of missing and infinite cells, and a sentence about it.

    "columns" leaves out every column with a gap, "fill" puts the column's median there. Under
    "drop" and "refuse" the caller acts, who knows which other cells count.
    """
    require_choice("What becomes of missing cells", missing, MISSING_CELLS)
    finite = np.isfinite(numbers.to_numpy())
    gaps = len(numbers) - finite.sum(axis=0)
    partly = (gaps > 0) & (gaps < len(numbers))
    if missing not in ("columns", "fill") or not partly.any():
        return numbers, ""
    names = [str(name) for name in numbers.columns[partly]]
    if missing == "columns":
        said = f"{plural(len(names), 'column')} with missing values left out: {listed(names)}."
        return numbers.loc[:, ~partly], said
    known = numbers.where(finite)
    count = int(gaps[partly].sum())
    return known.fillna(known.median()), (
        f"{count:,} missing values ({count / finite.size:.1%} of all) were filled with the median "
        "of their column: what is filled varies less than records do, and with no other column."
    )


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, cut short when there are many."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
