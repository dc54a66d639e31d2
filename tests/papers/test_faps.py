"""FAPS's presets: each is a valid configuration, and makes the point it claims."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.algorithms.registry import COMPARED
from fedpca_core.errors import InvalidInput
from fedpca_core.papers.faps import PRESETS, preset
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.questions.attack.replay import ReplayAttack
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.steps import outcome
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings


def compare(configuration):
    return outcome(Convergence().run(configuration))


def rounds(name, value=None, accuracy=1e-7, **changes):
    """Rounds each method of a live preset needs, by its key; NaN if it does not get there."""
    comparison = compare(replace(preset(name).configuration(value), **changes))
    assert not comparison.refusals
    summary = comparison.summary("relative_error", accuracy).set_index("method")
    return {key: summary["round"].get(title, np.nan) for key, title in COMPARED.items()}


@pytest.mark.parametrize("name", [entry.name for entry in PRESETS])
def test_presets_are_valid_and_explained(name):
    chosen = preset(name)
    assert isinstance(chosen.configuration(), ConvergeSettings)
    assert chosen.title
    assert chosen.point.endswith(".")
    for value in chosen.values:
        assert getattr(chosen.configuration(value), chosen.varied) == value
    live = chosen.configuration()
    if chosen.varied and chosen.values and not isinstance(live, AttackSettings):
        assert getattr(live, chosen.varied) in chosen.values
    assert bool(chosen.paper_values) <= bool(chosen.paper)


def test_names_are_unique():
    assert len({entry.name for entry in PRESETS}) == len(PRESETS)


def test_no_two_presets_are_the_same_run():
    """Else one of them opens under the other's name."""
    runs = Counter(
        (type(entry.configuration()), entry.configuration(value).run_key())
        for entry in PRESETS
        for value in (entry.values or (None,))
    )
    assert [run for run, times in runs.items() if times > 1] == []


def test_presets_cannot_be_changed():
    with pytest.raises(AttributeError):
        preset("uneven").settings.features = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", ["default", "uneven", "table-1", "rates"])
def test_faps_needs_a_third_of_the_rounds_and_block_krylov_a_dozen(name):
    needed = rounds(name)
    assert needed["faps"] <= needed["ssi"] / 3
    assert needed["block_krylov"] <= 13


def test_more_features_leave_the_rounds_where_they_are():
    few, many = rounds("vary-features", 30), rounds("vary-features", 90)
    assert few["ssi"] == pytest.approx(many["ssi"], rel=0.05)
    assert few["faps"] == pytest.approx(many["faps"], rel=0.2)


def test_more_samples_leave_ssi_alone_and_help_faps():
    few, many = rounds("vary-samples", 200), rounds("vary-samples", 2000)
    assert few["ssi"] == many["ssi"]
    assert many["faps"] < few["faps"]


def test_flatter_spectra_are_slower():
    steep, flat = rounds("vary-decay", 1.1), rounds("vary-decay", 1.02)
    for method in ("ssi", "local_power", "faps", "block_krylov"):
        assert flat[method] > 1.5 * steep[method]


def test_local_power_comes_near_on_images():
    found = [rounds("images", seed=seed) for seed in range(6)]
    ratios = [needed["local_power"] / needed["faps"] for needed in found]
    assert min(ratios) == pytest.approx(1.0, abs=0.05)  # the two ends that the preset's point says
    assert max(ratios) == pytest.approx(2.0, abs=0.05)
    assert all(needed["ssi"] <= 60 for needed in found)


def test_faps_loses_with_two_samples_per_feature():
    configuration = preset("faps-loses").configuration()
    assert configuration.samples == 2 * configuration.features
    needed = rounds("faps-loses")
    assert needed["faps"] > 1.3 * needed["ssi"]


def test_heterogeneity_helps_before_it_hurts():
    alike, apart, extreme = (rounds("heterogeneity-helps", t) for t in (0.0, 0.4, 1.0))
    assert alike["ssi"] == apart["ssi"] == extreme["ssi"]
    assert apart["faps"] < 0.75 * alike["faps"]
    assert apart["faps"] < extreme["faps"]


