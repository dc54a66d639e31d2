"""How long a visitor waits: the first picture and the first chart of every page, and a slider's
repaint on Converge and Attack; there also one drag of ε from 10 to 0.1.

A picture waits for no library of charts. The server is warm (somebody has seen the page). "Fresh"
is a browser that has never been here, with an empty cache; "again" a second tab of it. Browser and
server share this machine's cores.
"""

import statistics
import time
from typing import Any

from scripts.browser import chromium

REPEAT = 7
MOVES = 8
DRAGS = 5
#: Where ε is dragged, and how many values of it lie between 10 and 0.1.
ATTACK = "/attack?epsilon=10"
STEPS = 7
#: Notes when the first picture and the first chart stand, in milliseconds since the navigation
#: began.
_FIRST_CHART = """new MutationObserver((_, watch) => {
  if (!window.firstPicture && document.querySelector('.fp-canvas'))
    window.firstPicture = performance.now();
  if (!document.querySelector('.fp-plot[data-drawn]')) return;
  window.firstChart = performance.now();
  watch.disconnect();
}).observe(document, { childList: true, subtree: true, attributes: true });"""
_DIGEST = "document.querySelector('[data-digest]').dataset.digest"


def main() -> None:
    """Print the waits."""
    from tests.browser.tools import ROOT, serve

    with serve(ROOT / "app.py", ROOT) as address:
        _waits(address)


def _waits(address: str) -> None:
    from tests.browser.tools import drawn, pages

    charts: list[str] = []
    with chromium() as browser:
        for path in (entry.path for entry in pages() if entry.path != "/"):
            page = browser.new_page(bypass_csp=True)
            page.goto(f"{address}{path}")
            drawn(page)
            if page.locator(".js-plotly-plot").count():  # tables have nothing to wait for
                charts.append(path)
            page.close()
        moves = _repaints(browser, f"{address}/converge", drawn)
        dials = _repaints(browser, f"{address}{ATTACK}", drawn)
        drags = _drags(browser, f"{address}{ATTACK}", drawn)
    print(f"slider to repaint on /converge, ms: {_line(moves)} of {MOVES}")
    print(f"slider to repaint on /attack, ms: {_line(dials)} of {MOVES}")
    print(f"ε from 10 to 0.1 in one drag to the last repaint there: {_line(drags)} of {DRAGS}")
    print(f"first chart, ms (median, minimum and maximum of {REPEAT})")
    for path in charts:
        fresh, again, pictures = _first_charts(f"{address}{path}")
        seen = f"   its first picture {_line(pictures)}" if pictures else ""
        print(f"  {path:<14} fresh {_line(fresh)}   again {_line(again)}{seen}")


def _first_charts(url: str) -> tuple[list[float], list[float], list[float]]:
    """First charts, fresh and again, and the first pictures (again) of pages that have one."""
    fresh: list[float] = []
    again: list[float] = []
    pictures: list[float] = []
    for _ in range(REPEAT):
        with chromium() as browser:
            context = browser.new_context(bypass_csp=True, viewport={"width": 1440, "height": 900})
            context.add_init_script(_FIRST_CHART)
            for waits in (fresh, again):
                page = context.new_page()
                time.sleep(1.0)  # the browser itself has come to rest
                page.goto(url, wait_until="commit")
                page.wait_for_function("window.firstChart", timeout=60_000)
                waits.append(page.evaluate("window.firstChart"))
                picture = page.evaluate("window.firstPicture")
            pictures += [picture] if picture else []
    return fresh, again, pictures


def _repaints(browser: Any, url: str, drawn: Any) -> list[float]:
    """From a key on the heterogeneity slider to the next picture; no two moves are alike."""
    page = browser.new_page(bypass_csp=True, viewport={"width": 1440, "height": 900})
    page.goto(url)
    drawn(page)
    page.locator(".st-key-heterogeneity input[type=range]").focus()
    waits = []
    for _ in range(MOVES):
        before = page.evaluate(_DIGEST)
        began = time.perf_counter()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"{_DIGEST} !== '{before}'", polling=5, timeout=30_000)
        waits.append(1e3 * (time.perf_counter() - began))
        time.sleep(0.7)
    return waits


def _drags(browser: Any, url: str, drawn: Any) -> list[float]:
    """From letting ε go at 0.1, dragged from 10, to a picture that stands; each on a seed anew."""
    waits = []
    for seed in range(DRAGS):
        page = browser.new_page(bypass_csp=True, viewport={"width": 1440, "height": 900})
        page.goto(f"{url}&seed={seed + 1}")
        drawn(page)
        slider = page.locator(".st-key-epsilon input[type=range]")
        slider.scroll_into_view_if_needed()
        thumb = slider.locator("xpath=../..").bounding_box()
        x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
        track = page.locator(".st-key-epsilon [role=group]").bounding_box()
        before = page.evaluate(_DIGEST)
        page.mouse.move(x, y)
        page.mouse.down()
        step = track["width"] / int(slider.get_attribute("max"))
        page.mouse.move(x - STEPS * step, y, steps=20)
        began = time.perf_counter()
        page.mouse.up()
        page.wait_for_function(f"{_DIGEST} !== '{before}'", polling=5, timeout=30_000)
        waits.append(1e3 * (time.perf_counter() - began))
        drawn(page)
        if "epsilon=0.1" not in page.url:
            raise RuntimeError(f"The drag ended elsewhere: {page.url}")
        page.close()
    return waits


def _line(waits: list[float]) -> str:
    return f"{statistics.median(waits):5.0f} ({min(waits):.0f}-{max(waits):.0f})"
