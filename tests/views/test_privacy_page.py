"""The Privacy page without a browser: what stands beside ε, refusals, and every view."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fedpca_core.questions.privacy import attacks, figures
from fedpca_core.questions.privacy.guarantee import Accountants, Promise
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.steps import outcome

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"features": "20", "clients": "6", "samples": "2000", "repetitions": "2", "delta": "1e-5"}


def open_page(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "privacy.py"), default_timeout=120)
    for key, value in (SMALL | parameters).items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert app.title[0].value == "What does privacy cost?"
    return app


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.warning, *app.info]
    return "\n".join(part.value for part in parts)


def text_with(app: AppTest, words: str) -> str:
    """The page's text, which holds these words."""
    text = everything(app)
    assert words in text
    return text


def settings_of(**parameters: str) -> PrivacySettings:
    link = {key: [value] for key, value in (SMALL | parameters).items()}
    reading = PrivacySettings.from_query(link)
    assert not reading.notes
    return reading.configuration


def test_beside_epsilon_stand_unit_clip_delta_sampling_and_accountant() -> None:
    app = open_page(epsilon="0.5", draws="5")
    assert app.metric[0].label == "Guaranteed ε" and app.metric[0].value == "0.5"
    text = everything(app)
    for words in (
        "**δ** 1e-5",
        "**unit** one record of one client",
        "**clip norm** 1",
        "5 clients drawn with replacement",
        "no amplification",
        "**accountant** exact composition",
    ):
        assert words in text


def test_without_noise_epsilon_is_infinite_never_a_number() -> None:
    app = open_page(epsilon="∞")
    assert app.metric[0].value == "∞" and app.metric[1].value == "off"
    text = everything(app)
    assert "Unprotected" in text and "Differentially private" not in text


@pytest.mark.usefixtures("patient")
def test_vacuous_theory_is_said_to_be_vacuous() -> None:
    parameters = {
        "view": "Where the error comes from",
        "calibration": "Published",
        "epsilon": "0.5",
        "localsteps": "4",
        "draws": "3",
    }
    app = open_page(**parameters)
    terms = {metric.label: metric.value for metric in app.metric}
    assert terms["I₁, privacy noise"] == terms["I₂, local drift"] == "vacuous"
    assert terms["I₃, client sampling"] == "vacuous"
    text = everything(app)
    assert "**vacuous**" in text and "Theorem 9" in text


def test_published_noise_shows_the_epsilon_it_is_worth() -> None:
    app = open_page(calibration="Published", epsilon="1")
    assert 0 < float(app.metric[0].value) < 0.3


@pytest.mark.parametrize("method", ["FAPS", "LocalPower", "FedPE", "FedPG", "One-shot"])
def test_methods_that_cannot_be_accounted_show_why_and_no_epsilon(method: str) -> None:
    app = open_page(method=method, noise="0.1")
    text = everything(app)
    assert "No ε can be stated" in text and "gives no ε" in text
    assert "Masked, heuristically" in text and "Differentially private" not in text
    assert all(metric.label != "Guaranteed ε" for metric in app.metric)


def test_a_figure_stands_beside_its_guarantee() -> None:
    text = everything(open_page(view="The paper's figures", figure="4(b) Model II, budget ε"))
    assert "**accountant** exact composition" in text and "**δ** 0.0001" in text


def test_a_figure_says_where_delta_is_too_large() -> None:
    warning = "is not below 1/"
    many = everything(open_page(view="The paper's figures"))
    assert f"{warning}30,000" in many
    few = open_page(view="The paper's figures", figure="4(b) Model II, budget ε")  # 600 records
    assert warning not in everything(few)


def test_a_figure_of_networks_says_that_an_edge_sits_in_two_rows() -> None:
    networks = open_page(view="The paper's figures", figure="4(b) Model II, budget ε")
    assert "sits in two rows" in everything(networks)
    assert "sits in two rows" not in everything(open_page(view="The paper's figures"))


