"""What a study gives: tidy tables, a few arrays for pictures, and what is known besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from fedpca_core.arrays import AnyArray
from fedpca_core.findings import Finding


@dataclass(frozen=True, eq=False)
class Result:
    """The result of any study.

    Attributes
    ----------
    tables : mapping of name to pandas.DataFrame
        One observation a row; these are what is downloaded, printed and compared.
    arrays : mapping of name to array
        What pictures are made of, client or round axis first.
    facts : mapping of name to anything that is no table: a guarantee, names, single numbers
    findings : tuple of Finding
    refusals : mapping of what could not be run to the sentence why
    complete : bool
        False while it grows, and where it was stopped.
    """

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    arrays: Mapping[str, AnyArray] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True

    def __getitem__(self, name: str) -> pd.DataFrame:
        """A table; one without rows where the study has none of this name (yet)."""
        return self.tables.get(name, pd.DataFrame())


def labelled(result: Result, labels: Mapping[str, Any]) -> Result:
    """The same with columns in front of every table that say where it was measured."""
    tables = {name: table.copy() for name, table in result.tables.items()}
    for table in tables.values():
        for place, (name, value) in enumerate(labels.items()):
            if name not in table.columns:
                table.insert(place, name, [value] * len(table))
    return replace(result, tables=tables)


def gathered(parts: Sequence[Result], *, complete: bool) -> Result:
    """Results of pieces as one: tables below each other, the arrays and facts of the first."""
    tables: dict[str, list[pd.DataFrame]] = {}
    for one in parts:
        for name, table in one.tables.items():
            if len(table) or name not in tables:
                tables.setdefault(name, []).append(table)
    return Result(
        tables={
            name: pd.concat([t for t in some if len(t)] or some[:1], ignore_index=True)
            for name, some in tables.items()
        },
        arrays={name: array for one in reversed(parts) for name, array in one.arrays.items()},
        facts={name: fact for one in reversed(parts) for name, fact in one.facts.items()},
        findings=tuple(finding for one in parts for finding in one.findings),
        refusals={name: why for one in parts for name, why in one.refusals.items()},
        complete=complete and all(one.complete for one in parts),
    )
