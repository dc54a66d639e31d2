"""Rooms of a class: what they count, what they refuse, when they end."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dashboard.classroom import rooms
from dashboard.classroom.rooms import Question, Refused, Rooms

ASKED = Question("After which message?", ("1", "2", "3", "never"))


class Clock:
    """Seconds as a test turns them."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(clock):
    """Rooms, and the code of one in which a question is asked."""
    found = Rooms(clock)
    code = found.open()
    found.ask(code, ASKED)
    return found, code


def test_a_guess_counts_once_and_a_later_one_replaces_it(opened, clock):
    found, code = opened
    one, other = found.join(code), found.join(code)
    found.guess(code, one, 1, 0)
    found.guess(code, other, 1, 2)
    clock.now += 1
    found.guess(code, one, 1, 3)
    room = found.view(code)
    assert room.counts == (0, 0, 1, 1) and room.guesses[one] == 3
    assert (len(room.phones), len(room.guesses), room.middle) == (2, 2, 2)
    assert rooms._told(room, one)["own"] == 3 and rooms._told(room, "nobody")["own"] is None


def test_the_answer_ends_the_question_and_keeps_the_guesses(opened, clock):
    found, code = opened
    phone = found.join(code)
    found.guess(code, phone, 1, 1)
    found.ask(code, replace(ASKED, truth=2))
    clock.now += 1
    with pytest.raises(Refused, match="over"):
        found.guess(code, phone, 2, 2)
    assert found.view(code).counts == (0, 1, 0, 0)
    found.ask(code, replace(ASKED, truth=2))
    assert found.version(code) == 2  # the same again is no news


def test_another_question_begins_without_guesses_and_takes_none_for_the_one_before(opened, clock):
    found, code = opened
    phone = found.join(code)
    found.guess(code, phone, 1, 1)
    found.ask(code, Question("From which ε on?", ("0.1", "1")))
    clock.now += 1
    assert found.view(code).counts == (0, 0) and not found.view(code).guesses
    with pytest.raises(Refused, match="over"):
        found.guess(code, phone, 1, 1)
    found.guess(code, phone, 2, 1)


@pytest.mark.parametrize("option", [-1, 4, 10**30])
def test_an_option_that_the_question_has_not_is_refused(opened, option):
    found, code = opened
    with pytest.raises(Refused) as refused:
        found.guess(code, found.join(code), 1, option)
    assert refused.value.status == 400 and not found.view(code).guesses


def test_who_did_not_join_does_not_count(opened):
    found, code = opened
    with pytest.raises(Refused) as refused:
        found.guess(code, "0" * 16, 1, 1)
    assert refused.value.status == 403


def test_a_phone_cannot_hammer(opened, clock):
    found, code = opened
    phone = found.join(code)
    found.guess(code, phone, 1, 1)
    with pytest.raises(Refused) as refused:
        found.guess(code, phone, 1, 2)
    assert refused.value.status == 429 and found.view(code).guesses[phone] == 1
    clock.now += rooms.SECONDS_BETWEEN
    found.guess(code, phone, 1, 2)


def test_a_room_ends_when_nobody_has_guessed_for_long(opened, clock):
    found, code = opened
    phone = found.join(code)
    clock.now += rooms.IDLE_SECONDS - 1
    found.guess(code, phone, 1, 1)  # which is a sign of life
    clock.now += rooms.IDLE_SECONDS - 1
    found.view(code)
    clock.now += 2
    with pytest.raises(Refused) as refused:
        found.view(code)
    assert refused.value.status == 404


def test_a_question_is_a_sign_of_life(opened, clock):
    found, code = opened
    clock.now += rooms.IDLE_SECONDS - 1
    found.ask(code, Question("And now?", ("yes", "no")))
    clock.now += 2
    found.view(code)


def test_there_is_an_end_to_rooms_and_phones_and_what_ends_makes_place(clock, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_ROOMS", 2)
    monkeypatch.setattr(rooms, "MOST_PHONES", 3)
    found = Rooms(clock)
    code, other = found.open(), found.open()
    with pytest.raises(Refused, match="rooms are open"):
        found.open()
    for _ in range(3):
        found.join(code)
    with pytest.raises(Refused, match="full"):
        found.join(code)
    found.close(other)
    found.open()
    clock.now += rooms.IDLE_SECONDS + 1
    found.open()  # in the place of what has ended


def test_codes_are_read_without_doubt_and_however_they_are_typed(clock):
    found = Rooms(clock)
    codes = {found.open() for _ in range(rooms.MOST_ROOMS)}
    assert len(codes) == rooms.MOST_ROOMS
    assert all(re.fullmatch("[A-HJ-NP-Z2-46-9]{6}", code) for code in codes)
    assert not set("01IO5") & set(rooms.ALPHABET)
    found.join(codes.pop().lower())


def test_a_room_holds_nothing_of_people(opened):
    found, code = opened
    phone = found.join(code)
    found.guess(code, phone, 1, 1)
    (room,) = found._rooms.values()
    assert set(vars(room)) == {"touched", "question", "version", "phones", "guesses"}
    assert [type(v) for v in (*room.phones.values(), *room.guesses.values())] == [float, int]
