"""One server for all browser tests; one Chromium, context and tab for those of a process.

The context is shared for its cache, and so are the process that renders and the tab: reading and
compiling the scripts of a page takes longer than most tests. Sessions of the dashboard belong to
documents, so an address opened anew is a fresh visitor, in whichever tab.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from scripts.browser import NoBrowser, required
from scripts.browser import chromium as started
from tests.browser.tools import (
    LINE,
    ROOT,
    Server,
    answering,
    drawn,
    end,
    serve,
    start,
    unheard,
    watch,
)

# Fading, shimmering and flying paint a page sixty times a second, on the processor, for as long as
# a test waits. Pages under test belong to a reader who asked for less motion, which the player
# obeys; Streamlit's placeholders do not, so their style is taken from them.
STILL = """(() => {
  const still = new CSSStyleSheet();
  still.replaceSync("*, *::before, *::after { animation: none !important; "
    + "transition: none !important }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];
})()"""

# What is expected may take long on a machine with other work, and costs nothing where it does not.
expect.set_options(timeout=180_000)


@pytest.fixture(scope="session")
def chromium():
    """The running browser; without one the tests are skipped, or fail where CI is set."""
    with ExitStack() as opened:
        try:
            browser = opened.enter_context(started("--process-per-site"))
        except NoBrowser as reason:
            if required():
                pytest.fail(str(reason))
            pytest.skip(str(reason))
        yield browser


@pytest.fixture(scope="session")
def context(chromium):
    """What the pages of all tests share: a cache, and a renderer, which lives while a page does."""
    context = chromium.new_context(reduced_motion="reduce")
    context.add_init_script(STILL)
    context.add_init_script(LINE)
    context.set_default_timeout(180_000)
    stays = context.new_page()
    stays.route("**", lambda request: request.fulfill(body=""))
    stays.goto("http://127.0.0.1/")  # a site has no port, so this is that of every server here
    return context


@pytest.fixture(scope="session")
def tabs(context):
    """The tab that the last test left, if it left one."""
    return []


@pytest.fixture
def new_page(context, tabs):
    """A function ``new_page(width=1440, height=1000)`` that gives a page to open something in.

    Only a page that ``moves`` plays when it opens.
    """
    pages = []

    def make(
        width: int = 1440, height: int | None = None, scheme: str = "light", moves: bool = False
    ):
        page = tabs.pop() if tabs else context.new_page()
        pages.append(page)
        height = height or (1000 if width > 600 else 844)
        page.set_viewport_size({"width": width, "height": height})
        motion = "no-preference" if moves else "reduce"
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        return page

    yield make
    for page in pages:
        unheard(page)
    if pages:
        left, *others = pages
        for page in others:
            page.close()
        left.mouse.move(0, 0)
        # An empty page has none.
        left.evaluate("() => { try { sessionStorage.clear(); localStorage.clear() } catch {} }")
        left.goto("about:blank")  # a page whose server has gone would ask for it in the next test
        tabs.append(left)


#: What the tests' servers run, and with how many workers.
ENTRIES = {
    "dashboard": (ROOT / "app.py", "2"),
    "other_dashboard": (ROOT / "dashboard" / "main.py", "1"),
}
_running: dict[str, Server] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Processes of pytest-xdist share the servers, which start while they collect their tests."""
    for name, (entry, workers) in ENTRIES.items():
        _running[name] = _running.get(name) or start(entry, ROOT, workers)
    node.workerinput["servers"] = {n: (str(a), str(a.log), a.pid) for n, a in _running.items()}


def pytest_unconfigure() -> None:
    while _running:
        end(_running.popitem()[1])


@contextmanager
def _running_or_served(config: pytest.Config, name: str) -> Iterator[Server]:
    shared = getattr(config, "workerinput", {}).get("servers")
    if shared is None:
        entry, workers = ENTRIES[name]
        with serve(entry, ROOT, workers) as address:
            yield address
    else:
        url, log, pid = shared[name]
        address = Server(url)
        address.log, address.pid = Path(log), pid
        answering(address)
        yield address
        assert not address.exceptions()


@pytest.fixture(scope="session")
def dashboard(chromium, pytestconfig):
    """The address of the dashboard's server that the tests share."""
    with _running_or_served(pytestconfig, "dashboard") as address:
        yield address


@pytest.fixture(scope="session")
def other_dashboard(chromium, pytestconfig):
    """Another server, run by the other entry; it computes anew what was made elsewhere."""
    with _running_or_served(pytestconfig, "other_dashboard") as address:
        yield address


@pytest.fixture
def open_page(request, new_page):
    """A function that opens a page of the dashboard and waits until it is drawn.

    ``open_page("/converge", {"seed": 3}, scheme="dark", width=390)`` uses the shared server;
    ``address`` names another one; ``wait=False`` returns at once. Errors on the console, exceptions
    here and on the server, and requests to other hosts fail the test when it ends.
    """
    problems: list[str] = []
    servers: set[Server] = set()

    def open_(
        path="/", query: dict | str = "", *, address: Server | None = None, wait=True, **look
    ):
        address = address or request.getfixturevalue("dashboard")
        servers.add(address)
        page = new_page(**look)
        watch(page, problems)
        parameters = query if isinstance(query, str) else urlencode(query, doseq=True)
        page.goto(f"{address}{path}" + (f"?{parameters}" if parameters else ""))
        if wait:
            drawn(page)
        return page

    yield open_
    problems += filter(None, (server.exceptions() for server in servers))
    assert not problems, "\n".join(problems)
