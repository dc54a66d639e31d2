"""A visitor's own table on Anomalies: whose records they are is part of the settings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import fitting, task
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TableFacts

SETTINGS = AnomalySettings(
    problem="own", client_column="site", columns=("a", "b", "c", "d"), label_column="state",
    normal_value="calm", components=2, rounds=20, participation=1.0,
)  # fmt: skip


def table(rows: int = 300) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    values = generator.standard_normal((rows, 2)) @ generator.standard_normal((2, 5))
    values += 0.1 * generator.standard_normal((rows, 5))
    found = pd.DataFrame(values, columns=list("abcde")).round(4)
    found["site"] = generator.choice([3.0, 11.0, 12.0], rows, p=[0.6, 0.3, 0.1])
    found["state"] = np.where(np.arange(rows) % 5 == 0, "burst", "calm")
    return found


def own(frame: pd.DataFrame) -> OwnData:
    return OwnData("mine.csv", frame.to_csv(index=False).encode())


def test_a_client_column_decides_whose_record_is_whose():
    frame = table()
    found = task(SETTINGS, own(frame))
    assert found.problem.feature_names == ("a", "b", "c", "d")
    blocks = found.problem.blocks
    assert blocks is not None and len(blocks) == 3
    assert sum(block.shape[1] for block in blocks) == len(found.source.normal)
    # Every training record lies at the site that its row names.
    site = {tuple(row[:4]): row[5] for row in frame.itertuples(index=False)}
    assert found.source.owners is not None
    for record, owner in zip(found.source.normal, found.source.owners, strict=True):
        assert str(int(site[tuple(record)])) == owner
    sizes = pd.Series(found.source.owners).value_counts()
    assert sorted(block.shape[1] for block in blocks) == sorted(sizes)


@pytest.mark.parametrize("rows", [60, 160, 3000])
def test_a_small_file_is_fitted_with_as_many_clients_as_it_has_rows_for(rows):
    frame = table(rows)
    asked = AnomalySettings(problem="own", label_column="state", normal_value="calm")
    fits = fitting(asked, TableFacts.of(frame))
    found = task(fits, own(frame))
    assert found.problem.clients == fits.clients == min(asked.clients, rows // 20)
    assert fits.components < found.problem.features
    assert fitting(fits, TableFacts.of(frame)) == fits
    of_sites = fitting(replace(asked, client_column="site"), TableFacts.of(frame))
    assert of_sites.clients == asked.clients  # the column decides


def test_columns_that_do_not_fit_are_a_sentence():
    with pytest.raises(InvalidInput, match="has no column “place”; its columns are a,"):
        task(AnomalySettings(problem="own", client_column="place"), own(table()))
    lonely = table().assign(site=lambda frame: ["one"] + ["two"] * (len(frame) - 1))
    lonely.loc[0, "state"] = lonely.loc[1, "state"] = "calm"
    with pytest.raises(InvalidInput, match=r"names 1 clients|has 1 normal training record"):
        task(SETTINGS, own(lonely))


def test_the_file_of_settings_runs_without_a_browser(tmp_path, capsys):
    (tmp_path / "mine.csv").write_bytes(own(table()).content)
    (tmp_path / "run.json").write_text(SETTINGS.to_json())
    command = ["run", str(tmp_path / "run.json"), "--table", str(tmp_path / "mine.csv")]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "FedPG" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["client_column"] == "site"
    assert record["own_file"]["sha256"] == own(table()).digest
