"""The Personalise page end to end: presets, parameters, sweep, attack, link."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.tools import drawn, look_while_computing, set_slider

QUICK = {"rounds": 50, "clients": 10, "features": 15, "components": 3, "datasets": 1}


def main(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_more_samples_turn_the_verdict(open_page):
    page = open_page("/personalise", {**QUICK, "samples": 5})
    verdict = page.get_by_text("personalised PCA is at")
    before = verdict.inner_text()
    set_slider(page, "samples", 8)  # the last of the grid: 320
    # Keys reach the server when Streamlit has gathered them; until then the page rests as it was.
    expect(verdict).not_to_have_text(before)
    drawn(page)
    expect(page).to_have_url(re.compile("samples=320"))
    pattern = r"training alone settles at (\d\.\d+)"
    (first,), (last,) = re.findall(pattern, before), re.findall(pattern, verdict.inner_text())
    assert float(last) < float(first)


def test_varying_samples_redraws_the_sweep_only(open_page):
    page = open_page("/personalise", QUICK)
    first = page.locator("[data-digest]").first.get_attribute("data-digest")
    sentence = page.get_by_text(
        re.compile(r"one shared model \(global averaging\) cross|all along")
    )
    before = sentence.inner_text()
    page.locator(".st-key-sweep").get_by_text("Samples per client").click()
    expect(sentence).not_to_have_text(before)
    drawn(page)
    expect(page).to_have_url(re.compile(r"sweep=Samples\+per\+client"))
    assert page.locator("[data-digest]").first.get_attribute("data-digest") == first


def test_nothing_vanishes_or_jumps_while_the_next_picture_is_computed(open_page):
    page = open_page("/personalise", {**QUICK, "clients": 60, "features": 40, "components": 10})
    look_while_computing(page, "What the uploads")
    verdict = page.get_by_text("personalised PCA is at")
    before = verdict.inner_text()
    set_slider(page, "rounds", 6)  # 600: long enough to be seen computing
    expect(verdict).not_to_have_text(before)
    drawn(page)
    # The picture came seconds after the keys, and what they had set stands.
    expect(page.locator(".st-key-rounds input[type=range]")).to_have_value("6")
    seen = page.evaluate("() => window.seen")
    assert seen["busy"] > 0, "the change was too small to be seen computing"
    assert seen["charts"] == seen["first"] > 0 and seen["moved"] < 60


def test_a_preset_sets_the_dials_and_the_link(open_page):
    page = open_page("/personalise", QUICK)
    page.get_by_text("Figures of the paper").click()
    page.get_by_role("button", name="Too heterogeneous").click()
    page.wait_for_url(lambda url: "reading=Variance" in url and "rounds=" not in url)
    drawn(page)
    assert "Personalised collaboration pays here" not in main(page)


def test_the_attack_recovers_frames_and_samples_and_is_in_the_link(open_page):
    page = open_page("/personalise", {**QUICK, "samples": 1})
    page.locator(".st-key-exposure label").first.click()
    page.get_by_text("one upload gives a client's private basis").wait_for()
    drawn(page)
    assert "sample itself" in main(page)
    expect(page).to_have_url(re.compile("exposure=true"))
