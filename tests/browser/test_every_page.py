"""Every page of the navigation opens by its address, without errors, and fits every reader."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.tools import (
    ROOT,
    PageLink,
    accessible,
    drawn,
    fits,
    pages,
    serve,
    settled,
    watch,
)

PAGES = pages()
#: One repetition, fewer rounds and four methods show a reader the same in a tenth of the time.
FOUR = ["SSI", "FAPS", "Block Krylov", "One-shot"]
QUICK = {
    "/which": {"seeds": 1, "rounds": 10, "candidates": FOUR},
    "/personalise": {"datasets": 1, "rounds": 50},
}
#: Pixels of a page on a phone as it opens, at most.
TALLEST = 5000
every_page = pytest.mark.parametrize("link", PAGES, ids=[link.path for link in PAGES])


def test_the_list_of_pages_is_the_navigation_on_screen(open_page):
    page = open_page("/")
    page.locator(".st-key-pages_front button").first.click()
    listed = page.get_by_role("navigation", name="Pages")
    expect(listed).to_be_visible()
    links = listed.get_by_role("link").all()
    titles = [link.locator("span").inner_text() for link in links]
    paths = [link.evaluate("(node) => node.pathname") for link in links]
    whole = [(link.path, link.title) for link in PAGES if not link.of]
    assert list(zip(paths, titles, strict=True)) == whole and len(whole) == 7


def test_a_tab_has_its_own_address_and_its_page_stays_marked(open_page):
    page = open_page("/check")
    tabs = page.get_by_role("navigation", name="What leaks?").get_by_role("link")
    assert tabs.all_inner_texts() != [] and tabs.count() == 3
    tabs.get_by_text("Open a run").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    tabs.filter(has_text="Open a run").click()
    page.wait_for_url(lambda url: "/trace" in url and "settings=" not in url)
    settled(page)
    assert page.locator(".fp-tabs [aria-current=page]").inner_text().endswith("Open a run")
    assert page.locator(".fp-pages [aria-current=page]").inner_text().endswith("What leaks?")
    page.go_back()
    page.wait_for_url(lambda url: "/check" in url)


def test_a_deep_link_is_the_first_request_a_server_gets(new_page):
    """Before the entry has run once, Streamlit might take the file of a page for an entry."""
    with serve(ROOT / "app.py", ROOT) as address:
        page = new_page()
        problems = watch(page)
        page.goto(f"{address}{PAGES[-1].path}")
        drawn(page)
        opened(page, PAGES[-1])
    assert problems == []


@every_page
def test_a_page_opens_fits_and_is_accessible_at_either_width_in_either_scheme(link, open_page):
    """Opened on a phone in light colours, where less room makes more mistakes; wide and dark."""
    page = open_page(link.path, QUICK.get(link.path, ""), width=390, scheme="light")
    light = background(page)
    tall = page.locator("[data-testid=stMain]").evaluate("(main) => main.scrollHeight")
    assert tall <= TALLEST, f"{link.path} is {tall} px tall on a phone"
    fits(page)
    accessible(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    # Where there is room the sidebar may open by itself meanwhile, and this button go.
    page.locator("[data-testid=stExpandSidebarButton]").evaluate_all(
        "(buttons) => buttons.forEach((button) => button.click())"
    )
    drawn(page)
    opened(page, link)
    fits(page)
    page.emulate_media(color_scheme="dark")
    drawn(page)
    assert background(page) != light, "the theme did not follow the system's colour scheme"
    fits(page)
    accessible(page)


def opened(page, link: PageLink) -> None:
    assert page.get_by_role("heading", level=1).all_inner_texts() == [link.heading]
    assert link.title in page.title()
    assert page.locator("[role=dialog]").count() == 0, "a modal covers the page"
    assert page.locator("[data-testid=stException]").count() == 0
    whole = next(one for one in PAGES if one.path == f"/{link.of}") if link.of else link
    assert page.locator(".fp-pages [aria-current=page]").text_content().endswith(whole.title)
    beside = [one.path for one in PAGES if one.of and whole.path == f"/{one.of}"]
    tabs = page.locator(".fp-tabs a").all()
    paths = [tab.evaluate("(node) => node.pathname") for tab in tabs]
    assert paths == ([whole.path, *beside] if beside else [])
    headings = page.locator("[data-testid=stMain]").get_by_role("heading").all()
    levels = [int(heading.evaluate("(node) => node.tagName")[1]) for heading in headings]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), "a level is skipped"


def background(page) -> str:
    return page.evaluate(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
