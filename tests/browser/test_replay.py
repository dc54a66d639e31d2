"""The replay view in a real browser: moving through rounds, and keeping its place over updates."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from dashboard.player.component import frontend_script
from dashboard.player.encode import encode
from fedpca_core.study.panels import Curve, Panel
from tests.browser.tools import ROOT, findings, listen, serve, settled, watch

HERE = Path(__file__).resolve().parent
NODE = "[data-testid=replay]"
PLOT = "[data-panel=error]"
RANGE = "[data-testid=replay-range]"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server with the fixture page; theme and static files are those of the application."""
    folder = tmp_path_factory.mktemp("replay")
    shutil.copy(HERE / "replay_app.py", folder / "main.py")
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    (folder / "static").symlink_to(ROOT / "dashboard" / "static")
    with serve(folder / "main.py", folder) as url:
        yield url


@pytest.fixture
def page(address, new_page):
    """The fixture page, drawn; the test fails if anything went wrong in it."""
    page = new_page()
    problems = watch(page)
    open_view(page, address)
    yield page
    assert problems == []


@pytest.fixture(scope="module")
def standing(address, context):
    """The fixture page, opened once."""
    page = context.new_page()
    problems = watch(page)
    open_view(page, address)
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def still(standing):
    """It again, at its last round: for tests that change nothing but the round."""
    standing.locator(RANGE).fill("20")
    return standing


def open_view(page, address) -> None:
    page.goto(address)
    settled(page)
    page.wait_for_selector(f"{PLOT}[data-drawn]")
    page.wait_for_selector("[data-panel=heat][data-drawn]")


def attribute(page, name: str) -> str:
    return page.locator(NODE).first.get_attribute(f"data-{name}")


def x_range(page) -> list[float]:
    return page.evaluate(f"() => document.querySelector('{PLOT}')._fullLayout.xaxis.range.slice()")


def zoom(page, low: float, high: float) -> None:
    page.evaluate(
        f"""([low, high]) => window.Plotly.relayout(document.querySelector('{PLOT}'),
        {{'xaxis.range[0]': low, 'xaxis.range[1]': high}})""",
        [low, high],
    )


def turn(page, key: str, press: str = "ArrowRight") -> None:
    """Move a slider of the page by one step and wait until the view has the new data."""
    before = attribute(page, "digest")
    page.locator(f".st-key-{key} input[type=range]").focus()
    page.keyboard.press(press)
    page.wait_for_function(
        "([node, before]) => document.querySelector(node).dataset.digest !== before",
        arg=[NODE, before],
    )
    settled(page)
    digest = attribute(page, "digest")
    page.wait_for_selector(f"{PLOT}[data-drawn='{digest}']")


def readout(page, curve: str) -> str:
    row = f"[data-testid=replay-readout] tr[data-curve='{curve}'] td"
    return page.locator(row).first.inner_text()


