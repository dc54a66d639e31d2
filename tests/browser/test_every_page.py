"""Every page of the navigation opens by its address, without errors, and fits every reader."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.tools import ROOT, PageLink, accessible, drawn, fits, pages, serve, watch

PAGES = pages()
#: One repetition and fewer rounds show a reader the same in a tenth of the time.
QUICK = {
    "/which": {"seeds": 1, "rounds": 10},
    "/personalise": {"datasets": 1, "rounds": 50},
}
every_page = pytest.mark.parametrize("link", PAGES, ids=[link.path for link in PAGES])


def test_the_list_of_pages_is_the_navigation_on_screen(open_page):
    page = open_page("/")
    links = page.get_by_role("navigation", name="Pages").get_by_role("link").all()
    titles = [link.locator("span").inner_text() for link in links]
    paths = [link.evaluate("(node) => node.pathname") for link in links]
    assert list(zip(paths, titles, strict=True)) == [(link.path, link.title) for link in PAGES]


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
    """Opened on a phone, where less room makes more mistakes."""
    page = open_page(link.path, QUICK.get(link.path, ""), width=390, scheme="light")
    light = background(page)
    fits(page)
    accessible(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    if page.locator("[data-testid=stSidebar]").get_attribute("data-collapsed") == "true":
        page.locator("[data-testid=stExpandSidebarButton]").click()
    drawn(page)
    opened(page, link)
    fits(page)
    accessible(page)
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
    assert page.locator(".fp-pages a").count() == len(PAGES)
    assert page.locator(".fp-pages [aria-current=page]").inner_text().endswith(link.title)
    headings = page.locator("[data-testid=stMain]").get_by_role("heading").all()
    levels = [int(heading.evaluate("(node) => node.tagName")[1]) for heading in headings]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), "a level is skipped"


def background(page) -> str:
    return page.evaluate(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
