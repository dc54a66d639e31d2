"""Records that are made when somebody looks at them; most studies read second moments only."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import overload

from fedpca_core.arrays import Array


class Later(Sequence[Array]):
    """One block for each client, all made at the first look.

    ``make``: Gives the blocks, (features, m_i) each; it must give the same whenever it is called.
    """

    def __init__(self, clients: int, make: Callable[[], Sequence[Array]]) -> None:
        self._clients, self._make = clients, make

    @cached_property
    def _blocks(self) -> tuple[Array, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._clients

    @overload
    def __getitem__(self, index: int) -> Array: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Array]: ...

    def __getitem__(self, index: int | slice) -> Array | Sequence[Array]:
        return self._blocks[index]