@pytest.mark.parametrize(("method", "credited"), [("Block Krylov", True), ("FedPower", False)])
def test_the_card_of_published_noise_explains_the_whole_factor(method: str, credited: bool) -> None:
    card = next(one for one in open_page(method=method).metric if one.label == "Published noise")
    assert "grows with √r" in card.help
    assert ("counts every product although the probes are orthogonal" in card.help) == credited


@pytest.mark.usefixtures("patient")
def test_block_krylov_has_a_view_of_what_an_attacker_gets() -> None:
    parameters = {"view": "What an attacker gets", "method": "Block Krylov", "features": "10"}
    text = text_with(
        open_page(**parameters), "an audit that ends above the promise would refute it"
    )
    assert "Without noise the server has relative error" in text
    assert "gains nothing" not in text
    assert "Two ceilings" in text


Attacked = tuple[PrivacySettings, attacks.Tested]


@pytest.fixture(scope="module")
def tested() -> Attacked:
    """Membership at a small size."""
    settings = settings_of(view="What an attacker gets", method="SSI", products="2")
    return settings, outcome(attacks.RecordMembership().run(settings))


@pytest.mark.parametrize(
    ("name", "ceiling"),
    [("most with Gaussian noise", "gaussian"), ("most that (ε, δ) permits", "permitted")],
)
def test_a_ceiling_is_drawn_and_called_what_it_is(
    tested: Attacked, name: str, ceiling: str
) -> None:
    settings, found = tested
    for panel, height in (
        (figures._roc(found, settings), found.ceilings[ceiling]),
        (figures._areas(found, settings), found.areas.filter(like=ceiling).squeeze()),
    ):
        (drawn,) = (curve.y for curve in panel.curves if curve.name == name)
        assert list(drawn) == pytest.approx(list(height))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("view", "words"), [("Accountants", "Unit: "), ("Price of ε", "ε of ")])
def test_views_speak_of_the_unit_that_is_set(view: str, words: str) -> None:
    text = text_with(
        open_page(view=view, unit="A person", held="5"), f"{words}one person: 5 records"
    )
    assert "one record, replaced" not in text and "per record" not in text


@pytest.mark.usefixtures("patient")
def test_ways_to_spend_are_open_to_every_method() -> None:
    settings = {"view": "Ways to spend ε", "method": "FAPS", "repetitions": "1"}
    text = text_with(open_page(**settings), "Trusting nobody")
    assert "ends closest" in text and "No ε can be stated" not in text
    assert "FAPS, once at the source; Noisy covariance, one round:** one release of" in text
    assert text.count("secure aggregation shows sums only") == 4
    app = open_page(**settings, epsilon="∞")
    assert "choose a finite ε" in everything(app)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"delta": "0.001"}, "is not below 1/2,000"),
        ({"records": "Left raw"}, "the stated noise protects nothing: no ε"),
        ({"draws": "30"}, "30 machines cannot be drawn from 6"),
        ({"epsilon": "0"}, "Budget ε cannot be “0”"),
        ({"epsilon": "-1"}, r"Budget ε cannot be “\-1”"),
        ({"localsteps": "8", "T": "5"}, "There is no setting called “T”"),
        ({"localsteps": "8", "products": "5"}, "choose a period between 1 and 5"),
        ({"components": "8", "surplus": "6", "features": "10"}, "cannot hold 8 components"),
    ],
)
def test_bad_input_becomes_a_sentence(parameters: dict[str, str], words: str) -> None:
    assert words in everything(open_page(**parameters))


def test_the_card_and_the_table_of_accountants_say_the_same_excess_of_published_noise():
    settings = PrivacySettings(view="accountants")
    promises, accounts = outcome(Promise().run(settings)), outcome(Accountants().run(settings))
    assert promises.excess == pytest.approx(accounts.table["ratio"].iloc[0])
