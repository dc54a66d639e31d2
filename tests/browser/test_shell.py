"""Every page opens by its own address on a fresh server, whichever way the server is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.tools import ROOT, serve, settled, watch

PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def copy_of_the_application(folder: Path) -> Path:
    """A folder that looks like the project, so that the server writes nothing into the project."""
    for name in ("dashboard", "pages", "assets", "fedpca_core", ".streamlit"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "app.py", folder / "app.py")
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_deep_link_opens_its_page_on_a_fresh_server(name, new_page, tmp_path):
    folder = copy_of_the_application(tmp_path)
    with serve(folder / "app.py", folder) as address:
        open_and_check(new_page(), f"{address}/{'' if name == 'home' else name}")


def test_the_plain_script_is_an_entry_too(new_page, tmp_path):
    folder = copy_of_the_application(tmp_path)
    with serve(folder / "dashboard" / "main.py", folder) as address:
        open_and_check(new_page(), f"{address}/converge")


def open_and_check(page, address: str) -> None:
    problems = watch(page)
    page.goto(address)
    settled(page)
    assert page.locator("h1").first.inner_text(timeout=10_000).strip()
    assert page.locator("[data-testid=stSidebarNavLink]").count() == len(PAGES)
    assert page.locator("[role=dialog]").count() == 0, "a modal covers the page"
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.url.split("?")[0] == address
    font = page.evaluate("() => getComputedStyle(document.querySelector('h1')).fontFamily")
    assert font.startswith("Fraunces")
    assert page.evaluate("() => document.fonts.check('600 20px Fraunces')")
    assert problems == []
