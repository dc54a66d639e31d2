"""How long many visitors wait: real sessions over websockets on loopback, one server.

``python -m bench load --visitors 30 --seconds 300 --interval 5`` turns a dial on Converge every few
seconds and times the next new picture; ``--giant`` adds one visitor with the largest job that the
limits allow; ``--churn`` opens a session, waits for its picture and closes it, again and again.
The visitors are no browsers: nothing is drawn, so the figures are the server's share of a wait.
They speak Streamlit's protocol as its browser part does, and share this machine's cores with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: A picture that has not come by then counts as lost.
LOST_SECONDS = 60.0
#: Large, and allowed: a replay of 80 features, about four minutes.
GIANT = "features=80&replay=true&evaluations=2000"


@dataclass
class Waits:
    """What the visitors saw.

    Attributes
    ----------
    opening, repaint : list of float
        Seconds.
    lost : int
        Pictures that never came.
    errors : list of str
    memory : list of (seconds, server MB, workers MB)
    """

    opening: list[float] = field(default_factory=list)
    repaint: list[float] = field(default_factory=list)
    lost: int = 0
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, float, float]] = field(default_factory=list)

    def note(self, waits: list[float], seconds: float | None) -> None:
        """One wait, or a picture that never came."""
        if seconds is None:
            self.lost += 1
        else:
            waits.append(seconds)


def main(arguments: Sequence[str] = ()) -> None:
    """Run the load and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench load", description=__doc__)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between two dials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--worlds", type=int, default=0, help="different seeds among them (0: one each)"
    )
    parser.add_argument("--giant", action="store_true", help="one visitor with a very long job")
    parser.add_argument("--churn", type=int, default=0, help="open and close so many sessions")
    parser.add_argument("--address", help="host:port of a server that runs already")
    chosen = parser.parse_args(arguments)
    if chosen.address:
        _report(chosen, asyncio.run(_load(chosen, chosen.address)))
        return
    from tests.browser.tools import ROOT, serve

    with serve(ROOT / "app.py", ROOT) as address:
        _report(chosen, asyncio.run(_load(chosen, str(address).removeprefix("http://"))))


async def _load(chosen: argparse.Namespace, address: str) -> Waits:
    waits, random_ = Waits(), random.Random(chosen.seed)
    watch = asyncio.create_task(_watch(address, waits))
    if chosen.churn:
        await _churn(chosen, address, waits, random_)
    else:
        worlds = chosen.worlds or chosen.visitors
        visits = [
            _visit(chosen, address, waits, random.Random(random_.random()), number % worlds)
            for number in range(chosen.visitors)
        ]
        if chosen.giant:
            visits.append(_giant(chosen, address))
        await asyncio.gather(*visits)
    watch.cancel()
    return waits


async def _visit(
    chosen: argparse.Namespace, address: str, waits: Waits, random_: random.Random, world: int
) -> None:
    """Open Converge and turn the dial of heterogeneity until the time is over."""
    from bench.visitor import Visitor

    loop = asyncio.get_running_loop()
    end = loop.time() + chosen.seconds
    await asyncio.sleep(random_.uniform(0, chosen.interval))
    async with Visitor(address, "converge", f"seed={world}") as visitor:
        waits.note(waits.opening, await visitor.picture(LOST_SECONDS))
        step = random_.randrange(20)
        while (now := loop.time()) < end:
            await visitor.move("heterogeneity", step := step + 1)
            waits.note(waits.repaint, await visitor.picture(LOST_SECONDS))
            await asyncio.sleep(max(0.0, now + chosen.interval - loop.time()))
    waits.errors += visitor.errors


async def _giant(chosen: argparse.Namespace, address: str) -> None:
    from bench.visitor import Visitor

    async with Visitor(address, "attack", GIANT):
        await asyncio.sleep(chosen.seconds)


async def _churn(
    chosen: argparse.Namespace, address: str, waits: Waits, random_: random.Random
) -> None:
    """Sessions that come, look and go, evenly over the time."""
    from bench.visitor import Visitor

    async def once(number: int) -> None:
        await asyncio.sleep(number * chosen.seconds / chosen.churn)
        page = random_.choice(("", "converge", "theory", "attack"))
        async with Visitor(address, page) as visitor:
            waits.note(waits.opening, await visitor.picture(LOST_SECONDS))
        waits.errors += visitor.errors

    await asyncio.gather(*(once(number) for number in range(chosen.churn)))


async def _watch(address: str, waits: Waits) -> None:
    began = asyncio.get_running_loop().time()
    while True:
        told = await asyncio.to_thread(_status, address)
        elapsed = asyncio.get_running_loop().time() - began
        waits.memory.append((elapsed, told["memory_mb"], sum(told["workers_mb"])))
        await asyncio.sleep(2.0)


def _status(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{address}/status", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _report(chosen: argparse.Namespace, waits: Waits) -> None:
    what = f"{chosen.churn} sessions" if chosen.churn else f"{chosen.visitors} visitors"
    print(f"{what}, {chosen.seconds:g} s, a dial every {chosen.interval:g} s, seed {chosen.seed}")
    print(f"  opening  {_line(waits.opening)}")
    print(f"  repaint  {_line(waits.repaint)}")
    print(f"  lost {waits.lost}, errors {len(waits.errors)} {sorted(set(waits.errors))[:3]}")
    quarter = max(1, len(waits.memory) // 4)
    for name, at in (("server", 1), ("workers", 2)):
        values = [entry[at] for entry in waits.memory]
        first, last = statistics.mean(values[:quarter]), statistics.mean(values[-quarter:])
        print(
            f"  {name:<8} {max(values):.0f} MB at most; {first:.0f} in the first quarter of the "
            f"time, {last:.0f} in the last"
        )


def _line(waits: list[float]) -> str:
    if len(waits) < 2:
        return "none"
    cuts = statistics.quantiles(waits, n=20, method="inclusive")
    return (
        f"p50 {statistics.median(waits):.2f} s  p95 {cuts[-1]:.2f} s  max {max(waits):.2f} s  "
        f"({len(waits)})"
    )


if __name__ == "__main__":
    main()
