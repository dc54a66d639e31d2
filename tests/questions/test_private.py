"""Private runs: their settings, old links and files, every view headless, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from fedpca_core.__main__ import main
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import epsilon_of
from fedpca_core.papers.fedpower import FIGURES, FigurePanel
from fedpca_core.privacy import Guarantee, Refusal, account
from fedpca_core.privacy.calibration import by_coin
from fedpca_core.problems.perturbation import source_guarantee
from fedpca_core.questions.catalogue import STUDIES, studies_of
from fedpca_core.questions.privacy import attacks, build
from fedpca_core.questions.privacy.attacks import Reconstruction, RecordMembership
from fedpca_core.questions.privacy.build import build_problem, noise_for, stated
from fedpca_core.questions.privacy.error_budget import ErrorBudget
from fedpca_core.questions.privacy.figures import accountants as drawn
from fedpca_core.questions.privacy.guarantee import Accountants, Promises, promised
from fedpca_core.questions.privacy.settings import PRIVATE, PrivacySettings
from fedpca_core.questions.privacy.study import (
    PriceOfBudget,
    PriceOfProducts,
    PrivateRun,
    best_length,
    last_value,
)
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

SMALL = PrivacySettings(features=20, samples=2000, repetitions=2, delta=1e-5, clients=6)


def result_of(study: Study, settings: PrivacySettings):
    found = outcome(study.run(settings))
    assert found is not None
    return found


# ---------------------------------------------------------------------- headless
def test_every_view_has_its_studies_and_every_study_its_view() -> None:
    views = PrivacySettings.parameters()["view"].choices
    shown = {study for view in views for study in studies_of(PrivacySettings(view=view))}
    mine = {study for study in STUDIES.values() if study.settings is PrivacySettings}
    assert shown == mine
    assert all(len(studies_of(PrivacySettings(view=view))) >= 2 for view in views)


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
    assert list(found.runs) == ["exact", "published", "source", "none"]
    assert found.spending is not None and found.spending.releases[0] == c.products
    assert found.spending.epsilon.max() == pytest.approx(10.0)
    quiet = result_of(PrivateRun(), replace(c, epsilon=math.inf))
    assert list(quiet.runs) == ["none"] and quiet.floor is None and quiet.spending is None
    assert np.array_equal(quiet.runs["none"].sines, found.runs["none"].sines)
    masked = result_of(PrivateRun(), replace(c, method="ssi", upload_noise=0.1))
    assert list(masked.runs) == ["exact", "published", "source", "none"]  # masks only what has no ε
    masked = result_of(PrivateRun(), replace(c, method="one_shot", upload_noise=0.1))
    assert list(masked.runs) == ["masked", "source", "none"]
    at_source = result_of(PrivateRun(), replace(c, method="one_shot", calibration="source"))
    assert list(at_source.runs) == ["source", "none"]


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


@pytest.mark.parametrize(
    ("method", "calibration"),
    [
        ("fedpower", "exact"),
        ("ssi", "published"),
        ("block_krylov", "exact"),
        ("block_krylov", "published"),
    ],
)
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


def test_a_secret_coin_is_asked_about_where_a_client_is_protected() -> None:
    asked = replace(SMALL, view="accountants", unit="client", multiplier=5.0, products=8)
    found = result_of(Accountants(), replace(asked, coin=0.1))
    epsilon, plain = found.by_coin
    # By replacement two columns move by √2 C², one that comes or goes by C².
    assert plain == pytest.approx(epsilon_of(np.sqrt(8) / (5 * np.sqrt(2)), asked.delta))
    assert epsilon == pytest.approx(by_coin(5 * np.sqrt(2), 0.1, asked.delta, 8))
    assert epsilon < plain
    said = " ".join(str(part) for part in drawn(found, replace(asked, coin=0.1)))
    for words in ("did nobody else learn how it fell", "once for the sum", "No run here may claim"):
        assert words in said
    assert result_of(Accountants(), asked).by_coin is None
    of_records = replace(asked, unit="record", coin=0.1)
    assert "coin" in of_records.idle() and result_of(Accountants(), of_records).by_coin is None


def test_the_budget_needs_fedpower_and_says_so() -> None:
    found = result_of(ErrorBudget(), replace(SMALL, local_steps=3, draws=5))
    sums = found.ablation.groupby("communication")[["added_squared_sine", "share"]].sum()
    assert np.allclose(sums["added_squared_sine"], found.squared)
    assert np.allclose(sums["share"], 1.0)
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
        assert isinstance(found, Refusal) and noise_for(c) == 0.0
        assert entry.refusal and entry.refusal in found.reason
        assert entry.title in found.reason
        assert promised(c).refusal == found.reason


def test_a_method_that_has_no_epsilon_gives_the_registered_reason() -> None:
    reason = promised(replace(SMALL, method="fedpg")).refusal
    assert "the length of a local step depends on the client's data" in reason
    assert "number" not in reason
    assert "Choose SSI, Block Krylov, FedPower, or noise at the source" in reason


def figures() -> Iterator[tuple[FigurePanel, Promises]]:
    """Every figure at both sizes, with what stands beside it."""
    for entry in FIGURES:
        for paper_size in (False, True):
            yield (
                entry,
                promised(replace(SMALL, view="figures", figure=entry.key, paper_size=paper_size)),
            )


def test_figures_say_what_each_curve_guarantees() -> None:
    for entry, found in figures():
        assert [each.label for each in found.stated] == [one.label for one in entry.variants]
        for each, variant in zip(found.stated, entry.variants, strict=True):
            assert each.asked == variant.epsilon
            if entry.calibration == "exact":
                assert each.guarantee.epsilon == pytest.approx(variant.epsilon)
            elif math.isfinite(variant.epsilon):
                assert each.guarantee.epsilon < variant.epsilon / 4


def test_figures_warn_of_a_delta_above_one_over_the_records() -> None:
    """The paper's delta is larger than that at any size but many networks'."""
    warned = set()
    for _, found in figures():
        records = found.stated[0].guarantee.sensitivity ** -1 * math.sqrt(2)
        assert bool(found.warning) == (found.private and 1 / records <= 1e-4)
        warned.add(bool(found.warning))
    assert warned == {False, True}


def test_figures_of_networks_say_that_an_edge_sits_in_two_rows() -> None:
    for entry, found in figures():
        assert ("sits in two rows" in found.record) == (entry.model != "spiked")


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
def test_no_view_speaks_of_a_budget_that_means_nothing(study) -> None:
    with pytest.raises(InvalidInput, match="Raw records"):
        outcome(study.run(replace(SMALL, treatment="raw", epsilon=math.inf)))


def test_without_noise_on_products_there_is_noise_at_the_source(monkeypatch) -> None:
    """A method that cannot be accounted has no ε on its products, and one at the source."""
    c = replace(SMALL, method="one_shot", repetitions=1)
    monkeypatch.setattr(attacks, "TESTS_AT_SOURCE", 50)
    for study in (PriceOfBudget(), Reconstruction()):
        swept = result_of(study, c)
        assert "source" in swept.series and not {"exact", "published"} & set(swept.series)
    assert list(result_of(RecordMembership(), c).tests) == ["source"]
    with pytest.raises(InvalidInput, match="Noise on the uploads of One-shot"):
        result_of(Accountants(), c)


def test_the_figures_and_their_parameter_agree() -> None:
    assert [entry.key for entry in FIGURES] == list(PrivacySettings.parameters()["figure"].choices)


# ---------------------------------------------------------------------- real records
def own_table(uneven: bool = True) -> OwnData:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((600, 5)) * [0.5, 0.3, 0.2, 0.1, 0.1] + [3, 0, -2, 1, 0]
    frame = pd.DataFrame(rows, columns=list("abcde"))
    frame["hospital"] = np.repeat(["x", "y", "z"], [100, 200, 300] if uneven else [200, 200, 200])
    return OwnData("own.csv", frame.to_csv(index=False).encode())


TABLE = PrivacySettings(
    problem="table", client_column="hospital", columns=tuple("abcde"), components=2, products=3,
    local_steps=1, surplus=0,
    clip_norm=2.0, mean_clip=5.0, epsilon=5.0, delta=1e-5, repetitions=2,
)  # fmt: skip


def test_own_tables_run_from_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(attacks, "TESTS", 4)
    monkeypatch.setattr(attacks, "TESTS_AT_SOURCE", 20)
    table, file = tmp_path / "own.csv", tmp_path / "privacy.json"
    table.write_bytes(own_table().content)
    for view in ("run", "attacks", "accountants"):
        file.write_text(replace(TABLE, view=view).to_json(), encoding="utf-8")
        assert main(["run", str(file), "--table", str(table)]) == 0, view
        capsys.readouterr()
    file.write_text(TABLE.to_json(), encoding="utf-8")
    assert main(["run", str(file)]) == 2
    assert "choose a CSV, Parquet or NumPy file" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["fedpower", "ssi", "block_krylov"])
@pytest.mark.parametrize("calibration", ["exact", "source"])
@pytest.mark.parametrize("trusted", ["nobody", "clients"])
@pytest.mark.parametrize("unit", ["record", "person", "client"])
def test_the_noisy_mean_and_the_unit_are_within_the_budget(
    method: str, calibration: str, trusted: str, unit: str
) -> None:
    """What is stated is what was asked, whatever is paid for; and without a mean more is left."""
    chosen = {"method": method, "calibration": calibration, "trusted": trusted, "unit": unit}
    c, data = replace(TABLE, **chosen), own_table()
    found = stated(c, data)
    assert isinstance(found, Guarantee)
    assert found.epsilon == pytest.approx(5.0)
    assert "noisy mean (clip norm 5)" in found.released
    words = {"record": "one record", "person": "5 records", "client": "all of its records"}
    assert words[unit] in found.unit
    bare = stated(replace(c, scaling="none"), data)
    assert isinstance(bare, Guarantee)
    assert bare.epsilon == pytest.approx(5.0) and "mean" not in bare.released
    assert bare.noise == pytest.approx(found.noise * math.sqrt(0.9))


def test_what_is_stated_for_a_table_is_what_its_run_says() -> None:
    """The account from public facts is that of the very run, the mean's release included."""
    data = own_table()
    for method in ("fedpower", "ssi"):
        c = replace(TABLE, method=method)
        problem = build_problem(c, data)
        assert problem.paid_mean is not None and problem.record_norm == 2.0
        run = build.method(c, noise_for(c, data=data))
        trace = fp.simulate(problem, run, rounds=3)
        assert account(run, trace.setting, delta=c.delta, clip_norm=2.0).epsilon == pytest.approx(5)
        largest = max(np.linalg.norm(block, axis=0).max() for block in problem.truth.blocks)
        assert largest < 2.0  # centred records; far ones would be clipped
    exact = build.records(TABLE, data).own_mean
    close = build_problem(replace(TABLE, epsilon=1e2, mean_share=0.5), data)
    assert np.allclose(np.diag(close.client_data.mean()), np.diag(close.truth.covariance), rtol=0.2)
    assert np.linalg.norm(exact) > 3


