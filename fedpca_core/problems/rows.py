"""Records as a user has them: one a row, with the site of each."""

from collections.abc import Sequence

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.problem import Problem, from_blocks


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
        records: (records, features) float64: One record a row.
        groups: The client of each record, by any label; clients come in the labels' order.
        centre: Subtract the mean of all records, which takes one secure sum over the clients
            beforehand.
        weights: {"records", "equal"} or sequence of float: How clients count in S.
        feature_names: One a column.
        name: For legends and file names.
        public_schema: For an epsilon: what the columns are and whose record each row is count as
            public, and nothing is decided by looking at the records.

    Raises:
        InvalidInput: Not a table of finite numbers, labels that do not fit, or all records equal.
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
    missing = int(np.sum(labels != labels)) if labels.dtype.kind == "f" else 0
    missing += int(sum(one is None for one in labels)) if labels.dtype.kind == "O" else 0
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
