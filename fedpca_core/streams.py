"""Named random streams of one seed.

Every effect (the start, client sampling, privacy noise, data) draws from a stream of its own, keyed
by name and, where it recurs, by round. Switching one effect on therefore leaves every other draw
unchanged, and a run can be resumed or replayed at any round without remembering generator states.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from fedpca_core.errors import require


@dataclass(frozen=True)
class Streams:
    """All randomness of one run. The same name and key of a stream always give the same draws.

    Streams in use: ``"data"`` (problems), ``"heterogeneity"`` (what its parameter turns or
    exchanges), ``"split"`` (sizes of clients), ``"start"`` (the public first frame), ``"sampling"``
    (who takes part, drawn by the server), ``"noise"`` (privacy noise, private to the clients),
    ``"source noise"`` and ``"mean noise"`` (noise at the source, by release and client),
    ``"private"`` (hidden starts and other client secrets).
    """

    #: Non-negative seed of the run.
    seed: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.seed, int | np.integer) and self.seed >= 0,
            f"The seed must be a whole number of at least 0, not {self.seed!r}; "
            "choose for example 0.",
        )

    def generator(self, name: str, *key: int) -> np.random.Generator:
        """Open the stream ``name``; ``key`` (for example the round) selects an independent part."""
        words = (zlib.crc32(name.encode()), *key)
        return np.random.default_rng(np.random.SeedSequence(int(self.seed), spawn_key=words))
