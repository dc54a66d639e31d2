"""Units of the columns of all tables, for those who read them without the page."""

from collections.abc import Mapping

import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from fedpca_core.study.parts import names

#: By column, or by "table:column" where a table differs; what is in none of these rules is a text,
#: a yes or no, a count, or a number without a unit (a ratio, a sine, a relative error).
_UNITS = names("units")
_COUNTS = ("round", "rounds", "local_products", "evaluations", "communication", "products")


def unit(table: str, column: str, values: pd.Series) -> str:
    """The unit of a column: SI or B, "per cent", "count", "1" for none, "text", "yes or no"."""
    given = _UNITS.get(f"{table}:{column}", _UNITS.get(column))
    if given is not None:
        return given
    if is_bool_dtype(values):
        return "yes or no"
    if not is_numeric_dtype(values):
        return "text"
    return "count" if is_integer_dtype(values) or column in _COUNTS else "1"


def described(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each column of each table: table, column, unit."""
    rows = [
        {"table": name, "column": column, "unit": unit(name, str(column), table[column])}
        for name, table in tables.items()
        for column in table.columns
    ]
    return pd.DataFrame(rows, columns=["table", "column", "unit"])
