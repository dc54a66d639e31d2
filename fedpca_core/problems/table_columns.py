"""Columns of a visitor's table as numbers: the one reading that every page shares.

`plain` is applied to whatever a file holds, once, where it is read; `features` makes numbers of the
columns that are analysed, and `handled` says what becomes of cells that hold none. Under an epsilon
`cell_numbers` reads each cell by itself instead.
"""

import operator
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_choice
from fedpca_core.problems.client_data import LARGEST
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
    held = [frame.iloc[:, place] for place in range(frame.shape[1])]
    made = [_plain(cells) for cells in held]
    if all(map(operator.is_, made, held)):
        return frame
    lists = [str(cells.name) for cells, known in zip(held, made, strict=True) if known is None]
    require(
        len(lists) < len(held),
        f"The table holds nothing but lists ({listed(lists)}); give every number a column.",
    )
    found = pd.concat([cells for cells in made if cells is not None], axis=1)
    said = f"Left out, lists and no numbers: {listed(lists)}." if lists else ""
    reading = " ".join(part for part in (frame.attrs.get("reading"), said) if part)
    found.attrs = {**frame.attrs, "reading": reading}
    return found


def _plain(cells: pd.Series) -> pd.Series | None:
    """One column; None for one of lists."""
    if types.is_any_real_numeric_dtype(cells.dtype):
        return cells
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


def distinctly_named(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with texts as names, all of them different."""
    names = pd.Index(map(str, frame.columns))
    repeated = sorted(set(names[names.duplicated()]))
    require(not repeated, f"Several columns are called {listed(repeated)}; rename them.")
    return frame.set_axis(names, axis=1)


def features(
    frame: pd.DataFrame, chosen: Sequence[str] = (), without: Collection[str | None] = ()
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
    made: list[pd.Series | pd.DataFrame] = []
    for name in names:
        if name in numeric:
            made.append(frame[name].astype("float64"))
        elif (days := dates(frame[name])) is not None:
            made.append(days)
        else:
            made.append(_categories(frame[name]))
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


def _categories(cells: pd.Series) -> pd.DataFrame:
    texts = cells.dropna().astype(str)
    found = texts.nunique()
    require(
        1 < found <= MOST_CATEGORIES,
        f"Not numeric: {cells.name}. It holds {found:,} different texts; choose columns of "
        f"numbers, of dates, or of 2 to {MOST_CATEGORIES} texts, each of which becomes a feature.",
    )
    made = pd.get_dummies(texts, prefix=str(cells.name), prefix_sep=" = ", dtype="float64")
    return made.reindex(cells.index)


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


def cell_numbers(cells: pd.Series) -> Array:
    """Each cell as a number by itself, (records,) float64: 0 where it holds none.

    Nothing is decided by a column as a whole, so one record changes no other: what is empty, text,
    infinite or too large to be squared counts as 0, True as 1 and False as 0.
    """
    if types.is_any_real_numeric_dtype(cells) or types.is_bool_dtype(cells):
        values = cells.to_numpy(dtype=float, na_value=np.nan)
    else:
        texts = cells.astype("string").str.strip().str.casefold()
        spelled = texts.replace({"true": "1", "false": "0"})
        values = pd.to_numeric(spelled, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.abs(values) <= LARGEST, values, 0.0)


def client_name(value: object) -> str:
    """A client's name: 3.0 and 3 are the same client."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, cut short when there are many."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
