"""The linear attack: the smallest matrix that explains all answers (FAPS, section on privacy).

The server stacks its broadcasts ``Z = [Z_1 .. Z_k]`` and the client's answers ``Y`` and takes the
matrix of least Frobenius norm with ``Phi Z = Y``. Against SSI it is exact as soon as the broadcasts
span the feature space; against FAPS, whose uploads are not products with S_i, it ends worse than
guessing zero on most runs and rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.linear_system import (
    Decomposition,
    LinearSystem,
    check_prior,
    growing,
    read,
)
from fedpca_core.protocol.transcript import Transcript

#: What the server believes after a round, and the directions of the feature space probed so far.
Estimate = tuple[Array, int]


class AttackPath(NamedTuple):
    """An attack repeated after every round."""

    #: (rounds + 1, features, features) float64: Row k is what the server believes after round k;
    #: row 0 is its belief before any message.
    estimates: Array
    #: (rounds + 1,) int64: Directions of the feature space probed so far ("the server knows 35 of
    #: 50 directions").
    ranks: IntArray

    @classmethod
    def of(cls, rounds: Iterable[Estimate]) -> AttackPath:
        """All rounds of an attack at once."""
        estimates, ranks = zip(*rounds, strict=True)
        return cls(np.stack(estimates), np.array(ranks, dtype=np.int64))


def linear(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
) -> Array:
    """Minimum-norm reconstruction of one client's S_i.

    Parameters
    ----------
    transcript : Transcript
        What the server saw.
    rounds : int, optional
        Use the first so many rounds; all of them when left out.
    prior : (features, features) float64, optional
        The answer is the matrix nearest to this that explains the messages; zero when left out.

    Returns
    -------
    (features, features) float64
        Not necessarily symmetric.

    Raises
    ------
    InvalidInput
        Unknown client, or the messages it needs are missing (secure aggregation, not recorded,
        uploads that are not answers to a frame).
    """
    known = check_prior(prior, transcript.features)
    return _solve(read(transcript, client, rounds).decompose(known), known)


def linear_rounds(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
) -> Iterator[Estimate]:
    """`linear` after round 0 (no message yet), 1, 2, ...; parameters as there."""
    known = check_prior(prior, transcript.features)
    return follow(
        growing(transcript, client, rounds),
        lambda system: system.decompose(known),
        lambda decomposition: _solve(decomposition, known),
    )


def _solve(found: Decomposition, prior: Array | None) -> Array:
    kept = found.sigma > found.cutoff
    scaled = np.zeros_like(found.sigma)
    scaled[kept] = 1.0 / found.sigma[kept]
    step: Array = ((found.left @ found.inner + found.outer) * scaled) @ found.left.T
    return step if prior is None else prior + step


def follow(
    stages: Iterable[LinearSystem],
    decompose: Callable[[LinearSystem], Decomposition],
    solve: Callable[[Decomposition], Array],
) -> Iterator[Estimate]:
    """Apply an attack to a growing system; rounds without news repeat the last estimate."""
    last: LinearSystem | None = None
    for stage in stages:
        if stage is not last:
            decomposition = decompose(stage)
            found = solve(decomposition), decomposition.rank
        last = stage
        yield found
