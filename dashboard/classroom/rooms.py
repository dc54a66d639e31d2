"""Rooms of a class that guesses on its phones: in memory for a lesson, and their addresses.

A room knows nobody: a phone is a random number, a guess the number of an option. Nothing is
written anywhere; a room ends with its time or with the server. Phones speak plain HTTP beside
Streamlit, of which every session runs the page's script: one small page, and three requests behind
it. A phone asks for the room's state and is answered when that changes, after `PATIENCE` seconds at
the latest.
"""

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

#: Without letters and figures that are read as one another; a code is one of 30 to the 6th.
ALPHABET, LENGTH = "ABCDEFGHJKMNPQRSTUVWXYZ2346789", 6
#: Rooms of a server, phones in a room, and seconds after which a room without a
#: question or a guess ends.
MOST_ROOMS, MOST_PHONES, IDLE_SECONDS = 50, 500, 2 * 3600.0
#: A phone may change its guess so often; a hand is slower.
SECONDS_BETWEEN = 0.3
#: Seconds that a phone waits for news, and between two looks for some.
PATIENCE, LOOK = 20.0, 0.3
#: Characters of a request; a guess has about sixty.
MOST_CHARACTERS = 200
_PAGE = Path(__file__).with_name("phone.html")


class Refused(Exception):
    """What a phone is told instead: a sentence, and the status of HTTP that goes with it."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Question:
    """What the class is asked: the text, and the options along the slider."""

    text: str
    options: tuple[str, ...]
    #: Number of the option that is right; None until the lecturer reveals it.
    truth: int | None = None


@dataclass
class Room:
    """One room. `version` counts what the phones have to show anew."""

    touched: float
    question: Question | None = None
    version: int = 0
    #: When each phone last said something, and the option that it has chosen.
    phones: dict[str, float] = field(default_factory=dict)
    guesses: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many phones have chosen each option."""
        chosen = Counter(self.guesses.values())
        options = range(len(self.question.options) if self.question else 0)
        return tuple(chosen[option] for option in options)

    @property
    def middle(self) -> int | None:
        """The option with half of the guesses on each side, the lower of two; None without any."""
        halves = (2 * seen >= len(self.guesses) > 0 for seen in accumulate(self.counts))
        return next((option for option, half in enumerate(halves) if half), None)


class Rooms:
    """All rooms of a server; every method may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._rooms: dict[str, Room] = {}

    def open(self) -> str:
        """Open a room and return its code, which is all that leads to it.

        Raises Refused: as many rooms are open as the server holds.
        """
        with self._lock:
            now = self._clock()
            for code in [code for code, room in self._rooms.items() if _over(room, now)]:
                del self._rooms[code]
            if len(self._rooms) >= MOST_ROOMS:
                raise Refused(
                    f"{MOST_ROOMS} rooms are open, as many as this server holds; one ends when its "
                    f"lecturer closes it, or after {IDLE_SECONDS / 3600:g} hours without a guess.",
                    503,
                )
            code = ""
            while not code or code in self._rooms:
                code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
            self._rooms[code] = Room(now)
            return code

    def close(self, code: str) -> None:
        """End a room; its phones are told so."""
        with self._lock:
            self._rooms.pop(code, None)

    def ask(self, code: str, question: Question) -> None:
        """Put a question, or its answer; guesses at another question are gone."""
        with self._room(code) as room:
            if question == room.question:
                return
            before = room.question and replace(room.question, truth=None)
            if replace(question, truth=None) != before:
                room.guesses.clear()
            room.question, room.touched = question, self._clock()
            room.version += 1

    def join(self, code: str) -> str:
        """Let a phone in, unless the room is full; returns the number that it is known by."""
        with self._room(code) as room:
            if len(room.phones) >= MOST_PHONES:
                raise Refused(f"The room is full: it holds {MOST_PHONES} phones.", 503)
            phone = secrets.token_hex(8)
            room.phones[phone] = -SECONDS_BETWEEN
            return phone

    def guess(self, code: str, phone: str, version: int, option: int) -> None:
        """Take a phone's guess at the question of that version; a later one replaces it."""
        with self._room(code) as room:
            if phone not in room.phones:
                raise Refused("This phone is not in the room; open the address again.", 403)
            question, now = room.question, self._clock()
            if question is None or version != room.version or question.truth is not None:
                raise Refused("That question is over.", 409)
            if not 0 <= option < len(question.options):
                raise Refused(f"There is no option {option}.", 400)
            if now - room.phones[phone] < SECONDS_BETWEEN:
                raise Refused("That was quick; guess again in a second.", 429)
            room.phones[phone] = room.touched = now
            room.guesses[phone] = option

    def view(self, code: str) -> Room:
        """A copy of the room as it is."""
        with self._room(code) as room:
            return replace(room, phones={**room.phones}, guesses={**room.guesses})

    def version(self, code: str) -> int:
        with self._room(code) as room:
            return room.version

    @contextmanager
    def _room(self, code: str) -> Iterator[Room]:
        """A room, for one thread at a time.

        Raises Refused: there is no such room, or none any more.
        """
        with self._lock:
            room = self._rooms.get(code.upper())
            if room is None or _over(room, self._clock()):
                said = "There is no such room, or it has ended; ask for its code again."
                raise Refused(said, 404)
            yield room


def _over(room: Room, now: float) -> bool:
    return now - room.touched > IDLE_SECONDS


#: Those of this server.
ROOMS = Rooms()


# ---------------------------------------------------------------------- for phones
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
    return HTMLResponse(_PAGE.read_text("utf-8"), headers={"Cache-Control": "no-store"})


async def join(request: Request) -> Response:
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
    return JSONResponse(_told(ROOMS.view(code), phone), headers={"Cache-Control": "no-store"})


def _told(room: Room, phone: str) -> dict[str, Any]:
    """What a phone may know: what others guessed only when the answer is out."""
    told: dict[str, Any] = {"version": room.version, "question": None}
    if room.question is not None:
        told |= {"question": room.question.text, "options": room.question.options}
        told |= {"own": room.guesses.get(phone), "truth": room.question.truth}
        if room.question.truth is not None:
            told["counts"] = room.counts
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
