"""What a server has besides the messages of a run: who runs what with whom, on what records."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.guarantee import Guarantee
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.protocol.algorithm import Algorithm, Uploads
from fedpca_core.protocol.transcript import Transcript

#: What was subtracted from the records before anything was sent, and who knows it.
CENTRINGS = ("none", "own", "announced", "secret")


@dataclass(frozen=True, eq=False)
class Deployment:
    """Public facts of a run; which attack fits is decided from these and nothing else.

    Attributes:
        components: Columns of what is sent.
        samples: (clients,) int64: Records m_i, which the protocol states.
        participation: Share of the clients in a round.
        sums: The server sees sums over the participants only.
        dtype: {"float64", "float32"}.
        upload_noise: Stated relative standard deviation of noise on uploads.
        guarantee: Noise at the source; its size is public.
        records: The grid of the records, and the mean where it is announced; None: real numbers.
        grid_known: Whether the step of the grid is announced; else the usual steps are tried.
        centring: {"none", "own", "announced", "secret"}: What was subtracted: nothing, the client's
            own mean, a mean that everybody is told, one that the server is not told.
        mean_paid: Whether the guarantee covers what was subtracted.
        trace: Stated tr S_i of the attacked client.
        earlier: Messages of a run before some records joined.
    """

    features: int
    clients: int
    components: int
    rounds: int
    samples: IntArray
    algorithm: Algorithm
    participation: float = 1.0
    sums: bool = False
    dtype: str = "float64"
    upload_noise: float = 0.0
    guarantee: Guarantee | None = None
    records: PublicFacts | None = None
    grid_known: bool = True
    centring: str = "none"
    mean_paid: bool = False
    trace: float | None = None
    earlier: Transcript | None = None

    @property
    def newcomers(self) -> Deployment:
        """The same with the records that joined since the earlier run for all there are."""
        assert self.earlier is not None
        return replace(self, samples=np.abs(self.samples - self.earlier.samples), earlier=None)

    @property
    def uploads(self) -> Uploads:
        return self.algorithm.uploads

    @property
    def exact(self) -> bool:
        """Whether messages are off by the rounding of float64 and nothing else."""
        return self.dtype == "float64" and self.upload_noise == 0 and self.guarantee is None

    @property
    def on_a_grid(self) -> bool:
        return self.records is not None

    def held(self, client: int) -> int:
        """Records behind the matrix that the messages of a client tell of: its own, or all."""
        return int(self.samples.sum()) if self.sums else int(self.samples[client])

    def rank(self, client: int) -> int:
        """Most directions that this matrix can have."""
        records = self.held(client)
        if self.centring == "own":
            records -= self.clients if self.sums else 1
        elif self.sums and self.centring != "none":
            records -= 1  # all records together are centred on their own mean
        return min(self.features, max(records, 1))

    @property
    def mean(self) -> Array | None:
        """What was subtracted, where the server is told."""
        return self.records.mean if self.records and self.centring == "announced" else None

    @property
    def steps(self) -> Array:
        """Step of every feature; one where nothing is known."""
        return np.ones(self.features) if self.records is None else self.records.grid
