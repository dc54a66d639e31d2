"""The checks that the browser tests rely on can fail."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.browser.tools import (
    Server,
    accessible,
    computing_held,
    fits,
    serve,
    settled,
    started_by,
    watch,
)


def add(page, html: str) -> None:
    page.locator("[data-testid=stMain]").evaluate(
        "(main, html) => main.insertAdjacentHTML('beforeend', html)", html
    )


def test_what_is_wide_or_has_no_words_or_never_rests_is_found(open_page):
    page = open_page("/", width=390)
    fits(page)
    add(page, "<div style='width: 600px'>wide</div>")
    with pytest.raises(AssertionError, match="scrolls sideways: stMain"):
        fits(page)
    add(page, "<img src='data:,'>")
    with pytest.raises(AssertionError, match="image-alt"):
        accessible(page)
    add(page, "<div data-stale='true'></div>")
    with pytest.raises(AssertionError, match="did not come to rest within 1 s"):
        settled(page, seconds=1)


def test_what_goes_wrong_in_a_page_is_found(new_page):
    page = new_page()
    page.goto("about:blank")  # whose policy forbids nothing
    problems = watch(page)
    page.evaluate("() => console.error('a complaint')")
    page.evaluate("() => { setTimeout(() => { throw new Error('a mishap') }) }")
    page.evaluate("() => fetch('http://localhost:9/elsewhere').catch(() => null)")
    page.wait_for_timeout(100)
    told = "\n".join(problems)
    assert "a complaint" in told
    assert "a mishap" in told
    assert "request to another host: http://localhost:9/elsewhere" in told


def test_an_exception_on_the_server_is_found_once(new_page, tmp_path):
    (tmp_path / "main.py").write_text("raise ValueError('a mishap')")
    with serve(tmp_path / "main.py", tmp_path) as address:
        page = new_page()
        page.goto(address)
        settled(page)
        assert "ValueError: a mishap" in address.exceptions()
        assert address.exceptions() == ""


def test_who_holds_the_computing_is_alone_until_the_end(tmp_path):
    address = Server("http://localhost:9")
    address.log = tmp_path / "log"
    address.log.touch()
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        address.pid = process.pid

        def held(release: threading.Event, holds: threading.Event) -> None:
            with computing_held(address):
                holds.set()
                release.wait(10)

        def becomes(state: str) -> bool:
            """A signal takes effect when the process has its turn."""
            (child,) = started_by(process.pid)
            for _ in range(500):
                if Path(f"/proc/{child}/stat").read_text().split()[2] == state:
                    return True
                time.sleep(0.01)
            return False

        events = [(threading.Event(), threading.Event()) for _ in range(2)]
        threads = [threading.Thread(target=held, args=pair) for pair in events]
        threads[0].start()
        assert events[0][1].wait(5) and becomes("T")
        threads[1].start()
        assert not events[1][1].wait(0.2)
        events[0][0].set()
        assert events[1][1].wait(5) and becomes("T")
        events[1][0].set()
        for thread in threads:
            thread.join()
        (child,) = started_by(process.pid)
        assert becomes("S")
        subprocess.run(["kill", str(child)], check=True)
