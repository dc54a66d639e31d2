"""One Chromium and one server for all browser tests; a fresh context (cache, theme) for each."""

from __future__ import annotations

from contextlib import ExitStack
from urllib.parse import urlencode

import pytest
from playwright.sync_api import sync_playwright

from scripts.browser import FLAGS, NoBrowser, find, required
from tests.browser.tools import ROOT, Server, drawn, serve, watch


@pytest.fixture(scope="session")
def chromium():
    """The running browser; without one the tests are skipped, or fail where CI is set."""
    try:
        executable = find()
    except NoBrowser as reason:
        if required():
            pytest.fail(str(reason))
        pytest.skip(str(reason))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(FLAGS))
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


@pytest.fixture(scope="session")
def dashboard(chromium):
    """The address of the dashboard's server that the tests share."""
    with serve(ROOT / "app.py", ROOT) as address:
        yield address


@pytest.fixture
def fresh_dashboard(chromium):
    """A function that starts another server, without a memory of any session."""
    with ExitStack() as servers:
        yield lambda: servers.enter_context(serve(ROOT / "app.py", ROOT))


@pytest.fixture
def open_page(request, new_page, fresh_dashboard):  # which must outlive the look at its log
    """A function that opens a page of the dashboard and waits until it is drawn.

    ``open_page("/converge", {"seed": 3}, scheme="dark", width=390)`` uses the shared server;
    ``address`` names another one. Errors on the console, exceptions here and on the server, and
    requests to other hosts fail the test when it ends.
    """
    problems: list[str] = []
    servers: set[Server] = set()

    def open_(path: str = "/", query: dict | str = "", *, address: Server | None = None, **look):
        address = address or request.getfixturevalue("dashboard")
        servers.add(address)
        page = new_page(**look)
        watch(page, problems)
        parameters = query if isinstance(query, str) else urlencode(query, doseq=True)
        page.goto(f"{address}{path}" + (f"?{parameters}" if parameters else ""))
        drawn(page)
        return page

    yield open_
    problems += filter(None, (server.exceptions() for server in servers))
    assert not problems, "\n".join(problems)