def test_a_curious_client_knows_its_own_noise() -> None:
    c = replace(SMALL, method="ssi", trusted="clients", epsilon=1.0)
    for calibration in ("exact", "source"):
        rows = promised(replace(c, calibration=calibration)).others
        server = rows["towards the server"]
        neighbour = rows["towards another client, which knows its own noise"]
        assert server.epsilon == pytest.approx(1.0)
        assert neighbour.mu == pytest.approx(server.mu * math.sqrt(6 / 5))
        careful = promised(replace(c, calibration=calibration, colluding=1)).others
        assert [one.epsilon for one in list(careful.values())[:2]] == pytest.approx([1.0, 1.0])
    rows = promised(replace(SMALL, unit="person", held=5, epsilon=5.0)).others
    assert rows["a person with 5 records"].epsilon == pytest.approx(5.0)
    assert rows["one record"].epsilon < 1.2


def test_one_record_of_the_smallest_client_has_the_most_to_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A whole client's epsilon at the source: ten records share at one what 200 do at the other."""
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((210, 4)), columns=list("abcd"))
    table["who"] = ["small"] * 10 + ["large"] * 200
    data = OwnData("table.csv", table.to_csv(index=False).encode())
    c = PrivacySettings(
        problem="table", client_column="who", columns=tuple("abcd"), scaling="none",
        unit="client", calibration="source",
        components=2, method="ssi", products=2, epsilon=5.0, delta=1e-5, view="attacks",
    )  # fmt: skip
    public = build.public_setting(c, data)
    noise = source_guarantee(public.samples, public.weights, build.budget(c))[0]
    spent = float(epsilon_of(np.sqrt(2) / 10 / noise[0], c.delta))
    rows = promised(c, data).others
    assert rows["one record"].epsilon == pytest.approx(spent)
    assert rows["a person with 10 records"].epsilon == pytest.approx(5.0)
    assert rows["a client (all 200 records)"].epsilon == pytest.approx(5.0)
    monkeypatch.setattr(attacks, "TESTS", 2)
    found = outcome(RecordMembership().run(c, data))
    assert found is not None
    assert found.promised["source"] == pytest.approx(spent)
    assert found.promised["source"] > 3 * found.promised["exact"]
    assert np.all(found.areas["expected_source"] <= found.areas["gaussian_ceiling"] + 1e-9)


