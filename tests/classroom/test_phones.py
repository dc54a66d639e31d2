"""What phones ask of the server, and whoever pretends to be one."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from dashboard.classroom import rooms
from dashboard.classroom.rooms import ROOMS, Question
from dashboard.shell.guard import HEADERS, Guard

APP = Starlette(routes=rooms.routes("/lab"), middleware=[Middleware(Guard)])
ASKED = Question("After which message?", ("1", "2", "never"))


@pytest.fixture
def code():
    opened = ROOMS.open()
    ROOMS.ask(opened, ASKED)
    yield opened
    ROOMS.close(opened)


async def request(path, method="GET", body=b"", query=b""):
    """One request: status, headers, body."""
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": query, "headers": [], "client": ("203.0.113.7", 5000),
        "server": ("lab", 80), "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    sent = []
    chunks = [body[k : k + 100] for k in range(0, len(body), 100)] or [b""]

    async def receive():
        if not chunks:
            await asyncio.Event().wait()
        chunk = chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    await APP(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


def ask(path, method="GET", body=None, query=b""):
    """The same with JSON both ways."""
    given = b"" if body is None else json.dumps(body).encode()
    status, _, answer = asyncio.run(request(f"/lab/room/{path}", method, given, query))
    return status, json.loads(answer)


def joined(code):
    status, told = ask(f"{code}/phones", "POST")
    assert status == 201
    return told["phone"]


def test_a_phone_joins_guesses_and_sees_the_answer(code):
    phone = joined(code)
    query = f"phone={phone}".encode()
    status, told = ask(f"{code}/state", query=query)
    assert status == 200 and told["truth"] is None and "counts" not in told
    assert told["question"] == ASKED.text and told["options"] == list(ASKED.options)
    guess = {"phone": phone, "version": told["version"], "option": 1}
    assert ask(f"{code}/guess", "PUT", guess) == (200, {})
    ROOMS.ask(code, Question(ASKED.text, ASKED.options, truth=2))
    _, told = ask(f"{code}/state", query=query)
    assert (told["own"], told["truth"], told["counts"]) == (1, 2, [0, 1, 0])


def test_a_phone_waits_for_news_and_hears_them_at_once(code, monkeypatch):
    monkeypatch.setattr(rooms, "LOOK", 0.01)
    phone = joined(code)

    async def wait():
        waiting = asyncio.create_task(
            request(f"/lab/room/{code}/state", query=f"seen=1&phone={phone}".encode())
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        ROOMS.ask(code, Question("And now?", ("yes", "no")))
        return await asyncio.wait_for(waiting, 5)

    status, headers, body = asyncio.run(wait())
    assert status == 200 and json.loads(body)["question"] == "And now?"
    assert headers["cache-control"] == "no-store"


def test_nobody_waits_for_ever(code, monkeypatch):
    monkeypatch.setattr(rooms, "PATIENCE", 0.0)
    assert ask(f"{code}/state", query=b"seen=1")[1]["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"phone": 3, "version": 1, "option": 1}',
        b'{"phone": "x", "version": 1, "option": NaN}', b'{"phone": "x", "version": 1}',
        b'{"phone": "x", "version": true, "option": 1}',
        b'{"phone": "x", "version": 1, "option": 1.5}',
        b"[" * 150, b'{"phone": "' + b"x" * 10_000 + b'"}',
        b'{"phone": "x", "version": 1, "option": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_guess_that_is_none_is_a_sentence(code, body):
    status, _, answer = asyncio.run(request(f"/lab/room/{code}/guess", "PUT", body))
    assert status in (400, 413)
    assert json.loads(answer)["said"].endswith(".")
    assert not ROOMS.view(code).guesses


@pytest.mark.parametrize("code", ["AAAAAA", "x" * 5000, "%00", "..", "A%2FB"])
@pytest.mark.parametrize(
    ("what", "method"), [("state", "GET"), ("phones", "POST"), ("guess", "PUT")]
)
def test_a_room_that_is_not_there_is_a_sentence(code, what, method):
    body = {"phone": "x", "version": 1, "option": 0} if method == "PUT" else None
    status, told = ask(f"{code}/{what}", method, body)
    assert status == 404 and "no such room" in told["said"]


def test_the_page_is_whole_by_itself_and_as_closed_as_every_other():
    for path in ("/lab/room", "/lab/room/ABCDEF"):
        status, headers, body = asyncio.run(request(path))
        assert status == 200
        assert headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
        assert b"http://" not in body and b"https://" not in body and b"/static/js" not in body


def test_three_hundred_phones_are_answered(code):
    """All join, guess and wait at once; all hear the answer."""

    async def phone(number):
        _, _, body = await request(f"/lab/room/{code}/phones", "POST")
        name = json.loads(body)["phone"]
        guess = {"phone": name, "version": 1, "option": number % 3}
        status, _, _ = await request(f"/lab/room/{code}/guess", "PUT", json.dumps(guess).encode())
        assert status == 200
        query = f"seen=1&phone={name}".encode()
        _, _, body = await request(f"/lab/room/{code}/state", query=query)
        return json.loads(body)

    async def lesson():
        waiting = [asyncio.create_task(phone(number)) for number in range(300)]
        while len(ROOMS.view(code).guesses) < 300:
            await asyncio.sleep(0.01)
        ROOMS.ask(code, Question(ASKED.text, ASKED.options, truth=0))
        return await asyncio.gather(*waiting)

    heard = asyncio.run(asyncio.wait_for(lesson(), 60))
    assert all(told["counts"] == [100, 100, 100] and told["truth"] == 0 for told in heard)
