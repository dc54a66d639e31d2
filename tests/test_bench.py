"""The benchmarks and their visitors: what they count as lost, and what they say of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from random import Random

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.server import serve

from bench import bench_load
from bench.bench_load import Waits

ROOT = Path(__file__).resolve().parent.parent


def test_an_unknown_benchmark_is_named():
    answer = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert answer.returncode == 2
    assert "There is no benchmark nothing; there are:" in answer.stdout


def told(picture: str, dial: str = "") -> bytes:
    """A picture as a page sends it, or one of its dials."""
    message = ForwardMsg()
    element = message.delta.new_element
    if dial:
        element.slider.id, element.slider.max, element.slider.step = f"x-{dial}", 1.0, 0.1
    else:
        element.bidi_component.component_name = "chart"
        element.bidi_component.mixed.json = picture
    return message.SerializeToString()


def healthy(connection, request):
    """What is no websocket asks whether the server is well."""
    return connection.respond(200, "ok") if request.path == "/_stcore/health" else None


def visited(page, monkeypatch, seconds=1.0, interval=0.05) -> tuple[Waits, list[float]]:
    """What a visitor of a server saw, who waits so long; and where he turned its dial to."""
    waits, turned = Waits(), list[float]()
    monkeypatch.setattr(bench_load, "LOST_SECONDS", seconds)

    async def line(socket):
        async for content in socket:
            message = BackMsg()
            message.ParseFromString(content)
            turned.extend(
                value for one in message.rerun_script.widget_states.widgets
                for value in one.double_array_value.data
            )  # fmt: skip
            await page(socket, len(turned))

    async def visit():
        options = {"subprotocols": ["streamlit"], "process_request": healthy}
        async with serve(line, "127.0.0.1", 0, **options) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            chosen = Namespace(seconds=0.5, interval=interval)
            await bench_load._visit(chosen, address, waits, Random(0), 0)

    asyncio.run(visit())
    return waits, turned


def test_no_verdict_forgives_a_lost_picture_or_an_error():
    assert Waits().went_wrong() == []
    assert Waits(errors=["closed"]).went_wrong() == ["0 pictures lost, 1 errors"]
    waits = Waits(repaint=[0.1])
    waits.note(waits.repaint, None)
    assert waits.went_wrong() == ["1 pictures lost, 0 errors"]


def test_a_visitor_waits_for_a_dial_that_comes_after_the_picture(monkeypatch):
    async def page(socket, turns):
        await socket.send(told(f"{turns}"))
        if not turns:
            await asyncio.sleep(0.2)
            await socket.send(told("", "heterogeneity"))

    waits, turned = visited(page, monkeypatch)
    assert waits.lost == 0 and waits.errors == []
    assert len(turned) == len(waits.repaint) > 1


def test_a_dial_that_never_came_is_lost_and_said(monkeypatch):
    async def page(socket, turns):
        await socket.send(told("first"))
        await socket.send(told("", "seed"))

    waits, turned = visited(page, monkeypatch, seconds=0.2)
    assert turned == waits.repaint == []
    assert waits.lost == len(waits.errors) > 1
    assert set(waits.errors) == {"the dial “heterogeneity” of page “converge” did not come"}
    assert "pictures lost" in bench_load._missed(Namespace(churn=0, giant=False), waits)[0]


def test_a_visit_that_breaks_off_is_said_and_ends_nobody_elses(monkeypatch):
    async def page(socket, turns):
        await socket.send(told(f"{turns}"))
        await socket.send(told("", "heterogeneity"))
        if turns:
            await socket.close(1011)

    waits, _ = visited(page, monkeypatch)
    assert len(waits.opening) == 1
    assert waits.errors
    assert all(error.startswith("a visit broke off: ") for error in waits.errors)


def test_a_server_that_shows_no_status_is_a_sentence(monkeypatch):
    hidden = bench_load.requests.Response()
    hidden.status_code = 404
    monkeypatch.setattr(bench_load.requests, "get", lambda *_, **__: hidden)
    with pytest.raises(SystemExit, match="shows no status; set FEDPCA_STATUS_TOKEN"):
        bench_load.main(address=("laboratory:80",))
