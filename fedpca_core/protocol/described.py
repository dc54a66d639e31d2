"""Algorithms as plain data: what a file or a message says of one, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.algorithm import Algorithm


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


def restore(described: Mapping[str, Any]) -> Algorithm:
    """The algorithm that `describe` described. Nothing but an `Algorithm` is ever made.

    Raises
    ------
    InvalidInput
        A class that is not known here (`fedpca_core` imports all of its own), or parameters that
        do not fit it.
    """
    known = {kind.__name__: kind for kind in _kinds(Algorithm)}  # type: ignore[type-abstract]
    name, parameters = described.get("algorithm"), described.get("parameters")
    require(
        name in known and isinstance(parameters, Mapping),
        f"“{name}” is not an algorithm known here; it may come from a newer version.",
    )
    assert isinstance(name, str) and isinstance(parameters, Mapping)
    values = {
        key: restore(value) if isinstance(value, Mapping) else value
        for key, value in parameters.items()
    }
    try:
        return known[name](**values)
    except TypeError as error:
        raise InvalidInput(
            f"The parameters of {name} do not fit this version ({error}); make the run again."
        ) from None


def _kinds(base: type[Algorithm]) -> Iterator[type[Algorithm]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
