"""Screenshots of every page, light and dark, wide and narrow: ``make shots``.

python -m scripts.shots                          every page
python -m scripts.shots /attack?seed=3 /converge these addresses
python -m scripts.shots story                    the front page's first seconds and its story
python -m scripts.shots --out pictures --window  into another folder, the window's part only

assets/home_light.png is "/?round=3&autoplay=false" --window, light, 1440 wide.
"""

import argparse
import re
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser

from fedpca_core.questions.home.settings import STEPS
from scripts.browser import chromium
from tests.browser.tools import ROOT, drawn, pages, serve

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = {1440: 900, 390: 844}
#: Where the front page is recorded: on a desk, inside another page before a room, on a phone.
SCREENS = ((1440, 900, ""), (1024, 768, "embed=true&"), (1920, 1080, ""), (390, 844, ""))
#: Seconds after the picture and its charts first stood, so that a busy machine records no blank.
SECONDS = (0.5, 1, 2, 5, 10)


def shoot(browser: Browser, url: str, file: Path, scheme: Scheme, width: int, whole: bool) -> None:
    """Save one picture, once every chart stands."""
    page = browser.new_page(
        viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme, bypass_csp=True
    )
    page.goto(url)
    drawn(page)
    if whole:  # Streamlit scrolls inside the page, so the window must grow to show all of it
        height = page.locator("[data-testid=stMain]").evaluate("(main) => main.scrollHeight")
        page.set_viewport_size({"width": width, "height": max(height, WIDTHS[width])})
        drawn(page)
    page.screenshot(path=file)
    page.close()
    print(file, flush=True)


def shoot_all(browser: Browser, server: str, chosen: argparse.Namespace) -> None:
    """The wanted pages, or all, light and dark, wide and narrow."""
    for address in chosen.addresses or [link.path for link in pages()]:
        name = re.sub(r"[^\w.]+", "-", address).strip("-") or "home"
        url = f"{server}/{address.removeprefix('/')}"
        for scheme in SCHEMES:
            for width in WIDTHS:
                file = chosen.out / f"{name}-{scheme}-{width}.png"
                shoot(browser, url, file, scheme, width, not chosen.window)


def record(browser: Browser, server: str, out: Path) -> None:
    """The front page as it opens, and every step of the story asked and shown, on every screen."""
    warm = browser.new_page(bypass_csp=True)
    warm.goto(server)  # the first seconds are those of a server that somebody has visited
    drawn(warm)
    warm.close()
    for width, height, frame in SCREENS:
        for scheme in SCHEMES:
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
            )

            def keep(name: str, page=page, place=f"{width}-{scheme}") -> None:
                page.screenshot(path=out / f"story-{place}-{name}.png")
                print(out / f"story-{place}-{name}.png", flush=True)

            page.goto(f"{server}/?{frame}", wait_until="commit")
            page.wait_for_selector(".fp-scene .fp-plot[data-drawn]", timeout=120_000)
            began = time.monotonic()
            for second in SECONDS:
                page.wait_for_timeout(max(0.0, 1e3 * (second - time.monotonic() + began)))
                keep(f"second-{second:g}")
            for step in STEPS:
                for name, query in (
                    ("asked", ""),
                    ("shown", "&shown=true&autoplay=false&round=100"),
                ):
                    page.goto(f"{server}/?{frame}step={step}{query}")
                    drawn(page)
                    keep(f"step-{step}-{name}")
            page.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("addresses", nargs="*", help="path and query of a page, all without")
    options.add_argument("--out", type=Path, default=ROOT / "shots", help="folder for the pictures")
    options.add_argument("--window", action="store_true", help="only what the window shows")
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, serve(ROOT / "app.py", ROOT) as server:
        if chosen.addresses == ["story"]:
            record(browser, server, chosen.out)
        else:
            shoot_all(browser, server, chosen)


if __name__ == "__main__":
    main()
