"""The registry of methods: a new method is one file and one line here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fedpca_core.algorithms import (
    block_krylov,
    centralized,
    centred_krylov,
    decoupled,
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

_LISTED = (
    *ssi.METHODS,
    *local_power.METHODS,
    *faps.METHODS,
    *variable_splitting.METHODS,
    *block_krylov.METHODS,
    *centred_krylov.METHODS,
    *one_shot.METHODS,
    *centralized.METHODS,
    *fedpe.METHODS,
    *fedpg.METHODS,
    *fedpower.METHODS,
    *personalized.METHODS,
    *decoupled.METHODS,
    *local_training.METHODS,
    *global_averaging.METHODS,
)
#: All methods by key, in the order in which pages list them.
METHODS: dict[str, Method] = {one.key: one for one in _LISTED}


def replayable(method: str) -> bool:
    """Whether the public update of a method can be rerun on a candidate matrix."""
    return METHODS[method].algorithm.replayable


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


def without_effect(
    settings: object, methods: Iterable[str], values: Mapping[str, Sequence[Any]]
) -> tuple[str, ...]:
    """The parameters whose values none of these methods can tell apart, as the others are set.

    ``settings``: Has the shared parameters as attributes, see `Method.make`.
    ``methods``: Keys.
    ``values``: The parameters in question, each with some values it may take.
    """
    made = {key: METHODS[key].make(settings).effective() for key in methods}

    def told_apart(name: str, value: Any) -> bool:
        other = _Changed(settings, name, value)
        return any(METHODS[key].make(other).effective() != one for key, one in made.items())

    return tuple(
        name for name, some in values.items() if not any(told_apart(name, one) for one in some)
    )


class _Changed:
    """Settings of which one field is different, for who only reads them."""

    def __init__(self, settings: object, name: str, value: Any) -> None:
        self._settings, self._name, self._value = settings, name, value

    def __getattr__(self, name: str) -> Any:
        return self._value if name == self._name else getattr(self._settings, name)


#: What Converge can put side by side.
COMPARED = Titles(lambda method: method.compared)
#: What answers a known frame with a product, so that one client's matrix can be read off.
ATTACKABLE = Titles(lambda method: method.attacked)
