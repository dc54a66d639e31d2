"""The anomaly page end to end: baselines, alarms, own files, poisoning, and its refusals."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from fedpca_core.problems.traffic_table import SCHEMAS
from tests.browser.tools import (
    accessible,
    computing_held,
    drawn,
    fits,
    look_while_computing,
    set_slider,
    settled,
)

QUICK = {"problem": "Synthetic traffic", "components": 6, "rounds": 100}


def main_text(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def card(page, label: str) -> float:
    text = page.locator("[data-testid=stMetric]").filter(has_text=label).inner_text()
    return float(re.findall(r"[\d.]+", text.split("\n", 1)[1].replace(",", ""))[0])


def found(pattern: str, text: str) -> list[str]:
    match = re.search(pattern, text)
    assert match, f"{pattern!r} is not in: {text}"
    return list(match.groups())


def table_of_iot23(rows=400):
    generator = np.random.default_rng(0)
    factors = generator.standard_normal((rows, 2)) @ generator.standard_normal((2, 8))
    attack = np.arange(rows) % 4 == 0
    values = np.exp(3 + factors + 0.1 * generator.standard_normal((rows, 8)))
    values[attack, 1] *= 30
    table = pd.DataFrame(values.round(3), columns=list(SCHEMAS["iot23"].numeric))
    table["label"] = np.where(attack, "Malicious", "Benign")
    return table


def upload(page, table: pd.DataFrame, name: str) -> None:
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(
        [{"name": name, "mimeType": "text/csv", "buffer": table.to_csv(index=False).encode()}]
    )
    page.get_by_text(name).first.wait_for()
    page.wait_for_timeout(300)
    drawn(page)


def test_the_method_stands_beside_its_baselines_and_the_threshold_moves_it(open_page):
    page = open_page("/anomaly", QUICK)
    text = main_text(page)
    assert "This traffic is synthetic" in text
    number = r"(\d\.\d+)"
    verdict = rf"probability {number}; .* with {number}, .* alone with {number}"
    own, exact, norm = map(float, found(verdict, text))
    assert abs(own - exact) < 0.02 and own > norm + 0.1
    assert card(page, "AUC") == own
    expect(page.locator(".js-plotly-plot")).to_have_count(4)
    caught, alarms = card(page, "Attacks caught"), card(page, "False alarms a day")
    assert 300 < alarms < 700  # of 10,000 normal flows
    set_slider(page, "quantile", 0)  # the first of the list: 0.8
    drawn(page)
    assert 1700 < card(page, "False alarms a day") < 2300
    assert card(page, "Attacks caught") > caught
    assert card(page, "AUC") == own
    expect(page).to_have_url(re.compile("quantile=0.8"))


@pytest.mark.parametrize(
    ("topic", "clients", "below", "key"),
    [
        ("Learning", 20, "Corrected and as", "learning"),
        ("Detection", 40, "How to read", "detection"),
    ],
)
def test_nothing_vanishes_or_jumps_while_the_next_picture_is_computed(
    open_page, dashboard, topic, clients, below, key
) -> None:
    page = open_page("/anomaly", {**QUICK, "view": topic, "participation": 1, "clients": clients})
    look_while_computing(page, below)
    with computing_held(dashboard):
        page.locator(".st-key-components input[type=range]").press("ArrowRight")
        page.wait_for_function("() => window.seen.busy > 5")
    drawn(page)
    expect(page).to_have_url(re.compile("components=7"))
    seen = page.evaluate("() => window.seen")
    assert seen["charts"] == seen["first"] > 0 and seen["moved"] < 60
    expect(page.locator(f".st-key-{key}_picture")).to_have_css("opacity", "1")


def test_one_alarm_is_explained_feature_by_feature(open_page):
    page = open_page("/anomaly", {**QUICK, "view": "Alarms"}, width=390, scheme="dark")
    assert "As a table" in main_text(page)
    sentence = page.get_by_text(re.compile(r"^Flow \d+ is "))
    before = sentence.inner_text()
    number = int(*found(r"Flow (\d+)", before))
    set_slider(page, "flow", number + 2)
    page.get_by_text(re.compile(rf"^Flow {number + 2} is ")).wait_for()
    assert sentence.inner_text() != before
    assert page.locator(".stPlotlyChart").count() == 1
    fits(page)
    accessible(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.emulate_media(color_scheme="light")
    drawn(page)
    fits(page)
    accessible(page)


def test_a_file_of_ones_own_is_read_or_refused_in_a_sentence(open_page):
    page = open_page("/anomaly", {"problem": "Your own file", "components": 2, "clients": 20})
    assert "There is no file yet" in main_text(page)
    upload(page, table_of_iot23().assign(duration="long"), "texts.csv")
    assert "Column 'duration' of texts.csv holds text" in main_text(page)
    page.get_by_role("button", name=re.compile("Remove")).first.click()
    settled(page)
    upload(page, table_of_iot23(), "good.csv")
    text = main_text(page)
    assert "ranks an attack above a normal flow" in text and "holds text" not in text
    assert "400 records read" in text and "synthetic" not in text
    page.get_by_role("button", name=re.compile("Remove")).first.click()
    settled(page)
    other = table_of_iot23().rename(columns=lambda name: f"my {name}")
    upload(page, other.drop(columns=["my label"]), "unlabelled.csv")
    main = page.locator("[data-testid=stMain]")
    expect(main).to_contain_text("of the 160 tested records raise the alarm")
    assert "Nobody says which" in main_text(page) and "good.csv" not in main_text(page)


def test_too_many_components_are_a_sentence_and_the_page_lives_on(open_page):
    page = open_page("/anomaly", {**QUICK, "components": 30})
    assert "30 components do not fit 24 features" in main_text(page)
    set_slider(page, "components", 6)
    drawn(page)
    expect(page.locator(".js-plotly-plot")).to_have_count(4)


def test_iot23_opens_with_something_drawn_and_a_split_by_kind_is_shown(open_page):
    page = open_page("/anomaly", {"problem": "IoT-23", "rounds": 100, "split": "By kind, shards"})
    expect(page.get_by_text("7 is used")).to_be_visible()
    expect(page.locator(".fp-plot[data-drawn]").first).to_be_visible()
    page.get_by_text("What each client holds, of the first").click()
    expect(page.get_by_text("What each client holds, in % of its records")).to_be_visible()


@pytest.mark.parametrize(
    ("there", "way"),
    [
        ({"problem": "UNSW-NB15"}, "Show it with IoT-23"),
        ({"problem": "UNSW-NB15", "components": 3}, "Show it with IoT-23"),
        ({"problem": "Synthetic traffic"}, "Real traffic that comes along"),
    ],
)
def test_an_address_gives_the_page_that_it_was_copied_from(open_page, there, way) -> None:
    # What is computed already stands at once, and no later run mends the address.
    for query in (QUICK | {"problem": "IoT-23", "components": c} for c in (3, 4)):
        open_page("/anomaly", query)
    page = open_page("/anomaly", QUICK | {"components": 10} | there)
    page.get_by_text(way).click()
    page.wait_for_url(lambda url: "IoT-23" in url and "settings=" not in url)
    drawn(page)
    shown = page.locator(".st-key-components input[type=range]").input_value()
    page.goto(page.url)
    drawn(page)
    again = page.locator(".st-key-components input[type=range]").input_value()
    assert shown == again == str(min(there.get("components", 10), 4))
