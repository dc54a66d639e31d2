"""A class guesses on its phones; the story keeps its endings back until their round."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.tools import accessible, settled


def test_a_class_guesses_on_its_phones_and_hears_the_answer(dashboard, open_page, new_page):
    lecturer = open_page("/", {"step": "2", "lecture": "true"})
    lecturer.locator(".st-key-room_open button").first.click()
    way = lecturer.locator(".fp-room a")
    code = lecturer.locator(".fp-room b").inner_text()
    assert way.get_attribute("href").endswith(f"/room/{code}")
    expect(lecturer.locator(".fp-room img")).to_be_visible()
    expect(lecturer.get_by_text("0 of 0 phones have guessed")).to_be_visible()

    phone = new_page(width=390)  # which is told by a 404 that the room has ended
    phone.goto(f"{dashboard}/room/{code.lower()}")
    expect(phone.locator("#question")).to_contain_text("After which message does the server know")
    accessible(phone)
    phone.locator("#slider").fill("4")
    phone.locator("#send").click()
    expect(phone.locator("#said")).to_have_text("Sent: 5.")
    expect(lecturer.get_by_text("1 of 1 phones have guessed")).to_be_visible()
    phone.reload()  # a screen that was locked: the same phone, its guess still there
    expect(phone.locator("#said")).to_have_text("Sent: 5.")
    expect(lecturer.get_by_text("1 of 1 phones have guessed")).to_be_visible()

    lecturer.locator(".st-key-story_show button").first.click()
    ending = lecturer.locator(".fp-late")
    expect(ending).to_contain_text("It was 3; 0 of 1 said so.")
    expect(phone.locator("#truth")).to_have_text("It was 3.")
    expect(phone.locator("#own")).to_have_text("5.")
    lecturer.locator(".st-key-story_next button").first.click()
    expect(phone.locator("#question")).to_contain_text("Read as before")
    lecturer.locator(".st-key-room_close button").first.click()
    expect(phone.locator("#said")).to_contain_text("no such room")


def test_who_types_the_code_comes_in_too(dashboard, new_page):
    page = new_page(width=390)
    page.goto(f"{dashboard}/room")
    page.locator("#code").fill("abcdef")
    page.get_by_role("button", name="Enter").click()
    expect(page.locator("#said")).to_contain_text("no such room")


def test_the_ending_waits_for_its_round_and_answers_the_guess(open_page):
    query = {"step": "2", "shown": "true", "autoplay": "false"}
    page = open_page("/", query)
    ending = page.locator(".fp-late")
    expect(ending).to_have_count(1)
    expect(ending).to_be_hidden()  # the picture stands before the first message
    for _ in range(2):
        page.get_by_test_id("replay-forward").click()
    expect(ending).to_be_hidden()
    page.get_by_test_id("replay-forward").click()
    expect(ending).to_be_visible()
    page.get_by_test_id("replay-back").click()
    expect(ending).to_be_visible()  # it has been read


def test_the_first_step_does_not_show_what_the_second_asks(open_page):
    page = open_page("/", {"step": "1", "shown": "true"})
    expect(page.locator(".fp-late")).to_be_visible()
    picture = page.locator(".fp-scene")
    expect(picture).to_contain_text("What all learn")
    told = picture.inner_text()
    assert "What the server holds" not in told and "attack on" not in told
    assert not re.search("records known|has all|directions of client", told)


def test_back_keeps_the_guess_and_what_was_shown(open_page):
    page = open_page("/", {"step": "1"})
    page.locator(".st-key-story_show button").first.click()
    expect(page.locator(".fp-late")).to_contain_text("You said 11. It was 17.")
    page.locator(".st-key-story_next button").first.click()
    settled(page)
    expect(page.locator(".fp-late")).to_have_count(0)
    page.locator(".st-key-story_back button").first.click()
    settled(page)
    expect(page.locator(".fp-late")).to_contain_text("You said 11. It was 17.")
    assert "shown=true" in page.url
