"""What a page must know of a visitor's file to offer its columns; read where runs are computed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fedpca_core.problems import Problem, from_table
from fedpca_core.problems.table import NAMED, SCALED
from fedpca_core.problems.table_columns import (
    MOST_CATEGORIES,
    dates,
    distinctly_named,
    features,
    listed,
)
from fedpca_core.problems.traffic_table import label_columns
from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import NoFile, OwnData
from fedpca_core.study.parts import words
from fedpca_core.study.study import Study

#: What pages need besides what is declared here.
__all__ = ["NAMED", "SCALED"]

#: Fields that say how a table is read.
TABLE_FIELDS = ("client_column", "columns", "scaling", "missing")
S = TypeVar("S", bound=Settings)
#: A column of more distinct values names nobody's client and no label.
_MOST_VALUES = 200
#: How columns are called that name records: "patient_id", "MRN", "rowId", and what pandas writes.
_RECORD = re.compile(r"(?i:(^|[^a-z])(ids?|mrn|index|identifier)$)|[a-z]I[dD]$|^Unnamed: 0$")
#: Share of the rows, or columns, that may be dropped before another way is suggested.
FEW = 0.1
#: What columns that name clients are called, the likeliest first.
_CLIENTS = (
    *("site", "hospital", "clinic", "center", "centre", "client", "institution", "bank", "school"),
    *("station", "branch", "location", "district", "ward", "device", "sensor", "node", "owner"),
    "user",
)


@dataclass(frozen=True)
class TableFacts:
    rows: int
    columns: int
    #: Columns that are features where nobody chooses: neither text nor constant.
    numeric: tuple[str, ...]
    #: Columns that become features where they are chosen: dates and few texts.
    further: tuple[str, ...]
    #: Columns that could name clients: few distinct values, each on several rows.
    clients: tuple[str, ...]
    #: The one that probably does; empty where none looks like it.
    suggested: str
    #: Numeric columns that name records: too many values for anything else, and called so.
    identifiers: tuple[str, ...]
    #: Columns that could hold labels, the likely ones first, and their values.
    labels: Mapping[str, tuple[str, ...]]
    #: Empty or infinite cells of the numeric columns.
    missing: int
    #: complete_rows, complete_columns: Rows, and numeric columns, without any.
    complete_rows: int
    complete_columns: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> TableFacts:
        most = min(max(2, len(table) // 2), _MOST_VALUES)
        distinct = {str(name): int(table[name].nunique()) for name in table.columns}
        numbers, others = features(table)
        numeric = [name for name in numbers.columns if distinct[name] > 1]
        finite = np.isfinite(numbers[numeric].to_numpy())
        labels = {
            one: tuple(map(str, table[one].dropna().unique())) for one in label_columns(table)
        }
        clients = [name for name, count in distinct.items() if 2 <= count <= most]
        return cls(
            rows=len(table),
            columns=table.shape[1],
            numeric=tuple(numeric),
            further=tuple(
                name
                for name in others
                if 2 <= distinct[name] <= MOST_CATEGORIES or dates(table[name]) is not None
            ),
            clients=tuple(clients),
            suggested=min(filter(_likely, clients), key=_likely, default=""),
            identifiers=tuple(n for n in numeric if distinct[n] > most and _RECORD.search(n)),
            labels=labels,
            missing=int(finite.size - finite.sum()),
            complete_rows=int(finite.all(axis=1).sum()),
            complete_columns=int(finite.all(axis=0).sum()),
        )

    def gaps(self) -> str:
        """What each way with the missing cells costs; empty where there are none."""
        if not self.missing:
            return ""
        cells, wide = self.rows * len(self.numeric), len(self.numeric)
        return words("own-gaps", it=self, cells=cells, wide=wide, share=self.missing / cells)

    def best_for_gaps(self) -> str:
        """The way with the missing cells that loses least: rows, or columns, where few are lost."""
        if self.complete_rows >= (1 - FEW) * self.rows:
            return "drop"
        kept = self.complete_columns >= (1 - FEW) * len(self.numeric)
        return "columns" if kept else "fill"

    def better(self, now: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What of the `TABLE_FIELDS` to change, and that in words; empty for nothing."""
        changes: dict[str, Any] = {}
        said: list[str] = []
        if self.suggested and not now["client_column"]:
            changes["client_column"] = self.suggested
            said.append(f"“{self.suggested}” names the clients")
        if not now["columns"] and self.identifiers:
            client = changes.get("client_column", now["client_column"])
            left = (name for name in self.numeric if name not in {*self.identifiers, client})
            changes["columns"] = tuple(left)
            said.append(f"{listed(self.identifiers)}: no feature")
        way = self.best_for_gaps()
        if now["missing"] == "drop" and way != "drop":
            changes["missing"] = way
            said.append("missing cells are filled" if way == "fill" else "columns with gaps go")
        return changes, said


def _likely(name: str) -> int:
    """How likely a column names clients by what it is called: 1 is likeliest, 0 is not at all."""
    words = {word.removesuffix("s") for word in re.split("[^a-z]+", name.lower())}
    return next((place for place, word in enumerate(_CLIENTS, 1) if word in words), 0)


def fitting(settings: S, facts: TableFacts, *, rows_each: int = 1, labels: int = 0) -> S:
    """The settings with no more clients and components than a file has rows and columns for.

    ``rows_each``: Rows that a client needs.
    ``labels``: Numeric columns that may be no features.
    """
    given: Any = settings
    features = len(given.columns) or len(set(facts.numeric) - {given.client_column}) - labels
    most = max(2, facts.rows // rows_each)
    fits = {} if given.client_column else {"clients": min(given.clients, most)}
    if hasattr(settings, "components"):
        fits["components"] = min(given.components, max(1, features - 1))
    return replace(settings, **fits)


class OwnTable(Study[Settings, TableFacts]):
    key = "own-table"
    title = "Reading your file"
    most = Cost(megabytes=500, seconds=4)

    def run(self, settings: Settings, data: OwnData | None = None) -> Run[TableFacts]:
        yield Step(0.0, "Reading your file")
        if data is None:
            raise NoFile("There is no file to read; choose one.")
        table = distinctly_named(data.table)
        yield Step(0.8, "Looking at its columns")
        return TableFacts.of(table)

    def tables(self, result: TableFacts, settings: Settings) -> dict[str, pd.DataFrame]:
        return {"columns": pd.DataFrame({"column": result.numeric})}


def own_problem(
    settings: Any, data: OwnData | None, also: tuple[str, ...] = (), **how: Any
) -> Problem:
    """The problem of a visitor's table, read as the settings say; under an ε by its schema alone.

    ``settings``: With `TABLE_FIELDS`, ``clients`` and ``seed``.
    ``also``: Columns that are needed besides those that were chosen.
    ``**how``: Further arguments of `from_table`.

    Raises InvalidInput: a file that does not fit; `NoFile` where there is none.
    """
    if data is None:
        raise NoFile(
            "These settings are for a table of your own, which a link cannot carry; choose a CSV, "
            "Parquet or NumPy file under “Your file”, where the problem is chosen."
        )
    return from_table(
        data.table,
        tuple(dict.fromkeys((*settings.columns, *also))) if settings.columns else None,
        client_column=settings.client_column or None,
        clients=settings.clients,
        scaling=settings.scaling,
        missing=settings.missing,
        seed=settings.seed,
        name=data.name,
        public_schema=math.isfinite(getattr(settings, "epsilon", math.inf)),
        **how,
    )
