"""The front page: the experiment runs when it opens, and every parameter acts on it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from fedpca_core.questions.home.story import CHAPTERS
from tests.browser.tools import arrived, settled

SENTENCE = "[data-testid=replay-sentence]"


def test_it_fits_plays_and_the_server_ends_with_the_records(open_page):
    page = open_page("/", moves=True)
    expect(page.locator(SENTENCE)).to_contain_text(
        "the server has all 30 digits of client 3, exactly"
    )
    assert page.locator(".fp-client").count() == 8
    attacked = page.locator(".fp-client.fp-attacked")
    assert attacked.count() == 1
    expect(attacked).to_contain_text("Client 3")
    expect(page.locator(".fp-holds")).to_contain_text("every record of client 3")
    bar = page.locator("[data-testid=replay-range]").bounding_box()
    stage = page.locator(".fp-stagebox").bounding_box()
    assert stage["y"] > 0 and bar["y"] + bar["height"] < page.viewport_size["height"]


def test_who_asked_for_less_motion_sees_where_it_ends(open_page):
    page = open_page("/")
    expect(page.locator(".fp-replay")).to_have_attribute("data-playing", "false")
    expect(page.locator(SENTENCE)).to_contain_text("exactly")
    page = open_page("/", {"round": 2})
    expect(page.locator(SENTENCE)).to_contain_text("After 2 messages")


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
    page = open_page("/", {"epsilon": "10", "clip": "4"})
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
