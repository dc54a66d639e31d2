"""The Attack page end to end: the server's view sharpens, defences and refusals speak."""

from __future__ import annotations

import re

from tests.browser.tools import drawn, set_slider, settled


def caption(page, method: str) -> str:
    figure = page.locator("figure, .fp-image").filter(has_text=f"reconstruction from {method}")
    return figure.first.inner_text()


def error_of(page, method: str) -> float:
    return float(re.search(r"error ([0-9.e+-]+)", caption(page, method)).group(1))


def scrub_to(page, round_: int) -> None:
    page.get_by_test_id("replay-range").focus()
    page.keyboard.press("Home")
    for _ in range(round_):
        page.keyboard.press("ArrowRight")


def test_the_reconstruction_sharpens_as_the_user_scrubs(open_page):
    page = open_page("/attack")
    assert error_of(page, "SSI") < 1e-8
    assert error_of(page, "FAPS") > 1
    scrub_to(page, 0)
    assert error_of(page, "SSI") == 1
    scrub_to(page, 5)
    assert 1e-3 < error_of(page, "SSI") < 1
    pixels = "() => document.querySelectorAll('canvas')[1].toDataURL()"
    early = page.evaluate(pixels)
    scrub_to(page, 15)
    assert page.evaluate(pixels) != early


def test_secure_aggregation_leaves_no_single_client_to_attack(open_page):
    page = open_page("/attack", {"secure": "true"})
    text = page.locator("[data-testid=stMain]").inner_text()
    assert "secure aggregation" in text
    assert page.locator("[data-testid=stException]").count() == 0


def test_images_show_eigen_images(open_page):
    page = open_page("/attack", {"problem": "Digits", "rounds": 20})
    text = page.locator("[data-testid=stMain]").inner_text()
    assert "True eigen-images" in text
    assert page.locator("canvas").count() >= 6


def test_an_unknown_client_is_a_sentence(open_page):
    page = open_page("/attack", {"client": 50})
    assert "There is no client 50 among 5; choose an attacked client from 0 to 4." in (
        page.locator("[data-testid=stMain]").inner_text()
    )
    set_slider(page, "client", 2)
    drawn(page)
    assert page.locator(".js-plotly-plot").count() == 2


def test_copied_link_reproduces_the_attack(open_page, fresh_dashboard):
    page = open_page("/attack", {"seed": 4})
    set_slider(page, "client", 3)
    settled(page)
    drawn(page)
    page.get_by_role("button", name=re.compile("Copy link")).click()
    link = page.locator("[data-testid=stCode] code").inner_text().strip()
    other = open_page("/attack", link.split("?")[1], address=fresh_dashboard())
    for method in ("SSI", "FAPS"):
        assert caption(other, method) == caption(page, method)
