"""The shell around the pages: the other entry, and the fonts of the theme."""

from __future__ import annotations

import re
from urllib.request import urlopen

from playwright.sync_api import expect

from tests.browser.tools import settled


def test_the_plain_script_is_an_entry_too(open_page, other_dashboard):
    page = open_page("/converge", address=other_dashboard)
    assert page.locator("h1").first.inner_text().strip()
    assert page.locator("[role=dialog]").count() == 0, "a modal covers the page"
    assert page.locator("[data-testid=stException]").count() == 0
    page.wait_for_url(lambda url: url.split("?")[0] == f"{other_dashboard}/converge")


def test_headings_use_our_own_font_and_tabs_carry_the_product(open_page):
    page = open_page("/")
    assert page.title() == "Home · Federated-PCA laboratory"
    font = page.evaluate("() => getComputedStyle(document.querySelector('h1')).fontFamily")
    assert font.startswith("Fraunces")
    assert page.evaluate("() => document.fonts.check('600 20px Fraunces')")


def test_an_embedded_page_folds_its_controls_away_and_keeps_its_settings(open_page):
    quick = {"starts": 1, "rounds": 50}
    page = open_page("/converge", {**quick, "heterogeneity": 0.5, "embed": "true"})
    sidebar = page.locator("[data-testid=stSidebar]")
    expect(sidebar).to_have_attribute("data-collapsed", "true")
    page.wait_for_url(lambda url: "embed=true" in url and "heterogeneity=0.5" in url)
    page = open_page("/converge", quick)
    expect(page.locator("[data-testid=stSidebar]")).to_have_attribute("data-collapsed", "false")


def test_the_list_of_pages_opens_them_in_the_session_that_is_there(open_page):
    page = open_page("/trace", {"embed": "true", "seed": "3"})
    page.locator("[data-testid=stExpandSidebarButton]").click()
    loads: list[str] = []
    page.on("request", lambda one: loads.append(one.url) if one.is_navigation_request() else None)
    current = page.locator(".fp-pages [aria-current]")
    page.keyboard.press("Tab")  # from now on focus is shown
    page.locator(".fp-pages a", has_text="Who collaborates?").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_title(re.compile("^Who collaborates"))
    expect(current).to_have_count(1)
    expect(current).to_contain_text("Who collaborates?")
    expect(current).to_be_focused()
    expect(current).to_have_css("outline-style", "solid")
    page.wait_for_url(lambda url: "/personalise?" in url and "settings=" not in url)
    assert "embed=true" in page.url
    settled(page)
    page.go_back()
    expect(page).to_have_title(re.compile("^Open a run"))
    expect(current).to_have_count(1)
    expect(current).to_contain_text("What leaks?")
    settled(page)
    assert loads == []
    link = page.locator(".fp-tabs a", has_text="Leak check")
    with page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    opened.value.wait_for_url("**/check")
    opened.value.close()
    expect(current).to_contain_text("What leaks?")


def test_on_a_phone_the_list_of_pages_makes_way_for_the_page(open_page):
    page = open_page("/check", {"rounds": 10}, width=390)
    page.locator("[data-testid=stExpandSidebarButton]").click()
    page.locator(".fp-pages a", has_text="Who collaborates?").click()
    expect(page).to_have_title(re.compile("^Who collaborates"))
    expect(page.locator("[data-testid=stSidebar]")).to_have_attribute("data-collapsed", "true")


def test_the_first_document_has_a_title_a_description_and_a_preview(dashboard):
    with urlopen(f"{dashboard}/converge") as answer:
        document = answer.read().decode()
        assert answer.headers["ETag"] is None
    assert "<title>Federated-PCA laboratory</title>" in document and "Streamlit</t" not in document
    assert '<meta name="description" content="Turn clients' in document
    picture = re.search(r'"og:image" content="([^"]+)"', document)
    assert picture is not None and picture[1].startswith(str(dashboard))
    with urlopen(picture[1]) as answer:
        assert answer.read(4) == b"\x89PNG"


def test_a_focused_page_link_is_outlined_where_a_browser_s_own_blue_is_not_seen(open_page):
    page = open_page("/check", {"rounds": 10})
    page.keyboard.press("Tab")  # from now on focus is shown
    link = page.locator("[data-testid=stPageLink-NavLink]").first
    link.focus()
    outline = "(node) => [getComputedStyle(node).outlineStyle, getComputedStyle(node).outlineColor]"
    assert link.evaluate(outline) == ["solid", "rgb(0, 0, 0)"]
    page.emulate_media(color_scheme="dark")
    settled(page)
    link.focus()
    assert link.evaluate(outline) == ["solid", "rgb(255, 255, 255)"]
