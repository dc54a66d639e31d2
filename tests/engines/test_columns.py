"""Columns in another order, of another name or unit are refused, with the node and the column."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.problem import from_blocks
from fedpca_flower.job import FedJob
from fedpca_flower.own_records import read_columns
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import FEATURES, blocks

NAMES = [f"x{index}" for index in range(FEATURES)]
SWAPPED = [NAMES[1], NAMES[0], *NAMES[2:]]


@pytest.fixture
def tables():
    return [pd.DataFrame(block.T, columns=NAMES) for block in blocks()[:3]]


def start(folder, tables, suffix="csv", **run_config):
    """Three nodes with these tables; a run of four rounds."""
    for client, table in enumerate(tables):
        path = folder / f"{client}.{suffix}"
        if isinstance(table, pa.Table):
            parquet.write_table(table, path)
        elif suffix == "npy":
            np.save(path, table.to_numpy())
        else:
            table.to_csv(path, index=False)
    nodes = [{"client": i, "data": str(folder / f"{i}.{suffix}")} for i in range(3)]
    return run(LocalGrid(nodes, run_config), FedJob(fp.BlockKrylov(3), 3, rounds=4))


def pooled(tables):
    return from_blocks([table.to_numpy().T for table in tables])


def test_another_order_names_the_node_and_the_column(tables, tmp_path):
    """Without names nobody can tell, and the answer is silently another one."""
    wrong = [tables[0], tables[1], tables[2][SWAPPED]]
    with pytest.raises(InvalidInput, match="Column 1 of client 2 is “x1”, and of client 0 “x0”"):
        start(tmp_path, wrong)
    trace = start(tmp_path, wrong, columns=",".join(NAMES))
    expected = fp.simulate(pooled(tables), fp.BlockKrylov(3), rounds=4)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    silent = start(tmp_path, wrong, "npy")
    gap = silent.estimate @ silent.estimate.T - expected.estimate @ expected.estimate.T
    assert np.abs(gap).max() > 0.01


@pytest.mark.parametrize("change", ["name", "one less"])
def test_other_columns_are_refused(change, tables, tmp_path):
    wrong = tables[1].rename(columns={"x4": "chol"}) if change == "name" else tables[1][NAMES[:-1]]
    words = "Column 5 of client 1 is “chol”" if change == "name" else "Client 1 has 11 features"
    with pytest.raises(InvalidInput, match=words):
        start(tmp_path, [tables[0], wrong, tables[2]])


def test_another_unit_or_kind_is_refused(tables, tmp_path):
    """A Parquet file may say the unit of a column; who says none does not contradict."""

    def with_unit(table, unit, column=3):
        made = pa.Table.from_pandas(table, preserve_index=False)
        fields = list(made.schema)
        fields[column] = fields[column].with_metadata({"unit": unit})
        return made.cast(pa.schema(fields))

    agreed = [with_unit(table, "mg/dl") for table in tables]
    expected = start(tmp_path, agreed, "parquet")
    silent = pa.Table.from_pandas(tables[1], preserve_index=False)
    trace = start(tmp_path, [agreed[0], silent, agreed[2]], "parquet")
    np.testing.assert_array_equal(trace.estimates, expected.estimates)
    other = with_unit(tables[2], "mmol/l")
    words = r"Column 4 of client 2 is “x3” \(number, mmol/l\), and of client 0 “x3” \(number, mg/dl"
    with pytest.raises(InvalidInput, match=words):
        start(tmp_path, [agreed[0], agreed[1], other], "parquet")
    tables[0].set_axis(range(5, 5 + len(tables[0]))).to_parquet(tmp_path / "indexed.parquet")
    assert len(read_columns(tmp_path / "indexed.parquet")) == FEATURES
    flags = pa.Table.from_pandas(tables[2].assign(x3=tables[2]["x3"] > 0), preserve_index=False)
    with pytest.raises(InvalidInput, match=r"Column 4 of client 2 is “x3” \(yes or no\)"):
        start(tmp_path, [*agreed[:2], flags], "parquet")


def test_files_of_one_client_have_the_same_columns(tables, tmp_path):
    tables[0].to_csv(tmp_path / "a.csv", index=False)
    tables[0][SWAPPED].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(InvalidInput, match=r"b\.csv differs from a\.csv in column 1"):
        read_columns(tmp_path)
