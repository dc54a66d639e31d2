"""The Privacy page end to end: turn ε, change the view, follow the link, on phone and desk."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.tools import accessible, drawn, fits, set_slider

QUICK = {"features": 20, "samples": 2000, "repetitions": 2, "delta": "1e-5"}
#: Index of a value on the slider of ε.
EPSILON = {0.1: 0, 1.0: 3, 10.0: 7, "∞": 11}


def metric(page, label: str) -> str:
    card = page.locator("[data-testid=stMetric]").filter(has_text=label)
    return card.locator("[data-testid=stMetricValue]").inner_text()


def main(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_turning_epsilon_changes_guarantee_noise_and_curve(open_page):
    page = open_page("/privacy", QUICK)
    assert metric(page, "Guaranteed ε") == "1" and "Differentially private" in main(page)
    noise, numbers = metric(page, "Noise ν"), page.get_by_test_id("replay-readout").inner_text()
    set_slider(page, "epsilon", EPSILON[10.0])
    drawn(page)
    assert metric(page, "Guaranteed ε") == "10"
    assert float(metric(page, "Noise ν")) < float(noise) / 4
    assert page.get_by_test_id("replay-readout").inner_text() != numbers
    expect(page).to_have_url(re.compile("epsilon=10"))
    set_slider(page, "epsilon", EPSILON["∞"])
    drawn(page)
    assert metric(page, "Guaranteed ε") == "∞"
    assert "Differentially private" not in main(page) and "Unprotected" in main(page)


VIEWS = [
    ("Price of ε", "The budget is spread over all products", 2),
    ("Ways to spend ε", "Trusting nobody", 3),
    ("Where the error comes from", "What theory says", 2),
    ("What an attacker gets", "Is one record in the data?", 3),
    ("Accountants", "And back: what does a given noise mean?", 0),
    ("The paper's figures", "Plateaus here", 1),
]


def test_every_view_is_reached_by_its_button(open_page):
    figure = "Model II without noise (ours)"  # the first of the list takes twenty times as long
    few = {"clients": 4, "products": 4}
    page = open_page("/privacy", {**QUICK, **few, "figure": figure})
    for name, words, charts in VIEWS:
        page.locator(".st-key-view").get_by_text(name, exact=True).click()
        page.get_by_text(words).first.wait_for()
        drawn(page)
        expect(page.locator(".js-plotly-plot")).to_have_count(charts)


def test_a_link_opens_the_same_view_on_another_server(open_page, other_dashboard):
    page = open_page("/privacy", QUICK)
    set_slider(page, "epsilon", EPSILON[0.1])
    page.locator(".st-key-view").get_by_text("Price of ε", exact=True).click()
    expect(page).to_have_url(re.compile(r"epsilon=0\.1.*view=Price|view=Price.*epsilon=0\.1"))
    drawn(page)
    query = page.url.split("?")[1]
    other = open_page("/privacy", query, address=other_dashboard)
    assert metric(other, "Guaranteed ε") == metric(page, "Guaranteed ε") == "0.1"
    digest = "() => document.querySelector('[data-digest]').dataset.digest"
    assert other.evaluate(digest) == page.evaluate(digest)


def test_it_fits_and_is_accessible(open_page):
    page = open_page("/privacy", {**QUICK, "draws": 5, "delta": "0.001"}, width=390, scheme="dark")
    fits(page)
    accessible(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    drawn(page)
    fits(page)
    accessible(page)


def test_the_chart_stands_on_the_first_screen_and_the_guarantee_below_it(open_page):
    page = open_page("/privacy", QUICK)
    page.set_viewport_size({"width": 1440, "height": 900})
    drawn(page)
    chart = page.locator(".fp-plot").first.bounding_box()
    assert chart is not None and chart["y"] + chart["height"] <= 900
    card = page.locator("[data-testid=stMetric]").filter(has_text="Guaranteed ε").bounding_box()
    assert card is not None and card["y"] > chart["y"]
