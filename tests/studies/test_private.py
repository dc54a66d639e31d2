"""Private runs: their settings, old links and files, every view headless, and what they cost."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.privacy import Guarantee, Refusal
from fedpca_core.studies.catalogue import STUDIES, read_settings, studies_of
from fedpca_core.studies.papers.fedpower import FIGURES
from fedpca_core.studies.private.accountants import Accountants
from fedpca_core.studies.private.build import build_problem, current_noise, noise_for, stated
from fedpca_core.studies.private.convergence import PrivateRun
from fedpca_core.studies.private.error_budget import ErrorBudget
from fedpca_core.studies.private.guarantee import promised
from fedpca_core.studies.private.membership import RecordMembership
from fedpca_core.studies.private.price import (
    PriceOfBudget,
    PriceOfProducts,
    best_length,
    last_value,
)
from fedpca_core.studies.private.reconstruction import Reconstruction
from fedpca_core.studies.private.settings import PRIVATE, VIEWS, PrivacySettings
from fedpca_core.studies.study import Study, outcome

SMALL = PrivacySettings(features=20, samples=2000, repetitions=2, delta=1e-5, clients=6)


def result_of(study: Study, settings: PrivacySettings):
    found = outcome(study.run(settings))
    assert found is not None
    return found


# ---------------------------------------------------------------------- links and files
@pytest.mark.parametrize(
    ("link", "means"),
    [
        ({"model": ["Distinct clients"]}, {"problem": "distinct"}),
        ({"eps": ["0.5"]}, {"epsilon": 0.5}),
        ({"dp": ["false"]}, {"epsilon": math.inf}),
        ({"dp": ["false"], "eps": ["2"]}, {"epsilon": math.inf}),
        ({"eps": ["2"], "dp": ["true"]}, {"epsilon": 2.0}),
        ({"period": ["4"]}, {"local_steps": 4}),
        ({"decay": ["false"]}, {"decaying_gaps": False}),
        ({"mask": ["0.1"], "method": ["FAPS"]}, {"upload_noise": 0.1, "method": "faps"}),
        ({"method": ["Block Krylov"]}, {"method": "block_krylov"}),
        ({"clip": ["2"], "records": ["Clipped at the clip norm"]},
         {"clip_norm": 2.0, "treatment": "clipped"}),
        ({"view": ["The paper's figures"], "figure": ["4(b) Model II, budget ε"]},
         {"view": "figures", "figure": "4b"}),
    ],
)  # fmt: skip
def test_links_of_earlier_versions_still_open(link, means) -> None:
    expected = PrivacySettings(**means)
    reading = PrivacySettings.from_query(link)
    assert reading.configuration == expected and not reading.notes
    modern = PrivacySettings.modern_link(link)
    assert not set(modern) & set(PrivacySettings.former_keys)
    assert PrivacySettings.from_query(modern).configuration == expected


def test_every_renamed_key_is_tested_above() -> None:
    links = test_links_of_earlier_versions_still_open.pytestmark[0].args[1]
    tried = {key for link, _ in links for key in link}
    assert set(PrivacySettings.former_keys) <= tried


def test_files_of_earlier_versions_still_open() -> None:
    old = (
        '{"kind": "privacy", "version": 1, "model": "blocks", "noise": false, "epsilon": 2.0,'
        ' "period": 3, "decay": false, "mask": 0.1}'
    )
    assert read_settings(old) == PrivacySettings(
        problem="blocks", epsilon=math.inf, local_steps=3, decaying_gaps=False, upload_noise=0.1
    )
    assert PrivacySettings.from_file(old.replace('false, "eps', 'true, "eps')).epsilon == 2.0


# ---------------------------------------------------------------------- headless
def test_every_view_has_its_studies_and_every_study_its_view() -> None:
    shown = {study for view in VIEWS for study in studies_of(PrivacySettings(view=view))}
    mine = {study for study in STUDIES.values() if study.settings is PrivacySettings}
    assert shown == mine
    assert all(len(studies_of(PrivacySettings(view=view))) >= 2 for view in VIEWS)


def test_what_a_study_reads_is_in_its_identity() -> None:
    figure, accounts = STUDIES["fedpower_figure"], STUDIES["accountants"]
    assert figure.identity(SMALL) == figure.identity(replace(SMALL, epsilon=2.0))
    assert figure.identity(SMALL) != figure.identity(replace(SMALL, figure="3b"))
    assert accounts.identity(SMALL) != accounts.identity(replace(SMALL, multiplier=1.0))
    run = STUDIES["private_run"]
    assert run.identity(SMALL) == run.identity(replace(SMALL, view="budget", multiplier=1.0))


@pytest.mark.parametrize("key", ["private_run", "price_of_products", "private_reconstruction"])
def test_a_run_stops_at_any_step_and_keeps_what_it_has(key) -> None:
    study = STUDIES[key]
    partial = outcome(study.run(SMALL), lambda step: step.result is None)
    whole = result_of(study, SMALL)
    some, all_ = (study.tables(each, SMALL) for each in (partial, whole))
    assert 0 < sum(map(len, some.values())) < sum(map(len, all_.values()))


# ---------------------------------------------------------------------- the run and its price
def test_the_run_compares_calibrations_and_no_noise() -> None:
    c = replace(SMALL, draws=5, local_steps=3, epsilon=10.0)
    found = result_of(PrivateRun(), c)
    assert list(found.runs) == ["exact", "published", "none"]
    assert found.spending is not None and found.spending.releases[0] == c.products
    assert found.spending.epsilon.max() == pytest.approx(10.0)
    quiet = result_of(PrivateRun(), replace(c, epsilon=math.inf))
    assert list(quiet.runs) == ["none"] and quiet.floor is None and quiet.spending is None
    assert np.array_equal(quiet.runs["none"].sines, found.runs["none"].sines)
    masked = result_of(PrivateRun(), replace(c, method="ssi", upload_noise=0.1))
    assert list(masked.runs) == ["exact", "published", "none"]  # masks only what has no ε
    masked = result_of(PrivateRun(), replace(c, method="one_shot", upload_noise=0.1))
    assert list(masked.runs) == ["masked", "none"]


def test_the_price_falls_with_epsilon_and_exact_noise_is_cheaper() -> None:
    swept = result_of(PriceOfBudget(), SMALL)
    exact, published = (swept.band(kind, "sin_theta").middle for kind in ("exact", "published"))
    assert exact[-1] < exact[0] and published[-1] < published[0]
    assert np.all(exact[3:] < published[3:])
    quiet = last_value(swept, "none")
    assert quiet is not None and quiet < exact[-1]


def test_repetitions_share_the_data_and_differ_in_start_and_noise() -> None:
    c = replace(SMALL, epsilon=5.0)
    swept, run = result_of(PriceOfBudget(), c), result_of(PrivateRun(), c)
    table = swept.table[(swept.table["value"] == 5.0) & (swept.table["series"] == "exact")]
    assert list(table["result"]) == pytest.approx(list(run.runs["exact"].sines[:, -1]))
    assert table["result"].nunique() == 2


def test_spreading_a_budget_over_too_many_products_hurts() -> None:
    c = PrivacySettings(epsilon=0.5, delta=1e-4, calibration="published", repetitions=6)
    swept = result_of(PriceOfProducts(), c)
    band = swept.band("published", "sin_theta")
    medians = dict(zip(band.x, band.middle, strict=True))
    # Fewer features than the paper's 100 converge a product or two earlier than its 5 to 7.
    best = best_length(swept, "published")
    assert best is not None and best[0] in (4, 5, 6) and not best[1]
    assert medians[40] == pytest.approx(2 * medians[10], rel=0.25)
    assert medians[2] > 2 * medians[6]


def test_without_noise_the_best_length_is_an_end_of_the_sweep() -> None:
    swept = result_of(PriceOfProducts(), replace(SMALL, epsilon=math.inf))
    assert swept.series == ["none"]
    assert best_length(swept, "none") == (40, True)
    assert best_length(swept, "exact") is None


def test_block_krylov_pays_for_one_product_whatever_its_length() -> None:
    c = replace(SMALL, method="block_krylov", epsilon=2.0)
    noises = {
        kind: [noise_for(replace(c, products=t), kind) for t in (1, 10, 40)]
        for kind in ("exact", "published")
    }
    assert np.allclose(noises["exact"], noises["exact"][0])
    assert noises["published"][1] == pytest.approx(np.sqrt(10) * noises["published"][0])
    finals = result_of(PriceOfProducts(), c).band("exact", "sin_theta").middle
    assert np.isfinite(finals).all() and finals[-1] < 1.5 * finals[3]


@pytest.mark.parametrize("method", ["fedpower", "ssi", "block_krylov"])
@pytest.mark.parametrize("calibration", ["exact", "published"])
def test_accountants_and_guarantee_agree(method, calibration) -> None:
    """Block Krylov's credit counts in the table as it does on the card."""
    c = replace(SMALL, method=method, calibration=calibration, products=8)
    accounts, guarantee = result_of(Accountants(), c), promised(c).stated[0].guarantee
    row = accounts.table.iloc[0 if calibration == "published" else -1]
    assert row["noise"] == pytest.approx(guarantee.noise)
    assert row["true_epsilon"] == pytest.approx(guarantee.epsilon, rel=1e-6)
    assert accounts.table["ratio"].iloc[0] == pytest.approx(promised(c).excess)
    assert accounts.counted == (1 if method == "block_krylov" else 8)
    assert ("count as one" in guarantee.sentence()) == (method == "block_krylov")
    assert np.all(accounts.table["true_epsilon"] <= c.epsilon * (1 + 1e-6))