def test_shared_noise_needs_sums_and_says_so() -> None:
    shared = replace(SMALL, trusted="clients")
    for other in ({"local_steps": 2}, {"local_steps": 1, "public_reference": True}):
        with pytest.raises(InvalidInput, match="no hidden products, no draws, no public reference"):
            result_of(PrivateRun(), replace(shared, **other))
    for study in (Reconstruction(), RecordMembership(), Accountants(), ErrorBudget()):
        with pytest.raises(InvalidInput, match="let clients trust nobody here"):
            result_of(study, shared)
    found = result_of(PrivateRun(), replace(shared, local_steps=1))
    alone = result_of(PrivateRun(), replace(SMALL, local_steps=1))
    assert found.runs["exact"].final < alone.runs["exact"].final
    with pytest.raises(InvalidInput, match="only the sum over all of them is covered"):
        result_of(PrivateRun(), replace(shared, method="faps", calibration="source"))


def test_audits_stand_beside_the_promise() -> None:
    c = replace(SMALL, method="ssi", products=3, unit="person", held=2, epsilon=2.0)
    tables = RecordMembership().tables(result_of(RecordMembership(), c), c)
    audits = tables["audits"]
    assert set(audits["noise"]) == {"exact", "published", "source"}
    assert (audits["confidence"] == 0.95).all()
    source = audits[audits["noise"] == "source"]
    promised_one = source["promised"].iloc[0]
    assert 0.9 < promised_one < 1.0  # two of them are the person that ε = 2 protects
    assert 0 < source["epsilon"].max() < promised_one
