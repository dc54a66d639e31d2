"""How long many visitors wait: real sessions over websockets on loopback, one server.

``python -m bench load --visitors 30 --seconds 300 --interval 5`` turns a dial on Converge every few
seconds and times the next new picture; ``--giant`` adds one visitor with the largest job that the
limits allow; ``--churn`` opens a session, waits for its picture and closes it, again and again;
``--replicas`` starts several servers, and every visitor keeps to one, as behind a sticky proxy. The
last line is the verdict, also the exit status, with what was lost, p95 and the server's limits.
The visitors are no browsers: nothing is drawn, so the figures are the server's share of a wait.
They speak Streamlit's protocol as its browser part does, and share this machine's cores with it.
"""

import asyncio
import os
import random
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import requests

from bench.visitor import Visitor, said_where_it_fails

#: A picture that has not come by then counts as lost.
LOST_SECONDS = 60.0
#: What is promised for 30 visitors on 2 cores, and beside one with a very long job.
REPAINT_SECONDS, BESIDE_GIANT_SECONDS = 2.0, 4.0
#: Memory may grow so much from the third to the last quarter of the time: Streamlit keeps closed
#: sessions for those who come back, 128 at most, so there is a plateau after these.
FLAT = 0.05
#: Large, and allowed: a replay of 80 features, about four minutes.
GIANT = "features=80&replay=true&evaluations=2000"


@dataclass
class Waits:
    """What the visitors saw."""

    #: Seconds, as of ``repaint``.
    opening: list[float] = field(default_factory=list)
    repaint: list[float] = field(default_factory=list)
    #: Pictures that never came.
    lost: int = 0
    errors: list[str] = field(default_factory=list)
    #: list of (seconds, servers' MB, workers' MB).
    memory: list[tuple[float, float, float]] = field(default_factory=list)
    #: list of (servers' seconds, workers' seconds): What the status says; a worker that was ended
    #: takes its seconds with it.
    cpu: list[tuple[float, float]] = field(default_factory=list)
    limits: str = "no server answered"

    def note(self, waits: list[float], seconds: float | None) -> None:
        """One wait, or a picture that never came."""
        if seconds is None:
            self.lost += 1
        else:
            waits.append(seconds)

    def went_wrong(self) -> list[str]:
        """What no verdict forgives, in words; nothing where all pictures came."""
        if not (self.lost or self.errors):
            return []
        return [f"{self.lost} pictures lost, {len(self.errors)} errors"]


def main(
    visitors: int = 30,
    seconds: float = 300.0,
    interval: float = 5.0,
    page: tuple[str, ...] = ("converge",),
    seed: int = 0,
    worlds: int = 0,
    giant: bool = False,
    churn: int = 0,
    replicas: int = 1,
    address: tuple[str, ...] = (),
    status: tuple[str, ...] = (),
) -> None:
    """Run the load and print what came of it.

    ``interval``: Seconds between two dials.
    ``page``: Of the visitors in turn; '' is the front page.
    ``worlds``: Different seeds among them; 0: one each.
    ``giant``: One visitor with a very long job.
    ``churn``: Open and close so many sessions.
    ``replicas``: Servers to start.
    ``address``, ``status``: host:port of servers that run already, and of those behind these.

    Raises SystemExit: with status 1 where the verdict is that the promises do not hold.
    """
    chosen = Namespace(**locals())
    if address:
        for one in status or address:
            _status(one)  # refused now, and not after the load
        waits = asyncio.run(_load(chosen, address, status or address))
    else:
        from tests.browser.tools import ROOT, serve

        workers = os.environ.get("FEDPCA_WORKERS", "2")  # 2: a server that nobody set up
        with ExitStack() as servers:
            ours = [serve(ROOT / "app.py", ROOT, workers) for _ in range(replicas)]
            started = [servers.enter_context(one).removeprefix("http://") for one in ours]
            for one in started:
                until_warm(one)
            waits = asyncio.run(_load(chosen, started, started))
    if not _report(chosen, waits):
        sys.exit(1)


async def _load(chosen: Namespace, addresses: Sequence[str], told: Sequence[str]) -> Waits:
    waits, random_ = Waits(), random.Random(chosen.seed)
    watch = asyncio.create_task(_watch(told, waits))
    if chosen.churn:
        await _churn(chosen, addresses, waits, random_)
    else:
        worlds = chosen.worlds or chosen.visitors
        visits = []
        for number in range(chosen.visitors):
            address = addresses[number % len(addresses)]
            page = chosen.page[number % len(chosen.page)]
            own = random.Random(random_.random())
            visits.append(_visit(chosen, address, waits, own, number % worlds, page))
        if chosen.giant:
            visits.append(_giant(chosen, addresses[0], waits))
        await asyncio.gather(*visits)
    watch.cancel()
    return waits


