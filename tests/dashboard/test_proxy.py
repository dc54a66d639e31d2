"""The proxy of `deploy/compose.yaml`: two hundred students behind one address, and no more."""

import asyncio
import resource
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from bench.visitor import Visitor
from tests.browser.tools import ROOT, serve

if not shutil.which("nginx"):
    pytest.skip("needs nginx on this machine", allow_module_level=True)

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
#: Of one tab while it opens.
CONNECTIONS = 7
STUDENTS = 200


#: Connections whose answer has begun and does not end.
HELD: list[asyncio.StreamWriter] = []


async def laboratory(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the address that the proxy gives; of /held nothing but the beginning comes."""
    request = (await reader.readuntil(b"\r\n\r\n")).decode()
    told = next(line for line in request.splitlines() if line.startswith("X-Forwarded-For"))
    size = 10**6 if "/held" in request else len(told)
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{told}".encode())
    HELD.append(writer)


async def ask(
    port: int, path: str, *headers: str, method: str = "GET", host: str = "lab.test"
) -> tuple[int, str]:
    """The number of an answer, and the address in it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", "Content-Length: 0", *headers)
    writer.write("\r\n".join([*lines, "", ""]).encode())
    number = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
    said = (await reader.read(200)).decode() if number == 200 else ""
    HELD.append(writer)
    return number, said.partition(": ")[2]


@contextmanager
def proxy(folder: Path, behind: int, host: str) -> Iterator[int]:
    """The port of an nginx with the delivered configuration, before a laboratory on another."""
    port, text = free_port(), CONFIGURATION.read_text()
    for old, new in {
        "${LAB_HOST}": host,
        "${LAB_PROXY}": "127.0.0.2",
        "listen 8080": f"listen 127.0.0.1:{port}",
        "server laboratory:8501": f"server 127.0.0.1:{behind}",
        "/tmp/": f"{folder}/",
        "/dev/stderr": f"{folder}/error.log",
    }.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "nginx.conf"
    file.write_text("daemon off;\n" + text)
    nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(file)])
    try:
        with socket.socket() as probe:
            while probe.connect_ex(("127.0.0.1", port)) and nginx.poll() is None:
                time.sleep(0.05)
        yield port
        assert "not enough" not in (folder / "error.log").read_text()
    finally:
        nginx.terminate()
        nginx.wait(10)


async def with_proxy(folder: Path, asked: Callable[[int], Awaitable[None]]) -> None:
    """Ask nginx before a laboratory of one's own."""
    behind = free_port()
    server = await asyncio.start_server(laboratory, "127.0.0.1", behind, backlog=2048)
    try:
        with proxy(folder, behind, "lab.test") as port:
            await asked(port)
    finally:
        for writer in HELD:
            writer.close()
        server.close()


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_hall_of_two_hundred_behind_one_address(tmp_path, many_files):
    """Every tab opens with all its connections, and everybody brings two files in one minute."""

    async def hall(port: int) -> None:
        tabs = [ask(port, "/held") for _ in range(STUDENTS * CONNECTIONS - 1)]
        answers = Counter(number for number, _ in await asyncio.gather(*tabs))
        assert answers == {200: STUDENTS * CONNECTIONS - 1}
        await asyncio.gather(ask(port, "/held"), ask(port, "/held"))
        assert (await ask(port, "/held"))[0] == 503, "one address has no more than a hall"

    async def files(port: int) -> None:
        who = [f"Cookie: replica={number:032x}" for number in range(STUDENTS)]
        path = "/_stcore/upload_file/session/file"
        puts = [ask(port, path, one, method="PUT") for one in who * 2]
        answers = Counter(number for number, _ in await asyncio.gather(*puts))
        assert answers == {200: 2 * STUDENTS}
        puts = [ask(port, path, who[0], method="PUT") for _ in range(9)]
        answers = Counter(number for number, _ in await asyncio.gather(*puts))
        assert answers[503] >= 3, "one visitor brings six a minute"

    asyncio.run(with_proxy(tmp_path, hall))
    asyncio.run(with_proxy(tmp_path, files))


async def brings(address: str, who: int, errors: list[str]) -> list[bool]:
    """Open a page, bring two tables of one's own and see each; whether a picture came."""
    seen = []
    link = "problem=table&clients=3&components=2"
    async with Visitor(address, "converge", link, errors) as visitor:
        for turn in (1, 2):
            records = np.random.default_rng([who, turn]).standard_normal((90, 3))
            rows = "\n".join(",".join(map(str, one)) for one in records)
            taken = await visitor.upload(f"{turn}.csv", f"a,b,c\n{rows}\n".encode())
            seen.append(taken and await visitor.picture(120.0) is not None)
    return seen


def test_twenty_real_sessions_behind_one_address_bring_their_tables(tmp_path, many_files):
    """The laboratory itself behind the delivered proxy: nobody's table is refused or not shown."""

    async def hall(address: str) -> list[list[bool]]:
        return await asyncio.gather(*(brings(address, who, errors) for who in range(20)))

    errors: list[str] = []
    with (
        serve(ROOT / "app.py", tmp_path, "2") as server,
        proxy(tmp_path, int(server.rpartition(":")[2]), "127.0.0.1") as port,
    ):
        seen = asyncio.run(hall(f"127.0.0.1:{port}"))
    assert errors == []
    assert seen == [[True, True]] * 20


def test_the_status_is_closed_and_nobody_says_where_he_comes_from(tmp_path):
    """Whatever a visitor writes into his headers: the proxy before this one alone is believed."""

    async def asked(port: int) -> None:
        for path in ("/status", "/_stcore/metrics", "/lab/_stcore/metrics"):
            assert (await ask(port, path, "Authorization: Bearer x"))[0] == 404
        _, said = await ask(port, "/", "X-Forwarded-For: 192.0.2.7")
        assert said == "127.0.0.1"
        assert (await ask(port, "/", host="other.test"))[0] == 421

    asyncio.run(with_proxy(tmp_path, asked))
