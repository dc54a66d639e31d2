"""The Converge page end to end: move, see, zoom, play, copy the link, same numbers."""

from __future__ import annotations

import re
import zipfile
from urllib.parse import parse_qs, urlparse

import numpy as np
import pandas as pd
from playwright.sync_api import expect

from tests.browser.tools import arrived, computing_held, drawn, listen, set_slider, settled

QUICK = {"starts": 1, "rounds": 50}
ROOT_NODE = "[data-testid=replay]"


def digest(page) -> str:
    return page.locator("[data-digest]").first.get_attribute("data-digest")


def read_out(page) -> str:
    return page.get_by_test_id("replay-readout").inner_text()


def x_range(page) -> list[float]:
    return page.evaluate(
        "() => document.querySelector('.js-plotly-plot')._fullLayout.xaxis.range.map(Number)"
    )


def test_a_slider_changes_the_curve_and_keeps_zoom_and_round(open_page):
    page = open_page("/converge", QUICK)
    page.evaluate("() => { document.querySelector('.js-plotly-plot').dataset.mark = 'same'; }")
    page.evaluate(
        "() => window.Plotly.relayout(document.querySelector('.js-plotly-plot'),"
        " {'xaxis.range': [5, 25]})"
    )
    page.get_by_test_id("replay-range").focus()
    page.keyboard.press("Home")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    before, numbers = digest(page), read_out(page)
    assert "round 7" in numbers
    set_slider(page, "heterogeneity", 0.1)
    drawn(page)
    expect(page.locator("[data-digest]").first).not_to_have_attribute("data-digest", before)
    assert read_out(page) != numbers and "round 7" in read_out(page)
    assert x_range(page) == [5, 25]
    assert page.locator(".js-plotly-plot[data-mark=same]").count() == 1, "the chart was remounted"


def test_a_way_on_leads_there_while_a_menu_closes_behind_it(open_page):
    """Closing, “Share” asks for a part of the page that is being left."""
    page = open_page("/converge", QUICK)
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("Copy link")).to_be_visible()
    page.get_by_role("link", name="Attack this run").click()
    expect(page.get_by_role("heading", name="What leaks?")).to_be_visible()
    drawn(page)
    settled(page)
    expect(page.get_by_role("heading", name="What leaks?")).to_be_visible()
    expect(page.get_by_text("The covariance, round by round")).to_be_visible()


def test_play_steps_through_the_rounds_without_the_server(open_page):
    page = open_page("/converge", QUICK)
    page.get_by_test_id("replay-range").focus()
    page.keyboard.press("Home")
    sent = []
    listen(page, "request", lambda request: sent.append(request.url))
    page.get_by_test_id("replay-play").click()
    page.wait_for_function(
        "() => Number(document.querySelector('[data-round]').dataset.round) >= 5"
    )
    page.get_by_test_id("replay-play").click()
    at = int(page.locator("[data-round]").first.get_attribute("data-round"))
    page.get_by_test_id("replay-forward").click()
    assert int(page.locator("[data-round]").first.get_attribute("data-round")) == at + 1
    assert not sent


def test_the_copied_link_gives_the_same_numbers_on_another_server(open_page, other_dashboard):
    page = open_page("/converge", QUICK)
    set_slider(page, "heterogeneity", 0.2)
    set_slider(page, "components", 4)
    page.locator(".st-key-measure").get_by_text("Largest angle").click()
    drawn(page)
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode] code").inner_text().strip()
    query = link.split("?")[1]
    for part in ("starts=1", "rounds=50", "heterogeneity=0.2", "components=4", "Largest+angle"):
        assert part in query, link
    other = open_page("/converge", query, address=other_dashboard)
    assert digest(other) == digest(page)
    assert read_out(other) == read_out(page)


def test_a_bad_link_is_refused_and_sizes_that_do_not_fit_are_a_sentence(open_page):
    bad = {**QUICK, "clients": 9999, "moon": 1, "features": 5, "components": 8}
    page = open_page("/converge", bad, wait=False)
    refused = page.locator(".st-key-link_refused_converge")
    refused.wait_for()
    assert "Clients cannot be “9999”: it must be a whole number from 2 to 100." in (
        refused.inner_text()
    )
    assert "components do not fit" not in page.locator("[data-testid=stMain]").inner_text()
    refused.get_by_role("button", name="Use Clients: 100").click()
    expect(refused).to_have_count(0)
    notes = page.locator(".st-key-link_notes_converge")
    notes.wait_for()
    page.wait_for_url(lambda url: "clients=100" in url and "components=8" in url)
    drawn(page)
    assert "There is no setting called “moon”" in notes.inner_text()
    assert "8 components do not fit 5 features; choose between 1 and 4 components." in (
        page.locator("[data-testid=stMain]").inner_text()
    )
    set_slider(page, "components", 3)
    drawn(page)
    expect(page.locator(".js-plotly-plot")).to_have_count(1)
    notes.get_by_role("button", name="Dismiss").click()
    expect(notes).to_have_count(0)
    page.wait_for_url(lambda url: "moon" not in url and "rounds=50" in url)


def test_a_long_run_shows_progress_can_be_stopped_and_keeps_what_it_has(open_page):
    heavy = {"features": 200, "clients": 40, "rounds": 3000, "starts": 2, "decay": "1.005"}
    page = open_page("/converge", heavy, wait=False)
    stop = page.locator(".st-key-convergence_stop button")
    stop.wait_for()
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length > 0")
    stop.click()
    page.get_by_text("Stopped early").wait_for()
    drawn(page)
    expect(page.locator(".js-plotly-plot")).to_have_count(1)


