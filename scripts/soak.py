"""A long day in a short one: everybody at once on one server (``make soak``).

Thirty visitors turn dials on four pages (``bench load``), others come with links that nobody means
well by, look and go, or bring spoiled files; one does anything anywhere in a browser (``wander``),
and every now and then a worker is killed. The last lines say what was lost, which exceptions pages
showed, and the server's memory over the time; the exit status is 0 where nothing was lost, no page
showed an exception, and the memory is flat in the last half.
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path
from urllib.parse import urlencode

from bench.bench_load import FLAT, late_quarters
from bench.visitor import Visitor, said_where_it_fails
from dashboard.shell.guard import resident_mb
from fedpca_core.questions.catalogue import PAGES
from tests.browser.tools import ROOT, serve, started_by

#: Values of links that nobody means well by.
NASTY = ("", "nan", "-1", "9" * 400, "\x00", "<script>", "∞", "true", "[]", "a" * 3000, "1e400")


async def strangers(address: str, end: float, drawn: random.Random, errors: list[str]) -> None:
    """Come with a hostile link, look, go, and come again."""
    loop = asyncio.get_running_loop()
    while loop.time() < end:
        page = drawn.choice(PAGES)
        keys = [one.key for one in page.parameters().values()]
        query = urlencode({key: drawn.choice(NASTY) for key in drawn.sample(keys, 5)})
        name = "" if page.kind == "scene" else page.kind
        with said_where_it_fails(errors):
            async with Visitor(address, name, query, errors) as visitor:
                await visitor.picture(drawn.uniform(1, 10))


async def readers(address: str, end: float, drawn: random.Random, errors: list[str]) -> int:
    """Come with a file of one's own, spoiled more often than not; how many were taken."""
    loop, taken = asyncio.get_running_loop(), 0
    while loop.time() < end:
        page = drawn.choice(("converge", "privacy", "personalise", "theory"))
        with said_where_it_fails(errors):
            async with Visitor(address, page, "problem=table", errors) as visitor:
                await visitor.picture(5)
                rows = "\n".join(f"{k},{drawn.gauss(0, 1)},{drawn.gauss(0, 1)}" for k in range(200))
                content = bytearray(f"site,a,b\n{rows}\n".encode())
                for _ in range(drawn.choice((0, 1, 40))):
                    content[drawn.randrange(len(content))] = drawn.randrange(256)
                taken += await visitor.upload("own.csv", bytes(content))
                await visitor.picture(drawn.uniform(1, 10))
    return taken


async def wanderer(address: str, end: float, errors: list[str]) -> int:
    """Do anything anywhere in a browser, one visit after the other; how many."""
    loop, visits = asyncio.get_running_loop(), 0
    while loop.time() < end:
        command = [sys.executable, "-m", "scripts.wander", "--address", f"http://{address}"]
        command += ["--visits", "1", "--first", str(visits)]
        visit = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        told = (await visit.communicate())[0].decode()
        visits += 1
        errors += [told[-2000:]] if visit.returncode else []
    return visits


async def killer(server: int, end: float, every: float, drawn: random.Random) -> int:
    """Kill a worker now and then; how many."""
    loop, killed = asyncio.get_running_loop(), 0
    while loop.time() + every < end:
        await asyncio.sleep(every)
        # Of the server's own children one starts workers.
        if workers := [one for child in started_by(server) for one in started_by(child)]:
            with suppress(ProcessLookupError):
                os.kill(drawn.choice(workers), signal.SIGKILL)
                killed += 1
    return killed


async def watch(server: int, end: float) -> list[float]:
    """Memory of the server's own process every ten seconds."""
    loop, found = asyncio.get_running_loop(), list[float]()
    while loop.time() < end:
        found.append(resident_mb(server))
        await asyncio.sleep(10)
    return found


async def soak(address: str, server: int, chosen: argparse.Namespace) -> tuple[bool, str]:
    """All of it at once; whether it held, and what came of it."""
    drawn, errors = random.Random(chosen.seed), list[str]()
    end = asyncio.get_running_loop().time() + chosen.seconds
    command = [sys.executable, "-m", "bench", "load", "--address", address]
    command += ["--visitors", str(chosen.visitors), "--seconds", str(chosen.seconds)]
    command += ["--page", "converge", "attack", "personalise", ""]
    load = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.TaskGroup() as group:
        for _ in range(chosen.strangers):
            group.create_task(strangers(address, end, drawn, errors))
        files = group.create_task(readers(address, end, drawn, errors))
        visits = group.create_task(wanderer(address, end, errors))
        fell = group.create_task(killer(server, end, chosen.kill, drawn))
        memory_of = group.create_task(watch(server, end))
        told = (await load.communicate())[0].decode()
    before, after = late_quarters(memory_of.result())
    lost = "verdict:" not in told or "pictures lost" in told
    held = not lost and not errors and after <= (1 + FLAT) * before
    report = [
        told.strip(),
        f"{files.result()} files brought, {visits.result()} visits in a browser",
        f"{fell.result()} workers killed; exceptions on pages: {sorted(set(errors)) or 'none'}",
        f"server {before:.0f} MB in the third quarter of the time, {after:.0f} MB in the last",
        "It held." if held else "It did not hold.",
    ]
    return held, "\n".join(report)


def main() -> None:
    """Start a server, let everybody at it, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--strangers", type=int, default=5)
    parser.add_argument("--kill", type=float, default=60, help="seconds between two killed workers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="write what came of it there as well")
    chosen = parser.parse_args()
    os.environ.setdefault("FEDPCA_STATUS_TOKEN", secrets.token_hex())
    with serve(ROOT / "app.py", ROOT, "2") as server:
        assert server.process is not None
        address = str(server).removeprefix("http://")
        busy = os.getloadavg()[2]
        held, report = asyncio.run(soak(address, server.process.pid, chosen))
        print(report)
        if chosen.report:
            when = f"{date.today()}, {os.cpu_count()} cores, load before it {busy:.1f}"
            chosen.report.write_text(f"{when}\n{report}\n", encoding="utf-8")
    sys.exit(not held)


if __name__ == "__main__":
    main()
