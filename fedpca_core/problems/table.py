"""Records as a user has them, one a row: an array with the site of each, or a whole table.

A table is cleaned first: what of it can be analysed, and a report of what was left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import require, require_choice
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.data_sets import files_of
from fedpca_core.problems.heterogeneity import (
    DEALT,
    ExchangeOrder,
    check_heterogeneity,
    exchange,
    leading_scores,
    steady_way,
)
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.problems.table_columns import (
    cell_numbers,
    client_name,
    distinctly_named,
    features,
    handled,
    listed,
    plain,
)
from fedpca_core.problems.table_file import read_csv
from fedpca_core.streams import Streams

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
SCALINGS = ("standardise", "centre", "none")
_LOOKED = (
    "numeric columns were found, constant ones left out and rows with empty cells dropped by "
    "looking at the records"
)


def from_records(
    records: Array,
    groups: Sequence[object] | Array,
    *,
    centre: bool = True,
    weights: str | Sequence[float] = "records",
    feature_names: Sequence[str] = (),
    name: str = "own records",
    public_schema: bool = False,
) -> Problem:
    """Problem whose clients hold the rows of an array.

    Args:
        records: (records, features) float64.
        groups: The client of each record, by any label; clients come in the labels' order.
        centre: Subtract the mean of all records: one secure sum over the clients beforehand.
        weights: {"records", "equal"} or sequence of float: How clients count in S.
        public_schema: For an epsilon: what the columns are and whose record each row is count as
            public, and nothing is decided by looking at the records.
    """
    rows = np.asarray(records, dtype=float)
    require(
        rows.ndim == 2,
        f"Records are rows of a table, so the array must have 2 axes, not {rows.ndim}; "
        "use reshape(-1, 1) for one feature.",
    )
    labels = np.asarray(groups)
    require(
        labels.shape == (len(rows),),
        f"Every record needs the label of its client: {len(rows)} labels in a row, not an array "
        f"of shape {labels.shape}.",
    )
    missing = int(pd.isna(labels).sum())
    require(
        missing == 0, f"{missing} records have no label; give each its client, or leave it out."
    )
    names, home = np.unique(labels, return_inverse=True)
    mean = rows.mean(axis=0) if centre and len(rows) else np.zeros(rows.shape[1])
    return from_blocks(
        [(rows[home == client] - mean).T for client in range(len(names))],
        weights=weights,
        name=name,
        client_names=tuple(map(str, names)),
        feature_names=tuple(feature_names),
        own_mean=mean if centre else None,
        looked="" if public_schema else "columns that do not vary were refused",
        public=("the columns", "whose record each row is") if public_schema else (),
        judged=not public_schema,
        announced=PublicFacts.of_records(rows, mean if centre else None) if len(rows) else None,
    )


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
    numbers, text = features(frame, columns or (), (client_column,))
    require(
        numbers.shape[1] <= MAX_FEATURES,
        f"There are {numbers.shape[1]:,} numeric columns, more than {MAX_FEATURES:,}; choose "
        "fewer.",
    )
    numbers, about_gaps = handled(numbers, missing)
    holes = ~numbers.apply(np.isfinite)
    missed, empty = holes.sum(), holes.all()
    gaps = {str(c): int(n) for c, n in missed[(missed > 0) & ~empty].items()}
    complete = ~holes.loc[:, ~empty].any(axis=1)
    owners = None if client_column is None else frame[client_column]
    if owners is not None:
        if owners.hasnans:
            gaps[str(client_column)] = int(owners.isna().sum())
        complete &= owners.notna()
    counted = [f"{column} ({count:,})" for column, count in gaps.items()]
    require(
        missing != "refuse" or not gaps,
        f"Values are missing in {listed(counted)}; drop these rows or leave these columns out.",
    )
    why = "; give more rows"
    if gaps:
        worst = max(gaps, key=lambda column: gaps[column])
        why = f" for want of “{worst}” ({gaps[worst]:,} values); leave that column out"
    numbers = numbers[complete]
    require(len(numbers) >= 2, f"Only {len(numbers)} of {len(frame):,} rows can be used{why}.")
    # Columns without a value are NaN throughout, and every comparison with NaN is false.
    size, spread = numbers.abs().max(), numbers.max() - numbers.min()
    constant = spread <= 1e-12 * size
    for column, largest, width in zip(numbers, size, spread, strict=True):
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
    usable = numbers.loc[:, ~(constant | empty)]
    refused = [*text, *numbers.columns[constant | empty]]
    found = usable.shape[1]
    require(
        found >= 2,
        f"Only {found} numeric column{' varies' if found == 1 else 's vary'} but at least 2 are "
        f"needed{f' (left out: {listed(refused)})' if refused else ''}; choose other columns.",
    )
    codes, counts, lost = _natural_clients(owners, complete.to_numpy())
    return CleanTable(
        np.ascontiguousarray(usable),
        codes,
        rows_read=len(frame),
        features=tuple(usable.columns),
        left_out={
            "not numeric": text,
            "constant": list(numbers.columns[constant]),
            "without a value": list(numbers.columns[empty]),
        },
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
    for name in (*(columns or ()), client_column):
        require(
            name is None or name in named,
            f"There is no column “{name}”; the columns are {listed(list(named.columns))}.",
        )
    return named


def _natural_clients(
    owners: pd.Series | None, complete: BoolArray
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


def from_table(
    frame: pd.DataFrame,
    columns: Sequence[str] | None = None,
    client_column: str | None = None,
    *,
    clients: int = 10,
    scaling: str = "standardise",
    missing: str = "drop",
    heterogeneity: float | None = None,
    seed: int = 0,
    split: str = "even",
    weights: str | Sequence[float] = "records",
    name: str = "own table",
    public_schema: bool = False,
) -> Problem:
    """Problem whose records are the rows of a table.

    Args:
        columns: The features; by default every numeric column except the client column.
        client_column: Which column names the client a row belongs to.
        clients: Their number where no column names them.
        scaling: {"standardise", "centre", "none"}: Pooled mean 0 and variance 1, or the mean alone.
            Both take secure sums over the clients beforehand.
        missing: {"drop", "columns", "fill", "refuse"}: What becomes of missing and infinite values
            (`clean_table`).
        heterogeneity: The parameter. At 1 every client has its own rows (without a client column: a
            range of the leading principal score of its own), at 0 rows are dealt at random. By
            default 1 with a client column and 0 without.
        seed: Seed of the streams ``"data"``, ``"heterogeneity"`` and ``"split"``.
        split: {"even", "uneven", "dirichlet"}: Sizes of the clients where no column names them.
        weights: {"records", "equal"} or sequence of float: How clients count in S.
        public_schema: For an epsilon: the named ``columns`` count as public and nothing is decided
            by looking at the records (`public_table`); ``missing`` is not read.

    Raises:
        InvalidInput: Whatever `clean_table` or `public_table` refuses, and sizes that do not fit.
    """
    require_choice("The scaling", scaling, SCALINGS)
    if heterogeneity is None:
        heterogeneity = 0.0 if client_column is None else 1.0
    check_heterogeneity(heterogeneity)
    if public_schema:
        require(scaling != "standardise", SCALED)
        table = public_table(frame, columns or (), client_column)
    else:
        table = clean_table(frame, columns, client_column, missing)
    records, mean = table.records, table.records.mean(axis=0)
    announced = PublicFacts.of_records(records, None if scaling == "none" else mean)
    if scaling != "none":
        records = records - mean
    if scaling == "standardise":
        announced = announced.scaled(table.records.std(axis=0))
        records = records / records.std(axis=0)
    shuffled = Streams(seed).generator("data").permutation(len(records))
    names: tuple[str, ...] = ()
    if table.clients is not None:
        names = tuple(table.counts)
        sizes = tuple(table.counts.values())
        key = table.clients.astype(float)
    else:
        sizes = samples_per_client(split, clients, len(records), seed=seed)
        alike = public_schema and heterogeneity == 0  # dealt at random: no order is needed
        key = np.zeros(len(records)) if alike else leading_scores(records, 1)[:, 0]
    # Shuffled first, so that rows with the same key come in random order and not as in the file.
    home: IntArray = shuffled[np.argsort(key[shuffled], kind="stable")].astype(np.int64)
    # At 1 all ways end alike, and a table with a client column need not look for one.
    steady = heterogeneity != 1 and not public_schema
    way = steady_way(records, home, sizes, seed) if steady else ExchangeOrder.drawn(sizes, seed)
    held = exchange(home, sizes, heterogeneity, way)
    done = {
        "standardise": "Standardised by pooled means and variances, which takes two secure sums.",
        "centre": "Centred on the pooled mean, which takes one secure sum.",
        "none": "Neither centred nor scaled.",
    }
    return from_blocks(
        [records[own].T for own in held],
        weights=weights,
        name=name,
        client_names=names,
        feature_names=table.features,
        note=f"{table.sentences()} {done[scaling]}",
        own_mean=mean if scaling == "centre" else None,
        own_scale=scaling == "standardise",
        looked="" if public_schema else _LOOKED,
        public=_taken(table, heterogeneity, "text" in frame.attrs) if public_schema else (),
        judged=not public_schema,
        announced=announced,
    )


def _taken(table: CleanTable, heterogeneity: float, text: bool) -> tuple[str, ...]:
    said = {
        f"the columns ({listed(table.features)})": True,
        "that a cell without a number counts as 0": True,
        "how the file is written (separator, decimal mark)": text,
        "whose record each row is": table.clients is not None,
        DEALT: table.clients is None and heterogeneity > 0,
    }
    return tuple(words for words, so in said.items() if so)


def heart_table() -> pd.DataFrame:
    """The heart disease of four hospitals: complete rows, codes as columns of 0 and 1, 25 columns.

    Source: Janosi, Steinbrunn, Pfisterer and Detrano, "Heart Disease", UCI repository (1989).
    """
    (path,) = files_of("heart")
    frame = read_csv(path.read_bytes()).drop(columns=["hospital", "num"]).dropna()
    coded = ["cp", "restecg", "slope", "ca", "thal"]  # their numbers are names
    return pd.get_dummies(frame, columns=coded).astype(float)
