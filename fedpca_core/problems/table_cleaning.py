"""Cleaning a visitor's table: what can be analysed, and a report of what was left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.problems.client_data import LARGEST as LARGEST_SQUARED
from fedpca_core.problems.table_columns import features, handled, listed, plain

#: More numeric columns or clients than this are refused: nothing would answer in time.
MAX_FEATURES, MAX_CLIENTS = 1000, 200
#: What is asked for where an epsilon is.
NAMED = (
    "at least 2 columns are named beforehand, since finding the numeric ones looks at the records"
)
#: What is said of records that no epsilon covers.
SCALED = (
    "No ε covers records that are divided by deviations of their own; write the columns in "
    "units that are public and compare, and centre them or leave them as they are."
)
#: Squares of larger values, summed, could overflow; of smaller ones they vanish.
LARGEST, SMALLEST = 1e100, 1e-100


@dataclass(frozen=True, eq=False)
class CleanTable:
    """The usable part of a table, and what became of the rest."""

    #: (records, features) float64: Unscaled.
    records: Array
    #: (records,) int64: Position in ``counts`` of each record's natural client, if any.
    clients: IntArray | None
    rows_read: int
    #: Columns that became features.
    features: tuple[str, ...]
    #: Columns left out by why: "not numeric", "constant", "without a value".
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Missing or infinite values in each feature (and client column) that has any.
    missing: Mapping[str, int] = field(default_factory=dict)
    #: Records of each natural client; empty for a split that is not natural.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: Natural clients of whose rows none was complete.
    clients_lost: tuple[str, ...] = ()
    #: How the file was understood, where that is not plain.
    reading: str = ""

    def sentences(self) -> str:
        parts = [f"{len(self.records):,} records with {len(self.features)} features."]
        dropped = self.rows_read - len(self.records)
        if dropped:
            worst = max(self.missing, key=lambda column: self.missing[column])
            parts.append(
                f"{dropped:,} of {self.rows_read:,} rows were dropped for missing values, "
                f"most of them in “{worst}” ({self.missing[worst]:,})."
            )
        for why, columns in self.left_out.items():
            if columns:
                parts.append(f"Left out, {why}: {listed(columns)}.")
        if self.clients_lost:
            parts.append(f"Clients without a complete row: {listed(self.clients_lost)}.")
        return " ".join(part for part in (*parts, self.reading) if part)


def clean_table(
    frame: pd.DataFrame,
    columns: Sequence[str] | None = None,
    client_column: str | None = None,
    missing: str = "drop",
) -> CleanTable:
    """Choose what of a table can be analysed (see `from_table`), and say what was left out.

    ``missing``, {"drop", "columns", "fill", "refuse"}: Drop rows with a missing or infinite value,
        or columns with any, or fill them with the column's median, or refuse the table.
    """
    frame = _named(plain(frame), columns, client_column)
    own = () if client_column is None else (client_column,)
    numbers, text = features(frame, columns or (), own)
    require(
        numbers.shape[1] <= MAX_FEATURES,
        f"There are {numbers.shape[1]:,} numeric columns, more than {MAX_FEATURES:,}; choose "
        "fewer.",
    )
    numbers, about_gaps = handled(numbers, missing)
    numeric, values = np.array(list(numbers.columns), dtype=object), numbers.to_numpy()
    holes = ~np.isfinite(values)
    empty, missed = holes.all(axis=0), holes.sum(axis=0)
    partly = (missed > 0) & ~empty
    gaps = {c: int(n) for c, n in zip(numeric[partly], missed[partly], strict=True)}
    complete = ~holes[:, ~empty].any(axis=1)
    owners = None if client_column is None else frame[client_column]
    if owners is not None:
        unknown = owners.isna().to_numpy(dtype=bool)
        if unknown.any():
            gaps[str(client_column)] = int(unknown.sum())
        complete &= ~unknown
    _check_gaps(gaps, int(complete.sum()), len(frame), missing)
    values = values[complete]
    size = np.abs(values).max(axis=0)
    # Columns without a value are NaN throughout here, and every comparison with NaN is false.
    spread = np.ptp(values, axis=0)
    constant = spread <= 1e-12 * size
    for column, largest, width in zip(numeric, size, spread, strict=True):
        require(
            not 0 < width < SMALLEST,
            f"Column “{column}” varies by {width:.3g} only, whose square vanishes; "
            "rescale the column or leave it out.",
        )
        require(
            not largest > LARGEST,
            f"Column “{column}” holds values up to {largest:.3g}, whose squares overflow; "
            "rescale the column or leave it out.",
        )
    usable = ~(constant | empty)
    refused = [*text, *numeric[~usable]]
    found = int(usable.sum())
    require(
        found >= 2,
        f"Only {found} numeric column{' varies' if found == 1 else 's vary'} but at least 2 are "
        f"needed{f' (left out: {listed(refused)})' if refused else ''}; choose other columns.",
    )
    codes, counts, lost = _natural_clients(owners, complete)
    masks = {"constant": constant & ~empty, "without a value": empty}
    return CleanTable(
        np.ascontiguousarray(values[:, usable]),
        codes,
        rows_read=len(frame),
        features=tuple(numeric[usable]),
        left_out={"not numeric": text} | {why: list(numeric[mask]) for why, mask in masks.items()},
        missing=gaps,
        counts=counts,
        clients_lost=lost,
        reading=" ".join(part for part in (about_gaps, frame.attrs.get("reading")) if part),
    )


def public_table(
    frame: pd.DataFrame, columns: Sequence[str], client_column: str | None = None
) -> CleanTable:
    """A table of which columns and clients are public, and nothing is decided by its other cells.

    Every named column is a feature, constant or not, and every row with a client is a record; a
    cell that holds no number counts as 0 (`cell_numbers`).
    """
    frame = _named(frame, columns, client_column)
    chosen = [name for name in dict.fromkeys(columns) if name != client_column]
    require(bool(columns), f"Under an ε {NAMED}; choose them under “Columns”.")
    require(
        2 <= len(chosen) <= MAX_FEATURES,
        f"{len(chosen)} columns are named, but 2 to {MAX_FEATURES:,} are needed; choose others.",
    )
    owners = None
    if client_column is not None:
        frame = frame[frame[client_column].notna().to_numpy(dtype=bool)]
        owners = frame[client_column]
    codes, counts, _ = _natural_clients(owners, np.ones(len(frame), dtype=bool))
    return CleanTable(
        np.ascontiguousarray(np.column_stack([cell_numbers(frame[name]) for name in chosen])),
        codes,
        rows_read=len(frame),
        features=tuple(chosen),
        counts=counts,
        reading="Columns as named; a cell without a number counts as 0.",
    )


def _named(
    frame: pd.DataFrame, columns: Sequence[str] | None, client_column: str | None
) -> pd.DataFrame:
    named = distinctly_named(frame)
    names = list(named.columns)
    for name in [*(columns or ()), *(() if client_column is None else (client_column,))]:
        require(name in names, f"There is no column “{name}”; the columns are {listed(names)}.")
    return named


def distinctly_named(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with texts as names, all of them different."""
    names = [str(column) for column in frame.columns]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    require(not repeated, f"Several columns are called {listed(repeated)}; rename them.")
    return frame.set_axis(names, axis=1)