def test_the_budget_needs_fedpower_and_says_so() -> None:
    found = result_of(ErrorBudget(), replace(SMALL, local_steps=3, draws=5))
    assert np.allclose(found.increments.sum(axis=0), found.squared)
    assert np.allclose(found.shares.sum(axis=0), 1.0)
    assert found.identity.residual.max() < 1e-11
    with pytest.raises(InvalidInput, match="choose FedPower as the method"):
        result_of(ErrorBudget(), replace(SMALL, method="ssi"))


# ---------------------------------------------------------------------- guarantees
@pytest.mark.parametrize("method", PRIVATE)
def test_every_method_states_its_budget_or_why_it_cannot(method: str) -> None:
    c = replace(SMALL, method=method, epsilon=2.0)
    found = stated(c)
    entry = METHODS[method]
    if entry.accounts:
        assert isinstance(found, Guarantee) and found.epsilon == pytest.approx(2.0)
        assert found.noise == noise_for(c)
    else:
        assert isinstance(found, Refusal) and current_noise(c) == 0.0
        assert entry.refusal and entry.refusal.replace("S_i", "Sᵢ") in found.reason
        assert entry.title in found.reason
        assert promised(c).refusal == found.reason


def test_a_method_that_has_no_epsilon_gives_the_registered_reason() -> None:
    reason = promised(replace(SMALL, method="fedpg")).refusal
    assert "the length of a local step depends on the client's data" in reason
    assert "number" not in reason
    assert "Choose SSI, Block Krylov or FedPower" in reason