def test_buttons_and_keyboard_move_the_round(still):
    assert attribute(still, "round") == attribute(still, "rounds") == "20"
    for button, expected in (("first", 0), ("forward", 1), ("forward", 2), ("back", 1)):
        still.locator(f"[data-testid=replay-{button}]").click()
        assert attribute(still, "round") == str(expected)
    still.locator("[data-testid=replay-last]").click()
    assert attribute(still, "round") == "20"
    still.locator(RANGE).focus()
    for key, expected in (("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("End", 20)):
        still.keyboard.press(key)
        assert attribute(still, "round") == str(expected)


def test_scrubbing_moves_images_caption_readout_and_dots(still):
    still.locator(RANGE).fill("7")
    assert attribute(still, "round") == "7"
    assert "7 / 20" in still.locator("[data-testid=replay-round]").inner_text()
    assert still.locator("[data-testid=replay-caption]").first.inner_text() == "frame 7"
    pixel = still.evaluate(
        "() => [...document.querySelector('[data-testid=replay-canvas]')"
        ".getContext('2d').getImageData(1, 1, 1, 1).data]"
    )
    assert pixel == [70, 70, 70, 255]
    assert math.isclose(float(readout(still, "SSI")), 10 ** (-7 / 5), rel_tol=1e-3)
    ended = still.locator("[data-testid=replay-readout] tr[data-curve=BlockKrylov] td").first
    assert ended.get_attribute("title") == "ended at round 3"
    places = still.evaluate(
        f"""() => {{
          const {{xaxis, yaxis}} = document.querySelector('{PLOT}')._fullLayout;
          const overlay = document.querySelector('[data-testid=replay-cursor-error]');
          const dots = Object.fromEntries([...overlay.querySelectorAll('circle')].map((dot) => (
            [dot.dataset.curve, [+dot.getAttribute('cx'), +dot.getAttribute('cy')]])));
          return {{dots, line: +overlay.querySelector('line').getAttribute('x1'),
            wanted: [xaxis._offset + xaxis.d2p(7), yaxis._offset + yaxis.d2p(10 ** (-7 / 5))],
            end: xaxis._offset + xaxis.d2p(3)}};
        }}"""
    )
    assert places["dots"].keys() == {"SSI", "FAPS", "BlockKrylov"}
    assert places["dots"]["SSI"] == pytest.approx(places["wanted"], abs=0.5)
    assert places["dots"]["BlockKrylov"][0] == pytest.approx(places["end"], abs=0.5)
    assert places["line"] == pytest.approx(places["wanted"][0], abs=0.5)


def test_panels_with_a_row_per_round_follow_it_on_a_steady_axis(still):
    def shown(panel: str, part: str) -> list:
        return still.evaluate(
            f"() => [...document.querySelector('[data-panel={panel}]').data[0].{part}]"
        )

    def top() -> float:
        return still.evaluate(
            "() => document.querySelector('[data-panel=spectrum]')._fullLayout.yaxis.range[1]"
        )

    assert shown("spectrum", "y") == [21, 42]
    before = top()
    still.locator(RANGE).fill("4")
    still.wait_for_function(
        "() => document.querySelector('[data-panel=spectrum]').data[0].y[0] < 6"
    )
    assert shown("spectrum", "y") == [5, 10]
    assert top() == before > 42
    still.wait_for_function(
        "() => document.querySelector('[data-panel=angles]').data[0].z[0][0] < 1"
    )
    assert shown("angles", "z[0]") == pytest.approx([0.1, 0.1])


def test_playing_starts_only_by_hand_and_stops_at_the_end(page):
    page.wait_for_timeout(400)
    assert attribute(page, "playing") == "false"
    page.locator("[data-testid=replay-speed]").select_option("1")
    page.locator(RANGE).focus()
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert attribute(page, "playing") == "true"
    page.locator("[data-testid=replay-speed]").select_option("50")
    page.wait_for_selector(f"{NODE}[data-round='20'][data-playing=false]")


def test_an_update_keeps_node_zoom_round_hidden_curves_and_playing(page):
    page.evaluate(f"() => {{ document.querySelector('{PLOT}').mark = 'same' }}")
    page.locator(RANGE).fill("5")
    zoom(page, 2, 9)
    page.locator("[data-testid=replay-legend-entry][data-curve=FAPS]").first.click()
    turn(page, "scale")
    assert page.evaluate(f"() => document.querySelector('{PLOT}').mark") == "same"
    assert x_range(page) == pytest.approx([2, 9])
    assert attribute(page, "round") == "5"
    hidden = page.locator("[data-testid=replay-legend-entry][data-curve=FAPS]").first
    assert hidden.get_attribute("aria-pressed") == "false"
    visible = page.evaluate(
        f"() => Object.fromEntries(document.querySelector('{PLOT}').data"
        ".filter((trace) => trace.meta).map((trace) => [trace.meta, trace.visible]))"
    )
    assert visible == {"SSI": True, "FAPS": False, "BlockKrylov": True, "bound": True}
    assert math.isclose(float(readout(page, "SSI")), 2 * 10 ** (-5 / 5), rel_tol=1e-3)
    page.locator("[data-testid=replay-speed]").select_option("1")
    page.locator("[data-testid=replay-play]").click()
    turn(page, "scale")
    assert attribute(page, "playing") == "true"


def test_a_new_meaning_of_the_axis_resets_the_zoom(page):
    zoom(page, 2, 9)
    page.locator(".st-key-bytes label").click()
    page.wait_for_function(
        f"() => document.querySelector('{PLOT}')._fullLayout.xaxis.range[1] > 15000"
    )
    assert x_range(page) != pytest.approx([2, 9])


def test_a_shorter_run_clamps_the_round(page):
    page.locator(RANGE).fill("19")
    turn(page, "rounds", "Home")
    assert attribute(page, "rounds") == "4"
    assert attribute(page, "round") == "4"
    # A first look has few rounds: who was further, or at the end, is there again after it.
    turn(page, "rounds", "End")
    assert attribute(page, "round") == "19"
    page.locator("[data-testid=replay-last]").click()
    turn(page, "rounds", "Home")
    turn(page, "rounds", "End")
    assert attribute(page, "round") == attribute(page, "rounds")


def test_reset_undoes_a_zoom(still):
    before = x_range(still)
    zoom(still, 2, 9)
    still.locator("button[aria-label='Reset zoom']").first.click()
    still.wait_for_timeout(300)
    assert x_range(still) == pytest.approx(before)


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_a_chart_can_be_downloaded(still, kind):
    with still.expect_download() as download:
        still.locator(f"button[aria-label='Download as {kind}']").first.click()
    assert download.value.suggested_filename == f"error.{kind.lower()}"
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
    if kind == "SVG":
        assert b"BlockKrylov" in content, "the file has no legend"


def test_the_colours_follow_the_scheme(page):
    def line_colour() -> str:
        return page.evaluate(
            f"() => document.querySelector('{PLOT}')._fullData"
            ".find((trace) => trace.meta === 'SSI').line.color"
        )

    assert (attribute(page, "scheme"), line_colour()) == ("light", "#2166ac")
    zoom(page, 2, 9)
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector(f"{NODE}[data-scheme=dark]")
    page.wait_for_function(
        f"() => document.querySelector('{PLOT}')._fullData[0].line.color === '#7cb3f5'"
    )
    assert x_range(page) == pytest.approx([2, 9])


def test_small_powers_are_written_as_powers_of_ten(still):
    ticks = still.locator(f"{PLOT} .ytick").all_text_contents()
    assert ticks, "the y axis has no ticks"
    assert any("10" in tick and "−" in tick for tick in ticks)
    assert not any("e" in tick or "μ" in tick for tick in ticks)


def test_plotly_is_fetched_once(address, new_page):
    page = new_page()
    fetched = []
    listen(page, "request", lambda r: fetched.append(r.url) if "plotly" in r.url.lower() else None)
    open_view(page, address)
    assert len(fetched) == 1
    assert fetched[0].endswith("/app/static/plotly-charts.min.js")


def test_it_is_accessible_and_fits(address, new_page):
    page = new_page(390, scheme="dark")
    open_view(page, address)
    for width, scheme in ((390, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=scheme)
        settled(page)
        page.wait_for_selector(f"{NODE}[data-scheme={scheme}]")
        assert findings(page) == []
        inner, outer = page.evaluate(
            "() => [document.querySelector('[data-testid=stMain]').scrollWidth, innerWidth]"
        )
        assert inner <= outer
    figure = page.locator("figure.fp-panel").first
    assert figure.get_attribute("role") == "figure"
    described = page.locator(f"#{figure.get_attribute('aria-describedby')}").text_content()
    assert described == "The error of three algorithms by round."
    label = page.locator("[data-testid=replay-canvas]").first.get_attribute("aria-label")
    assert label == "Estimate, round 20 of 20. frame 20"


MOUNTED_TWICE = """async ([script, older, newer, order]) => {
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: mount } = await import(url);
  const parentElement = document.createElement("div");
  document.querySelector(".fp-replay").parentElement.append(parentElement);  // within its theme
  const views = () => [...parentElement.querySelectorAll(":scope > .fp-replay")];
  const cleanUp = {};
  for (const which of order) {
    const data = Uint8Array.from(which === "newer" ? newer : older);
    cleanUp[which] = mount({ data, parentElement });
  }
  cleanUp.older();
  const shown = views().map((view) => view.dataset.rounds);
  parentElement.remove();
  cleanUp.newer();
  return [shown, views().length];
}"""


@pytest.mark.parametrize("order", [["older", "newer"], ["newer", "older"]])
def test_a_mount_out_of_date_does_not_take_the_view_down(still, order) -> None:
    """New data while the module loads: both are mounted, in either order, the older cleaned up."""

    def data(rounds: int) -> list[int]:
        x = list(range(rounds + 1))
        curve = Curve("error", x, [1.0 / (1 + one) for one in x])
        panel = Panel(key="e", title="Error", x_title="round", y_title="error", curves=(curve,))
        return list(encode(key="twice", rounds=rounds, panels=[panel]))

    found = still.evaluate(MOUNTED_TWICE, [frontend_script(), data(2), data(3), order])
    assert found == [["3"], 0]


def test_a_play_is_not_read_out_round_by_round_but_a_step_is(page):
    number = page.locator("[data-testid=replay-round]").first
    page.locator("[data-testid=replay-back]").first.click()
    assert (number.get_attribute("role"), number.get_attribute("aria-live")) == ("status", "polite")
    page.locator("[data-testid=replay-first]").first.click()
    page.locator("[data-testid=replay-play]").first.click()
    page.wait_for_function(f"() => document.querySelector('{NODE}').dataset.round > 0")
    assert number.get_attribute("aria-live") == "off"
    page.locator("[data-testid=replay-play]").first.click()


def test_a_tooltip_says_the_number_and_leaves_the_axis_to_the_axis(still):
    trace = still.evaluate(
        f"() => document.querySelector('{PLOT}')._fullData.find((one) => one.meta === 'FAPS')"
        ".customdata[12]"
    )
    assert trace == ["12", "1.00 × 10⁻⁶"]
    template = still.evaluate(
        f"() => document.querySelector('{PLOT}')._fullData.find((one) => one.meta === 'FAPS')"
        ".hovertemplate"
    )
    assert "error" not in template and "at round %{customdata[0]}" in template


def test_a_baseline_is_named_where_no_curve_runs_or_in_the_legend(still):
    named = "([key]) => document.querySelector(`[data-panel=${key}]`).layout.annotations.map("
    named += "(one) => [one.text, one.xanchor])"
    # Curves run past both ends of the one, and past the left end of the other.
    assert still.evaluate(named, ["error"]) == [["noise", "center"], ["◇ centralised", "right"]]
    assert still.evaluate(named, ["roc"]) == []
    assert "one half of all of them" in still.locator("figure:has([data-panel=roc])").inner_text()


def test_a_legend_shows_the_marker_that_is_drawn(still):
    drawn = still.evaluate(
        "() => document.querySelector('[data-panel=points]')._fullData[0].marker.symbol"
    )
    legend = still.locator("figure:has([data-panel=points]) .fp-legend [data-marker]")
    assert legend.get_attribute("data-marker") == drawn == "square"
    assert legend.evaluate("(node) => node.tagName") == "path"


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_a_picture_can_be_downloaded(still, kind):
    with still.expect_download() as download:
        still.locator(f"button[aria-label='Download “Estimate” as {kind}']").click()
    assert download.value.suggested_filename == f"estimate-round-20.{kind.lower()}"
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
    if kind == "SVG":
        assert b"Estimate, round 20 of 20. frame 20" in content


def test_numbers_stand_in_the_cells_that_have_one(still):
    heat = still.locator("[data-panel=heat]")
    cells = heat.locator(".annotation-text")
    assert cells.all_text_contents() == ["0", "1", "0.123"]
    # Black on pale, white on dark: the two ends of the colours differ.
    looks = cells.evaluate_all("(nodes) => nodes.map((node) => getComputedStyle(node).fill)")
    assert {looks[0], looks[1]} == {"rgb(0, 0, 0)", "rgb(255, 255, 255)"}


def test_a_heat_map_can_be_downloaded(still):
    with still.expect_download() as download:
        still.locator("figure:has([data-panel=heat]) button[aria-label='Download as SVG']").click()
    assert download.value.suggested_filename == "heat.svg"


def test_the_first_stop_of_the_tab_key_leads_to_the_play_button(page):
    page.evaluate("() => document.activeElement?.blur()")
    page.locator("body").press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the picture"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.dataset.testid") == "replay-play"