def _check_gaps(gaps: Mapping[str, int], complete: int, rows: int, missing: str) -> None:
    counted = [f"{column} ({count:,})" for column, count in gaps.items()]
    require(
        missing != "refuse" or not gaps,
        f"Values are missing in {listed(counted)}; drop these rows or leave these columns out.",
    )
    if gaps:
        worst = max(gaps, key=lambda column: gaps[column])
        why = f" for want of “{worst}” ({gaps[worst]:,} values); leave that column out"
    else:
        why = "; give more rows"
    require(complete >= 2, f"Only {complete} of {rows:,} rows can be used{why}.")


def _natural_clients(
    owners: pd.Series | None, complete: NDArray[np.bool_]
) -> tuple[IntArray | None, dict[str, int], tuple[str, ...]]:
    """Position of each complete row's client, records of each, and clients without any."""
    if owners is None:
        return None, {}, ()
    codes, labels = pd.factorize(owners[complete].map(client_name))
    require(
        len(labels) >= 2,
        f"Every usable row has “{labels[0]}” in the client column “{owners.name}”, which makes one "
        "client; choose another column or an even split.",
    )
    require(
        len(labels) <= MAX_CLIENTS,
        f"The client column “{owners.name}” names {len(labels):,} clients, more than "
        f"{MAX_CLIENTS}; choose a column with fewer values or an even split.",
    )
    counts = {str(c): int(n) for c, n in zip(labels, np.bincount(codes), strict=True)}
    every = [str(label) for label in owners.dropna().map(client_name).unique()]
    return codes.astype(np.int64), counts, tuple(c for c in every if c not in counts)


def cell_numbers(cells: pd.Series) -> Array:
    """Each cell as a number by itself, (records,) float64: 0 where it holds none.

    Nothing is decided by a column as a whole, so one record changes no other: what is empty, text,
    infinite or too large to be squared counts as 0, True as 1 and False as 0.
    """
    if pd.api.types.is_any_real_numeric_dtype(cells) or pd.api.types.is_bool_dtype(cells):
        values = cells.to_numpy(dtype=float, na_value=np.nan)
    else:
        texts = cells.astype("string").str.strip().str.casefold()
        spelled = texts.replace({"true": "1", "false": "0"})
        values = pd.to_numeric(spelled, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.abs(values) <= LARGEST_SQUARED, values, 0.0)


def client_name(value: object) -> str:
    """A client's name: 3.0 and 3 are the same client."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
