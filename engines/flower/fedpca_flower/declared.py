"""What a client's answer has to hold: nothing is believed that was not declared beforehand.

Names and shapes of an upload come from the method itself, whose step for nobody has them
(`NoneOfMany`); plain values have a rule each. Whoever answers otherwise is named and left out.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedpca_core.arrays import AnyArray, Arrays
from fedpca_core.errors import require
from fedpca_flower import secure
from fedpca_flower.records import Groups, Told

#: (shape, dtype) of arrays, by name.
Shapes = Mapping[str, tuple[tuple[int, ...], str]]
#: No number of an upload is larger in size; powers of it would overflow.
LARGEST_NUMBER = 1e30
_ROUNDING = 1e-6


@dataclass(frozen=True)
class ValueRule:
    """What a plain value has to be."""

    holds: Callable[[Any], bool]
    what: str


def digits(count: int) -> ValueRule:
    """So many hexadecimal digits."""
    return ValueRule(
        lambda value: isinstance(value, str) and bool(re.fullmatch(f"[0-9a-f]{{{count}}}", value)),
        f"{count} hexadecimal digits",
    )


FLAG = ValueRule(lambda value: isinstance(value, bool), "true or false")
KEY = ValueRule(
    lambda value: digits(64).holds(value) and secure.is_key(value),
    "a public key that secrets can be agreed with",
)
SHOWN = ValueRule(lambda value: value is True, "true, as at the start")


def whole(least: int, most: int) -> ValueRule:
    """A whole number; JSON's true and 3.0 are none."""
    return ValueRule(
        lambda value: type(value) is int and least <= value <= most,
        f"a whole number from {least} to {most}",
    )


def size(most: float) -> ValueRule:
    """A finite number of at least 0."""
    most = min(most, LARGEST_NUMBER)
    return ValueRule(
        lambda value: type(value) in (int, float) and 0 <= value <= most,
        f"a number from 0 to {most:g}",
    )


def one_for_each(clients: Collection[int], rule: ValueRule) -> ValueRule:
    """A value for each of these clients and for nobody else."""
    names = {str(client) for client in clients}
    return ValueRule(
        lambda value: (
            isinstance(value, dict) and set(value) == names and all(map(rule.holds, value.values()))
        ),
        f"{rule.what} for each of the clients {sorted(clients)}",
    )


#: Name, kind and unit of every column.
SCHEMA = ValueRule(
    lambda value: (
        isinstance(value, list)
        and all(isinstance(one, list) and len(one) == 3 for one in value)
        and all(isinstance(part, str) and len(part) <= 200 for one in value for part in one)
    ),
    "a name, a kind and a unit for every column",
)


def shares(clients: Collection[int]) -> dict[str, ValueRule]:
    """Of a client that deals shares to these (`secure.dealt`)."""
    each = {"boxes": digits(184), "marks": digits(128)}
    boxes = {name: one_for_each(clients, rule) for name, rule in each.items()}
    return {"public": KEY, "seal": digits(64), **boxes}


#: Products with S_i for one message.
COUNT = whole(0, 10**9)


@dataclass(frozen=True)
class Declared:
    """What one answer has to hold."""

    #: For the plain values.
    told: Mapping[str, ValueRule] = field(default_factory=dict)
    #: The upload's arrays.
    up: Shapes = field(default_factory=dict)
    #: A plain value that stands, where it holds anything, for the upload.
    instead: str = ""
    #: Largest spectral norm of some of them.
    norms: Mapping[str, float] = field(default_factory=dict)
    #: Arrays of the state, which a simulated client shows where it says so.
    shown: Shapes = field(default_factory=dict)

    def check(self, said: Told, groups: Groups) -> None:
        """Refuse an answer that holds something else: what, and what it should have been."""
        for name, rule in self.told.items():
            require(
                rule.holds(said.get(name)),
                f"“{name}” must be {rule.what}, not {quoted(said.get(name, 'missing'))}",
            )
        if self.instead and said[self.instead]:
            return
        _check_arrays("its upload", groups.get("up", {}), self.up)
        for name, (_, dtype) in self.up.items():
            largest = float(np.abs(groups["up"][name]).max(initial=0.0))
            require(
                dtype == "uint64" or largest <= LARGEST_NUMBER,
                f"“{name}” holds {largest:g}, and no number of a run is above {LARGEST_NUMBER:g}",
            )
        for name, most in self.norms.items():
            norm = float(np.linalg.norm(groups["up"][name], 2))
            require(
                norm <= most * (1 + _ROUNDING),
                f"“{name}” has a spectral norm of {norm:.3g}, and {most:.3g} was agreed",
            )
        if self.shown and said.get("shows") is True:
            _check_arrays("the state that it shows", groups.get("simulation_only", {}), self.shown)


def of_one(arrays: Arrays, dtype: str | None = None) -> Shapes:
    """Shape and type of one client's arrays, from arrays with the client axis first."""
    return {name: (array.shape[1:], dtype or str(array.dtype)) for name, array in arrays.items()}


def _check_arrays(what: str, received: Mapping[str, AnyArray], declared: Shapes) -> None:
    names = quoted(sorted(received))
    require(set(received) == set(declared), f"{what} has {names}, not {sorted(declared)}")
    for name, (shape, dtype) in declared.items():
        array = received[name]
        require(
            array.shape == shape and array.dtype == dtype,
            f"“{name}” is {array.dtype!s} of shape {array.shape}, not {dtype} of shape {shape}",
        )


def quoted(value: object) -> str:
    """What somebody else has sent, short and harmless in a terminal."""
    if type(value) is int and value.bit_length() > 1000:
        return "a number of hundreds of digits"
    text = value if isinstance(value, str) else repr(value)
    text = "".join(letter if letter.isprintable() else "·" for letter in text)
    return text if len(text) <= 300 else f"{text[:300]}…"
