"""What the browser tests share: a server of our own, a Chromium, and knowing when a page rests."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dashboard.shell.navigation import ENTRIES

ROOT = Path(__file__).resolve().parents[2]

# Resting means: connected, not running, nothing stale, for a tenth of a second on end. Right after
# a click "not running" alone is wrong, because the click has not reached the server yet: since what
# was asked last a run has to have begun, but for the little that begins none; and after a run that
# ended for another, that one. A timer looks, not a frame: a page that is asked for frames paints
# them, on the processor.
_SETTLED = """(limit) => new Promise((resolve) => {
  let since = 0;
  const entered = performance.now();
  const look = () => {
    const app = document.querySelector('[data-testid="stApp"]');
    const now = performance.now();
    const { asked, begun, follows } = window.line ?? {};
    const rests = app && app.dataset.testScriptState === 'notRunning'
      && !(asked > begun && now - asked < 3000) && !(follows > begun && now - follows < 3000)
      && app.dataset.testConnectionState === 'CONNECTED'
      && !document.querySelector('[data-stale="true"]');
    if (!rests) since = 0; else if (!since) since = now;
    if (since && now - since > 100) return resolve(now - entered);
    if (now - entered > limit) return resolve(-1);
    setTimeout(look, 20);
  };
  look();
})"""

_BEGINS = ForwardMsg.DESCRIPTOR.fields_by_name["new_session"].number
_ENDS = ForwardMsg.DESCRIPTOR.fields_by_name["script_finished"].number

#: Runs in a page before its own scripts: notes when it asked its server for something, and when it
#: heard that a run begins, or that one has ended for another. All outer fields of a message are
#: numbers, or lengths of what follows.
LINE = (
    """(() => {
  const line = window.line = { asked: 0, begun: 0, follows: 0 };
  const outline = (bytes) => {
    const found = {};
    let at = 0;
    const number = () => {
      let value = 0;
      for (let unit = 1; ; unit *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * unit;
        if (!(byte >= 128)) return value;
      }
    };
    while (at < bytes.length) {
      const tag = number(), value = number();
      found[tag >> 3] = value;
      if ((tag & 7) === 2) at += value;
    }
    return found;
  };
  window.WebSocket = class extends WebSocket {
    constructor(...where) {
      super(...where);
      this.addEventListener('message', ({ data }) => {
        const heard = outline(new Uint8Array(data));
        if (BEGINS in heard) line.begun = performance.now();
        if (heard[ENDS] === EARLY) line.follows = performance.now();
      });
    }
    send(what) {
      line.asked = performance.now();
      super.send(what);
    }
  };
})()""".replace("BEGINS", str(_BEGINS))
    .replace("ENDS", str(_ENDS))
    .replace("EARLY", str(ForwardMsg.FINISHED_EARLY_FOR_RERUN))
)

# Nothing is computed or loaded, and every chart stands: ours say so, Streamlit's have their SVG.
_DRAWN = """() => ['stProgress', 'stSkeleton'].every((name) =>
    [...document.querySelectorAll(`[data-testid=${name}]`)].every((at) => !at.checkVisibility()))
  && [...document.querySelectorAll('.stBidiComponent')].every((place) =>
    place.querySelector('.fp-replay, .fp-upload'))
  && [...document.querySelectorAll('[data-testid^=stBidiComponent]')].every((place) =>
    place.querySelector('[data-testid=replay], [data-testid=chart], .fp-upload'))
  && [...document.querySelectorAll('.fp-plot')].every((plot) => plot.dataset.drawn)
  && [...document.querySelectorAll('.stPlotlyChart')].every((c) => c.querySelector('.main-svg'))"""

# Nothing fades in or out: a label half faded in has half its contrast.
_STILL = """() => document.getAnimations().every((one) =>
  one.playState !== 'running' || one.effect.getComputedTiming().endTime === Infinity)"""

# Who listens to what of each page.
_listening: WeakKeyDictionary[Any, list[tuple[str, Callable[[Any], None]]]] = WeakKeyDictionary()

# The page asks for these under every deep address while it looks for its server; harmless.
KNOWN_PROBES = ("/_stcore/health", "/_stcore/host-config")


@dataclass(frozen=True)
class PageLink:
    """A page or a tab: its address, its title, its own first heading, and whose tab it is."""

    path: str
    title: str
    heading: str
    of: str


def pages() -> list[PageLink]:
    """The pages of the navigation, each with the heading that its file draws."""
    found = []
    for entry in ENTRIES:
        script = ROOT / "pages" / f"{entry.name}.py"
        heading, *_ = _texts(_calls(script, "heading")[0].args[0])
        path = "/" if entry is ENTRIES[0] else f"/{entry.name}"
        found.append(PageLink(path, entry.title, heading, entry.of))
    return found


def _calls(source: Path, name: str) -> list[ast.Call]:
    """Calls of ``name(...)`` or ``something.name(...)``, in the order of the file."""
    nodes = ast.walk(ast.parse(source.read_text(encoding="utf-8")))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    chosen = [call for call in calls if ast.unparse(call.func).split(".")[-1] == name]
    return sorted(chosen, key=lambda call: call.lineno)


def _texts(node: ast.expr) -> list[str]:
    parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [part for part in parts if isinstance(part, str)]


def settled(page, seconds: float = 180.0) -> None:
    """Wait until the page rests; fail if it does not."""
    took = page.evaluate(_SETTLED, seconds * 1000)
    assert took >= 0, f"{page.url} did not come to rest within {seconds:g} s"


def drawn(page, seconds: float = 240.0) -> None:
    """Wait until the page rests, no job runs, and every chart stands."""
    settled(page, seconds)
    try:
        page.wait_for_function(_DRAWN, timeout=seconds * 1000, polling=50)
    except PlaywrightTimeout as late:
        raise AssertionError(f"{page.url}: a chart was not drawn in {seconds:g} s") from late
    settled(page, seconds)


def arrived(page, path: str) -> None:
    """Wait until a link has led to another page, which took over what the link packs."""
    page.wait_for_url(lambda url: urlsplit(url).path == path and "settings=" not in url)


def look_while_computing(page, below: str) -> None:
    """Keep in ``window.seen`` what happens while progress is on show.

    How often it was, how far the text that begins with ``below`` moved, and how many charts that
    can be seen (none is in a fold that is shut) there were at first and at the least.
    """
    page.evaluate(
        """(below) => {
          const mark = [...document.querySelectorAll('h2, summary')].find(
            (node) => node.textContent.includes(below));
          const top = () => mark.getBoundingClientRect().top;
          const charts = () => [...document.querySelectorAll('.fp-plot')]
            .filter((plot) => plot.checkVisibility()).length;
          const seen = window.seen = {start: top(), moved: 0, busy: 0,
            first: charts(), charts: charts()};
          setInterval(() => {
            if (!document.querySelector('[data-testid=stProgress]')) return;
            seen.busy += 1;
            seen.moved = Math.max(seen.moved, Math.abs(top() - seen.start));
            seen.charts = Math.min(seen.charts, charts());
          }, 20);
        }""",
        below,
    )


def set_slider(page, key: str, value: float) -> None:
    """Move a slider by keyboard, one arrow key a step, and wait until the page rests.

    ``value`` is the number of the slider itself; for a slider over a list of options, the index.
    """
    handle = page.locator(f".st-key-{key} input[type=range]")
    steps = round((value - float(handle.input_value())) / float(handle.get_attribute("step")))
    handle.focus()
    for _ in range(abs(steps)):
        page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
    # Streamlit gathers quick key presses for a moment, in which the page seems to rest.
    page.wait_for_timeout(300)
    settled(page)
    reached = float(handle.input_value())
    assert abs(reached - value) < 1e-9, f"slider {key} is at {reached:g}, not at {value:g}"


#: Where rich is installed, Streamlit writes exceptions in colours.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Server(str):
    """The address of a running server, which also knows the server's log."""

    log: Path
    pid: int
    process: subprocess.Popen | None = None
    known = 0

    def exceptions(self) -> str:
        """What the log says since the last call, if an exception is in it."""
        text = COLOURS.sub("", self.log.read_text())
        news, self.known = text[self.known :], len(text)
        return news if "Traceback" in news else ""


