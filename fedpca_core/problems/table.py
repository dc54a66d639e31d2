"""Records as a user has them, one a row: an array with the site of each, or a whole table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, IntArray
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
from fedpca_core.problems.table_cleaning import SCALED, CleanTable, clean_table, public_table
from fedpca_core.problems.table_columns import listed
from fedpca_core.problems.table_file import read_csv
from fedpca_core.streams import Streams

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
        public=_taken(table, heterogeneity, "reading" in frame.attrs) if public_schema else (),
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
