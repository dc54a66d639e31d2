"""The Personalise page end to end: presets, parameters, sweep, attack, link."""

from __future__ import annotations

import re

from tests.browser.tools import drawn, set_slider

QUICK = {"p-rounds": 50, "p-clients": 10, "p-features": 15, "p-components": 3}


def main(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_more_samples_turn_the_verdict(open_page):
    page = open_page("/personalise", {**QUICK, "p-samples": 5})
    before = main(page)
    assert "Personalised PCA ends at" in before
    set_slider(page, "p-samples", 8)  # the last of the grid: 320
    drawn(page)
    assert "p-samples=320" in page.url
    after = main(page)
    assert after != before
    pattern = r"training alone at (\d\.\d+)"
    (first,), (last,) = re.findall(pattern, before), re.findall(pattern, after)
    assert float(last) < float(first)


def test_varying_samples_redraws_the_sweep_only(open_page):
    page = open_page("/personalise", QUICK)
    first = page.locator("[data-digest]").first.get_attribute("data-digest")
    sentence = page.get_by_text(re.compile("The two extremes cross|is the better extreme"))
    before = sentence.inner_text()
    page.locator(".st-key-p-vary").get_by_text("Samples per client").click()
    drawn(page)
    assert "p-vary=Samples+per+client" in page.url
    assert sentence.inner_text() != before
    assert page.locator("[data-digest]").first.get_attribute("data-digest") == first


def test_a_preset_sets_the_dials_and_the_link(open_page):
    page = open_page("/personalise", QUICK)
    page.get_by_text("Figures of the paper").click()
    page.get_by_role("button", name="Too heterogeneous").click()
    drawn(page)
    assert "p-reading=Variance" in page.url and "p-rounds" not in page.url
    assert "Personalised collaboration pays here" not in main(page)


def test_the_attack_recovers_frames_and_samples(open_page):
    page = open_page("/personalise", {**QUICK, "p-samples": 1})
    page.locator(".st-key-p-attack label").first.click()
    page.get_by_text("one upload gives a client's private frame").wait_for(timeout=60_000)
    drawn(page)
    assert "sample itself" in main(page)


def test_sizes_that_do_not_fit_are_a_sentence(open_page):
    page = open_page("/personalise", {**QUICK, "p-features": 10, "p-components": 12})
    assert "12 components do not fit 10 features; choose between 1 and 9 components." in main(page)
