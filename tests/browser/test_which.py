"""The page "Which one?" end to end: click a marker, see that configuration, follow its link."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

from tests.browser.tools import arrived, drawn, settled

QUICK = {
    **{"features": 8, "clients": 4, "samples": 100, "components": 2, "rounds": 10, "seeds": 1},
    **{"vary": "Nothing", "searches": "false"},
}
#: Where a marker of a curve is on the screen, and what the curve's own text there begins with.
_PLACE = """([title, at]) => {
  const named = (one) => one.meta === title && one.text;
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const plot = plots.find((one) => one._fullData?.some(named));
  plot.scrollIntoView({ block: "center" });
  const curve = plot._fullData.findIndex(named);
  const { xaxis, yaxis, _size: size } = plot._fullLayout, box = plot.getBoundingClientRect();
  const { x, y, text } = plot._fullData[curve];
  return { x: box.left + size.l + xaxis.d2p(x[at]), y: box.top + size.t + yaxis.d2p(y[at]),
    said: text[at].split("<br>")[0], points: x.length };
}"""
#: Whether the chosen configuration is this one.
_CHOSEN = """(title) => {
  const box = document.querySelector('.st-key-which_point');
  return box && (box.innerText + (box.querySelector('input')?.value ?? '')).includes(title);
}"""


def test_a_click_on_a_marker_shows_that_configuration_and_its_link(open_page):
    page = open_page("/which", QUICK)
    click(page, "Block Krylov")
    click(page, "One-shot")
    page.get_by_role("link", name="See it converge").click()
    arrived(page, "/converge")
    drawn(page)
    carried = parse_qs(urlparse(page.url).query)
    assert carried["features"] == ["8"]
    assert carried["methods"] == ["One-shot"]


def test_a_click_on_the_front_chooses_what_stands_there(open_page):
    page = open_page("/which", QUICK)
    found = page.evaluate(_PLACE, ["Pareto front", 0])["points"]
    assert found > 1
    for at in (found - 1, 0):
        click(page, "Pareto front", at, beside=4)  # on the line rather than on the marker


def click(page, title: str, at: int = 0, beside: float = 0) -> None:
    """Click a point of a curve, so many pixels off, and wait for its configuration."""
    place = page.evaluate(_PLACE, [title, at])
    page.mouse.move(place["x"] + beside, place["y"] + beside)
    page.wait_for_timeout(200)
    page.mouse.click(place["x"] + beside, place["y"] + beside)
    page.wait_for_function(_CHOSEN, arg=place["said"])
    settled(page)
