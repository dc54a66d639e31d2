"""A client's data where only its own are there: a batch of one that knows its place among all.

The steps of an algorithm see the same `ClientData` as in one process: sizes and weights of
everybody, and ``members`` with the client's own position, so every stream that is drawn for all
clients and indexed gives it the same draws. What belongs to others is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn, Self

import numpy as np

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.client_data import ClientData


@dataclass(frozen=True)
class OneOfMany(ClientData):
    """One client's data in all places, each of which holds its own matrix: one in memory."""

    @classmethod
    def of(
        cls,
        own: ClientData,
        client: int,
        samples: IntArray,
        weights: Array,
        agreed: Mapping[str, Array],
    ) -> Self:
        """The data ``own`` of one client as those of ``client`` among all.

        ``samples`` and ``weights``, (clients,), are everybody's; ``agreed`` is what is known of all
        clients' data before the first round.
        """
        everybody = len(samples)
        grams = own.grams
        if grams is not None:
            grams = np.broadcast_to(grams[0], (everybody, *grams.shape[1:]))
        return cls(
            samples=samples,
            weights=weights,
            grams=grams,
            factors=own.factors * everybody,
            products=np.zeros(everybody, dtype=np.int64),
            members=np.array([client], dtype=np.int64),
            facts=dict(agreed),
            indefinite=own.indefinite,
        )

    def _alone(self) -> ClientData:
        if self.grams is None:
            return ClientData.from_factors(self.factors[:1])
        alone = ClientData.from_grams(self.grams[:1], self.samples[:1])
        return replace(alone, indefinite=self.indefinite)

    def _spectral_norms(self) -> Array:
        return np.full(len(self.samples), self._alone().spectral_norms()[0])

    def _positive_parts(self) -> Array:
        (own,) = self._alone()._positive_parts()
        return np.broadcast_to(own, (len(self.samples), *own.shape))

    def pooled_norm(self) -> float:
        if "pooled_norm" not in self.facts:
            _refuse("“pooled_norm”, which was not agreed before the run")
        return float(self.facts["pooled_norm"][0])

    def mean(self) -> Array:
        _refuse("the mean of all clients' matrices")


@dataclass(frozen=True)
class NoneOfMany(OneOfMany):
    """What the server has of the clients' data: public sizes and what was agreed, no matrix."""

    @classmethod
    def facts_only(
        cls, features: int, samples: IntArray, weights: Array, agreed: Mapping[str, Array]
    ) -> NoneOfMany:
        """Data of nobody; facts that were not agreed read as NaN, so they cannot pass unseen."""
        empty = ClientData.from_factors([np.zeros((features, 1))])
        return cls.of(empty, 0, samples, weights, agreed).for_everybody()

    def _spectral_norms(self) -> Array:
        return np.full(len(self.samples), np.nan)

    def apply(self, frames: Array, active: BoolArray | None = None) -> Array:
        """Products of nobody, (0, features, columns), which give messages their shape."""
        if self.clients:
            _refuse("products with the clients' matrices")
        return super().apply(frames, active)

    def dense(self) -> Array:
        if self.clients:
            _refuse("the clients' matrices")
        return super().dense()

    def top_eigenvectors(self, components: int) -> tuple[Array, Array]:
        if self.clients:
            _refuse("the clients' eigenvectors")
        return super().top_eigenvectors(components)


def _refuse(asked: str) -> NoReturn:
    raise InvalidInput(
        f"This method asks for {asked}, which is nowhere to be had when every client keeps its "
        "own data; choose other parameters, or simulate it in one process."
    )
