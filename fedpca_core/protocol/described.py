"""Algorithms as plain data: what a file or a message says of one, and the way back.

What comes back is checked against the types that each dataclass declares, so that a stranger's
values are refused by name before anything is made of them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.settings import said

T = TypeVar("T")

#: Largest whole number of a parameter, and longest text.
MOST_WHOLE, MOST_TEXT = 10**6, 10_000
#: Wrapped methods within each other.
MOST_NESTED = 4


def describe(algorithm: Algorithm) -> dict[str, Any]:
    """An algorithm's class and parameters, ready for JSON; wrapped methods are nested."""
    parameters = {
        each.name: getattr(algorithm, each.name)
        for each in fields(algorithm)  # type: ignore[arg-type]  # every algorithm is a dataclass
        if each.init
    }
    return {
        "algorithm": type(algorithm).__name__,
        "parameters": {
            name: describe(value) if isinstance(value, Algorithm) else value
            for name, value in parameters.items()
        },
    }


def restore(described: object, nested: int = 0) -> Algorithm:
    """The algorithm that `describe` described. Nothing but an `Algorithm` is ever made.

    Raises InvalidInput: a class that is not known here (`fedpca_core` imports all of its own), or
    parameters that do not fit it.
    """
    known = {kind.__name__: kind for kind in _kinds(Algorithm)}  # type: ignore[type-abstract]
    found = described if isinstance(described, Mapping) else {}
    name, parameters = found.get("algorithm"), found.get("parameters")
    if not (isinstance(name, str) and name in known and isinstance(parameters, Mapping)):
        raise InvalidInput(
            f"“{said(name)}” is not an algorithm known here; it may come from a newer version."
        )
    require(
        nested < MOST_NESTED,
        f"{name} wraps a method within more than {MOST_NESTED} others; none of ours does.",
    )
    return made(known[name], parameters, f"The parameters of {name}", nested=nested)


def made(
    kind: type[T],
    values: Mapping[str, Any],
    where: str,
    most: int = MOST_WHOLE,
    nested: int = 0,
    **given: Any,
) -> T:
    """A dataclass from JSON's values, each of the type that its field declares.

    ``where`` names them in a sentence ("The parameters of SSI"); ``most`` is the largest whole
    number, ``nested`` how many algorithms are around this one, ``given`` fields that are made
    already.
    """
    types = _types(kind)  # type: ignore[arg-type]  # a class is hashable
    needed = [name for name, (_, must) in types.items() if must and name not in {**values, **given}]
    unknown = [name for name in values if name not in types or name in given]
    for names, why in ((unknown, "is not known"), (needed, "is missing")):
        require(
            not names,
            f"{where} do not fit this version: “{said(next(iter(names), None))}” {why}; make the "
            "run again.",
        )
    typed = {
        name: _typed(types[name][0], value, f"{where} do not fit: “{said(name)}”", most, nested)
        for name, value in values.items()
    }
    return kind(**typed, **given)


def _typed(hint: Any, value: Any, named: str, most: int, nested: int) -> Any:
    """A value of JSON as a field of this type holds it; lists become tuples."""
    if isinstance(hint, UnionType):
        if value is None:
            return None
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if isinstance(hint, type) and issubclass(hint, Algorithm):
        return restore(value, nested + 1)
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_typed(get_args(hint)[0], each, named, most, nested) for each in value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if hint is float and whole and abs(value) <= 2**53:
        value = float(value)
    fits = {
        int: whole and abs(value) <= most,
        float: isinstance(value, float) and not math.isnan(value),
        bool: isinstance(value, bool),
        str: isinstance(value, str) and len(value) <= MOST_TEXT,
    }
    words = {int: f"a whole number of at most {most:,}", float: "a number", bool: "true or false"}
    require(
        fits.get(hint, False),
        f"{named} must be {words.get(hint, 'a text')}, not {said(value)}; make the run again.",
    )
    return value


@cache
def _types(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Type of each field that may be given, and whether it must be."""
    hints = get_type_hints(kind)
    return {
        each.name: (hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in fields(kind)
        if each.init
    }


def _kinds(base: type[Algorithm]) -> Iterator[type[Algorithm]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
