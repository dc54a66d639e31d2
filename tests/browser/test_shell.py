"""The shell around the pages: the other entry, and the fonts of the theme."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.tools import ROOT, drawn, serve, watch


def test_the_plain_script_is_an_entry_too(new_page):
    with serve(ROOT / "dashboard" / "main.py", ROOT) as address:
        page = new_page()
        problems = watch(page)
        page.goto(f"{address}/converge")
        drawn(page)
        assert page.locator("h1").first.inner_text().strip()
        assert page.locator("[role=dialog]").count() == 0, "a modal covers the page"
        assert page.locator("[data-testid=stException]").count() == 0
        assert page.url.split("?")[0] == f"{address}/converge"
        assert problems == []


def test_headings_use_our_own_font(open_page):
    page = open_page("/")
    font = page.evaluate("() => getComputedStyle(document.querySelector('h1')).fontFamily")
    assert font.startswith("Fraunces")
    assert page.evaluate("() => document.fonts.check('600 20px Fraunces')")


def test_an_embedded_page_folds_its_controls_away_and_keeps_its_settings(open_page):
    quick = {"starts": 1, "rounds": 50}
    page = open_page("/converge", {**quick, "heterogeneity": 0.5, "embed": "true"})
    sidebar = page.locator("[data-testid=stSidebar]")
    expect(sidebar).to_have_attribute("data-collapsed", "true")
    assert "embed=true" in page.url and "heterogeneity=0.5" in page.url
    page = open_page("/converge", quick)
    expect(page.locator("[data-testid=stSidebar]")).to_have_attribute("data-collapsed", "false")
