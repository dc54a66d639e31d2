"""A problem: private data of client data plus the truth that only a simulation knows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, check_client, require, require_whole
from fedpca_core.guarantee import Guarantee, PaidMean
from fedpca_core.problems.announced import FINE, PublicFacts
from fedpca_core.problems.client_data import ClientData, checked_blocks, checked_weights
from fedpca_core.problems.perturbation import (
    Budget,
    SourceRelease,
    bound,
    perturbed,
    source_guarantee,
)
from fedpca_core.streams import Streams

#: How records are prepared so that an epsilon can cover them.
REMEDY = (
    "Name the columns that are used, which then count as public (“Columns” on a page, "
    "public_schema=True in a script)."
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Federated PCA problem: clients' blocks, one target, and what the simulation knows of it.

    Attributes:
        name: For legends and file names.
        client_data: The private data behind products with S_i.
        blocks: (features, m_i) float64 each: The raw private blocks where they are small enough to
            keep (simulation only: to show what an attack recovered, and for scores on records).
        image_shape: (rows, columns) where the features are the pixels of a grey image.
        client_names: For tables and tooltips; may be empty.
        feature_names: The same.
        note: One sentence on how the data were made, split or cleaned.
        record_norm: Upper bound on the Euclidean norm of every record, where the generator
            guarantees one.
        own_mean: (features,) float64, or None: The pooled mean of the records themselves, where it
            was subtracted from them. No guarantee covers it: one record moves all others.
        own_scale: Whether records were divided by deviations of their own, which no guarantee
            covers either.
        looked: What was decided by looking at all records together when they were prepared, in
            words: no guarantee covers it. Empty where nothing was.
        public: What was taken as public instead; a guarantee names it.
        announced: Grid, mean and number of the records, where they are public knowledge.
        source: Set by `private`: what each client released once.
        paid_mean: Set by `bounded`: what the noisy mean cost that the records were centred on.
        truth: Set by `private` and `bounded`: the problem without clipping and noise (simulation
            only). Target and errors are those of the truth.
        spectrum: (features,) float64, or None: Set by generators that make S exactly diagonal: its
            diagonal, largest first. The truth is then known without decomposing anything.
    """

    name: str
    client_data: ClientData
    blocks: Sequence[Array] | None = None
    image_shape: tuple[int, int] | None = None
    client_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    note: str = ""
    record_norm: float | None = None
    spectrum: Array | None = None
    own_mean: Array | None = None
    own_scale: bool = False
    looked: str = ""
    public: tuple[str, ...] = ()
    announced: PublicFacts | None = None
    source: SourceRelease | None = None
    paid_mean: PaidMean | None = None
    truth: Problem | None = None

    @property
    def features(self) -> int:
        return self.client_data.features

    @property
    def clients(self) -> int:
        return self.client_data.clients

    @property
    def guarantee(self) -> Guarantee | None:
        """What every method on this problem guarantees its clients; None without noise."""
        return None if self.source is None else self.source.guarantee

    @property
    def own_moments(self) -> bool:
        return self.own_scale or self.own_mean is not None

    @property
    def unperturbed(self) -> Problem:
        """The problem without clipping and noise; itself where there is neither."""
        return self if self.truth is None else self.truth

    @property
    def met(self) -> Problem:
        """The problem as a method meets it: clipped and noisy matrices are its own truth."""
        return self if self.truth is None else replace(self, truth=None, spectrum=None)

    def private(
        self,
        epsilon: float,
        delta: float,
        clip: float,
        streams: Streams,
        *,
        release: int = 0,
        **budget: Any,
    ) -> Self:
        """The same problem with noise at the source: every method on it has the same epsilon.

        Each client clips its records, forms S_i and adds symmetric Gaussian noise E_i once. From
        then on its data are M_i = S_i + E_i, and whatever a method does with them, in any number
        of rounds, is post-processing of this one release. The target stays that of this problem,
        without clipping and noise: both count as errors.

        Args:
            epsilon, delta, clip: The total for any number of rounds, and the norm at which every
                record is clipped.
            budget: More of a `Budget`: ``unit``, one record, a person with several, or a whole
                client. ``trust``, where clients share the noise under secure aggregation;
                `simulate` then refuses every method whose server sees more than ``sum_i w_i M_i``.
                ``mean_share`` of it pays for a noisy mean to centre on, as records that were
                centred on their own need it; they are clipped at ``mean_clip`` for that.
            streams: Its streams "source noise" and "mean noise" give the noise.
            release: Number of this release; another number draws other noise, and the two releases
                compose (`fedpca_core.guarantee.together`). The same number on other records would
                give both away, so give each run of its own a number of its own.

        Raises:
            InvalidInput: Records prepared by looking at them, scaled by their own deviations, or
                centred on their own mean with nothing paid for it; second moments whose records
                cannot be clipped any more; a problem that is private already; a budget out of
                range.
        """
        asked, data = Budget(epsilon, delta, clip, **budget), self.client_data
        bounded, mean = self._bounded(asked, streams, release)
        clipped = bounded.client_data
        noise, stated = source_guarantee(data.samples, data.weights, asked, self.public)
        return replace(
            bounded,
            client_data=perturbed(clipped, noise, streams, release),
            source=SourceRelease(clipped, noise, stated, asked.trust, mean),
            note=f"{self.note} {stated.sentence()}".strip(),
        )

    def bounded(self, budget: Budget, streams: Streams, release: int = 0) -> Self:
        """The same problem with records clipped and, where paid for, centred on a noisy mean.

        For noise on every product: the mean is one more release, which `privacy.account` adds to
        the products. The target stays that of this problem, without clipping.
        """
        bounded, _ = self._bounded(budget, streams, release)
        return replace(bounded, blocks=None, paid_mean=budget.paid_mean(self.client_data.samples))

    def _bounded(self, budget: Budget, streams: Streams, release: int) -> tuple[Self, Array | None]:
        """With records clipped, from where they were before any centring, if an ε can cover them.

        Also the noisy mean, (features,), that they are centred on, if any.
        """
        require(
            self.source is None and self.paid_mean is None,
            "This problem carries noise at the source already; call private() on its truth, and "
            "count a second release.",
        )
        require(
            not self.looked,
            f"In preparing “{self.name}” {self.looked}; one record may change that, and no ε "
            f"covers it. {REMEDY}",
        )
        require(
            not self.own_scale,
            f"The records of “{self.name}” were divided by deviations of their own, which no ε "
            "here covers; leave them unscaled, or scale them by numbers that were public before.",
        )
        require(
            self.own_mean is None or budget.mean_share > 0,
            f"The records of “{self.name}” were centred on their own mean, so one record moves all "
            "others and no ε covers it; leave them uncentred, or pay for a noisy mean "
            "(mean_share, for example 0.1).",
        )
        data, facts, records = self.client_data, self.announced, self.blocks
        if records is None and data.factors:
            records = [factor * np.sqrt(factor.shape[1]) for factor in data.factors]
        if records is not None and self.own_mean is not None:
            records = [block + self.own_mean[:, None] for block in records]
        clipped, mean = bound(data, records, self.record_norm, budget, streams, release)
        if facts is not None and facts.read_off:
            facts = None
        elif facts is not None and facts.mean is not None:
            facts = replace(facts, mean=mean, records_total=FINE)
        made = replace(self, client_data=clipped, record_norm=budget.clip, announced=facts)
        return replace(made, truth=self, own_mean=None), mean

    @cached_property
    def covariance(self) -> Array:
        """S = sum_i w_i S_i, (features, features): the matrix whose leading space is sought."""
        if self.truth is not None:
            return self.truth.covariance
        return self.client_data.mean() if self.spectrum is None else np.diag(self.spectrum)

    @cached_property
    def pooled(self) -> Array:
        """The weighted sum of what the clients hold, clipped and noisy: where a run goes."""
        return self.covariance if self.truth is None else self.client_data.mean()

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        if self.truth is not None:
            return self.truth._eigen
        if self.spectrum is not None:
            return self.spectrum, np.eye(self.features)
        values, vectors = np.linalg.eigh(self.covariance)
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of S, largest first, (features,)."""
        return self._eigen[0]

    def target(self, components: int) -> Array:
        """The centralised answer: leading eigenvectors of S, (features, components)."""
        check_components(components, self.features)
        return self._eigen[1][:, :components]

    @cached_property
    def heterogeneity(self) -> float:
        """eta = max_i ||S_i - S||_2 / ||S||_2 (FedPower's measure; simulation only)."""
        data = self.unperturbed.client_data
        return float(data.gaps(self.covariance).max()) / float(self.eigenvalues[0])

    @cached_property
    def digest(self) -> str:
        """Short hash of the data, for cache keys and to recognise a problem in a log."""
        data = self.client_data
        state = hashlib.sha256(data.samples.tobytes() + data.weights.tobytes())
        for array in data.factors if data.grams is None else (data.grams,):
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()[:16]


def check_components(components: int, features: int) -> None:
    require_whole("The number of components", components)
    require(
        1 <= components < features,
        f"{components} components do not fit {features} features; "
        f"choose between 1 and {features - 1} components.",
    )


def from_blocks(
    blocks: Sequence[Array],
    *,
    weights: str | Sequence[float] = "records",
    name: str = "own data",
    judged: bool = True,
    **about: Any,
) -> Problem:
    """Problem from the clients' blocks as they are inside, records as columns.

    Whatever a user hands in has records as rows: `from_records` and `from_table`.

    ``blocks``, sequence of (features, m_i) arrays: One for each client, neither centred nor scaled
        here.
    ``weights``, {"records", "equal"} or sequence of float: How clients count in the target S =
        sum_i w_i S_i: by their share of records (the pooled covariance) or each the same.
    ``judged``: Whether values that are too large, or that do not vary, are refused: that looks at
        them.
    """
    checked = checked_blocks(blocks, judged=judged)
    data = ClientData.from_blocks(checked, client_weights(weights, len(checked)))
    return Problem(name=name, client_data=data, blocks=tuple(checked), **about)


def without_record(problem: Problem, client: int, record: int) -> Problem:
    """The same problem before one record of one client was there, centred and scaled as agreed."""
    require(
        problem.source is None,
        "Noise at the source was drawn for all records of this problem; leave the record out of "
        "its truth and call private() again with another release number.",
    )
    if problem.blocks is None:
        raise InvalidInput(
            "The records of this problem are not kept, so none can be left out; choose a smaller "
            "problem."
        )
    check_client(client, problem.clients)
    held = problem.blocks[client].shape[1]
    require(
        0 <= record < held,
        f"Client {client} has no record {record}; choose one from 0 to {held - 1}.",
    )
    require(held > 1, f"Client {client} holds a single record and cannot be without it.")
    blocks = list(problem.blocks)
    blocks[client] = np.delete(blocks[client], record, axis=1)
    share, counts = problem.client_data.weights, problem.client_data.samples
    by_records = bool(np.allclose(share, counts / counts.sum(), rtol=1e-9))
    data = ClientData.from_blocks(blocks, None if by_records else share / share.sum())
    return replace(problem, client_data=data, blocks=tuple(blocks), spectrum=None)


def client_weights(weights: str | Sequence[float], clients: int) -> Array | None:
    """The weights a caller asked for; None stands for the share of records."""
    if not isinstance(weights, str):
        return checked_weights(np.asarray(weights, dtype=float), clients)
    require(
        weights in ("records", "equal"),
        f"Weights must be 'records' or 'equal' (or one number a client), not {weights!r}.",
    )
    return None if weights == "records" else np.full(clients, 1.0 / clients)
