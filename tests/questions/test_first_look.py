"""The first look at a table of one's own: known axes are found, and noise is what it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedpca_core.questions.which.figures import look
from fedpca_core.questions.which.look import CLIENTS, RECORDS, FirstLook
from fedpca_core.questions.which.runs import problem_of
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Chart, Note

ASKED = FrontierSettings(
    problem="table",
    client_column="site",
    columns=("a", "b", "c"),
    components=1,
    scaling="none",
    needed_epsilon=3.0,
)


@pytest.fixture(scope="module")
def own() -> OwnData:
    drawn = np.random.default_rng(2).standard_normal((900, 3)) * [5.0, 2.0, 0.1]
    table = pd.DataFrame(drawn, columns=list("abc")).assign(site=np.repeat(list("pqr"), 300))
    return OwnData("own.csv", table.to_csv(index=False).encode())


def test_it_finds_the_spectrum_the_axes_and_the_scores(own):
    found = outcome(FirstLook().run(ASKED, own))
    block = own.table[["a", "b", "c"]].to_numpy().T
    values, vectors = np.linalg.eigh(block @ block.T / block.shape[1])
    assert found.spectrum["variance"].to_numpy() == pytest.approx(values[::-1])
    assert found.spectrum["share"].sum() == pytest.approx(1)
    first = found.loadings.set_index("feature")["first"]
    loaded = first[["a", "b", "c"]].to_numpy()
    assert np.abs(loaded) == pytest.approx(np.abs(vectors[:, -1]))
    assert first[first.abs().idxmax()] > 0
    assert found.scores.groupby("client").size().to_dict() == dict.fromkeys("pqr", RECORDS)
    assert set(np.round(found.scores["first"], 9)) <= set(np.round(loaded @ block, 9))
    assert len(found.scores["client"].unique()) <= CLIENTS


def test_what_an_epsilon_leaves_is_what_the_clients_release(own):
    found = outcome(FirstLook().run(ASKED, own))
    private = problem_of(replace(ASKED, epsilon=3.0), own)
    assert found.spectrum["noisy"].to_numpy() == pytest.approx(
        np.linalg.eigvalsh(private.pooled)[::-1]
    )
    weaker = outcome(FirstLook().run(replace(ASKED, needed_epsilon=0.1), own))
    assert weaker.noise > 10 * found.noise > 0
    assert FirstLook().identity(ASKED, own) != FirstLook().identity(
        replace(ASKED, needed_epsilon=0.1), own
    )
    without = outcome(FirstLook().run(replace(ASKED, needed_epsilon=math.inf), own))
    assert without.spectrum["noisy"].isna().all() and math.isnan(without.noise)


def test_where_no_epsilon_covers_the_table_it_says_so_and_shows_the_rest(own):
    scaled = replace(ASKED, columns=())
    found = outcome(FirstLook().run(scaled, own))
    assert found.refusal and found.spectrum["noisy"].isna().all()
    parts = list(look(found, scaled))
    assert any(isinstance(part, Note) and found.refusal in part.text for part in parts)
    (chart,) = [part for part in parts if isinstance(part, Chart)]
    assert [panel.key for panel in chart.panels] == ["scree", "scores"]
    assert chart.panels[1].simulation_only and chart.panels[0].curves[0].simulation_only
