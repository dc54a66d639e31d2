"""The Attack page end to end: the server's view sharpens, defences and refusals speak."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.tools import drawn, set_slider, settled


def caption(page, method: str) -> str:
    figure = page.locator("figure, .fp-image").filter(has_text=f"reconstruction from {method}")
    return figure.first.inner_text()


def error_of(page, method: str) -> float:
    return float(re.search(r"error ([0-9.e+-]+)", caption(page, method)).group(1))


def scrub_to(page, round_: int) -> None:
    page.get_by_test_id("replay-range").nth(1).focus()  # the first one plays the records
    page.keyboard.press("Home")
    for _ in range(round_):
        page.keyboard.press("ArrowRight")


def test_it_opens_with_certified_records_and_a_reconstruction_that_sharpens(open_page):
    page = open_page("/attack")
    held = page.locator("figure, .fp-image").filter(has_text="What the server made of it").first
    expect(held).to_contain_text("certified: all 30")
    expect(page.locator("[data-testid=stMain]")).to_contain_text("30 of 30 are exact")
    assert error_of(page, "SSI") < 1e-8
    assert error_of(page, "FAPS") > 1
    scrub_to(page, 0)
    assert error_of(page, "SSI") == 1
    scrub_to(page, 5)
    assert 1e-3 < error_of(page, "SSI") < 1
    figure = page.locator("figure, .fp-image").filter(has_text="reconstruction from SSI").first
    pixels = "(canvas) => canvas.toDataURL()"
    early = figure.locator("canvas").evaluate(pixels)
    scrub_to(page, 15)
    assert figure.locator("canvas").evaluate(pixels) != early
    assert page.locator("[data-testid=stDataFrame]").count() == 0
    page.get_by_text("What crossed the wire").click()
    expect(page.locator("[data-testid=stDataFrame]")).to_have_count(2)


def test_every_dial_changes_the_verdict_on_the_records_and_gives_it_back(open_page):
    few = {"problem": "Digits", "perclient": 10, "components": 10, "rounds": 10, "against": "SSI"}
    page = open_page("/attack", few)
    verdict = page.locator(".st-key-records_picture [data-testid=stMarkdown]").first
    held = page.locator("figure, .fp-image").filter(has_text="What the server made of it").first
    everything = verdict.inner_text()
    fold = page.locator(".st-key-records_picture [data-testid=stExpander]")
    fold.locator("summary").click()
    full = fold.locator("[data-testid=stMarkdown]").last
    expect(full).to_contain_text("Certified")
    at_length = full.inner_text()
    assert "all 10 digits" in everything and "10 of 10 are exact" in everything
    for dial, left, caption in (
        ("meanknown", "every difference between the 10 digits", "less what is common to them"),
        ("gridknown", "the step of its grid, 0.0625, found by trial", "certified: all 10"),
        (
            "secure",
            "the records: has not opened it with any of our 3 attacks",
            "not opened by our attacks",
        ),
    ):
        page.locator(f".st-key-{dial} label").first.click()
        expect(verdict).to_contain_text(left)
        expect(held).to_contain_text(caption)
        page.locator(f".st-key-{dial} label").first.click()
        expect(verdict).to_have_text(everything)
    for dial, key, back, left in (
        ("perclient", "ArrowRight", "ArrowLeft", "all 12 digits"),
        (
            "epsilon",
            "ArrowLeft",
            "ArrowRight",
            "the records: has not opened it with any of our 2 attacks",
        ),
        ("noise", "End", "Home", "the others drown in the noise"),
    ):
        slider = page.locator(f".st-key-{dial} input[type=range]")
        slider.press(key)
        expect(verdict).to_contain_text(left)
        slider.press(back)
        expect(verdict).to_have_text(everything)
    page.locator(".st-key-precision input").click()
    page.get_by_role("option", name="float32").click()
    expect(full).not_to_have_text(at_length)
    expect(verdict).to_contain_text("10 of 10 are exact")  # rounding does not stop it


def test_the_masked_messages_are_in_sight_while_a_replay_lasts(open_page):
    masked = {"problem": "Digits", "perclient": 30, "components": 10, "against": "FAPS"}
    page = open_page("/attack", masked)
    picture, dial = page.locator(".st-key-records_picture"), page.locator(".st-key-unmask label")
    expect(picture).to_contain_text("the records: not tried (about")
    dial.click()
    # Half a minute of replaying begins.
    page.locator(".st-key-records_stop button").wait_for()
    expect(picture).to_contain_text("FAPS: received")
    expect(picture.locator(".fp-image canvas")).to_have_count(3)
    expect(picture).to_contain_text("the records: not tried (about")
    dial.click()
    expect(page.locator(".st-key-records_stop button")).to_have_count(0)


def test_copied_link_reproduces_the_attack(open_page, other_dashboard):
    page = open_page("/attack", {"seed": 4})
    set_slider(page, "client", 3)
    settled(page)
    drawn(page)
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode] code").inner_text().strip()
    other = open_page("/attack", link.split("?")[1], address=other_dashboard)
    for method in ("SSI", "FAPS"):
        assert caption(other, method) == caption(page, method)


SMALL = {"features": 10, "components": 2, "samples": 40, "rounds": 10, "replay": "true"}


def test_replay_recovers_what_the_linear_attack_cannot_and_comes_back_at_once(open_page):
    page = open_page("/attack", SMALL)
    found = page.get_by_text("The server has the client's covariance to")
    found.wait_for()
    error = float(re.search(r"covariance to ([0-9.e+-]+)", found.inner_text()).group(1))
    assert error < 1e-9
    assert error_of(page, "FAPS") > 1
    # Another visitor with the same settings gets the finished job, not a new one.
    other = open_page("/attack", SMALL)
    again = other.get_by_text("The server has the client's covariance to")
    again.wait_for()
    assert again.inner_text() == found.inner_text(), "the attack was run again"


def test_replay_shows_progress_survives_other_widgets_and_can_be_stopped(open_page):
    long = {"features": 60, "rounds": 20, "replay": "true", "evaluations": 2000, "seed": 7}
    page = open_page("/attack", long, wait=False)
    status = page.locator(".st-key-replay_busy")
    status.locator("[data-testid=stProgress]").wait_for()
    set_slider(page, "starts", 2)
    assert status.locator("[data-testid=stProgress]").count() == 1, "the attack did not go on"
    found = page.get_by_text("The server has the client's covariance to").first
    found.wait_for()  # drawn while the search goes on
    page.locator(".st-key-replay_stop button").click()
    page.get_by_text("Stopped early").wait_for()
    found.wait_for()


def test_one_more_record_is_read_off_two_runs(open_page, other_dashboard):
    page = open_page("/attack", {"problem": "Digits", "components": 10, "rounds": 20})
    main = page.locator("[data-testid=stMain]")
    assert "True eigen-images" in main.inner_text() and page.locator("canvas").count() >= 6
    main.get_by_text("One more record").click()
    expect(main.get_by_text("The record that joined").last).to_be_visible()
    drawn(page)  # what comes between pressing and letting go takes the switch away
    page.get_by_text("Compare with an earlier run").click()
    expect(page.get_by_role("switch", name="Compare with an earlier run")).to_be_checked()
    drawn(page)
    expect(main).to_contain_text("the server has the record that joined after round")
    field = page.locator(".st-key-record input")
    field.fill("9000")
    field.press("Enter")
    settled(page)
    expect(main).to_contain_text("Client 0 has no record 9000; choose one from 0 to 359.")
    field.fill("7")
    field.press("Enter")
    drawn(page)
    expect(main).not_to_contain_text("has no record 9000")
    page.wait_for_url(lambda url: "differencing=true" in url and "record=7" in url)
    words = main.get_by_text("the server has the record that joined").inner_text()
    again = open_page("/attack", page.url.split("?")[1], address=other_dashboard)
    expect(again.locator("[data-testid=stMain]")).to_contain_text(words[:80])
