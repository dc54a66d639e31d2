"""Posters: one file each that paints and plays without a network, with the numbers of its run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape

import numpy as np
import pytest
from playwright.sync_api import expect

from dashboard.player.encode import header
from dashboard.shell.meanwhile import MARK, unpacked
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import PRESETS, STUDIES
from fedpca_core.steps import outcome
from fedpca_core.study.panels import ROUNDING
from scripts.poster import markup, views
from scripts.posters import LIMIT_BYTES, shown
from tests.browser.tools import ROOT, accessible, computing_held, fits, serve, watch

#: Compared with their runs below.
NAMES = ("story-2", "story-7", "table-1")
#: With what its dials do.
TURNED = "story-2"
#: Opened as well: the other steps of the story (but the one that takes longest) and a preset of
#: every other kind of page; “make posters ARGS=--check” opens all.
OPENED = (
    *("story-1", "story-3", "story-5", "story-6"),
    *("figure-1a", "replay", "ways-40-2000", "perpca-alone", "anomaly-iot23"),
)
PLAYED = "([picture, last]) => Number(document.querySelector(picture).dataset.round) >= last"
PICTURE = "[data-testid=replay]"


@pytest.fixture(scope="module")
def posters(tmp_path_factory, dashboard):
    """The command's own work, in a process of its own; it leads to the shared server."""
    folder = tmp_path_factory.mktemp("posters")
    command = [sys.executable, "-m", "scripts.posters", "--out", str(folder), "--live", dashboard]
    subprocess.run([*command, TURNED], cwd=ROOT, check=True, timeout=600)
    still = [*command, "--still", *NAMES, *OPENED]
    subprocess.run([name for name in still if name != TURNED], cwd=ROOT, check=True, timeout=600)
    return folder


