"""How long a visitor waits at every page: for its first chart, and after a dial of two of them.

As `bench_scene` does at the front page: a warm server, a fresh profile, one machine for all.
"""

import os
import statistics

from bench.bench_scene import REPEAT, first, turned
from scripts.browser import chromium

DIALS = (("/converge", "heterogeneity"), ("/attack?epsilon=10", "heterogeneity"))
_CHART = "document.querySelector('.fp-plot[data-drawn], .fp-replay[data-digest]')"
_REPAINTED = "document.querySelector('[data-digest]').dataset.digest !== former"


def main() -> None:
    """Print the waits."""
    from tests.browser.tools import ROOT, drawn, pages, serve

    charted: list[str] = []
    with serve(ROOT / "app.py", ROOT) as address:
        with chromium() as browser:
            page = browser.new_page(bypass_csp=True, viewport={"width": 1440, "height": 900})
            for path in (entry.path for entry in pages()):
                page.goto(f"{address}{path}")
                drawn(page)  # tables and forms have nothing to wait for
                charted += [path] * bool(page.locator(".fp-plot, .fp-replay").count())
            for path, dial in DIALS:
                page.goto(f"{address}{path}")
                drawn(page)
                print(f"{dial} on {path}, ms: {_line(turned(page, dial, _REPAINTED))}")
        for path in charted:
            with chromium() as browser:
                waits = [first(browser, f"{address}{path}", _CHART) for _ in range(REPEAT)]
            print(f"first chart of {path:<12} ms: {_line(waits)}", flush=True)
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _line(waits: list[float]) -> str:
    return f"{statistics.median(waits):5.0f} ({min(waits):.0f} to {max(waits):.0f}), {len(waits)}"
