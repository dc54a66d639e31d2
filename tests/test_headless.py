"""The table of everything that can be downloaded: page and command line give the same numbers.

Each row opens a page as a link does, takes the file and the results that it offers for download,
runs the file headless, and compares every table. Sizes are small; what has a size of its own is
cut down in page and command line alike.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import fedpca_core as fp
from dashboard.shell import jobs, share
from fedpca_core.__main__ import main
from fedpca_core.consensus import verdicts
from fedpca_core.problems import traffic
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.anomaly import leaks, learning, poisoned, task, trained
from fedpca_core.questions.attack import replay, sent_models
from fedpca_core.questions.attack.records import at_risk
from fedpca_core.questions.catalogue import KINDS, PAGES, STUDIES, read_settings, studies_of
from fedpca_core.questions.privacy import attacks, study
from fedpca_core.settings import Settings
from fedpca_core.study.study import Study
from tests.tables import own_file

ROOT = Path(__file__).resolve().parents[1]
#: Pages that are not called as their settings are.
SCRIPTS = {"scene": "home"}
#: What a visitor's own file is called.
OWN = {"trace": "trace.npz"}
#: Measured by the clock, or ended within rounding: no two runs agree.
LEFT_OUT = (
    *("seconds", "seconds_low", "seconds_high", "training_seconds", "microseconds_per_flow"),
    *("evaluations", "replay_error"),
)

TINY: Mapping[str, Mapping[str, Any]] = {
    "scene": {"clients": 4, "records_per_client": 12, "components": 6, "rounds": 10, "client": 1},
    "converge": {"features": 12, "components": 2, "clients": 4, "samples": 50, "rounds": 10},
    "attack": {"features": 10, "components": 2, "samples": 40, "rounds": 10, "budget": 100},
    "privacy": {"features": 20, "clients": 6, "samples": 2000, "repetitions": 2, "delta": 1e-5},
    "personalise": {"features": 10, "components": 2, "clients": 4, "rounds": 50, "datasets": 1},
    "theory": {"clients": 3, "features": 3, "rounds": 20},
    "anomaly": {"problem": "synthetic", "clients": 20, "components": 6, "rounds": 50},
    "which": {
        "features": 8,
        "clients": 3,
        "samples": 50,
        "components": 2,
        "rounds": 10,
        "seeds": 2,
        "candidates": ("ssi", "faps", "one_shot", "centralized"),
        "clip_norm": 4,
        "penalty_factor": 0.3,
    },
    "check": {"features": 8, "clients": 4, "samples": 20, "components": 2, "rounds": 10},
}
#: What has a size of its own shows no controls for it (None: the default).
SIZED = {"features": None, "samples": None}
TABLE = {"problem": "table", "client_column": "label", "features": None, "scaling": "none"}
PRINTED = SIZED | {"figure": "4d", "clients": None, "delta": None}
OWN_RECORDS = {"problem": "table", "client_column": "label", "records_per_client": None}
#: Rows of the table: a kind, and what a visitor changed on its page.
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("scene", {}),
    ("scene", {"method": "faps", "epsilon": 10, "clip_norm": 4, "participation": 0.5}),
    ("scene", OWN_RECORDS | {"components": 2}),
    ("converge", {"methods": ("ssi", "local_power", "faps", "block_krylov", "one_shot")}),
    ("converge", {"problem": "decay_arithmetic", "participation": 0.5, "secure_aggregation": True}),
    ("converge", SIZED | {"problem": "digits", "epsilon": 10, "clip_norm": 4, "starts": 1}),
    ("converge", {"budgets": True, "methods": ("ssi", "one_shot"), "starts": 1}),
    ("converge", SIZED | {"problem": "table", "client_column": "label", "dtype": "float32"}),
    *(
        ("attack", {"attack": kind, "secure_aggregation": kind in ("pooled", "collude")})
        for kind in ("linear", "symmetric", "ridge", "pooled", "collude")
    ),
    ("attack", {"replay": True, "defences": True, "differencing": True, "record": 2}),
    ("attack", {"at_risk": True, "elsewhere": "personal", "joined": 5}),
    ("attack", SIZED | {"problem": "digits", "records_per_client": 12, "elsewhere": "fedpg"}),
    ("attack", {"private_start": True, "private_penalty": True, "random_inner_steps": True}),
    *(
        ("privacy", {"view": view} | (PRINTED if view == "figures" else {}))
        for view in KINDS["privacy"].parameters()["view"].choices
    ),
    ("personalise", {"sweep": "samples", "exposure": True, "epsilon": 50}),
    ("personalise", {"sweep": "clients", "reading": "literal"}),
    ("personalise", {"problem": "table", "features": None, "components": 1, "exposure": True}),
    (
        "personalise",
        TABLE
        | {"clients": None, "components": 1, "sweep": "samples", "epsilon": 50}
        | {"columns": ("a", "b", "c")},
    ),
    ("trace", {"client": 1, "grid": "1"}),
    ("papers", {}),
    ("theory", {}),
    ("theory", {"problem": "logistic", "method": "admm"}),
    ("theory", {"problem": "table", "features": None, "columns": ("a", "b"), "target": "d"}),
    ("theory", TABLE | {"clients": None, "method": "scaffnew"}),
    *(
        ("anomaly", {"view": view} | ({"sweep": "components"} if view == "sweeps" else {}))
        for view in KINDS["anomaly"].parameters()["view"].choices
    ),
    ("which", {"vary": "local_steps", "candidates": ("local_power", "one_shot")}),
    (
        "which",
        {"server": "sums", "vary": "none", "seeds": 1, "candidates": ("one_shot", "centralized")},
    ),
    (
        "which",
        {
            **TABLE,
            **{"clients": None, "samples": None, "columns": ("a", "b", "c"), "components": 1},
            **{"server": "sums", "vary": "none", "seeds": 1, "candidates": ("ssi",)},
            "needed_epsilon": 0.1,
        },
    ),
    ("check", {"method": "block_krylov", "repeats": True, "samples": 5}),
    ("anomaly", {"problem": "own", "method": "fedpe", "components": 2, "rule": "oracle"}),
    ("anomaly", {"problem": "own", "label_column": "label", "components": 2, "view": "alarms"}),
]


def settings_of(kind: str, changes: Mapping[str, Any]) -> Settings:
    """The settings of a row."""
    values = {**TINY.get(kind, {}), **changes}
    return KINDS[kind](**{name: value for name, value in values.items() if value is not None})


def script_of(kind: str) -> Path:
    """The page that has the settings of a kind."""
    return ROOT / "pages" / f"{SCRIPTS.get(kind, kind)}.py"


def trace_file(folder: Path) -> bytes:
    """The file of a run, as a deployment leaves it."""
    blocks = [np.random.default_rng(m).integers(-9, 10, (16, m)).astype(float) for m in (5, 7, 6)]
    trace = fp.simulate(fp.problems.problem.from_blocks(blocks), fp.SSI(3), rounds=6)
    save_trace(replace(trace, states=None), folder / "trace.npz")
    return (folder / "trace.npz").read_bytes()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What has a size of its own, cut down; a registry of jobs and memories of their own."""
    smallest = next(iter(at_risk.ROWS))
    monkeypatch.setattr(at_risk, "ROWS", {smallest: at_risk.ROWS[smallest]})
    monkeypatch.setattr(at_risk.NoiseAtRisk, "along", ("upload_noise", (0.0, 1e-2)))
    monkeypatch.setattr(at_risk.AtRisk, "along", ("records_per_client", (5.0, 10.0)))
    monkeypatch.setattr(verdicts, "verdicts", partial(verdicts.verdicts, 2))
    few = ("None", "float32 messages", "Secure aggregation")
    monkeypatch.setattr(replay, "DEFENCES", {name: replay.DEFENCES[name] for name in few})
    monkeypatch.setattr(study.PriceOfBudget, "along", ("epsilon", (math.inf, 5.0)))
    monkeypatch.setattr(study.PriceOfProducts, "along", ("products", (2, 5)))
    monkeypatch.setattr(attacks.Reconstruction, "along", ("epsilon", (math.inf, 5.0)))
    monkeypatch.setattr(study.WaysOverBudget, "along", ("epsilon", (1.0, 5.0)))
    monkeypatch.setattr(attacks, "BUDGETS", (1.0, 5.0))
    monkeypatch.setattr(leaks, "FITTED_RUNS", 2)
    sizes = {
        "fedpg": sent_models.ModelSize(3, 4, 2, 8),
        "personal": sent_models.ModelSize(4, 6, 3, 10),
    }
    monkeypatch.setattr(sent_models, "SIZES", sizes)
    monkeypatch.setattr(attacks, "TESTS", 8)
    monkeypatch.setattr(attacks, "TESTS_AT_SOURCE", 20)
    made = partial(traffic.synthetic, normal=2000, test=800)
    monkeypatch.setattr(task, "synthetic", made)
    for name, value in {"FIRST": 11, "LAST": 18, "ROUNDS": 20}.items():
        monkeypatch.setattr(poisoned, name, value)
    monkeypatch.setattr(learning.Sweeps, "axes", {"components": (2, 30)})
    registry = jobs.Registry()
    monkeypatch.setattr(jobs, "registry", lambda: registry)
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 600.0)
    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: job._done.wait(90))
    memories = (task._SOURCES, task._TASKS, trained._DETECTORS)
    for memory in memories:
        memory._results.clear()
    yield
    for memory in memories:
        memory._results.clear()


