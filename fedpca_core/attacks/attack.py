"""What an attack is: a function of a transcript and of what everybody knows, with its conditions.

An attack says by counts and formats whether it fits a deployment (never by a method's name), about
what it takes, and what it makes of the messages. `registry` lists all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.lattice.records import BUDGET, Records
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.findings import Target
from fedpca_core.guarantee import Guarantee
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.protocol.algorithm import Algorithm, Uploads
from fedpca_core.protocol.transcript import Exchange, Transcript
from fedpca_core.steps import Part

#: What was subtracted from the records before anything was sent, and who knows it.
CENTRINGS = ("none", "own", "announced", "secret")


@dataclass(frozen=True, eq=False)
class Deployment:
    """What a server has besides the messages; which attack fits is decided from these alone.

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


@dataclass(frozen=True, eq=False)
class Belief:
    """A client's second-moment matrix, as an attack has it after some rounds."""

    #: (features, many) float64: Directions with their sizes, whose product with their transpose is
    #: the matrix; or, with ``dense``, the matrix itself, which need not be symmetric.
    given: Array
    #: How many directions of the matrix in question the messages tell. Of a mask read as if it were
    #: a product none is the client's.
    read: int = 0
    #: The matrix as a factor where the messages determine it, so that records can follow.
    whole: Factor | None = None
    #: Whether the messages are known to determine it; False where a matrix explains them and others
    #: might. The certificate of its records tells then.
    sure: bool = True
    dense: bool = False

    @classmethod
    def nothing(cls, features: int) -> Belief:
        return cls(np.zeros((features, 0)))

    @classmethod
    def of_factor(cls, found: Factor) -> Belief:
        """A factor, which is whole where the messages determine it."""
        return cls(found.matrix, found.rank, found if found.complete else None)

    @classmethod
    def of_frame(cls, frame: Array) -> Belief:
        """The columns of an upload, turned to its own principal directions."""
        left, sizes, _ = np.linalg.svd(frame, full_matrices=False)
        return cls(left * sizes, frame.shape[1])

    @cached_property
    def matrix(self) -> Array:
        """(features, features) float64."""
        return self.given if self.dense else self.given @ self.given.T

    @cached_property
    def factor(self) -> Array:
        """(features, directions) float64: leading directions with their sizes."""
        if not self.dense:
            return self.given
        values, vectors = np.linalg.eigh(symmetric_part(self.given))
        order = np.argsort(-np.abs(values))
        return np.asarray(vectors[:, order] * np.sqrt(np.abs(values[order])))


@dataclass(frozen=True)
class Solved:
    """A client's S_i from all its messages together."""

    #: (features, features) float64, symmetric.
    matrix: Array
    #: Relative residual of the equations: far above round-off when the messages do not belong to
    #: one S_i, as where a wrong branch of solutions was followed, or they were disturbed.
    misfit: float
    #: Standard error of an entry, from the residual.
    error: float


def arrived(exchange: Exchange, client: int) -> dict[str, Array]:
    """What a round brought of a client by name: its upload, or the sums where only they arrive."""
    if exchange.uploads is None:
        return dict(exchange.sums or {})
    row = np.flatnonzero(exchange.participants == client)[:1]
    return {name: array[at] for name, array in exchange.uploads.items() for at in row}


def unpacked(array: Array, features: int) -> Array | None:
    """The symmetric matrix that came as its upper triangle by rows; None where it is no such."""
    if array.shape != (features * (features + 1) // 2,):
        return None
    return mirrored(array, features, np.triu_indices(features))


def mirrored(entries: Array, size: int, at: tuple[IntArray, IntArray]) -> Array:
    """Symmetric matrices (..., size, size) from entries (..., count) at these rows and columns."""
    matrices = np.zeros((*entries.shape[:-1], size, size))
    matrices[..., at[0], at[1]] = entries
    matrices[..., at[1], at[0]] = entries
    return matrices


@dataclass(frozen=True)
class Effort:
    """How much work a search may do: counts and not seconds, so that it ends alike everywhere."""

    #: Of a replay; one that succeeds takes 15 to 150, one that fails gets no nearer.
    evaluations: int = 200
    #: Whether a replay starts from what round 1 leaks.
    seeded: bool = True
    #: Of one lattice, in units of which the library does about 10^9 a second.
    work: float = BUDGET
    #: Whether what was believed after every round is wanted, and not the last belief alone.
    path: bool = False
    #: Seconds, by its own account, up to which an attack that searches is run; others wait.
    longest: float = math.inf
    #: Whether matrices are searched for at all.
    unmask: bool = True

    def leaves(self, attack: Attack[Any], seconds: float) -> bool:
        """Whether an attack that takes about so many seconds is left waiting."""
        masked = attack.target is Target.COVARIANCE and not self.unmask
        return attack.searches and (masked or seconds > self.longest)


#: What a trial does unless it is told otherwise.
USUAL = Effort()

R = TypeVar("R")


@dataclass(frozen=True)
class Attack(Generic[R]):
    #: key, title: ``key`` is in links and tables; ``title`` completes "… reads it".
    key: str
    title: str
    #: Of a deployment and the attacked client: why it does not fit, or nothing.
    fits: Callable[[Deployment, int], str]
    #: Of the same: about how many seconds it takes on one core.
    seconds: Callable[[Deployment, int], float]
    #: What it makes of the messages.
    read: R
    #: The client's covariance, its records, the record that joined between two runs, or the sum.
    target: Target = Target.COVARIANCE
    #: Whether it searches, which takes seconds and may end nowhere.
    searches: bool = False


#: The belief after every round, the start first.
Beliefs = Part[list[Belief]]
#: Of a transcript, the deployment, the client and the effort. It may raise `InvalidInput` where
#: messages are missing.
MatrixReading = Callable[[Transcript, Deployment, int, Effort], Beliefs]
MatrixAttack = Attack[MatrixReading]
#: An attack on the records is given the beliefs of the best matrix attack too.
RecordsAttack = Attack[
    Callable[[Transcript, Deployment, int, Effort, Sequence[Belief]], Part[Records]]
]
