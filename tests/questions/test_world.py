"""One world: a parameter has one name, key and meaning wherever it appears, and travels."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import KINDS
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Parameter
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.world import WORLD

ROOT = Path(__file__).resolve().parents[2]
PAGES = list(dict.fromkeys(KINDS.values()))


@pytest.mark.parametrize("settings", PAGES, ids=lambda settings: settings.kind)
def test_shared_names_mean_the_same_on_every_page(settings):
    for name, parameter in settings.parameters().items():
        if name in WORLD:
            same = WORLD[name]
            assert (parameter.key, parameter.label) == (same.key, same.label)
            assert parameter.travels == same.travels
        else:
            assert parameter.key not in {shared.key for shared in WORLD.values()}


@pytest.mark.parametrize("settings", PAGES, ids=lambda settings: settings.kind)
def test_keys_are_plain_words(settings):
    assert all(parameter.key.isalnum() for parameter in settings.parameters().values())


def test_what_travels():
    travelling = {name for name, parameter in WORLD.items() if parameter.travels}
    promised = {"clients", "heterogeneity", "participation", "components", "seed", "problem"}
    assert promised | {"epsilon", "delta"} <= travelling


def test_a_parameter_may_be_narrowed_but_not_renamed():
    clients = WORLD["clients"]
    assert clients.narrowed(default=20, high=50).allowed() == "a whole number from 2 to 50"
    with pytest.raises(ValueError, match="narrowed, not renamed"):
        clients.narrowed(label="Machines")
    with pytest.raises(InvalidInput):
        clients.narrowed(high=10_000)
    with pytest.raises(InvalidInput):
        clients.narrowed(default=60, high=50)


@pytest.mark.parametrize(
    ("parameter", "value", "near"),
    [
        (Parameter(5, key="k", label="K", low=2, high=10, step=1), 40, 10),
        (Parameter(5, key="k", label="K", low=2, high=10, step=1), 1, 2),
        (Parameter(5, key="k", label="K", grid=(2, 5, 10)), 6, 5),
        (Parameter(1.0, key="k", label="K", grid=(0.1, 1.0, math.inf)), math.inf, math.inf),
        (Parameter("a", key="k", label="K", choices={"a": "A"}), "b", None),
        (Parameter("a", key="k", label="K", choices={"a": "A"}), "a", "a"),
    ],
)
def test_the_nearest_value_of_another_page(parameter, value, near):
    assert parameter.nearest(value) == near


def test_infinity_is_written_as_a_sign():
    epsilon = WORLD["epsilon"]
    for text in ("∞", "inf", math.inf):
        assert epsilon.check(text) == math.inf
    assert epsilon.text(math.inf) == "∞"
    with pytest.raises(InvalidInput, match=r"must be one of 0\.1, .*100, ∞"):
        epsilon.check("nan")
    for nonsense in ("inf", "1e400", "9" * 400, 10**400, "-inf"):
        with pytest.raises(InvalidInput, match="Clients cannot be"):
            WORLD["clients"].check(nonsense)


def test_a_number_with_a_name_is_read_under_both():
    bytes_, drawn = (
        FrontierSettings.parameters()["budget_bytes"],
        PrivacySettings.parameters()["draws"],
    )
    for text, value in (("10 kB", 1e4), ("1e4", 1e4), ("10000", 1e4), ("∞", math.inf)):
        assert bytes_.check(text) == value
    assert (bytes_.text(1e6), drawn.text(0), drawn.text(7)) == ("1 MB", "everybody", "7")
    assert FrontierSettings(budget_bytes=1e4).query() == {"mostbytes": "10 kB"}
    with pytest.raises(InvalidInput, match="must be one of everybody, 1, 2, …, 50"):
        drawn.check("everyone")


def test_settings_carry_over_to_another_page():
    there = ConvergeSettings(clients=30, rounds=75, inner_rule="auto").carried(AttackSettings)
    assert (there.clients, there.rounds, there.inner_rule) == (30, 75, "auto")
    link = there.query(complete=True)
    assert link["rounds"] == "75" and link["inner"] == "Automatic"


def test_a_value_follows_the_visitor_and_its_link_wins():
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60)
    app.run().switch_page("../pages/converge.py").run()
    slider = next(one for one in app.slider if one.label == "Clients")
    slider.set_value(7).run()
    app.switch_page("../pages/attack.py").run()
    assert next(one for one in app.slider if one.label == "Clients").value == 7


def test_files_are_read_strictly_and_links_tolerantly():
    text = ConvergeSettings().to_json().replace('"clients": 10', '"clients": 1000')
    with pytest.raises(InvalidInput, match="Clients cannot be 1000"):
        ConvergeSettings.from_file(text)
    reading = ConvergeSettings.from_json(text)
    assert reading.configuration == ConvergeSettings() and len(reading.faults) == 1
