"""What the card beside a private run says."""

from __future__ import annotations

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from dashboard.shell.parts import guaranteed
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.study.facts import EPSILON, NOTICED, Facts, data_note
from fedpca_core.study.parts import Fold, Table

SMALL = PersonaliseSettings(features=8, components=2, clients=3, samples=20)


def card(epsilon: float) -> None:
    """The script of a page that holds nothing but the card."""
    from dashboard.shell.parts import lay_out
    from fedpca_core.questions.personalise.settings import PersonaliseSettings
    from fedpca_core.study.facts import Facts
    from fedpca_core.study.parts import GuaranteeOf

    settings = PersonaliseSettings(features=8, components=2, clients=3, samples=20, epsilon=epsilon)
    lay_out([GuaranteeOf(Facts.of(settings.build()))])


def test_the_card_says_what_epsilon_means() -> None:
    page = AppTest.from_function(card, args=(2.0,)).run()
    assert not page.exception
    text = " ".join(one.value for one in page.markdown)
    for words in ("ε = 2, δ = 1e-6", "clipped at norm 6", "one record of one client"):
        assert words in text
    assert "two runs" in page.expander[0].label
    silent = AppTest.from_function(card, args=(float("inf"),)).run()
    assert not silent.exception and not silent.markdown and not silent.expander


def test_what_the_card_says_is_not_said_again_in_the_note() -> None:
    facts = Facts.of(replace(SMALL, epsilon=1.0).build())
    assert facts.guarantee is not None
    said = facts.guarantee.sentence()
    assert said in facts.note and said not in data_note(facts.note, facts)
    left_out = data_note(f"{facts.note} Constant, left out: a.", facts)
    assert said not in left_out and left_out.endswith(" Constant, left out: a.")


def test_its_table_has_a_row_for_every_unit() -> None:
    facts = Facts.of(replace(SMALL, epsilon=1.0).build())
    (fold,) = (part for part in guaranteed(facts) if isinstance(part, Fold))
    (table,) = (part.rows for part in fold.parts if isinstance(part, Table))
    assert list(table["What may be replaced"]) == list(facts.meanings())
    assert list(table[EPSILON])[:2] == ["1", "1.45"]
    assert table[NOTICED].iloc[0] == f"{100 * facts.guarantee.noticed(0.05):.3g}%"
    assert Facts.of(SMALL.build()).meanings() == {}
