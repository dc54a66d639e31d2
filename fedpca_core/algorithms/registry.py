"""The registry of methods: a new method is one file and one line here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from fedpca_core.algorithms import (
    block_krylov,
    fedpe_fedpg,
    fedpower,
    one_round,
    personal_rivals,
    personalized,
    ssi,
    variable_splitting,
)
from fedpca_core.algorithms.faps import faps
from fedpca_core.algorithms.method import Method

_LISTED = (
    *ssi.METHODS,
    *faps.METHODS,
    *variable_splitting.METHODS,
    *block_krylov.METHODS,
    *one_round.METHODS,
    *fedpe_fedpg.METHODS,
    *fedpower.METHODS,
    *personalized.METHODS,
    *personal_rivals.METHODS,
)
#: All methods by key, in the order in which pages list them.
METHODS: dict[str, Method] = {one.key: one for one in _LISTED}


def titles(chosen: Callable[[Method], bool]) -> dict[str, str]:
    return {key: method.title for key, method in METHODS.items() if chosen(method)}


#: What Converge can put side by side.
COMPARED = titles(lambda method: method.compared)
#: What answers a known frame with a product, so that one client's matrix can be read off.
ATTACKABLE = titles(lambda method: method.attacked)


def replayable(method: str) -> bool:
    return METHODS[method].algorithm.replayable


def without_effect(
    settings: object, methods: Iterable[str], values: Mapping[str, Sequence[Any]]
) -> tuple[str, ...]:
    """The parameters whose values none of these methods can tell apart, as the others are set.

    ``settings`` has the shared parameters as attributes (`Method.make`); ``values`` the parameters
    in question, each with some values it may take.
    """
    made = {key: METHODS[key].make(settings).effective() for key in methods}

    def told_apart(name: str, value: Any) -> bool:
        other = copy(settings)
        object.__setattr__(other, name, value)  # unchecked: it is only read
        return any(METHODS[key].make(other).effective() != one for key, one in made.items())

    return tuple(
        name for name, some in values.items() if not any(told_apart(name, one) for one in some)
    )
