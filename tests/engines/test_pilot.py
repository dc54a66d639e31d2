"""The pilot of docs/flower.md: two hospitals' files, agreed columns and scales, limits on ε."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.data_sets import files_of
from fedpca_core.problems.problem import from_blocks
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.trace.opened import OpenedRun, OpenedSettings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_flower.job import FedJob
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid

(FILE,) = files_of("heart")
#: Agreed beforehand, from textbooks and not from the files: centre and scale of every column.
AGREED = {"age": (55, 10), "trestbps": (130, 20), "chol": (230, 60), "thalach": (140, 25)}
HOSPITALS = ("Cleveland", "Hungarian")


@pytest.fixture
def hospitals(tmp_path):
    """What each hospital keeps: its own records, centred and scaled as agreed."""
    table = pd.read_csv(FILE)
    kept = {}
    for name in HOSPITALS:
        own = table.loc[table["hospital"] == name, list(AGREED)].dropna()
        assert len(own) > 100
        for column, (centre, scale) in AGREED.items():
            own[column] = (own[column] - centre) / scale
        own.to_csv(tmp_path / f"{name}.csv", index=False)
        kept[name] = own.to_numpy().T
    return kept


def grid(folder, **terms):
    nodes = [
        {"client": i, "data": str(folder / f"{name}.csv"), "memory": str(folder / name), **terms}
        for i, name in enumerate(HOSPITALS)
    ]
    return LocalGrid(nodes, {"columns": ",".join(AGREED)})


def test_the_pilot_gives_the_components_of_both(hospitals, tmp_path):
    trace = run(grid(tmp_path), FedJob(fp.BlockKrylov(2), 2, rounds=6))
    pooled = from_blocks(list(hospitals.values()))
    angle = np.linalg.norm(pooled.target(2).T @ trace.estimate, 2)
    assert angle == pytest.approx(1.0, abs=1e-10)
    save_trace(trace, tmp_path / "trace.npz")
    found = outcome(OpenedRun().run(OpenedSettings(), OwnData.of(tmp_path / "trace.npz")))
    own = hospitals["Cleveland"]
    np.testing.assert_allclose(found.matrices[-1], own @ own.T / own.shape[1], atol=1e-5)


def test_a_hospital_keeps_to_its_limit(hospitals, tmp_path):
    budget = {"epsilon": 1.0, "delta": 1e-5, "clip": 2.0}
    job = FedJob(fp.BlockKrylov(2), 2, rounds=3, budget=budget)
    with pytest.raises(InvalidInput, match=r"up to ε = 0\.5 only .* the run would make it 1"):
        run(grid(tmp_path, epsilon=0.5, delta=1e-5), job)
    trace = run(grid(tmp_path, epsilon=1.0, delta=1e-5), job)
    assert trace.setting.guarantee.epsilon == pytest.approx(1.0)
