"""The one exception of the core: a sentence a visitor can act on."""

import unicodedata
from collections.abc import Collection
from math import inf
from numbers import Integral


class InvalidInput(ValueError):
    """An input does not fit; the text names what was wrong, the value, and the remedy.

    The dashboard shows the text as it is, so the core and the page say the same thing.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(sentence))


def encodable(text: str) -> str:
    """The text with a question mark for every half of a pair, which JSON can hold and UTF-8 not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def visible(text: str) -> str:
    """The text as a terminal may have it: what steers one, or is not to be seen, is spelled out.

    Names from files and links stand in sentences, and a name may be an escape sequence.
    """
    return "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one).startswith("C") else one
        for one in encodable(text)
    )


def require(condition: bool, sentence: str) -> None:
    if not condition:
        raise InvalidInput(sentence)


def require_whole(what: str, value: object) -> None:
    """Raise `InvalidInput` unless ``value`` is a whole number, for something that is counted.

    5.0 is refused too: as a size or a number of rounds it would fail later and less clearly.
    """
    require(
        isinstance(value, Integral) and not isinstance(value, bool),
        f"{what} counts something, so it must be a whole number, not {value!r}; "
        "give one without a fraction.",
    )


def require_choice(what: str, value: object, choices: Collection[str]) -> None:
    """Raise `InvalidInput` unless ``value`` is among the choices; ``what`` begins the sentence."""
    *others, last = map(repr, choices)
    require(value in choices, f"{what} is {', '.join(others)} or {last}, not {value!r}.")


def require_known(what: str, name: str, known: Collection[str]) -> None:
    """Raise `InvalidInput` unless there is a thing of that name; ``what`` says what it would be."""
    require(name in known, f"There is no {what} “{name}”; choose one of {', '.join(known)}.")


def require_at_least(what: str, value: float, least: float = 0, remedy: str = "") -> None:
    """Raise `InvalidInput` unless ``value`` is finite and not below the least that it may be."""
    more = f"; {remedy}" if remedy else ""
    require(least <= value < inf, f"{what} must be at least {least}, not {value}{more}.")


def require_positive(what: str, value: float, usual: object) -> None:
    require(0 < value < inf, f"{what} must be positive, not {value}; {usual} is usual.")


def require_noise(deviation: float) -> None:
    """Raise `InvalidInput` unless ``deviation`` can be one of Gaussian noise."""
    require(
        0 <= deviation < inf,
        f"Noise is a standard deviation of at least 0, not {deviation}; 0 switches it off.",
    )


def check_client(client: int, clients: int, called: str = "one") -> None:
    """Refuse a client that is not there; ``called`` is what to choose."""
    require(
        0 <= client < clients,
        f"There is no client {client} among {clients}; choose {called} from 0 to {clients - 1}.",
    )
