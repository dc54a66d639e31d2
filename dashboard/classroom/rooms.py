"""Rooms of a class: who guessed what, in numbers, for as long as the lesson lasts.

A room knows nobody: a phone is a random number, a guess the number of an option. Nothing is
written anywhere; a room ends with its time or with the server.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

#: Without letters and figures that are read as one another; a code is one of 30 to the 6th.
ALPHABET, LENGTH = "ABCDEFGHJKMNPQRSTUVWXYZ2346789", 6
#: Rooms of a server, phones in a room, and seconds after which a room without a
#: question or a guess ends.
MOST_ROOMS, MOST_PHONES, IDLE_SECONDS = 50, 500, 2 * 3600.0
#: A phone may change its guess so often; a hand is slower.
SECONDS_BETWEEN = 0.3


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

    code: str
    touched: float
    question: Question | None = None
    version: int = 0
    #: When each phone last said something, and the option that it has chosen.
    phones: dict[str, float] = field(default_factory=dict)
    guesses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A room as it is at one moment."""

    version: int
    question: Question | None
    phones: int
    #: How many phones have chosen each option.
    counts: tuple[int, ...]
    #: The option that the asking phone has chosen.
    own: int | None = None

    @property
    def guessed(self) -> int:
        """Phones that have chosen."""
        return sum(self.counts)

    @property
    def middle(self) -> int | None:
        """The option with half of the guesses on each side, the lower of two; None without any."""
        seen = 0
        for option, count in enumerate(self.counts):
            seen += count
            if 2 * seen >= self.guessed > 0:
                return option
        return None


class Rooms:
    """All rooms of a server; every method may be called from any thread.

    ``clock``: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._rooms: dict[str, Room] = {}

    def open(self) -> str:
        """Open a room and return its code, which is all that leads to it.

        Raises Refused: as many rooms are open as the server holds.
        """
        with self._lock:
            now = self._clock()
            ended = [code for code, room in self._rooms.items() if _over(room, now)]
            for code in ended:
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
            self._rooms[code] = Room(code, now)
            return code

    def close(self, code: str) -> None:
        """End a room; its phones are told so."""
        with self._lock:
            self._rooms.pop(code, None)

    def ask(self, code: str, question: Question) -> None:
        """Put a question, in place of the one before; guesses at another question are gone.

        The same question again changes nothing but whether its answer is known.
        """
        with self._lock:
            room = self._room(code)
            if question == room.question:
                return
            before = room.question and replace(room.question, truth=None)
            if replace(question, truth=None) != before:
                room.guesses.clear()
            room.question, room.touched = question, self._clock()
            room.version += 1

    def join(self, code: str) -> str:
        """Let a phone in; returns the random number that it is known by.

        Raises Refused: there is no such room, or it is full.
        """
        with self._lock:
            room = self._room(code)
            if len(room.phones) >= MOST_PHONES:
                raise Refused(f"The room is full: it holds {MOST_PHONES} phones.", 503)
            phone = secrets.token_hex(8)
            room.phones[phone] = -SECONDS_BETWEEN
            return phone

    def guess(self, code: str, phone: str, version: int, option: int) -> None:
        """Take a phone's guess at the question of that version; a later one replaces it.

        Raises Refused: an unknown room or phone, a question that is over, an option that it does
        not have, or too many guesses in a moment.
        """
        with self._lock:
            room = self._room(code)
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

    def view(self, code: str, phone: str = "") -> View:
        """The room as it is now.

        Raises Refused: there is no such room, or none any more.
        """
        with self._lock:
            room = self._room(code)
            chosen = Counter(room.guesses.values())
            options = range(len(room.question.options) if room.question else 0)
            return View(
                room.version,
                room.question,
                len(room.phones),
                tuple(chosen[option] for option in options),
                room.guesses.get(phone),
            )

    def version(self, code: str) -> int:
        """What `View.version` is now."""
        with self._lock:
            return self._room(code).version

    def _room(self, code: str) -> Room:
        room = self._rooms.get(code.upper())
        if room is None or _over(room, self._clock()):
            raise Refused("There is no such room, or it has ended; ask for its code again.", 404)
        return room


def _over(room: Room, now: float) -> bool:
    return now - room.touched > IDLE_SECONDS


#: Those of this server.
ROOMS = Rooms()