@pytest.mark.parametrize("figure", [entry.key for entry in FIGURES])
def test_figures_say_what_each_curve_guarantees(figure: str) -> None:
    """The paper's delta is larger than one over the records, at any size but many networks'."""
    entry = next(one for one in FIGURES if one.key == figure)
    for paper_size in (False, True):
        found = promised(replace(SMALL, view="figures", figure=figure, paper_size=paper_size))
        assert [each.label for each in found.stated] == [one.label for one in entry.variants]
        for each, variant in zip(found.stated, entry.variants, strict=True):
            assert each.asked == variant.epsilon
            if entry.calibration == "exact":
                assert each.guarantee.epsilon == pytest.approx(variant.epsilon)
            elif math.isfinite(variant.epsilon):
                assert each.guarantee.epsilon < variant.epsilon / 4
        assert ("sits in two rows" in found.record) == (entry.model != "spiked")
        records = found.stated[0].guarantee.sensitivity ** -1 * math.sqrt(2)
        assert bool(found.warning) == (found.private and 1 / records <= 1e-4)


def test_published_noise_at_the_papers_size_is_worth_what_the_audit_says() -> None:
    figure = promised(PrivacySettings(view="figures", figure="3b", paper_size=True))
    found = [each.guarantee.epsilon for each in figure.stated]
    assert found == pytest.approx([1.20, 0.089, 0.040], rel=0.01)


def test_clip_norms_scale_the_noise_with_their_square() -> None:
    one, two = (noise_for(replace(SMALL, treatment="clipped", clip_norm=norm)) for norm in (1, 2))
    assert two == pytest.approx(4 * one)
    assert noise_for(replace(SMALL, problem="distinct", clip_norm=2.0)) == pytest.approx(one)


def test_too_much_data_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(InvalidInput, match="numbers to draw"):
        build_problem(replace(SMALL, features=200, samples=100000, clients=50))


@pytest.mark.parametrize(
    "study", [PriceOfBudget(), PriceOfProducts(), Reconstruction(), RecordMembership(),
              Accountants()], ids=lambda study: study.key,
)  # fmt: skip
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "faps"}, "Noise on the uploads of FAPS gives no ε"),
        ({"treatment": "raw", "epsilon": math.inf}, "Raw records"),
    ],
)
def test_no_view_speaks_of_a_budget_that_means_nothing(study, changes, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        outcome(study.run(replace(SMALL, **changes)))


def test_the_figures_and_their_parameter_agree() -> None:
    assert [entry.key for entry in FIGURES] == list(PrivacySettings.parameters()["figure"].choices)
