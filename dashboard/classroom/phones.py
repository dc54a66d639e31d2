"""The addresses of a room for phones: one small page, and three requests behind it.

They are plain HTTP beside Streamlit, of which every session runs the page's script. A phone asks
for the room's state and is answered when that changes, after `PATIENCE` seconds at the latest.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard.classroom.rooms import ROOMS, Refused, View

#: Seconds that a phone waits for news, and between two looks for some.
PATIENCE, LOOK = 20.0, 0.3
#: Characters of a request; a guess has about sixty.
MOST_CHARACTERS = 200
_PAGE = Path(__file__).with_name("phone.html")


def routes(base: str = "") -> list[BaseRoute]:
    """What the server answers to phones, under the address that the application has."""
    served.append(base)
    return [
        Route(f"{base}/room", page),
        Route(f"{base}/room/{{code}}", page),
        Route(f"{base}/room/{{code}}/state", refusing(state)),
        Route(f"{base}/room/{{code}}/phones", refusing(join), methods=["POST"]),
        Route(f"{base}/room/{{code}}/guess", refusing(guess), methods=["PUT"]),
    ]


#: Where they are served; empty where Streamlit alone runs (``streamlit run dashboard/main.py``).
served: list[str] = []


def refusing(
    answer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """The same, and what is refused as a sentence with its status."""

    async def answered(request: Request) -> Response:
        try:
            return await answer(request)
        except Refused as refused:
            return JSONResponse({"said": str(refused)}, refused.status)

    return answered


async def page(_: Request) -> Response:
    """The page of a phone, the same for every room."""
    return HTMLResponse(_PAGE.read_text("utf-8"), headers={"Cache-Control": "no-store"})


async def join(request: Request) -> Response:
    """Let a phone in."""
    return JSONResponse({"phone": ROOMS.join(request.path_params["code"])}, 201)


async def guess(request: Request) -> Response:
    """Take a guess: ``{"phone": "…", "version": 3, "option": 11}``."""
    given = await _body(request)
    phone, version, option = (given.get(name) for name in ("phone", "version", "option"))
    if not (isinstance(phone, str) and type(version) is int and type(option) is int):
        raise Refused('A guess is {"phone": text, "version": number, "option": number}.', 400)
    ROOMS.guess(request.path_params["code"], phone, version, option)
    return JSONResponse({})


async def state(request: Request) -> Response:
    """The room as it is, as soon as it differs from what the phone has seen."""
    code, phone = request.path_params["code"], request.query_params.get("phone", "")
    seen, until = request.query_params.get("seen", ""), time.monotonic() + PATIENCE
    while str(ROOMS.version(code)) == seen and time.monotonic() < until:
        await asyncio.sleep(LOOK)
    return JSONResponse(_told(ROOMS.view(code, phone)), headers={"Cache-Control": "no-store"})


def _told(view: View) -> dict[str, Any]:
    """What a phone may know: what others guessed only when the answer is out."""
    told: dict[str, Any] = {"version": view.version, "question": None}
    if view.question is not None:
        told |= {"question": view.question.text, "options": view.question.options}
        told |= {"own": view.own, "truth": view.question.truth}
        if view.question.truth is not None:
            told["counts"] = view.counts
    return told


async def _body(request: Request) -> dict[str, Any]:
    """The request's JSON, read no further than a guess can be long."""
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_CHARACTERS:
            raise Refused(f"A guess has at most {MOST_CHARACTERS} characters.", 413)
    try:
        given = json.loads(read)
    except ValueError:  # no JSON, or no text at all
        given = None
    if not isinstance(given, dict):
        raise Refused("A guess is a JSON object.", 400)
    return given
