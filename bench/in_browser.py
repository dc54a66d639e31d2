"""The program and a browser, for what is measured as a visitor sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

#: Starts a browser that has never been anywhere.
Start = Callable[[], AbstractContextManager[Any]]


def measure(waits: Callable[[str, Start], None]) -> None:
    """Serve the program and measure it, or say what is missing.

    Parameters
    ----------
    waits : callable
        Gets the program's address and starts browsers; the server is cold.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("These waits are measured in a browser: run `make browser` first.")
        return
    from scripts.browser import FLAGS, NoBrowser, find
    from tests.browser.tools import ROOT, serve

    try:
        executable = find()
    except NoBrowser as reason:
        print(reason)
        return
    with serve(ROOT / "app.py", ROOT) as address, sync_playwright() as driver:

        @contextmanager
        def start() -> Iterator[Any]:
            browser = driver.chromium.launch(executable_path=executable, args=list(FLAGS))
            yield browser
            browser.close()

        waits(address, start)