def test_half_the_clients_end_at_a_floor_unless_the_server_remembers():
    configuration = preset("participation-floor").configuration()
    comparison = compare(configuration)
    for tables in comparison.tables.values():
        # Still there over the whole second half: a floor, not slowness.
        assert tables[0]["relative_error"].iloc[100:].min() > 1e-6
    remembering = compare(replace(configuration, absent="memory", rounds=500))
    for tables in remembering.tables.values():
        assert tables[0]["relative_error"].iloc[-1] < 1e-7


def test_one_shot_ends_at_an_error_that_grows_with_heterogeneity():
    def final(value):
        comparison = compare(preset("one-shot").configuration(value))
        return {
            method: tables[0]["relative_error"].iloc[-1]
            for method, tables in comparison.tables.items()
        }

    errors = [final(value) for value in (0.0, 0.5, 1.0)]
    assert 1e-5 < errors[0]["one_shot"] < errors[1]["one_shot"] < errors[2]["one_shot"]
    assert all(one["block_krylov"] < 1e-12 for one in errors)


def test_figure_1a_recovers_before_it_converges():
    found = outcome(ClientReconstruction().run(preset("figure-1a").configuration()))
    ssi = found.recoveries["ssi"]
    assert ssi.complete == 10
    assert ssi.last < 1e-8 < 0.5 < ssi.angle_of_method(10)
    assert found.recoveries["faps"].last > 1


def test_a_linear_attack_on_faps_is_not_worse_than_zero_on_every_run_and_round():
    early = replace(preset("figure-1a").configuration(), rounds=10, attacked=("faps",))
    runs = [ClientReconstruction().run(replace(early, seed=seed)) for seed in range(20)]
    after_three = [outcome(run).recoveries["faps"].errors[0, 3] for run in runs]
    assert 0 < sum(error < 1 for error in after_three) < 20


def test_faps_is_replayed_to_rounding():
    found = outcome(ReplayAttack().run(preset("replay").configuration()))
    assert found.error < 1e-9 and found.attack.succeeded and found.attack.evaluations < 60


def test_paper_size_is_said_to_be_missing_where_it_is():
    with pytest.raises(InvalidInput, match="“FAPS loses” is not an experiment of the paper"):
        preset("faps-loses").paper_problem()


def test_values_without_a_place_and_unknown_names_are_refused():
    with pytest.raises(InvalidInput, match=r"varies nothing, so the value 3\.0"):
        preset("uneven").configuration(3.0)
    with pytest.raises(InvalidInput, match="no preset “figure-2”; choose one of default, uneven"):
        preset("figure-2")


def test_paper_sizes_are_the_paper_s(monkeypatch):
    """The generator is stopped before it draws gigabytes: the sizes are what is checked."""
    from fedpca_core.papers import faps

    asked: dict = {}

    def noted(features, samples, decay=None, *, condition=None, seed=0, leading=None):
        asked.update(
            features=features, total=sum(samples), clients=len(samples), last=samples[-1],
            decay=decay, condition=condition,
        )  # fmt: skip

    monkeypatch.setattr(faps, "decay_spectrum", noted)
    preset("table-1").paper_problem()
    assert asked == {
        "features": 2000, "total": 128_000, "clients": 128, "last": 1000, "decay": 1.01,
        "condition": None,
    }  # fmt: skip
    preset("uneven").paper_problem()
    assert (asked["features"], asked["total"], asked["last"]) == (1000, 36_000, 8000)
    preset("vary-samples").paper_problem(2000)
    assert asked["total"] == 256_000
    preset("vary-decay").paper_problem(preset("vary-decay").paper_values[2])
    assert asked["decay"] == pytest.approx(1.01)
    assert asked["total"] == 256_000
    preset("rates").paper_problem(1000.0)
    assert (asked["decay"], asked["condition"], asked["total"]) == (None, 1000.0, 160_000)


def test_the_sums_of_ssi_give_a_joining_away():
    found = outcome(OneMoreRecord().run(preset("one-more-record").configuration()))
    ssi, local = found.found["ssi"], found.found["local_power"]
    assert found.from_sums
    assert ssi.cosine > 1 - 1e-12 and ssi.purity.max() > 0.999
    assert not local.sure
