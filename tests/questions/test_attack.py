"""The Attack page's studies: adversaries, guesses, replay, defences, one more record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.questions.attack import reconstruction, replay
from fedpca_core.questions.attack.client_trial import adversary
from fedpca_core.questions.attack.differencing import NewcomersRead, OneMoreRecord, best_adversary
from fedpca_core.questions.attack.reconstruction import ClientReconstruction, Reconstructed
from fedpca_core.questions.attack.replay import DEFENCES, Defences, ReplayAttack, Replayed
from fedpca_core.questions.attack.sent_models import SentModels, borrowed, from_models
from fedpca_core.questions.catalogue import STUDIES
from fedpca_core.steps import Step, outcome
from fedpca_core.study.pca_settings import AttackSettings

SMALL = AttackSettings(features=10, components=2, samples=40, rounds=10)


def reconstructed(**changes: Any) -> Reconstructed:
    found = outcome(ClientReconstruction().run(replace(SMALL, **changes)))
    assert found is not None
    return found


# ------------------------------------------------------------------ reconstruction
def test_single_uploads_leak_and_masked_ones_do_not_yield_to_equations() -> None:
    found = reconstructed()
    ssi, faps = found.recoveries["ssi"], found.recoveries["faps"]
    assert ssi.errors[0, 0] == pytest.approx(1)
    assert ssi.last < 1e-8 and ssi.complete == 5
    assert faps.last > 1 and faps.complete is None
    assert ssi.angles[-1] < 1e-6 < faps.angles[-1]
    assert list(found.pictures[0].found) == ["ssi", "faps"]
    assert found.rounds == 10 and found.by == "linear" and not found.note


def test_secure_aggregation_leaves_the_adversary_who_reads_sums() -> None:
    found = reconstructed(secure_aggregation=True)
    assert found.by == "pooled" and "reads the sums" in found.note
    assert set(found.recoveries) == {"ssi", "faps"} and not found.refusals
    pooled = next(guess for guess in found.guesses if guess.label == "pooled S")
    assert found.recoveries["ssi"].errors.min() > 0.95 * pooled.value and pooled.simulation_only
    chosen = reconstructed(secure_aggregation=True, attack="pooled")
    assert not chosen.note
    np.testing.assert_array_equal(chosen.recoveries["ssi"].errors, found.recoveries["ssi"].errors)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("attack", list(AttackSettings.parameters()["attack"].choices))
def test_every_adversary_has_something_to_show_on_every_channel(attack, secure) -> None:
    found = reconstructed(attack=attack, secure_aggregation=secure, attacked=("ssi",), colluders=9)
    assert found.recoveries["ssi"].errors.shape == (1, 11)


def test_colluders_count_and_are_never_more_than_there_are() -> None:
    secure = {"secure_aggregation": True, "attack": "collude", "attacked": ("ssi",)}
    assert reconstructed(**secure, colluders=4).recoveries["ssi"].last < 1e-8
    assert reconstructed(**secure, colluders=1).recoveries["ssi"].last > 0.05
    many = reconstructed(**secure, colluders=7)
    assert "only 4 other clients" in many.note
    assert "switch secure aggregation on" in adversary(replace(SMALL, attack="collude"), 5)[1]


def test_starts_make_bands_and_tables() -> None:
    found = reconstructed(starts=3)
    recovery = found.recoveries["ssi"]
    assert recovery.errors.shape == (3, 11)
    tables = ClientReconstruction().tables(found, replace(SMALL, starts=3))
    assert len(tables["errors"]) == 2 * 3 * 11
    assert tables["summary"]["complete_after_round"].tolist()[0] == 5


@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 4)])
def test_messages_say_what_crossed_the_wire(dtype: str, width: int) -> None:
    rows = reconstructed(dtype=dtype).recoveries["ssi"].messages
    assert rows["directions_known"].tolist()[:3] == ["2 of 10", "4 of 10", "6 of 10"]
    assert (rows["kilobytes_up"] == width * 1e-3 * 10 * 2 * 5).all()
    hidden = reconstructed(secure_aggregation=True).recoveries["ssi"].messages
    assert hidden["uploads"][0].startswith("sum of")


def test_images_show_records_of_small_clients() -> None:
    found = reconstructed(problem="digits", clients=100, components=5, rounds=20, attacked=("ssi",))
    assert [row.kind for row in found.pictures] == ["covariance", "eigen-images", "record"]
    assert found.pictures[2].errors["ssi"][-1] < 0.05 < found.pictures[2].errors["ssi"][3]
    score = found.recoveries["ssi"].likeness[-1]
    assert score is not None and score.ssim > 0.99
    assert found.recoveries["ssi"].likeness[0] is None


def test_unknown_clients_and_no_methods_are_refused() -> None:
    with pytest.raises(InvalidInput, match="There is no client 50 among 5; choose an attacked"):
        reconstructed(client=50)
    with pytest.raises(InvalidInput, match="No method is under attack"):
        reconstructed(attacked=())


def test_a_stopped_reconstruction_keeps_the_methods_it_has(monkeypatch) -> None:
    monkeypatch.setattr(reconstruction, "PARTIAL_SECONDS", 0.0)
    found = outcome(
        ClientReconstruction().run(SMALL),
        lambda step: "FAPS" not in step.text and step.fraction < 0.6,
    )
    assert found is not None and list(found.recoveries) == ["ssi"]


# ------------------------------------------------------------------ replay
def replayed(**changes: Any) -> Replayed:
    found = outcome(ReplayAttack().run(replace(SMALL, **changes)))
    assert found is not None
    return found


def test_replay_reports_error_and_how_it_knows() -> None:
    found = replayed()
    assert found.error < 1e-9 < found.prior_error and found.attack.succeeded
    assert list(found.pictures.found) == ["prior", "replay"]
    fit = found.fit
    assert fit["evaluation"].tolist() == list(range(1, found.attack.evaluations + 1))
    assert fit["residual"].iloc[-1] < found.attack.tolerance


def test_a_replay_stops_with_what_it_has(monkeypatch) -> None:
    monkeypatch.setattr(replay, "PARTIAL_SECONDS", 0.0)
    steps: list[Step[Replayed]] = []

    def watch(step: Step[Replayed]) -> bool:
        steps.append(step)
        return sum("residual" in one.text for one in steps) < 4

    found = outcome(ReplayAttack().run(SMALL), watch)
    assert found is not None and found.attack.evaluations == 4 and not found.attack.succeeded
    assert found.prior_error > found.error > 1e-6


def test_the_budget_counts_evaluations() -> None:
    found = replayed(random_inner_steps=True, budget=100)
    assert found.attack.ended == "budget" and found.attack.evaluations == 100


def test_sums_cannot_be_replayed() -> None:
    hidden = replace(SMALL, secure_aggregation=True, replay=True)
    assert not ReplayAttack().wanted(hidden)
    assert "no single upload to replay" in ReplayAttack().obstacle(hidden)


def test_every_defence_is_studied() -> None:
    partial: list[int] = []

    def watch(step: Step[pd.DataFrame]) -> bool:
        if step.result is not None:
            partial.append(len(step.result))
        return True

    table = outcome(Defences().run(replace(SMALL, budget=100)), watch)
    assert table is not None and len(table) == len(DEFENCES) + 1
    assert partial == list(range(1, len(DEFENCES) + 1))
    rows = table.set_index("defence")
    assert rows["replay_error"]["None"] < 1e-9
    assert rows["replay_error"]["Noise of 3% on uploads"] > 1e-3
    assert rows["ended"]["Secure aggregation"] == "sums"
    assert rows["ended"]["Random inner steps"] == "budget"


# ------------------------------------------------------------------ one more record
def joined(**changes: Any) -> NewcomersRead:
    found = outcome(OneMoreRecord().run(replace(SMALL, rounds=20, record=3, **changes)))
    assert found is not None
    return found


def test_two_runs_give_away_the_record_between_them() -> None:
    found = joined()
    ssi, faps = found.found["ssi"], found.found["faps"]
    assert ssi.sines[0] > 0.9 and ssi.sines[-1] < 1e-6
    assert ssi.sure and ssi.cosine > 0.999999
    assert faps.sines[-1] > 0.1 and not faps.sure
    assert ssi.count == faps.count == 40 and not found.from_sums
    np.testing.assert_allclose(ssi.records[-1], found.record, atol=1e-5)


def test_sums_give_away_the_record_but_not_whose_it_is() -> None:
    found = joined(secure_aggregation=True, attacked=("ssi",), attack="linear")
    assert found.found["ssi"].sines[-1] < 1e-6
    assert found.found["ssi"].count == 200 and found.from_sums


def test_a_record_that_is_not_there_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="Client 0 has no record 90; choose one from 0 to 39"):
        outcome(OneMoreRecord().run(replace(SMALL, record=90)))


def test_the_section_s_best_adversary_suits_the_channel() -> None:
    assert best_adversary(SMALL, 5) == "symmetric"
    assert best_adversary(replace(SMALL, attack="ridge"), 5) == "ridge"
    secure = replace(SMALL, secure_aggregation=True)
    assert best_adversary(secure, 5) == "pooled"
    assert best_adversary(replace(secure, attack="collude"), 5) == "collude"


# ------------------------------------------------------------------ noise at the source
NOISY: dict[str, Any] = {"epsilon": 1.0, "samples": 200, "rounds": 20}


def test_noise_at_the_source_is_what_the_server_gets_and_nothing_else() -> None:
    ssi = reconstructed(**NOISY).recoveries["ssi"]
    assert ssi.released < 1e-9 and ssi.last > 0.1 and ssi.complete is None
    found = replayed(**NOISY)
    assert found.released < 1e-9 and found.error > 0.1


def test_two_noisy_runs_do_not_give_a_record_away() -> None:
    found = outcome(OneMoreRecord().run(replace(SMALL, record=3, attacked=("ssi",), **NOISY)))
    assert found is not None and not found.found["ssi"].sure
    assert found.guarantee is not None and 1 < found.guarantee.epsilon < 2
    assert found.guarantee.releases == 2


# ------------------------------------------------------------------ methods that send models
@pytest.mark.parametrize(("method", "key"), [("fedpg", "leaks"), ("personal", "exposure")])
def test_methods_that_send_models_are_read_by_the_studies_of_their_pages(method, key) -> None:
    chosen = replace(SMALL, elsewhere=method)
    other = borrowed(chosen)
    assert other is not None
    study, small = other
    assert key in study.key and study.wanted(small)
    assert SentModels().wanted(chosen) and not SentModels().wanted(SMALL)
    assert SentModels().identity(chosen) == SentModels().identity(replace(chosen, seed=3))


def test_what_personalised_uploads_give_away_is_told_in_tables() -> None:
    chosen = replace(SMALL, elsewhere="personal")
    found = outcome(SentModels().run(chosen))
    assert found is not None
    assert set(SentModels().tables(found, chosen)) == {"frames", "data", "records"}


@pytest.mark.parametrize("method", ["fedpg", "personal", "one_shot"])
def test_models_lead_to_the_matrix_and_the_matrix_to_the_records(method: str) -> None:
    found = outcome(from_models(method))
    assert found is not None and found.taken.certified, found
    assert found.exact == found.size.records and found.error < 1e-8
    np.testing.assert_allclose(found.recovered, found.truth, atol=1e-9)


def test_a_study_is_kept_for_what_it_reads_only() -> None:
    study = STUDIES["replay"]
    same = replace(SMALL, attacked=("ssi",), attack="ridge", starts=3, differencing=True)
    assert study.identity(SMALL) == study.identity(same)
    assert study.identity(SMALL) != study.identity(replace(SMALL, budget=100))
    again = STUDIES["differencing"]
    assert again.identity(SMALL) != again.identity(replace(SMALL, record=4))
