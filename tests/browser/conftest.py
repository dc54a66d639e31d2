"""One Chromium for all browser tests; a fresh context (its own cache and theme) for each."""

from __future__ import annotations

import pytest

from tests.browser.tools import CHROMIUM_FLAGS, find_chromium

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")


@pytest.fixture(scope="session")
def chromium():
    """The running browser."""
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        except playwright.Error as reason:
            pytest.skip(f"no Chromium could be started: {reason}")
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """A function ``new_page(width=1440, scheme="light")`` that opens an empty page."""
    contexts = []

    def make(width: int = 1440, scheme: str = "light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 1000 if width > 600 else 844},
            color_scheme=scheme,
            **options,
        )
        contexts.append(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
