"""The registry of methods: a new method is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fedpca_core.algorithms import (
    block_krylov,
    centralized,
    fedpe,
    fedpg,
    fedpower,
    global_averaging,
    local_power,
    local_training,
    one_shot,
    personalized,
    ssi,
    variable_splitting,
)
from fedpca_core.algorithms.faps import faps
from fedpca_core.algorithms.method import Method

#: All methods by key, in the order in which pages list them.
METHODS: dict[str, Method] = {}


def register(*methods: Method) -> None:
    """Add methods.

    Raises
    ------
    ValueError
        A key that is taken.
    """
    for method in methods:
        if method.key in METHODS:
            raise ValueError(f"There is a method called {method.key!r} already.")
        METHODS[method.key] = method


class Titles(Mapping[str, str]):
    """Keys and titles of some of the registered methods, whenever one looks."""

    def __init__(self, chosen: Callable[[Method], bool]) -> None:
        self._chosen = chosen

    def __getitem__(self, key: str) -> str:
        method = METHODS[key]
        if not self._chosen(method):
            raise KeyError(key)
        return method.title

    def __iter__(self) -> Iterator[str]:
        return (key for key, method in METHODS.items() if self._chosen(method))

    def __len__(self) -> int:
        return sum(1 for _ in self)


#: What Converge can put side by side.
COMPARED = Titles(lambda method: method.compared)
#: What answers a known frame with a product, so that one client's matrix can be read off.
ATTACKABLE = Titles(lambda method: "linear" in method.attacks)

register(
    *ssi.METHODS,
    *local_power.METHODS,
    *faps.METHODS,
    *variable_splitting.METHODS,
    *block_krylov.METHODS,
    *one_shot.METHODS,
    *centralized.METHODS,
    *fedpe.METHODS,
    *fedpg.METHODS,
    *fedpower.METHODS,
    *personalized.METHODS,
    *local_training.METHODS,
    *global_averaging.METHODS,
)
