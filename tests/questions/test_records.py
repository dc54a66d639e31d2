"""The records study: what each route gives away, what stops it, and that nothing false passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedpca_core.attacks.attack import USUAL, Belief
from fedpca_core.attacks.lattice.apart import LATTICE_ATTACKS, USUAL_STEPS
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status
from fedpca_core.problems.images import LIVE_RESOLUTION
from fedpca_core.questions.attack.records import at_risk
from fedpca_core.questions.attack.records.at_risk import AtRisk, NoiseAtRisk
from fedpca_core.questions.attack.records.study import ClientRecords, RecordsTaken, stand_in
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import stated
from fedpca_core.steps import outcome
from fedpca_core.study.pca_settings import AttackSettings

#: Digits, ten each: read from the first message.
SMALL = AttackSettings(
    problem="digits", records_per_client=10.0, components=10, rounds=10, attacked=("ssi",)
)


def recovered(**changes: Any) -> RecordsTaken:
    found = outcome(ClientRecords().run(replace(SMALL, **changes)))
    assert found is not None
    return found


def test_the_first_message_gives_every_record_and_a_certificate() -> None:
    found = recovered()
    one = found.found["ssi"]
    assert one.taken.round == 1 and one.exact == found.records == 10
    assert (
        one.taken.certificate.largest_distance < 1e-6 and one.taken.certificate.log10_chance < -12
    )
    assert one.directions[:2].tolist() == [0, 10]
    np.testing.assert_allclose(one.held[1], found.truth, atol=1e-6)
    assert one.received.shape[:2] == (11, 10)


@pytest.mark.parametrize("method", ["local_power", "block_krylov"])
def test_other_products_give_them_too(method: str) -> None:
    one = recovered(attacked=(method,)).found[method]
    assert one.taken.round is not None and one.exact == 10


def test_what_is_sent_once_is_taken_apart_where_it_is_the_matrix() -> None:
    found = recovered(once=("centralized", "one_shot_stacked", "one_shot")).found
    assert found["centralized"].exact == found["one_shot_stacked"].exact == 10
    assert found["one_shot"].exact == 10  # without their sizes too
    assert found["centralized"].columns.tolist() == [0, 64]  # of which 60 are shown
    assert {key: one.received.shape[1] for key, one in found.items()} == {
        **dict.fromkeys(("ssi", "one_shot_stacked", "one_shot"), 10), "centralized": 60,
    }  # fmt: skip
    few = recovered(once=("one_shot_stacked",), components=9).found["one_shot_stacked"]
    assert few.taken.round is None


def test_a_spectrum_is_stood_in_for_by_digits() -> None:
    spectrum = AttackSettings(rounds=10, attacked=("ssi",))
    assert stand_in(spectrum).problem == "digits" and stand_in(SMALL) is SMALL
    found = outcome(ClientRecords().run(spectrum))
    assert found is not None and found.stands_in and found.records == 30
    assert found.found["ssi"].taken.round == 3 and found.found["ssi"].exact == 30


@pytest.mark.parametrize(
    "changes",
    [
        {"secure_aggregation": True},
        {"epsilon": 100.0},
        {"upload_noise": 1e-2},
        {"attacked": ("faps",)},
    ],
)
def test_what_stops_it(changes: dict[str, Any]) -> None:
    (one,) = recovered(**changes).found.values()
    assert one.taken.round is None and one.exact == 0


@pytest.mark.parametrize("changes", [{}, {"grid_known": False}])
def test_a_mean_kept_back_leaves_every_difference(changes: dict[str, Any]) -> None:
    one = recovered(mean_known=False, **changes).found["ssi"]
    assert one.taken.differences and one.taken.round == 1 and one.exact == 10
    assert one.taken.certificate.log10_chance < -12
    assert one.held[1].min() == 0.0


def test_what_came_is_shown_before_it_is_taken_apart() -> None:
    steps = [step.result for step in ClientRecords().run(SMALL) if step.result is not None]
    first = steps[0].found["ssi"]
    assert first.findings[-1][1].status is Status.NOT_TRIED
    assert first.taken.round is None and first.received[1].std() > 0
    assert steps[-1].found["ssi"].findings[-1][1].status is Status.OPEN
    masked = replace(SMALL, attacked=("faps",), unmask=True)
    begun = next(step.result for step in ClientRecords().run(masked) if step.result is not None)
    assert begun.found["faps"].attack == "linear"
    assert begun.found["faps"].findings[-1][1].status is Status.NOT_TRIED


def test_of_a_mask_no_direction_is_the_clients() -> None:
    one = recovered(attacked=("faps",)).found["faps"]
    assert not one.directions.any() and one.held[-1].std() > 0


def test_noise_at_the_source_costs_the_answer() -> None:
    price = {e: recovered(epsilon=e).found["ssi"].answer for e in (1.0, np.inf)}
    assert price[1.0] > 10 * price[np.inf]


def test_colluders_and_changing_participants_undo_secure_aggregation() -> None:
    told = recovered(secure_aggregation=True, attack="collude", colluders=4)
    assert told.found["ssi"].exact == 10
    alone = {"clients": 2, "participation": 0.5, "rounds": 20}
    changing = recovered(secure_aggregation=True, **alone).found["ssi"]
    assert changing.taken.round is not None and changing.exact == 10


def test_masked_messages_are_replayed_and_taken_apart(monkeypatch) -> None:
    monkeypatch.setitem(LIVE_RESOLUTION, "digits", 4)
    small: dict[str, Any] = {"components": 3, "records_per_client": 8.0, "attacked": ("faps",)}
    assert recovered(**small).found["faps"].taken.round is None
    one = recovered(**small, unmask=True).found["faps"]
    assert one.attack == "replay" and one.taken.round == 10 and one.exact == 8


def test_few_masked_records_are_replayed_among_all_pixels() -> None:
    one = recovered(attacked=("faps",), unmask=True, budget=100).found["faps"]
    assert one.attack == "replay" and one.taken.round == one.exact == 10


def test_records_that_joined_between_two_runs_are_read_off_sums() -> None:
    found = recovered(records_per_client=np.inf, joined=24, secure_aggregation=True, rounds=20)
    one = found.found["ssi"]
    assert found.records == one.exact == 24 and one.taken.round is not None


def test_more_cannot_join_than_there_are() -> None:
    with pytest.raises(InvalidInput, match="10 records cannot have joined a client that holds 10"):
        recovered(joined=10)


def test_a_grid_that_is_not_announced_is_found_among_the_usual_ones() -> None:
    one = recovered(grid_known=False).found["ssi"]
    assert one.taken.step == 1 / 16 and one.exact == 10
    assert list(USUAL_STEPS) == sorted(USUAL_STEPS, reverse=True)


def test_noise_is_never_certified() -> None:
    rng = np.random.default_rng(5)
    deployment = stated(CheckSettings(features=20, samples=5, clients=2, centring="none"))
    for _ in range(12):
        count = int(rng.integers(3, 7))
        noise = Belief.of_factor(Factor(rng.normal(size=(20, count)), count))
        for attack in LATTICE_ATTACKS:
            taken = outcome(attack.read(None, deployment, 0, USUAL, [noise]))
            assert taken is not None and taken.whole is None


def test_the_map_says_where_it_ends(monkeypatch) -> None:
    name = "Digits, 8 × 8"
    monkeypatch.setattr(at_risk, "ROWS", {name: at_risk.ROWS[name]})
    monkeypatch.setattr(AtRisk, "along", ("records_per_client", (10.0, 80.0)))
    monkeypatch.setattr(NoiseAtRisk, "along", ("upload_noise", (1e-6, 1e-2)))
    for study, end in ((AtRisk(), at_risk.RANK), (NoiseAtRisk(), at_risk.PRECISION)):
        swept = outcome(study.run(SMALL))
        assert swept is not None
        assert swept.band(name, "recovered").middle.tolist() == [1.0, 0.0]
        assert swept.band(name, "obstacle").middle.tolist() == [at_risk.RECOVERED, end]
    assert AtRisk().wanted(replace(SMALL, at_risk=True)) and not AtRisk().wanted(SMALL)


def test_it_is_kept_for_what_it_reads() -> None:
    study = ClientRecords()
    for changes in ({"mean_known": False}, {"joined": 3}, {"epsilon": 1.0}):
        assert study.identity(SMALL) != study.identity(replace(SMALL, **changes))
    assert study.identity(SMALL) == study.identity(replace(SMALL, replay=True))