async def _visit(
    chosen: Namespace,
    address: str,
    waits: Waits,
    random_: random.Random,
    world: int,
    page: str = "converge",
) -> None:
    """Open a page and turn its dial of heterogeneity until the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + chosen.seconds
    await asyncio.sleep(random_.uniform(0, chosen.interval))
    with said_where_it_fails(waits.errors):
        async with Visitor(address, page, f"seed={world}", waits.errors) as visitor:
            waits.note(waits.opening, await visitor.picture(LOST_SECONDS))
            step = random_.randrange(20)
            while (now := loop.time()) < end:
                moved = await visitor.move("heterogeneity", step := step + 1, LOST_SECONDS)
                waits.note(waits.repaint, await visitor.picture(LOST_SECONDS) if moved else None)
                await asyncio.sleep(max(0.0, now + chosen.interval - loop.time()))


async def _giant(chosen: Namespace, address: str, waits: Waits) -> None:
    with said_where_it_fails(waits.errors):
        async with Visitor(address, "attack", GIANT, waits.errors):
            await asyncio.sleep(chosen.seconds)


async def _churn(
    chosen: Namespace, addresses: Sequence[str], waits: Waits, random_: random.Random
) -> None:
    """Sessions that come, look and go, evenly over the time."""

    async def once(number: int) -> None:
        await asyncio.sleep(number * chosen.seconds / chosen.churn)
        page = random_.choice(("", "converge", "theory", "attack"))
        address = addresses[number % len(addresses)]
        with said_where_it_fails(waits.errors):
            async with Visitor(address, page, errors=waits.errors) as visitor:
                waits.note(waits.opening, await visitor.picture(LOST_SECONDS))

    await asyncio.gather(*(once(number) for number in range(chosen.churn)))


async def _watch(addresses: Sequence[str], waits: Waits) -> None:
    began = asyncio.get_running_loop().time()
    while True:
        told = [await asyncio.to_thread(_status, address) for address in addresses]
        elapsed = asyncio.get_running_loop().time() - began
        waits.limits = f"{len(told)} servers with {told[0]['limits']}"
        servers = sum(each["memory_mb"] for each in told)
        workers = sum(sum(each["workers_mb"]) for each in told)
        waits.memory.append((elapsed, servers, workers))
        spent = sum(sum(each["workers_cpu_s"]) for each in told)
        waits.cpu.append((sum(each["cpu_s"] for each in told), spent))
        await asyncio.sleep(2.0)


def until_warm(address: str) -> None:
    """Wait until a server has computed ahead what the pages open with."""
    while _status(address)["jobs"]["unfinished"]:
        time.sleep(0.5)


def _status(address: str) -> dict[str, Any]:
    token = os.environ.get("FEDPCA_STATUS_TOKEN")
    head = {"Authorization": f"Bearer {token}"} if token else {}
    answer = requests.get(f"http://{address}/status", headers=head, timeout=30)
    if answer.status_code == 404:
        sys.exit(f"{address} shows no status; set FEDPCA_STATUS_TOKEN to that server's token.")
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def _report(chosen: Namespace, waits: Waits) -> bool:
    what = f"{chosen.churn} sessions" if chosen.churn else f"{chosen.visitors} visitors"
    print(f"{what}, {chosen.seconds:g} s, a dial every {chosen.interval:g} s, seed {chosen.seed}")
    print(f"  opening  {_line(waits.opening)}")
    print(f"  errors   {len(waits.errors)} {sorted(set(waits.errors))[:3]}")
    for name, at in (("servers", 1), ("workers", 2)):
        values = [entry[at] for entry in waits.memory]
        before, last = late_quarters(values)
        print(
            f"  {name:<8} {max(values):.0f} MB at most; {before:.0f} in the third quarter of the "
            f"time, {last:.0f} in the last"
        )
    turns = len(waits.opening) + len(waits.repaint)
    server, workers = (
        1e3 * sum(max(0.0, after - before) for before, after in pairwise(spent))
        for spent in zip(*waits.cpu, strict=True)
    )
    print(
        f"  CPU      {server / max(turns, 1):.0f} ms of the servers and "
        f"{workers / max(turns, 1):.0f} of the workers for each picture"
    )
    missed = _missed(chosen, waits)
    said = f"does not hold: {'; '.join(missed)}" if missed else "holds"
    print(f"verdict: {said}; {waits.lost} lost, repaint {_line(waits.repaint)}, {waits.limits}")
    return not missed


def _missed(chosen: Namespace, waits: Waits) -> list[str]:
    """What was promised and did not come."""
    missed = waits.went_wrong()
    if chosen.churn:
        before, last = late_quarters([entry[1] for entry in waits.memory])
        if (grown := last / before - 1) > FLAT:
            missed.append(f"memory grew by {grown:.0%} in the last quarter, {FLAT:.0%} are allowed")
        return missed
    limit = BESIDE_GIANT_SECONDS if chosen.giant else REPAINT_SECONDS
    if len(waits.repaint) < 2:
        missed.append("no dial was turned")
    elif (late := p95(waits.repaint)) > limit:
        missed.append(f"p95 of the repaint is {late:.2f} s, {limit:g} s are allowed")
    return missed


def late_quarters(values: Sequence[float]) -> tuple[float, float]:
    """Means in the third and in the last quarter of the time."""
    quarter = max(1, len(values) // 4)
    third = values[-2 * quarter : -quarter] or values
    return statistics.mean(third), statistics.mean(values[-quarter:])


def p95(waits: list[float]) -> float:
    """What one in twenty waits is above."""
    return statistics.quantiles(waits, n=20, method="inclusive")[-1]


def _line(waits: list[float]) -> str:
    if len(waits) < 2:
        return "none"
    return (
        f"p50 {statistics.median(waits):.2f} s  p95 {p95(waits):.2f} s  max {max(waits):.2f} s  "
        f"({len(waits)})"
    )
