"""A bounded memory for results whose arguments cannot be keys of a cache themselves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakSet

Asked = ParamSpec("Asked")
Result = TypeVar("Result")
Owner = TypeVar("Owner")
_everywhere: WeakSet[Remembered[Any]] = WeakSet()


def forget_everything() -> bool:
    """Make room where memory is short; whether anything was remembered."""
    known = [one for one in _everywhere if len(one) > 0]
    for one in known:
        one.forget()
    return len(known) > 0


class Remembered(Generic[Result]):
    """The last results by key; the oldest is forgotten when there are more than ``size``."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        _everywhere.add(self)

    def forget(self) -> None:
        self._results.clear()

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._results

    def get(self, key: Hashable, make: Callable[[], Result]) -> Result:
        # Two threads may both make a result; they make the same one.
        if (known := self._results.get(key)) is not None:
            return known
        made = self._results[key] = make()
        while len(self._results) > self._size:
            self._results.popitem(last=False)
        return made


def once(
    method: Callable[Concatenate[Owner, Asked], Result],
) -> Callable[Concatenate[Owner, Asked], Result]:
    """A method that answers each question once; its answers live as long as their object."""

    @wraps(method)
    def answered(owner: Owner, /, *asked: Asked.args, **more: Asked.kwargs) -> Result:
        known: dict[Hashable, Result] = owner.__dict__.setdefault(f"_{method.__name__}", {})
        if (key := (asked, *more.items())) not in known:
            known[key] = method(owner, *asked, **more)
        return known[key]

    return answered
