"""Array types shared by every room of the core."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Named arrays. On the client side every array has the client axis first.
Arrays = Mapping[str, Array]
AnyArray = NDArray[Any]


def take(arrays: Arrays, clients: IntArray) -> dict[str, Array]:
    """Return the rows of every array that belong to ``clients``, not to be written to.

    ``clients`` are distinct and in increasing order, so as many as there are rows means all; these
    come as read-only views, because a step is pure and needs no copy.
    """
    if len(clients) == _rows(arrays):
        return {name: read_only(array) for name, array in arrays.items()}
    return {name: array[clients] for name, array in arrays.items()}


def read_only(array: Array) -> Array:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def put(arrays: Arrays, clients: IntArray, rows: Arrays) -> dict[str, Array]:
    """Return ``arrays`` with the rows of ``clients`` replaced (see `take`), in a new mapping."""
    if len(clients) == _rows(arrays):
        return dict(rows)
    result = {name: array.copy() for name, array in arrays.items()}
    for name, array in result.items():
        array[clients] = rows[name]
    return result


def _rows(arrays: Arrays) -> int | None:
    """Length of the client axis; None where clients keep nothing."""
    return next((len(array) for array in arrays.values()), None)
