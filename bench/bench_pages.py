"""How long a visitor waits at every page: for its first picture, and after a dial of three of them.

The server is warm and has its usual workers, a page has come to rest before a dial is turned, and
the profile is fresh. Browser and server share this machine's cores, whose load is printed too.
"""

import os
import statistics
import time
from typing import Any

from bench.bench_load import p95, until_warm
from scripts.browser import chromium

REPEAT = 5
#: Moves of every slider, there and back.
MOVES = 6
#: By the page whose dials they are.
DIALS = {
    "/": ("clients", "heterogeneity", "penalty", "participation", "epsilon"),
    "/converge": ("heterogeneity",),
    "/attack?epsilon=10": ("heterogeneity",),
}
#: Notes at which frame something stands first, in milliseconds since the navigation began.
_NOTE = """window.stands = 0;
  new MutationObserver((_, watch) => {
    if (!(STANDS)) return;
    watch.disconnect();
    requestAnimationFrame(() => { window.stands = performance.now(); });
  }).observe(document, { childList: true, subtree: true, attributes: true });"""
_SCENE = "document.querySelector('.fp-replay.fp-scene')?.dataset.digest"
_CHART = "document.querySelector('.fp-plot[data-drawn], .fp-replay[data-digest]')"
#: Another picture than ``former``; on the front page with all its charts.
_REPAINTED = "document.querySelector('[data-digest]').dataset.digest !== former"
_DRAWN = """[...document.querySelectorAll('.fp-plot, .fp-replay')].every(
  ({ dataset: { drawn, digest } }) => ![undefined, former].includes(drawn ?? digest))"""


def main(only: tuple[str, ...] = ()) -> None:
    """Print the waits, at ``only`` some pages or at all."""
    from dashboard.shell import limits
    from tests.browser.tools import ROOT, drawn, pages, serve

    charted: list[str] = []
    with serve(ROOT / "app.py", ROOT, str(limits.WORKERS)) as address:
        until_warm(address.removeprefix("http://"))
        with chromium() as browser:
            page = browser.new_page(bypass_csp=True, viewport={"width": 1440, "height": 900})
            for path in (entry.path for entry in pages() if entry.path in (only or [entry.path])):
                page.goto(f"{address}{path}")
                drawn(page)  # tables and forms have nothing to wait for
                charted += [path] * bool(page.locator(".fp-plot, .fp-replay").count())
            for path, dials in DIALS.items():
                if only and path not in only:
                    continue
                page.goto(f"{address}{path}")
                drawn(page)
                until_warm(address.removeprefix("http://"))  # curves behind the dials are there
                for dial in dials:
                    waits = turned(page, dial, _DRAWN if path == "/" else _REPAINTED)
                    print(f"{dial} on {path}, ms: {_line(waits)}, p95 {p95(waits):.0f}")
        for path in charted:
            waits = []
            for _ in range(REPEAT):
                with chromium() as browser:
                    url = f"{address}{path}"
                    waits.append(first(browser, url, _SCENE if path == "/" else _CHART))
            print(f"first chart of {path:<12} ms: {_line(waits)}", flush=True)
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _line(waits: list[float]) -> str:
    return f"{statistics.median(waits):5.0f} ({min(waits):.0f} to {max(waits):.0f}), {len(waits)}"


def turned(page: Any, dial: str, done: str) -> list[float]:
    """From a key on a slider to the frame with the last chart; runs no one has asked for before."""
    page.locator(f".st-key-{dial} input[type=range]").focus()
    waits = []
    back = "ArrowLeft" if dial in ("participation", "epsilon") else "ArrowRight"
    for _ in range(MOVES):
        page.evaluate(f"""() => {{
          const former = document.querySelector('[data-digest]').dataset.digest;
          const press = () => {{ window.pressed = performance.now(); }};
          addEventListener('keydown', press, {{ once: true, capture: true }});
          {_NOTE.replace("STANDS", done)} }}""")
        page.keyboard.press(back)
        page.wait_for_function("window.stands", polling=100, timeout=30_000)
        waits.append(float(page.evaluate("window.stands - window.pressed")))
        time.sleep(0.7)
    return waits


def first(browser: Any, address: str, stands: str) -> float:
    """When something first stands, in a browser that has never been here."""
    context = browser.new_context(bypass_csp=True, viewport={"width": 1440, "height": 900})
    context.add_init_script(_NOTE.replace("STANDS", stands))
    page = context.new_page()
    time.sleep(1.0)  # the browser itself has come to rest
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.stands", timeout=60_000)
    return float(page.evaluate("window.stands"))
