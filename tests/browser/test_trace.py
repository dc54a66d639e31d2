"""A run's file is uploaded, read, and read again at another client."""

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

import fedpca_core as fp
from fedpca_core.protocol.trace_file import save_trace
from tests.browser.tools import drawn


@pytest.fixture
def file(tmp_path):
    generator = np.random.default_rng(3)
    blocks = [generator.integers(0, 10, (16, m)).astype(float) for m in (5, 7, 6)]
    trace = fp.simulate(fp.problems.problem.from_blocks(blocks), fp.SSI(3), rounds=6)
    save_trace(replace(trace, states=None), tmp_path / "trace.npz")
    return tmp_path / "trace.npz"


def test_a_file_shows_what_it_gives_away(open_page, file, tmp_path):
    page = open_page("/trace", {"grid": 1})
    expect(page.get_by_text("No run is open")).to_be_visible()
    (tmp_path / "wrong.npz").write_text("nothing of the kind")
    upload = page.locator("input[type=file]")
    upload.set_input_files(tmp_path / "wrong.npz")
    expect(page.get_by_text("This is not the file of a trace")).to_be_visible()
    upload.set_input_files(file)
    expect(page.get_by_text("has it: 5 of 5 records")).to_be_visible()
    drawn(page)
    page.get_by_role("slider", name="Attacked client").press("ArrowRight")
    expect(page.get_by_text("has it: 7 of 7 records")).to_be_visible()


def test_the_example_is_one_click_away_and_gives_records_away(open_page):
    page = open_page("/trace")
    page.get_by_role("button", name="Open an example").click()
    expect(page.get_by_text("has it: 20 of 20 records")).to_be_visible()
    drawn(page)
    expect(page.get_by_role("link", name="The whole leak check at this size")).to_be_visible()
    expect(page.get_by_text("Try what would have stopped it")).to_be_hidden()  # too large


def test_a_masked_file_is_replayed_at_once_and_what_would_have_stopped_it_is_a_click_away(
    open_page, tmp_path
):
    generator = np.random.default_rng(3)
    blocks = [generator.standard_normal((8, 20)) for _ in range(3)]
    trace = fp.simulate(fp.problems.problem.from_blocks(blocks), fp.FAPS(2), rounds=8)
    save_trace(replace(trace, states=None), tmp_path / "masked.npz")
    page = open_page("/trace")
    page.locator("input[type=file]").set_input_files(tmp_path / "masked.npz")
    expect(page.get_by_text("has it: 8 of 8 directions")).to_be_visible()
    replayed = page.get_by_role("switch", name="Replay FAPS behind its mask")
    expect(replayed).to_be_checked()
    page.get_by_text("Try what would have stopped it").click()
    expect(page.get_by_text("the answer is gone as well")).to_be_visible(timeout=180_000)
    expect(page.get_by_role("region", name="Defences")).to_be_visible()
    assert "remedy=true" in page.url
    page.get_by_text("Replay FAPS behind its mask").click()
    expect(page.get_by_text("not tried (about").first).to_be_visible()
    expect(page.get_by_role("link", name="The whole leak check at this size")).to_be_visible()
