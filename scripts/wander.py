"""Visitors who do anything anywhere, in a browser: ``make wander``.

python -m scripts.wander                             twenty visits, each with another seed
python -m scripts.wander --visits 300 --first 40     these seeds
python -m scripts.wander /attack /which              beginning on these pages only

Finds what nobody thought of testing: run it beside other work (a busy machine finds more) before a
release, and after every change to how pages run again. A visit is wrong that ends with a page that
does not come to rest or is blank, an exception on the page, an error on the console, a request to
another host, or with dials that a fresh tab at the same address shows otherwise. Its seed and what
it did are printed, so ``--first SEED --visits 1`` does it again, as far as the machine's speed
allows.
"""

import argparse
import random
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError

from scripts.browser import chromium
from tests.browser.tools import LINE, ROOT, drawn, pages, serve, settled, watch

#: What can be acted upon, and how much more often than a summary it is.
KINDS = {
    "[data-testid=stMain] .stSlider input[type=range]": 5,
    "[data-testid=stMain] [data-testid=stCheckbox] label": 2,
    "[data-testid=stMain] [data-testid=stButtonGroup] button": 2,
    "[data-testid=stMain] [data-testid=stSelectbox] input": 2,
    "[data-testid=stMain] [data-testid=stButton] button": 1,
    "[data-testid=stMain] [data-testid=stPopover] button": 1,
    "[data-testid=stMain] summary": 1,
    "[data-testid=stSidebar] input[type=range]": 3,
    ".fp-replay button": 2,
    "[data-testid=stSidebar] a, [data-testid=stPageLink] a": 0.5,
}
#: Milliseconds between two actions: from a double stroke to a look at the picture.
PAUSES = (0, 0, 30, 100, 300, 700, 1500)
# Every dial by its key, with what it shows; what plays and what is chosen of a result are no dials.
_DIALS = """() => Object.fromEntries(
  [...document.querySelectorAll('.stSlider, .stCheckbox, .stSelectbox, .stNumberInput')]
    .map((dial) => {
      const key = [...dial.closest('[class*=st-key-]')?.classList ?? []]
        .find((name) => name.startsWith('st-key-'));
      const field = dial.querySelector('input');
      return [key, field.type === 'checkbox' ? field.checked
        : field.getAttribute('aria-valuetext') ?? field.value];
    })
    .filter(([key]) => key && !/guess_|which_point|sheet_open/.test(key)))"""


@dataclass
class Visit:
    """One visitor."""

    browser: Browser
    server: str
    seed: int
    done: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self, paths: list[str]) -> None:
        """Open a page, do some things, and judge what is left of it."""
        chance = random.Random(self.seed)
        page = self._tab(chance.choice([1440, 1440, 390]))
        page.goto(self.server + chance.choice(paths))
        self.done.append(page.url)
        for _ in range(chance.randint(6, 20)):
            self._act(page, chance)
            page.wait_for_timeout(chance.choice(PAUSES))
        self._judge(page)
        page.context.close()

    def _tab(self, width: int) -> Page:
        page = self.browser.new_context(viewport={"width": width, "height": 900}).new_page()
        page.add_init_script(LINE)
        page.set_default_timeout(60_000)
        watch(page, self.wrong)
        return page

    def _act(self, page: Page, chance: random.Random) -> None:
        chosen = chance.choices(list(KINDS), list(KINDS.values()))[0]
        there = page.locator(chosen).locator("visible=true")
        if not (count := there.count()):
            return
        one = there.nth(chance.randrange(count))
        try:
            if chosen.endswith("range]"):
                one.focus(timeout=2_000)
                keys = chance.choices(["ArrowLeft", "ArrowRight"], k=chance.randint(1, 3))
                what = " ".join(keys)
            else:
                one.click(timeout=2_000, no_wait_after=True)
                keys = ["ArrowDown", "Enter"] if "stSelectbox" in chosen else []
                what = "click"
            for key in keys:
                page.keyboard.press(key)
                page.wait_for_timeout(chance.choice([0, 0, 100]))
            self.done.append(f"{chosen.split()[-2:]} {what}")
        except PlaywrightError:  # covered, or gone meanwhile
            return

    def _judge(self, page: Page) -> None:
        try:
            settled(page, 120)
            drawn(page, 300)
            self.wrong += page.locator("[data-testid=stException]").all_inner_texts()
            fresh = self._tab(page.viewport_size["width"] if page.viewport_size else 1440)
            fresh.goto(page.url)
            drawn(fresh, 300)
            mine, theirs = page.evaluate(_DIALS), fresh.evaluate(_DIALS)
            fresh.context.close()
            self.wrong += [
                f"{key} shows {mine[key]}, a fresh tab {theirs[key]}"
                for key in sorted(mine.keys() & theirs.keys())  # a closed popover has none
                if mine[key] != theirs[key]
            ]
        except (AssertionError, PlaywrightError) as late:
            self.wrong.append(str(late))
        self.done.append(page.url)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("paths", nargs="*", help="pages to begin on, all without")
    options.add_argument("--visits", type=int, default=20)
    options.add_argument("--first", type=int, default=0, help="seed of the first visit")
    options.add_argument("--address", help="of a server that runs already")
    chosen: Any = options.parse_args()
    paths = chosen.paths or [link.path for link in pages()]
    failed = 0
    running: Any = (
        nullcontext(chosen.address) if chosen.address else serve(ROOT / "app.py", ROOT, "2")
    )
    with chromium() as browser, running as server:
        for seed in range(chosen.first, chosen.first + chosen.visits):
            visit = Visit(browser, str(server), seed)
            visit.run(paths)
            visit.wrong += [] if chosen.address else filter(None, [server.exceptions()])
            failed += bool(visit.wrong)
            if visit.wrong:
                wrong = dict.fromkeys(visit.wrong)  # what is thrown at every frame is said once
                print(f"visit {seed}:", *wrong, "after:", *visit.done, sep="\n  ", flush=True)
    print(f"{failed} of {chosen.visits} visits went wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