def start(entry: Path, folder: Path, workers: str = "1") -> Server:
    """Run ``streamlit run entry`` in ``folder`` on a free port, and wait for nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(entry)]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.fileWatcherType", "none", "--server.headless", "true"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FEDPCA_WORKERS": workers}
    address = Server(f"http://127.0.0.1:{port}")
    descriptor, name = tempfile.mkstemp(suffix=".log")
    address.log = Path(name)
    address.process = subprocess.Popen(
        command, cwd=folder, stdout=descriptor, stderr=subprocess.STDOUT, env=environment
    )
    address.pid = address.process.pid
    os.close(descriptor)
    return address


def started_by(process: int) -> list[int]:
    """All that a process has started, and those in turn (reads Linux's /proc)."""
    children: list[int] = []
    with suppress(OSError):  # it has ended
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
        children = [int(one) for one in text.split()]
    return [*children, *(one for child in children for one in started_by(child))]


@contextmanager
def computing_held(address: Server) -> Iterator[None]:
    """Workers of a server, and whoever starts new ones, stand still: what is asked for meanwhile
    is not done before the end, however quick the machine.

    One test at a time: what another process of pytest holds at the same server goes on when the
    first of the two has ended.
    """
    stopped: list[int] = []
    with address.log.open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            while news := [one for one in started_by(address.pid) if one not in stopped]:
                for process in news:
                    stopped.append(process)
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGSTOP)
            assert stopped, "the server has no workers here"
            yield
        finally:
            for process in stopped:
                with suppress(ProcessLookupError):  # ended meanwhile
                    os.kill(process, signal.SIGCONT)