def test_a_bad_table_is_a_sentence_and_a_good_one_is_split_and_compared(open_page, tmp_path):
    page = open_page("/converge", {**QUICK, "problem": "Your own table"})
    main = page.locator("[data-testid=stMain]")
    assert "a table of your own, which a link cannot carry" in main.inner_text()
    upload = page.locator("[data-testid=stFileUploader] input[type=file]")
    table = tmp_path / "words.csv"
    table.write_text("name,colour\nanna,red\nbert,blue\n")
    upload.set_input_files(table)
    expect(main).to_contain_text("numeric")
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_role("button", name=re.compile("Remove")).first.click()
    settled(page)
    values = np.random.default_rng(0).standard_normal((400, 7))
    table = tmp_path / "numbers.csv"
    pd.DataFrame(values, columns=list("abcdefg")).to_csv(table, index=False)
    upload.set_input_files(table)
    page.get_by_text("numbers.csv:").wait_for()
    drawn(page)
    expect(page.locator(".js-plotly-plot")).to_have_count(1)
    assert "records with" in main.inner_text()


def test_a_first_view_fetches_neither_data_grid_nor_typesetting_until_asked(new_page, dashboard):
    page = new_page()
    scripts: list[str] = []
    listen(page, "request", lambda request: scripts.append(request.url.rpartition("/")[2]))
    page.goto(f"{dashboard}/converge?starts=1&rounds=50")
    drawn(page)
    heavy = ("DataFrame", "katex", "PlotlyChart", "VegaLite")
    assert not [name for name in scripts if any(word in name for word in heavy)]
    expect(page.locator(".fp-table tbody tr")).to_have_count(4)
    assert page.locator(".katex").count() == 0
    page.get_by_text("What the curves measure").click()
    expect(page.locator(".katex").first).to_be_visible()
    expect(page.get_by_text("needs all the data: simulation only")).to_be_visible()


def test_a_link_spelt_otherwise_keeps_its_settings_in_the_address(open_page):
    page = open_page("/converge", "methods=ssi&methods=faps&rounds=50.0&axis=bytes&starts=1")
    query = parse_qs(urlparse(page.url).query)
    assert query == {
        "methods": ["SSI", "FAPS"],
        "rounds": ["50"],
        "axis": ["Bytes"],
        "starts": ["1"],
    }
    assert page.get_by_test_id("replay-readout").inner_text().count("SSI") == 1
    assert "LocalPower" not in page.get_by_test_id("replay-readout").inner_text()


def test_the_page_shows_itself_as_a_script(open_page):
    page = open_page("/converge", {**QUICK, "heterogeneity": 0.25})
    page.get_by_text("The same as a script").click()
    expect(page.locator("[data-testid=stCode]")).to_contain_text("heterogeneity=0.25")
    expect(page.locator("[data-testid=stCode]")).to_contain_text("Convergence()")
    set_slider(page, "heterogeneity", 0.3)
    drawn(page)
    expect(page.locator("[data-testid=stCode]")).to_contain_text("heterogeneity=0.3")


def test_settings_travel_to_the_attack_page_and_back(open_page):
    page = open_page("/converge", {"starts": 1, "features": 20})
    set_slider(page, "heterogeneity", 0.2)
    page.get_by_role("link", name="What leaks?").click()
    arrived(page, "/attack")
    drawn(page)
    expect(page).to_have_url(re.compile("heterogeneity=0.2"))
    page.get_by_role("link", name="Which one?").click()
    arrived(page, "/which")
    page.get_by_role("link", name="How fast?").click()
    arrived(page, "/converge")
    drawn(page)
    expect(page).to_have_url(re.compile("heterogeneity=0.2"))
    page.get_by_role("link", name="Attack this run").click()
    arrived(page, "/attack")
    drawn(page)
    # What Converge has by default and Attack does not came along, too.
    query = parse_qs(urlparse(page.url).query)
    assert query["problem"] == ["Geometric spectrum"] and query["rounds"] == ["75"]
    assert query["clients"] == ["10"] and query["inner"] == ["Automatic"]
    assert query["features"] == ["20"] and query["heterogeneity"] == ["0.2"]
    page.get_by_role("link", name="Compare the costs of this run").click()
    arrived(page, "/converge")
    drawn(page)
    query = parse_qs(urlparse(page.url).query)
    assert query["features"] == ["20"] and query["heterogeneity"] == ["0.2"]
    assert "problem" not in query and "rounds" not in query


def test_a_card_on_home_opens_its_preset(open_page):
    page = open_page("/")
    page.get_by_role("link", name="Open: One round is not enough").click()
    arrived(page, "/converge")
    drawn(page)
    expect(page.locator(".st-key-preset_note")).to_contain_text("One round is not enough.")


def test_everything_comes_in_one_archive_with_one_click(open_page, dashboard):
    """The page stands before its run has ended, as it does on a busy machine."""
    open_page("/", {"round": 3, "autoplay": "false"})  # who computes is there
    with computing_held(dashboard):
        query = {"starts": 1, "rounds": 20, "seed": 3}
        page = open_page("/converge", query, wait=False)
        page.locator("[data-testid=stProgress]").first.wait_for()
        page.get_by_role("button", name="Share").wait_for()
    drawn(page)
    page.get_by_role("button", name="Share").click()
    with page.expect_download(timeout=180_000) as download:
        page.get_by_role("button", name="Download everything").click()
    with zipfile.ZipFile(download.value.path()) as files:
        names = files.namelist()
        assert "seed 3" in files.read("README.txt").decode()
    drawn_names = {f"figures/convergence.{kind}" for kind in ("svg", "png", "pdf", "csv")}
    others = {"columns.csv", "settings.json", "script.py", "references.bib"}
    assert drawn_names | others | {"tables/convergence-curves.csv"} <= set(names)
