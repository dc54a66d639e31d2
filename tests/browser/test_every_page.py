"""Every page of the navigation opens by its address, without errors, and fits every reader."""

from __future__ import annotations

import pytest

from tests.browser.tools import accessible, drawn, fits, pages

PAGES = pages()
every_page = pytest.mark.parametrize("link", PAGES, ids=[link.path for link in PAGES])


def test_the_list_of_pages_is_the_navigation_on_screen(open_page):
    page = open_page("/")
    links = page.locator("[data-testid=stSidebarNavLink]")
    titles = [link.inner_text().split("\n")[-1] for link in links.all()]
    paths = ["/" + link.get_attribute("href").split("/")[-1] for link in links.all()]
    assert list(zip(paths, titles, strict=True)) == [(link.path, link.title) for link in PAGES]


@every_page
def test_a_deep_link_opens_its_page_on_a_fresh_server(link, open_page, fresh_dashboard):
    page = open_page(link.path, address=fresh_dashboard())
    assert page.get_by_role("heading", level=1).all_inner_texts() == [link.heading]
    assert link.title in page.title()
    assert page.locator("[role=dialog]").count() == 0, "a modal covers the page"
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stSidebarNavLink]").count() == len(PAGES)


@every_page
@pytest.mark.parametrize("width", [1440, 390])
def test_a_page_fits_and_is_accessible_in_light_and_dark(link, width, open_page):
    page = open_page(link.path, width=width, scheme="light")
    light = background(page)
    fits(page)
    accessible(page)
    page.emulate_media(color_scheme="dark")
    drawn(page)
    assert background(page) != light, "the theme did not follow the system's colour scheme"
    fits(page)
    accessible(page)


def background(page) -> str:
    return page.evaluate(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