def taken_away(settings, table: bytes | None, monkeypatch) -> tuple[str, dict[Study, Any]]:
    """The file and the results that the page of these settings offers for download."""
    offered: list[tuple[str, dict[Study, Any]]] = []

    def offers(shown, results, data) -> None:
        offered.append((shown.to_json(), dict(results)))

    def take_away(shown, data, *ways, **more) -> None:
        offers(shown, share.results(shown, **more), data)

    monkeypatch.setattr(share, "take_away", take_away)
    monkeypatch.setattr(share, "offers", offers)
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone
    app = AppTest.from_file(str(script_of(settings.kind)), default_timeout=120)
    for key, value in settings.query().items():
        app.query_params[key] = value
    app.session_state["share_front"] = True  # the front page offers what it has to who looks
    app.run()
    if table is not None:
        app.file_uploader[0].set_value((OWN.get(settings.kind, "own.csv"), table, "")).run()
    assert not app.exception
    return offered[-1]


@pytest.mark.usefixtures("two_seeds")
@pytest.mark.parametrize(
    ("kind", "changes"), ROWS, ids=[f"{kind}-{list(what.values())}" for kind, what in ROWS]
)
def test_the_file_of_a_page_gives_the_page_s_numbers(
    kind, changes, tmp_path, capsys, monkeypatch
) -> None:
    settings = settings_of(kind, changes)
    own = getattr(settings, "problem", "") in ("own", "table")
    table = trace_file(tmp_path) if kind == "trace" else own_file().content if own else None
    text, results = taken_away(settings, table, monkeypatch)
    assert read_settings(text) == settings
    done = {study.key for study, found in results.items() if found is not None}
    assert done == {study.key for study in studies_of(settings)}

    (tmp_path / "page.json").write_text(text, encoding="utf-8")
    command = ["run", str(tmp_path / "page.json"), "--out", str(tmp_path / "out")]
    if table is not None:
        (tmp_path / OWN.get(kind, "own.csv")).write_bytes(table)
        command += ["--table", str(tmp_path / OWN.get(kind, "own.csv"))]
    assert main(command) == 0
    assert capsys.readouterr().out
    offered = {
        f"{study.key}-{name}.csv": table
        for study, found in results.items()
        if found is not None
        for name, table in study.tables(found, settings).items()
    }
    written = {path.name: path.read_text() for path in (tmp_path / "out").glob("*.csv")}
    assert set(written) == set(offered) and offered
    for name, table in offered.items():
        assert len(table) > 0
        page, alone = (
            pd.read_csv(io.StringIO(one)).drop(columns=[*LEFT_OUT], errors="ignore")
            for one in (table.to_csv(index=False), written[name])
        )
        if name.endswith("-fit.csv"):
            page, alone = (one[one["residual"] > 1e-9] for one in (page, alone))
        if "measure" in page:
            page, alone = (one[~one["measure"].isin(LEFT_OUT)] for one in (page, alone))
        pd.testing.assert_frame_equal(page, alone, rtol=1e-6, atol=1e-8, obj=name)


def test_every_study_and_every_choice_is_in_the_table() -> None:
    rows = [settings_of(kind, changes) for kind, changes in ROWS]
    assert {type(row) for row in rows} == set(PAGES)
    shown = {study for study in STUDIES.values() if study.settings in set(PAGES)}
    assert {study for row in rows for study in studies_of(row)} == shown
    for kind, field in (("attack", "attack"), ("privacy", "view"), ("anomaly", "view")):
        tried = {getattr(row, field) for row in rows if row.kind == kind}
        assert tried == set(KINDS[kind].parameters()[field].choices)
    attack = KINDS["attack"].parameters().items()
    elsewhere = {"budgets"}  # of another page
    minutes = {"unmask", "fine"}
    switches = {name for name, one in attack if one.default is False}
    for switch in switches - elsewhere - minutes:
        assert any(getattr(row, switch) for row in rows if row.kind == "attack"), switch
