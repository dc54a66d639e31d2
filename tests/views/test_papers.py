"""What the Papers page says of rows and experiments."""

import pickle
import re

import numpy as np
import pytest

from dashboard.shell.navigation import PLACES
from dashboard.shell.palette import FALLBACKS, style
from dashboard.views import papers
from fedpca_core.__main__ import main
from fedpca_core.papers.judge import STATED, WORDS, Tried, Verdict
from fedpca_core.papers.registry import ENTRIES, EXPERIMENTS, verdicts
from fedpca_core.papers.results import origin, shipped, summary
from fedpca_core.papers.sources import SOFTWARE, SOURCES
from fedpca_core.questions.papers.page import (
    Judged,
    PaperExperiment,
    PaperRows,
    PapersSettings,
    command,
    overview,
)
from fedpca_core.steps import outcome


def shown(**changes):
    return outcome(PaperExperiment().run(PapersSettings(**changes)))


def test_every_row_is_listed_once():
    found = outcome(PaperRows().run(PapersSettings()))
    table = papers.texts(found)
    assert len(table) == len(found.rows) == len(ENTRIES)
    assert {text.split(" ", 1)[1] for text in table["Verdict"]} <= set(WORDS)
    assert set(papers.MEANS) == set(papers.MARKS) == set(WORDS)
    assert len(found.listed("dfl", "out of scope").rows) <= len(found.listed("dfl", "all").rows)


def test_the_page_opens_with_a_bar_for_each_paper():
    found = Judged(verdicts())
    panel = overview(found)
    assert panel.kind == "bars" and panel.stack
    there = [word for word in WORDS if found.counts[word].any()]
    assert 0 < len(there) == len(panel.curves) and [one.name for one in panel.curves] == there
    assert list(panel.curves[0].x) == [one.name for one in SOURCES.values()]
    assert sum(np.sum(curve.y) for curve in panel.curves) == found.counts.to_numpy().sum()


@pytest.mark.parametrize("key", EXPERIMENTS)
def test_no_two_bars_of_a_chart_have_one_colour(key):
    for cells in shipped(key).values():
        colours = [style(one).light for one in papers._colours(cells["series"]).values()]
        assert len(set(colours)) == min(len(colours), len(FALLBACKS))


def test_rows_are_sorted_and_none_is_lost():
    found = Judged(verdicts())
    for order in PapersSettings.parameters()["order"].choices:
        assert set(found.listed(order=order).verdicts) == set(found.verdicts)
    listed = list(dict.fromkeys(found.listed(order="paper").table()["paper"]))
    assert listed == [one.name for one in SOURCES.values()]
    words = list(dict.fromkeys(found.listed(order="verdict").table()["verdict"]))
    assert words == [word for word in WORDS if word in words]
    first = found.listed(order="ratio").rows[0]
    assert first[0].kind == "number" and first[1].shown is not None


def test_results_travel_between_processes():
    found = Judged(verdicts())
    assert pickle.loads(pickle.dumps(found)).counts.equals(found.counts)
    assert pickle.loads(pickle.dumps(shown())).size


def test_ours_is_said_with_its_interval_reading_and_size():
    def said(*given, unit=""):
        return papers.ours(Verdict("reproduced", "", (Tried(*given),)), unit)

    assert papers.ours(Verdict("undetermined", "Not run.")) == "–"
    assert said(STATED, 41.0, 40.0, 43.0, 3, "paper", True) == "41 (40 to 43); 3 seeds"
    assert said(STATED, 2.0, 2.0, 2.0, 1, "live", True) == "2; 1 seed, live size"
    told = said("later", 2.0, 1.0, 3.0, 2, "paper", True, unit="times")
    assert told == "2 (1 to 3) times; 2 seeds; later"


def test_a_row_s_command_runs_its_experiment(tmp_path):
    for name, found in verdicts().items():
        again = command(ENTRIES[name], found)
        assert bool(again) is (found.shown is not None)
        if again:
            key = re.match(r"python -m fedpca_core reproduce (\S+)", again)[1]
            assert found.shown.size in EXPERIMENTS[key].sizes
    again = command(ENTRIES["dfl/figure-1"], verdicts()["dfl/figure-1"])
    assert main([*again.split()[3:], "--out", str(tmp_path)]) == 0
    assert (tmp_path / "dfl-figure-1-live.csv").exists()


@pytest.mark.parametrize("key", list(EXPERIMENTS))
def test_shipped_results_are_whole_and_say_where_they_come_from(key):
    for size, cells in shipped(key).items():
        made = origin(key, size)
        assert f"reproduce {key}" in papers.made_by(key, size, made)
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
        *papers._measured(entry, found, found.size),
        *papers._curves(entry, found, found.size),
    ]
    assert panels or not entry.measure
    assert not papers.needed(summary(found.cells[found.size])).empty
    assert entry.described(found.size)


def test_a_live_run_is_judged_as_it_comes():
    steps = []
    settings = PapersSettings(experiment="figure-1a", run_live=True, seeds=3)
    found = outcome(PaperExperiment().run(settings), lambda step: steps.append(step) or True)
    one = found.rows.verdicts["fedpower/example-1"]
    assert one.word == "reproduced" and one.shown.agrees and one.shown.size == "live"
    assert found.rows.verdicts["faps/proposition-2"].word == "reproduced"
    assert isinstance(found.rows, Judged) and found.origins == {}
    assert 0 < steps[-1].fraction <= 1


def test_every_row_leads_to_its_formulas_and_its_run():
    assert set(papers.FORMULAS) == set(SOURCES) and set(papers.FORMULAS.values()) <= set(PLACES)
    live = [one.live() for one in EXPERIMENTS.values()]
    assert {settings.kind for settings in live if settings is not None} <= set(PLACES)


def test_papers_are_cited():
    for one in SOURCES.values():
        assert one.bibtex.startswith(f"@{one.kind}{{{one.key},") and one.title in one.bibtex
        assert one.link or one.note
    assert "author =" not in SOURCES["dfl"].bibtex and "no authors" in SOURCES["dfl"].bibtex
    assert SOURCES["faps"].link == "https://arxiv.org/abs/2012.03461"
    assert SOFTWARE.bibtex.startswith("@software{")
