"""The checks that the browser tests rely on can fail."""

from __future__ import annotations

import pytest

from tests.browser.tools import accessible, fits, serve, settled, watch


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
