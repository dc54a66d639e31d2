"""The front page: the experiment runs when it opens, and every parameter acts on it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from fedpca_core.questions.home.story import CHAPTERS
from tests.browser.tools import arrived, fits, settled

SENTENCE = "[data-testid=replay-sentence]"


def test_the_duel_opens_slowly_and_stops_when_the_server_has_every_record(open_page):
    page = open_page("/", moves=True)
    replay = page.locator(".fp-replay.fp-duel")
    # It stops by itself, long before the run ends.
    expect(replay).to_have_attribute("data-round", "3", timeout=30_000)
    expect(replay).to_have_attribute("data-playing", "false")
    captions = page.locator("[data-testid=replay-caption]")
    expect(captions.nth(1)).to_have_text("Has all 30 digits, exactly, since message 3.")
    expect(captions.nth(2)).to_contain_text("Not tried: replay of the update")
    expect(page.locator(".fp-stamp.fp-exact")).to_have_count(1)
    expect(page.locator(".fp-stamp").nth(0)).to_contain_text("30 of 30")
    expect(page.locator(".fp-stamp").nth(1)).to_contain_text("0 of 30")
    expect(page.locator(".fp-invitation")).to_have_text("Now look right: FAPS masks its messages")
    assert page.locator(".fp-client").count() == 8
    for part in ("h1", ".fp-strip", ".fp-gallery", ".fp-learnt-1", ".fp-grid", ".fp-transport"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"], part
    # Once the landing is over, what is on the left is what the clients never sent.
    same = """() => {
      const canvases = [...document.querySelectorAll('.fp-image canvas')];
      const [truth, left, right] = canvases.map((canvas) => canvas.toDataURL());
      return truth === left && left !== right;
    }"""
    page.wait_for_function(same)
    page.keyboard.press("Tab")
    page.locator("[data-testid=replay-play]").click()
    expect(replay).to_have_attribute("data-round", "20", timeout=30_000)
    fits(page)


def test_who_touches_the_bar_takes_over(open_page):
    page = open_page("/", moves=True)
    page.locator("[data-testid=replay-forward]").click()
    replay = page.locator(".fp-replay")
    expect(replay).to_have_attribute("data-playing", "false")
    at = replay.get_attribute("data-round")
    page.wait_for_timeout(2500)
    expect(replay).to_have_attribute("data-round", at)


def test_who_asked_for_less_motion_sees_where_it_ends(open_page):
    page = open_page("/")
    expect(page.locator(".fp-replay")).to_have_attribute("data-playing", "false")
    expect(page.locator(SENTENCE)).to_contain_text("exactly")
    expect(page.locator(".fp-stamp.fp-exact")).to_have_count(1)
    page = open_page("/", {"round": 2})
    expect(page.locator(SENTENCE)).to_contain_text("After 2 messages")


def test_either_side_may_be_off_or_another_method(open_page):
    page = open_page("/", {"versus": "LocalPower", "autoplay": "false", "round": 3})
    expect(page.locator(".fp-image").nth(2)).to_contain_text("The server reads LocalPower")
    assert page.locator(".fp-learnt").count() == 2
    page = open_page("/", {"algorithm": "FAPS", "autoplay": "false"})  # a link of former times
    expect(page.locator(".fp-image")).to_have_count(2)
    expect(page.locator(".fp-stagebox")).to_be_visible()


def test_a_parameter_of_the_link_changes_all_three_pictures(open_page):
    page = open_page("/", {"clients": "5", "algorithm": "FAPS"}, moves=True)
    settled(page)
    expect(page.locator(".fp-client")).to_have_count(5)
    expect(page.locator(SENTENCE)).to_contain_text("not tried: replay of the update")
    expect(page.locator(".fp-shield")).to_contain_text("masked")
    assert "exactly" not in page.locator(SENTENCE).inner_text()
    # What was not tried stands there with its price, and a button that runs it.
    page.get_by_role("button", name="Try it: replay of the update").click()
    expect(page.locator(SENTENCE)).to_contain_text("exactly")


def test_noise_at_the_source_is_on_the_stage_with_its_guarantee(open_page):
    page = open_page("/", {"versus": "off", "epsilon": "10", "clip": "4"})
    settled(page)
    expect(page.locator(".fp-shield")).to_contain_text("ε = 10")
    expect(page.locator("[data-testid=stMain]")).to_contain_text("one record of one client")


def test_a_card_opens_its_page_in_the_same_session(open_page):
    page = open_page("/", {"embed": "true", "seed": "3"})
    settled(page)
    loads: list[str] = []
    page.on("request", lambda one: loads.append(one.url) if one.is_navigation_request() else None)
    for section, path in (("points", "/converge"), ("questions", "/which"), ("steps", "/")):
        page.locator(f".fp-{section} .fp-way").nth(0).click()
        # Nobody waits for what is computed there: a run of everything on “Which one?” takes long.
        arrived(page, path)
        expect(page.locator("h1")).not_to_contain_text("What does the server hold?")
        expect(page).to_have_url(re.compile("embed=true"))
        if section == "points":  # a preset is all that its link says, a door brings what travels
            assert "seed" not in page.url
        elif section == "questions":
            expect(page.locator("h1")).to_contain_text("Which federated PCA")
        else:
            expect(page.locator("h1")).to_have_text(CHAPTERS["1"].title)
            break
        page.go_back()
        expect(page.locator("h1")).to_contain_text("What does the server hold?")
        settled(page)
    assert loads == []
