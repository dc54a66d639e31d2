"""What the Papers page says of rows and experiments."""

import pickle

import numpy as np
import pandas as pd
import pytest

from dashboard.shell.palette import FALLBACKS, style
from dashboard.views.papers import experiments, rows
from fedpca_core.papers.registry import EXPERIMENTS, ROWS
from fedpca_core.papers.results import origin, shipped
from fedpca_core.papers.row import Verdict
from fedpca_core.papers.sources import SOURCES, software_bibtex, source
from fedpca_core.questions.papers.page import (
    Judged,
    PaperExperiment,
    PaperRows,
    PapersSettings,
    judged,
)
from fedpca_core.steps import outcome


def shown(**changes):
    return outcome(PaperExperiment().run(PapersSettings(**changes)))


def test_every_row_is_listed_once_and_counted():
    found = outcome(PaperRows().run(PapersSettings()))
    table = rows.texts(found)
    assert len(table) == sum(found.counts.values()) == len(found.rows)
    assert set(table["Verdict"]) <= set(rows.MARKS.values())
    assert table["Claim"].is_unique or table[["Claim", "Place"]].duplicated().sum() < len(table)
    assert len(found.only("dfl", "out of scope").rows) <= len(found.only("dfl", "all").rows)


@pytest.mark.parametrize("key", EXPERIMENTS)
def test_no_two_bars_of_a_chart_have_one_colour(key):
    for cells in shipped(key).values():
        colours = [style(colour).light for _, _, colour in experiments._styled(cells)]
        assert len(set(colours)) == min(len(colours), len(FALLBACKS))


def test_a_row_that_waits_says_for_which_size():
    name = ROWS[0].name
    waiting = Verdict("not run yet", 40.0, 39.0, 42.0, 5, "live")
    for found, words, has in (
        (waiting, rows.WAITING, True),
        (Verdict("not run yet"), rows.MARKS["not run yet"], False),
    ):
        said = rows.texts(Judged({name: found})).iloc[0]
        assert (said["Verdict"], said["Ours"] != "–") == (words, has)


def test_rows_are_sorted_and_none_is_lost():
    found = judged()
    for order in PapersSettings.parameters()["order"].choices:
        assert set(found.sorted_by(order).verdicts) == set(found.verdicts)
    table = found.sorted_by("ratio").table()
    ratio = table["ours"] / pd.to_numeric(table["published"].str.extract(r"([\d.e-]+)")[0])
    both = np.abs(np.log(ratio[ratio > 0])).to_numpy()
    assert len(both) > 50 and (np.diff(both) <= 1e-12).all()
    assert list(ratio[ratio > 0].index) == list(range(len(both)))
    papers = list(dict.fromkeys(found.sorted_by("paper").table()["paper"]))
    assert papers == [one.name for one in SOURCES.values()]


def test_results_travel_between_processes():
    found = judged()
    assert pickle.loads(pickle.dumps(found)).counts == found.counts
    assert pickle.loads(pickle.dumps(shown())).size


def test_ours_is_said_with_its_spread_and_size():
    assert rows.ours(Verdict("not run yet")) == "–"
    assert (
        rows.ours(Verdict("reproduced", 41.0, 40.0, 43.0, 3, "paper")) == "41 (40 to 43); 3 seeds"
    )
    assert rows.ours(Verdict("reproduced", 2.0, 2.0, 2.0, 1, "live")) == "2; 1 seed, live size"
    said = rows.ours(Verdict("reproduced", 2.0, 1.0, 3.0, 2, "paper"), "times its bare products")
    assert said == "2 (1 to 3) times its bare products; 2 seeds"
    said = rows.ours(Verdict("reproduced", 2.0, 2.0, 2.0, 1, "paper"), "largest over smallest lead")
    assert said == "2, largest over smallest lead; 1 seed"
    assert rows.ours(Verdict("reproduced", 93.0, 93.0, 93.0, 1, "paper"), "%") == "93%; 1 seed"


@pytest.mark.parametrize("key", list(EXPERIMENTS))
def test_shipped_results_are_whole_and_say_where_they_come_from(key):
    for size, cells in shipped(key).items():
        made = origin(key, size)
        assert f"reproduce {key}" in experiments.origin(key, size, made)
        assert made["commit"] and made["finished"] and made["seeds"] == sorted(set(cells["seed"]))
        assert set(cells["experiment"]) == {key} and set(cells["size"]) == {size}
        assert np.isfinite(cells.loc[cells["x"].notna(), "result"]).all()
        runnable = {(c.part, c.seed) for c in EXPERIMENTS[key].cells(size, len(made["seeds"]))}
        assert set(zip(cells["part"], cells["seed"], strict=True)) <= runnable


@pytest.mark.parametrize("key", [key for key in EXPERIMENTS if shipped(key)])
def test_an_experiment_has_its_chart_and_summary(key):
    found = shown(experiment=key)
    entry = EXPERIMENTS[key]
    panels = [
        *experiments._measured(entry, found, found.size),
        *experiments._curves(entry, found, found.size),
    ]
    assert panels or not entry.measure
    assert not experiments.summary(found.summary(found.size)).empty
    assert entry.described(found.size)


def test_published_values_are_marked_beside_results_at_the_paper_s_size_only():
    live = shown(experiment="table-1")
    entry = EXPERIMENTS["table-1"]
    cells = live.cells.get("live")
    paper = PaperExperiment()._shown("table-1", {"paper": cells.assign(size="paper")}, {})
    labels = [b.label for b in experiments._measured(entry, paper, "paper")[0].baselines]
    assert labels == ["published, SSI: 207", "published, FAPS: 42"]
    only_live = PaperExperiment()._shown("table-1", {"live": cells}, {})
    assert experiments._measured(entry, only_live, "live")[0].baselines == ()


def test_a_live_run_is_judged_as_it_comes():
    steps = []
    settings = PapersSettings(experiment="figure-1a", run_live=True, seeds=1)
    found = outcome(PaperExperiment().run(settings), lambda step: steps.append(step) or True)
    assert found.rows.verdicts["faps-figure-1a-ssi"].word == "reproduced"
    assert isinstance(found.rows, Judged) and found.origins == {}
    assert 0 < steps[-1].fraction <= 1


def test_every_row_leads_to_its_formulas_and_its_run():
    assert {row.explained for row in ROWS} <= set(rows.PAGES)
    live = [one.live() for one in EXPERIMENTS.values()]
    assert {settings.kind for settings in live if settings is not None} <= set(rows.PAGES)


def test_papers_are_cited():
    for one in SOURCES.values():
        assert one.bibtex.startswith(f"@{one.kind}{{{one.key},") and one.title in one.bibtex
        assert one.link or one.unsure
    dfl = source("dfl")
    assert "author =" not in dfl.bibtex and "this is no citation" in dfl.bibtex
    assert source("faps").link == "https://arxiv.org/abs/2012.03461"
    assert software_bibtex().startswith("@software{")
