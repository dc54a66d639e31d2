"""The Attack page's outcomes without a browser: adversaries, baselines, replay, defences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashboard.shell import presets
from dashboard.shell.jobs import Job
from dashboard.views import adversary, reconstruction
from dashboard.views import differencing as joining_section
from dashboard.views import replay as replaying
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.build import build_problem
from fedpca_core.studies.papers.faps import preset
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings

SMALL = AttackSettings(features=10, components=2, samples=40, rounds=10)


def always(fraction: float, text: str) -> bool:
    return True


def outcome(**changes) -> adversary.Outcome:
    chosen = replace(SMALL, **changes)
    return adversary.attack_all(chosen, build_problem(chosen), always)


def test_single_uploads_leak_and_masked_ones_do_not_yield_to_equations() -> None:
    found = outcome()
    assert found.recoveries["ssi"].errors[0, 0] == pytest.approx(1)
    assert found.recoveries["ssi"].errors[0, -1] < 1e-8
    assert found.recoveries["faps"].errors[0, -1] > 1
    assert found.recoveries["ssi"].angles[-1] < 1e-6 < found.recoveries["faps"].angles[-1]
    assert len(found.pictures[0]) == 3
    assert found.pictures[0][0].simulation_only
    words = adversary.verdict(found.recoveries, SMALL)
    assert "whole covariance after round" in words and "worse than guessing zero" in words


def test_secure_aggregation_refuses_single_uploads_and_sums_reach_the_pooled_mean() -> None:
    refused = outcome(secure_aggregation=True)
    assert not refused.recoveries
    assert all("secure aggregation" in text for text in refused.refusals.values())
    sums = outcome(secure_aggregation=True, attack="pooled", attacked=("ssi",))
    pooled = next(mark for mark in sums.baselines if mark.label.startswith("pooled S"))
    best = float(sums.recoveries["ssi"].errors.min())
    assert best > 0.95 * pooled.value and pooled.simulation_only


def test_colluders_must_be_few_enough_and_useful() -> None:
    everyone = outcome(secure_aggregation=True, attack="collude", colluders=4, attacked=("ssi",))
    assert everyone.recoveries["ssi"].errors[0, -1] < 1e-8
    few = outcome(secure_aggregation=True, attack="collude", colluders=1, attacked=("ssi",))
    assert few.recoveries["ssi"].errors[0, -1] > 0.05
    too_many = outcome(secure_aggregation=True, attack="collude", colluders=7)
    assert "only 4 other clients, not 7" in too_many.refusals["ssi"]
    idle = outcome(attack="collude")
    assert "switch secure aggregation on" in idle.refusals["ssi"]


def test_starts_make_bands_and_tables() -> None:
    found = outcome(starts=3)
    assert found.recoveries["ssi"].errors.shape == (3, 11)
    panel = reconstruction.error_panel(found.recoveries, found.baselines)
    assert panel.curves[0].lower is not None
    table = adversary.error_table(found)
    assert len(table) == 2 * 3 * 11


def test_messages_say_what_crossed_the_wire() -> None:
    rows = outcome().recoveries["ssi"].messages
    assert rows["Directions known"].tolist()[:3] == ["2 of 10", "4 of 10", "6 of 10"]
    assert rows["kB up"][0] == 8e-3 * 10 * 2 * 5
    hidden = outcome(secure_aggregation=True, attack="pooled").recoveries["ssi"].messages
    assert hidden["Uploads"][0].startswith("sum of")


def test_images_show_records_of_small_clients() -> None:
    chosen = replace(
        SMALL, problem="digits", clients=100, components=5, rounds=20, attacked=("ssi",)
    )
    found = adversary.attack_all(chosen, build_problem(chosen), always)
    titles = [picture.title for row in found.pictures for picture in row]
    assert "One record of the client" in titles and "From SSI" in titles
    assert "SSIM" in found.recoveries["ssi"].likeness[-1]


def test_replay_reports_error_and_how_it_knows() -> None:
    problem = build_problem(SMALL)
    truth = adversary.private_matrix(problem, 0)
    job = Job(key="test", deadline=1e12)
    found = replaying.run(replace(SMALL, budget=30), problem, truth, job)
    assert found.error < 1e-9 and found.result.succeeded
    assert "the residual tells it so" in replaying.sentence(found)
    assert replaying.panel(found).baselines[0].value == found.result.tolerance
    assert len(replaying.pictures(found, truth, problem)[0]) == 3


def test_every_defence_is_studied() -> None:
    chosen = replace(SMALL, budget=5)
    problem = build_problem(chosen)
    job = Job(key="test", deadline=1e12, _seen=np.inf)
    table = replaying.study(chosen, problem, adversary.private_matrix(problem, 0), job)
    assert len(table) == len(replaying.DEFENCES) + 1
    rows = table.set_index("Defence")["Replay, hidden part fitted"]
    assert float(rows["None"]) < 1e-9
    assert float(rows["Noise of 3% on uploads"]) > 1e-3
    assert rows["Secure aggregation"] == "no single upload to replay"


def test_a_preset_is_recognised_whatever_is_shown_of_it() -> None:
    wanted = preset("participation-floor")
    match = presets.found(replace(wanted.configuration(), measure="kkt"))
    assert match is not None and match[0] is wanted
    assert presets.found(ConvergeSettings()) is None
    varied = presets.found(preset("heterogeneity-helps").configuration(0.8))
    assert varied is not None and varied[1] == 0.8


def joined(**changes) -> joining_section.Joined:
    chosen = replace(SMALL, rounds=20, record=3, **changes)
    chosen = replace(chosen, attack=joining_section._adversary(chosen))
    problem = build_problem(chosen)
    return joining_section.run(chosen, problem, Job(key="newcomer", deadline=np.inf))


def test_two_runs_give_away_the_record_between_them() -> None:
    found = joined()
    assert found.sines["ssi"][0] > 0.9 and found.sines["ssi"][-1] < 1e-6
    assert found.sines["faps"][-1] > 0.1
    assert found.counts == {"ssi": 40, "faps": 40}
    words = joining_section.sentence(found, build_problem(SMALL))
    assert "From **SSI** the server has the record that joined" in words and "knows it" in words
    assert "From **FAPS** the server cannot be sure" in words
    assert "sums only" not in words


def test_sums_give_away_the_record_but_not_whose_it_is() -> None:
    found = joined(secure_aggregation=True, attacked=("ssi",), attack="linear")
    assert found.sines["ssi"][-1] < 1e-6
    assert found.counts == {"ssi": 200}
    assert "hide whose record" in joining_section.sentence(found, build_problem(SMALL))


def test_a_record_that_is_not_there_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="Client 0 has no record 90; choose one from 0 to 39"):
        joining_section.run(
            replace(SMALL, record=90), build_problem(SMALL), Job(key="no", deadline=np.inf)
        )


def test_the_section_s_best_onlooker_suits_the_channel() -> None:
    best = joining_section._adversary
    assert best(SMALL) == "symmetric"
    assert best(replace(SMALL, attack="ridge")) == "ridge"
    assert best(replace(SMALL, secure_aggregation=True)) == "pooled"
    assert best(replace(SMALL, secure_aggregation=True, attack="collude")) == "collude"