@pytest.fixture
def offline(chromium, posters):
    """A function that opens a poster from disk without a network; errors fail the test."""
    context = chromium.new_context(offline=True)
    page = context.new_page()
    problems = watch(page)

    def open_(name: str, width: int = 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto((posters / f"{name}.html").as_uri())
        if name != "index":
            page.wait_for_selector(f"{PICTURE}[data-digest]")
            page.wait_for_function(
                "() => [...document.querySelectorAll('.fp-plot')].every((p) => p.dataset.drawn)"
            )
        return page

    yield open_
    context.close()
    assert not problems, "\n".join(problems)


def leads(address: str) -> tuple[str, str]:
    """Path and query of a live page."""
    path, _, query = address.removeprefix("http://").partition("/")[2].partition("?")
    return f"/{path}", query


def tables(name: str):
    settings = PRESETS[name].settings
    study = STUDIES["scene" if settings.kind == "scene" else "convergence"]
    return study.tables(outcome(study.run(settings)), settings)


def opened(view: bytes):
    """An independent reading of the format: the header, and every curve by panel and name."""
    length = int.from_bytes(view[:4], "little")
    start = -(-(4 + length) // 8) * 8
    header = json.loads(view[4 : 4 + length])

    def array(reference):
        offset, count, kind = reference["block"]
        return np.frombuffer(view, f"<{kind}", count, start + offset)

    return header, {
        (panel["key"], curve["name"]): array(curve["y"])
        for panel in header["panels"]
        for curve in panel["curves"]
    }


@pytest.fixture(scope="module")
def without_network(chromium):
    """A context for `shown`."""
    context = chromium.new_context(offline=True, reduced_motion="reduce")
    yield context
    context.close()


@pytest.mark.parametrize("name", NAMES + OPENED)
def test_a_poster_draws_all_its_views_without_a_network(without_network, posters, name):
    page = shown(without_network, posters / f"{name}.html")
    assert page.locator("[data-digest], .fp-table").count() > 0
    page.close()


def test_a_poster_that_asks_for_something_or_misses_a_view_is_found(
    without_network, posters, tmp_path
):
    text = (posters / "story-2.html").read_text(encoding="utf-8")
    asks = tmp_path / "asks.html"
    asks.write_text(text.replace("</main>", '<img src="https://a.example/b.png" alt=""></main>'))
    with pytest.raises(InvalidInput, match=r"asked for|Refused|violates"):
        shown(without_network, asks)
    blank = tmp_path / "blank.html"
    blank.write_text(text.replace('<script type="module">', '<script type="text/plain">'))
    without_network.set_default_timeout(3_000)
    with pytest.raises(InvalidInput, match="its 1 views are not all drawn"):
        shown(without_network, blank)
    without_network.set_default_timeout(30_000)


@pytest.mark.parametrize("name", NAMES)
def test_a_poster_is_small_and_holds_the_numbers_of_its_run(posters, name):
    text = (posters / f"{name}.html").read_text(encoding="utf-8")
    assert len(text.encode()) <= LIMIT_BYTES
    _, curves = opened(views(text)[0])
    run = tables(name)
    if name == "table-1":
        expected = {
            ("converge", method): np.maximum(rows["relative_error"].to_numpy(), ROUNDING)
            for method, rows in run["curves"].groupby("method")
        }
        held = {("converge", curve): values for (_, curve), values in curves.items()}
        curves = {key: held[key][: len(values)] for key, values in expected.items()}
    else:
        rounds = run["rounds"]

        def angles(table):
            return np.degrees(np.arcsin(np.minimum(table["sin_theta"].to_numpy(), 1)))

        expected = {("scene-error", "SSI"): angles(rounds)}
        if name == "story-2":
            sent = (rounds["bytes_up"] + rounds["bytes_down"]).to_numpy()
            expected["scene-bytes", "SSI"] = sent
        else:
            expected["scene-price", "ε"] = angles(run["prices"])[:-1]
    assert len(expected) >= 2
    for key, values in expected.items():
        np.testing.assert_allclose(curves[key], values, rtol=1e-6, atol=1e-16)


def test_it_plays_without_a_network(offline):
    page = offline("story-2")
    last = int(page.locator(PICTURE).get_attribute("data-rounds"))
    page.wait_for_function(PLAYED, arg=[PICTURE, last])  # it plays when it opens
    page.get_by_test_id("replay-first").click()
    page.get_by_test_id("replay-play").click()
    page.wait_for_function(PLAYED, arg=[PICTURE, 2])
    page.get_by_test_id("replay-last").click()
    rounds = tables("story-2")["rounds"]
    angle = np.degrees(np.arcsin(rounds["sin_theta"].iloc[-1]))
    assert f"off by {angle:.1f}°" in page.get_by_test_id("replay-sentence").inner_text()
    accessible(page)
    fits(page)
    fits(offline("story-2", width=390))


def test_its_dials_are_turned_without_a_network_and_go_back(offline):
    page = offline(TURNED)
    clients, told = page.locator(".fp-client"), page.locator(".poster > div:not([class])").last
    assert clients.count() == 8 and told.is_visible()
    digest = page.locator(PICTURE).get_attribute("data-digest")
    dial = page.get_by_role("slider", name="Clients")
    own = int(dial.input_value())
    dial.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(PICTURE)).not_to_have_attribute("data-digest", digest)
    more = int(page.locator(".poster-dial output").first.inner_text())
    assert more > 8
    expect(clients).to_have_count(more)
    expect(told).to_be_hidden()  # words are of the run as it was
    assert f"clients={more}" in page.locator(".poster-live").get_attribute("href")
    assert "step=2" in page.locator(".poster-live").get_attribute("href")
    other = page.get_by_role("slider", name="Heterogeneity")
    other.focus()
    page.keyboard.press("End")
    expect(clients).to_have_count(8)
    assert dial.input_value() == str(own)
    other.fill(other.get_attribute("data-own"))
    expect(page.locator(PICTURE)).to_have_attribute("data-digest", digest)
    expect(told).to_be_visible()
    accessible(page)
    fits(page)


def test_its_numbers_and_its_link_are_those_of_the_live_page(offline, open_page):
    page = offline("table-1")
    page.get_by_test_id("replay-back").click()
    at = int(page.locator(PICTURE).get_attribute("data-round"))
    run = tables("table-1")["curves"]
    for method in ("SSI", "FAPS"):
        shown = page.locator(f"tr[data-curve={method}] td").first.inner_text()
        rows = run[(run["method"] == method) & (run["round"] == at)]
        assert float(shown.replace("−", "-")) == pytest.approx(rows["relative_error"].item(), 5e-3)
    accessible(page)
    digest = page.locator(PICTURE).get_attribute("data-digest")
    live = open_page(*leads(page.locator(".poster-live").get_attribute("href")))
    assert live.locator(PICTURE).first.get_attribute("data-digest") == digest


@pytest.fixture(scope="module")
def hung(posters):
    """A server that finds the posters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDPCA_POSTERS", str(posters))
        with serve(ROOT / "app.py", ROOT) as address:
            yield address


def test_on_a_live_page_it_stands_until_the_first_result(hung, posters, open_page):
    text = (posters / "ways-40-2000.html").read_text(encoding="utf-8")
    kept = json.loads((posters / "ways-40-2000.json").read_text(encoding="utf-8"))
    (view,) = (unpacked(one["view"]) for one in kept["pictures"]["ways_to_spend"] if "view" in one)
    (live,) = re.findall('poster-live" href="([^"]+)"', text)
    with computing_held(hung):
        page = open_page(*leads(unescape(live)), address=hung, wait=False)
        place = page.locator(".st-key-ways_to_spend_job")
        mark, table = place.get_by_text(MARK.strip()), page.get_by_label("Ways to spend ε")
        expect(mark).to_be_visible()
        stands = place.locator(f"[data-key={header(view)['key']}]")
        stands.wait_for()
        digest = stands.get_attribute("data-digest")
        stands.evaluate("(node) => { window.stood = node; }")
        expect(table).to_have_count(0)  # what the poster does not have comes with the result
    expect(table).to_be_visible(timeout=240_000)
    expect(mark).to_have_count(0)
    assert stands.get_attribute("data-digest") == digest  # the same numbers
    assert stands.evaluate("(node) => node === window.stood")  # in the same place


def test_epsilon_stands_with_what_gives_it_a_meaning(posters):
    text = (posters / "story-7.html").read_text(encoding="utf-8")
    for words in (
        "ε = 10, δ = 1e-6",
        "clipped at norm 4",
        "one record of one client",
        "Accountant",
    ):
        assert words in text


def test_the_gallery_leads_to_every_poster(offline, posters):
    page = offline("index")
    leads = page.locator(".poster-gallery a").evaluate_all("(all) => all.map((a) => a.href)")
    assert sorted(leads) == sorted((posters / f"{name}.html").as_uri() for name in NAMES + OPENED)
    assert page.locator(".poster-gallery svg").count() >= len(NAMES)
    accessible(page)


def test_markdown_becomes_html_and_html_does_not():
    assert markup("**a** < `b`\n- c\n- d") == (
        "<b>a</b> &lt; <code>b</code>\n<ul><li>c</li>\n<li>d</li></ul>"
    )
    assert markup(":blue-badge[:material/lock: P]") == '<mark class="blue">P</mark>'
    assert markup("<script>") == "&lt;script&gt;"
