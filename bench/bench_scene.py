"""How long a visitor waits at the front page: for the first picture, and after every dial.

The server is warm and has its usual workers, the page has come to rest before a dial is turned, and
the profile is fresh. Browser and server share this machine's cores, whose load is printed too.
"""

import os
import statistics
import time
from typing import Any

from bench.bench_load import until_warm
from scripts.browser import chromium

REPEAT = 5
#: Moves of every slider, there and back.
MOVES = 6
DIALS = ("clients", "heterogeneity", "penalty", "participation", "epsilon")
#: Notes at which frame something stands first, in milliseconds since the navigation began.
_NOTE = """window.stands = 0;
  new MutationObserver((_, watch) => {
    if (!(STANDS)) return;
    watch.disconnect();
    requestAnimationFrame(() => { window.stands = performance.now(); });
  }).observe(document, { childList: true, subtree: true, attributes: true });"""
_SCENE = "document.querySelector('.fp-replay.fp-scene')?.dataset.digest"
#: Another picture than ``former``, with all its charts.
_DRAWN = """[...document.querySelectorAll('.fp-plot, .fp-replay')].every(
  ({ dataset: { drawn, digest } }) => ![undefined, former].includes(drawn ?? digest))"""


def main() -> None:
    """Print the waits."""
    from dashboard.shell import limits
    from tests.browser.tools import ROOT, serve

    with serve(ROOT / "app.py", ROOT, str(limits.WORKERS)) as address:
        _waits(address)


def _waits(address: str) -> None:
    from tests.browser.tools import drawn

    status = address.removeprefix("http://")
    until_warm(status)
    with chromium() as browser:
        page = browser.new_page(bypass_csp=True, viewport={"width": 1440, "height": 900})
        page.goto(address)
        drawn(page)
        until_warm(status)  # the curves behind the dials are there
        for dial in DIALS:
            waits = turned(page, dial)
            worst = statistics.quantiles(waits, n=20, method="inclusive")[-1]
            print(f"  {dial:<14} median {statistics.median(waits):5.0f}   p95 {worst:5.0f} ms")
    stands = []
    for _ in range(REPEAT):
        with chromium() as browser:
            stands.append(first(browser, address, _SCENE))
    print(f"first picture, fresh profile: {statistics.median(stands):.0f} ms", end=" ")
    print(f"({min(stands):.0f} to {max(stands):.0f})")
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def turned(page: Any, dial: str, done: str = _DRAWN) -> list[float]:
    """From a key on a slider to the frame with the last chart; runs no one has seen before."""
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
