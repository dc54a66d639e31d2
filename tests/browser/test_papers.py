"""The Papers page end to end: verdicts, filters, a live run, and what can be taken away."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.tools import drawn

#: Of the long table: how far it scrolls sideways, and cells that end outside its frame, break out
#: of it, or say why a verdict was given in a column too narrow for a sentence.
CUT = """(frame) => [frame.scrollWidth - frame.clientWidth, ...[...frame.querySelectorAll("td")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth
    || cell.getBoundingClientRect().right > frame.getBoundingClientRect().right + 1
    || (cell.matches(":last-child") && cell.clientWidth < 0.75 * frame.clientWidth))
  .map((cell) => cell.textContent)]"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_why_is_read_in_full_at_any_width(open_page, scheme):
    page = open_page("/papers", {"paper": "faps"})
    page.emulate_media(color_scheme=scheme)
    table = page.get_by_role("region", name="Every number of the papers")
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert table.evaluate(CUT) == [0], width
        expect(table.get_by_role("row").nth(1).get_by_role("cell")).to_have_count(6)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_rows_are_filtered_and_an_experiment_is_run_live(open_page):
    page = open_page("/papers", {"verdict": "out of scope", "experiment": "figure-1a"})
    main = page.locator("[data-testid=stMain]")
    expect(main.get_by_role("region", name="How many have which verdict")).to_be_visible()
    expect(main.get_by_text("Results at live size: made on")).to_be_visible()
    table = main.get_by_role("region", name="Every number of the papers")
    claims = table.locator("td:nth-child(3)")
    assert all(claims.evaluate_all("(all) => all.map((c) => c.scrollWidth <= c.clientWidth)"))
    box = main.get_by_role("combobox", name="One row closely")
    box.press_sequentially("FAPS")
    box.press("ArrowDown")
    box.press("Enter")
    row = main.locator(".st-key-papers_row")
    expect(row.get_by_role("link", name="Its formulas")).to_be_visible(timeout=180_000)
    expect(row.locator("code").last).to_contain_text("author = {")
    page.locator(".st-key-live label").first.click()
    page.wait_for_url("**live=true**")
    drawn(page)
    expect(main.get_by_text("Results at live size: made on")).to_have_count(0)
    expect(main.get_by_role("region", name="Claims, published numbers")).to_be_visible()
    link = main.get_by_role("link", name="Open it on its own page")
    assert link.get_attribute("href").startswith("attack?")
    page.locator(".st-key-cite summary").click()
    entries = main.locator(".st-key-cite code")
    expect(entries).to_contain_text("2012.03461", timeout=180_000)