def end(address: Server) -> None:
    """End the server and forget its log; an exception there that no test asked for is an error."""
    assert address.process
    address.process.terminate()
    address.process.wait(timeout=20)
    news = address.exceptions()
    address.log.unlink()
    assert not news, news


@contextmanager
def serve(entry: Path, folder: Path, workers: str = "1") -> Iterator[Server]:
    """A server that runs `entry` in `folder`; yields its address when it answers."""
    address = start(entry, folder, workers)
    try:
        answering(address)
        yield address
    finally:
        end(address)


def answering(address: Server) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if address.process and address.process.poll() is not None:
            raise RuntimeError(f"the server ended at once:\n{address.log.read_text()}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the server was not up after 180 s:\n{address.log.read_text()}")


def watch(page, problems: list[str] | None = None) -> list[str]:
    """Collect what goes wrong in the page: errors on the console, and foreign requests."""
    problems = [] if problems is None else problems

    def console(message) -> None:
        where = message.location.get("url", "")
        probe = "404" in message.text and where.endswith(KNOWN_PROBES)
        if message.type == "error" and not probe:
            problems.append(f"console: {message.text} {where}")

    def request(sent) -> None:
        local = sent.url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))
        if not local:
            problems.append(f"request to another host: {sent.url}")

    listen(page, "console", console)
    listen(page, "pageerror", lambda error: problems.append(f"exception: {error}"))
    listen(page, "request", request)
    return problems


def listen(page, event: str, handler: Callable[[Any], None]) -> None:
    """Call `handler` at every `event` of a page, until the test ends."""
    page.on(event, handler)
    _listening.setdefault(page, []).append((event, handler))


def unheard(page) -> None:
    """Nobody listens to a page any more."""
    for event, handler in _listening.pop(page, ()):
        page.remove_listener(event, handler)


def findings(page) -> list[str]:
    """What axe finds in a page, whatever its impact; one line for each place."""
    page.wait_for_function(_STILL, polling=50)
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:200]}"
        for found in Axe().run(page).response["violations"]
        for node in found["nodes"]
    ]


def accessible(page) -> None:
    """Fail if axe finds anything."""
    found = findings(page)
    assert not found, f"{page.url}: " + "\n".join(found)


def fits(page) -> None:
    """Fail if a reader would have to scroll sideways."""
    wide = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll(
                   '[data-testid=stMain], [data-collapsed=false] [data-testid=stSidebarContent]')]
                 .filter((node) => node.scrollWidth > node.clientWidth)
                 .map((node) => `${node.dataset.testid ?? 'page'}: ${node.scrollWidth} px wide, `
                                + `${node.clientWidth} px shown`)"""
    )
    assert not wide, f"{page.url} scrolls sideways: {'; '.join(wide)}"
