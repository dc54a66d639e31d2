"""Find a Chromium for the browser tests and the screenshots, or install one.

``python -m scripts.browser`` prints the one that was found; if there is none it tries apt (as root
or with a sudo that asks no password), then Playwright's own download. When nothing works it says
so and ends well, because the tests then report themselves as skipped; with ``CI=true`` it fails.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The shell draws no window around a page, which saves a third of a browser's work.
NAMES = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable", "microsoft-edge",
)  # fmt: skip
MAC_APPLICATIONS = ("Google Chrome", "Chromium", "Microsoft Edge")

HOW_TO_INSTALL = (
    "No Chromium was found. `make browser` installs one; by hand it is "
    "`sudo apt-get install chromium` on Debian, `.venv/bin/playwright install chromium` elsewhere, "
    "or CHROMIUM=/path/to/chrome names one that is already there."
)

# Quiet and offline: the pages under test are ours, on this machine.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowser(RuntimeError):
    """No usable Chromium; the message names the command that installs one."""


def required() -> bool:
    """Whether a missing browser is an error, as it is in continuous integration."""
    return os.environ.get("CI", "").lower() in ("true", "1")


def find() -> str:
    """Path of a Chromium that starts: $CHROMIUM, one on the PATH, or Playwright's own."""
    if named := os.environ.get("CHROMIUM"):
        if _starts(named):
            return named
        raise NoBrowser(f"CHROMIUM={named} does not start. Correct the path or unset it.")
    if found := next(filter(_starts, _candidates()), ""):
        return found
    raise NoBrowser(HOW_TO_INSTALL)


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """A running Playwright browser that has never been anywhere.

    Raises NoBrowser: there is none, or no Playwright.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser(HOW_TO_INSTALL) from None
    executable = find()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    for name in MAC_APPLICATIONS:
        yield f"/Applications/{name}.app/Contents/MacOS/{name}"
    # Asked last, and in a process of its own, because it starts Playwright's driver.
    question = (
        "from playwright.sync_api import sync_playwright as start\n"
        "with start() as playwright: print(playwright.chromium.executable_path)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", question], capture_output=True, text=True, check=False
    )
    if answer.returncode == 0:
        yield answer.stdout.strip()


def _starts(path: str) -> bool:
    """Ubuntu's chromium-browser may be a script that only advertises a snap, so try it."""
    if not os.access(path, os.X_OK) or not Path(path).is_file():
        return False
    return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0


def _run(command: list[str]) -> bool:
    print("$", *command, flush=True)
    return subprocess.run(command, check=False).returncode == 0


def _ways_to_install() -> Iterator[list[list[str]]]:
    sudo = ["sudo", "-n"] if os.geteuid() else []  # asks for no password
    there = shutil.which("apt-get") and (not sudo or shutil.which("sudo"))
    if there and not subprocess.call([*sudo, "true"], stderr=subprocess.DEVNULL):
        install = [*sudo, "apt-get", "install", "-y", "-q", "--no-install-recommends"]
        yield [[*sudo, "apt-get", "update", "-q"], [*install, NAMES[0]]]
        yield [[*install, NAMES[1]]]
    yield [[sys.executable, "-m", "playwright", "install", "chromium"]]


def main() -> int:
    try:
        find()
    except NoBrowser:
        if "CHROMIUM" not in os.environ:
            # Each way in turn until one succeeds; what the tools say is left visible.
            any(all(map(_run, commands)) for commands in _ways_to_install())
    try:
        print(f"Browser for the tests: {find()}")
    except NoBrowser as reason:
        print(reason, file=sys.stderr)
        return int(required())
    return 0


if __name__ == "__main__":
    sys.exit(main())
