"""The shell without a browser: navigation, shared pieces, links and downloads."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shell import layout, share

ROOT = Path(__file__).resolve().parents[2]


def test_the_home_page_opens_through_the_navigation():
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60).run()
    assert not app.exception
    assert app.title[0].value


def refuse_and_go_on() -> None:
    import streamlit as st

    from dashboard.shell.layout import guard
    from fedpca_core.errors import InvalidInput

    with guard(otherwise=lambda refusal: st.text("nothing to draw")):
        st.text("before")
        raise InvalidInput("The price is $5 of $4; choose 4 or less.")
    st.text("after")


def test_a_refusal_becomes_its_sentence_and_the_page_goes_on():
    app = AppTest.from_function(refuse_and_go_on).run()
    assert not app.exception
    assert [text.value for text in app.text] == ["before", "nothing to draw", "after"]
    assert app.warning[0].value == r"The price is \$5 of \$4; choose 4 or less."


def break_inside_guard() -> None:
    from dashboard.shell.layout import guard

    with guard():
        raise ValueError("a mistake of ours")


def test_a_mistake_of_ours_is_not_dressed_up_as_a_remedy():
    app = AppTest.from_function(break_inside_guard).run()
    assert app.exception
    assert not app.warning


def small_costs() -> None:
    import pandas as pd

    from dashboard.shell.layout import small_table

    costs = pd.DataFrame({"Method": ["A|<b>", "FAPS"], "Rounds": ["61", "–"]})
    small_table(costs, label='Costs "now"', numbers=["Rounds"])


def test_a_small_table_shows_its_texts_as_texts():
    app = AppTest.from_function(small_costs).run()
    assert not app.exception
    markup = app.get("html")[0].proto.body
    assert "A|&lt;b&gt;" in markup and "<b>" not in markup
    assert 'aria-label="Costs &#34;now&#34;"' in markup
    assert '<th scope="col" class="fp-right">Rounds</th>' in markup
    assert markup.count("<tr>") == 3
    assert "fp-wrapped" not in markup


def small_reasons() -> None:
    import pandas as pd

    from dashboard.shell.layout import small_table

    small_table(pd.DataFrame({"What": ["a"], "Because": ["of many words " * 9]}), label="Why")


def test_sentences_in_a_small_table_break_into_lines():
    markup = AppTest.from_function(small_reasons).run().get("html")[0].proto.body
    assert '<td class="fp-left fp-wrapped">of many words' in markup
    assert '<td class="fp-left">a</td>' in markup


def cards_and_threats() -> None:
    from dashboard.shell.layout import about, heading, metric_cards
    from dashboard.shell.parts import lay_out
    from fedpca_core.study.parts import About, Card, FactsCard

    heading("Title", "A lead.")
    metric_cards([Card("Error", "0.1", note="after 3 rounds"), Card("Bytes", "1 MB")])
    for protection in ("none", "heuristic", "formal"):
        lay_out([FactsCard("Server", {"Sees": "s", "Does": "d"}, protection)])
    about(About("How to read it", "Words.", formula="x^2", source="A paper, eq. 1"))


def test_cards_and_protection_words():
    app = AppTest.from_function(cards_and_threats).run()
    assert not app.exception
    assert [metric.label for metric in app.metric] == ["Error", "Bytes"]
    badges = [text.value for text in app.markdown if "-badge[" in text.value]
    assert len(badges) == 3
    words = [set(badge.split("[", 1)[1].split("] ")[-1].lower().split()) for badge in badges]
    colours = {badge.split("-badge[")[0] for badge in badges}
    assert len(colours) == 3
    assert not words[1] & words[2], "formal privacy and masking share a word"


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        ({}, ""),
        ({"seed": "3", "adaptive": "true", "rho": "0.5"}, "?seed=3&adaptive=true&rho=0.5"),
        ({"methods": ["SSI", "Local Power"]}, "?methods=SSI&methods=Local+Power"),
        ({"note": "a&b=c"}, "?note=a%26b%3Dc"),
    ],
)
def test_addresses_are_encoded(parameters, query):
    got = share.link(parameters, "https://lab.example/converge?old=1#part")
    assert got == f"https://lab.example/converge{query}"


def test_files_are_complete(monkeypatch):
    offered = {}
    monkeypatch.setattr(
        share.st,
        "download_button",
        lambda label, data, file_name, *_, **options: offered.update({file_name: data()}),
    )
    table = pd.DataFrame({"round": [0, 1], "ε": [1.5, None]})
    share.download_archive(
        lambda: {"curve.csv": table.to_csv(index=False)},
        name="page-tables",
        label="Download tables",
        told="All numbers.",
    )
    layout.download("Settings", '{"seed": 3, "name": "ρ"}'.encode, "settings.json", key="one")
    with zipfile.ZipFile(io.BytesIO(offered["page-tables.zip"])) as archive:
        assert archive.namelist() == ["curve.csv"]
        assert archive.read("curve.csv").decode() == "round,ε\n0,1.5\n1,\n"
    assert json.loads(offered["settings.json"]) == {"seed": 3, "name": "ρ"}


def cut_short() -> None:
    import streamlit as st

    from dashboard.shell import controls as module
    from fedpca_core.study.pca_settings import ConvergeSettings

    def ends(*_: object) -> None:
        raise TimeoutError

    drawn, module._widget = module._widget, ends
    controls = module.Controls(ConvergeSettings, runs=["comparison"])
    try:
        controls.parameter("rounds")
        st.text("it was drawn")
    except TimeoutError:
        controls._run_apart("rounds", None)
    finally:
        module._widget = drawn
    st.text(f"{controls.settings().rounds == ConvergeSettings().rounds}")


def test_a_dial_whose_drawing_was_cut_short_is_heard() -> None:
    """Streamlit ends a run at any message, and calls back what the widget was given before."""
    app = AppTest.from_function(cut_short).run()
    assert not app.exception and app.text[0].value == "True"
