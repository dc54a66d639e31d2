"""The clients' private data as one operator: the only code that touches it.

Client i holds a block A_i (features x samples m_i). Everywhere in this project its second-moment
matrix is ``S_i = A_i A_i^T / m_i`` and clients count with explicit weights w_i that sum to one, so
that every comparison has one stated target: the leading eigenvectors of ``S = sum_i w_i S_i``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from fedpca_core.arrays import AnyArray, Array, BoolArray, IntArray
from fedpca_core.errors import require
from fedpca_core.linalg.lanczos import fixed_vector
from fedpca_core.linalg.threads import copies_nothing, share_out

#: Below this many bytes per matrix, gathering a batch costs less than a loop of BLAS calls.
_GATHER_BYTES = 256 * 1024
#: Rows of a transposed block that stay in cache between the two halves of A (A^T X).
_CHUNK_BYTES = 4 * 1024 * 1024
#: From so many features on, frames are multiplied by columns, or by rows of S_i in small parts:
#: parts of so many multiplications are not copied, and pay from so many rows on.
_TALL, _UNCOPIED, _ROWS = 512, 1_000_000, 24
#: Squares of squares of values outside these limits overflow or vanish.
LARGEST, SMALLEST = 1e60, 1e-60
#: Up to this many features all eigenvalues of S_i cost less than an iteration for one.
_DENSE_FEATURES = 200


@dataclass(frozen=True)
class ClientData:
    """All clients' data behind products with S_i."""

    #: (clients,) int64: Columns m_i of every block; public.
    samples: IntArray
    #: (clients,) float64: w_i, positive, summing to one; public.
    weights: Array
    #: (clients, features, features) float64 or None: S_i, held when that makes products cheaper
    #: than two passes over the blocks.
    grams: Array | None
    #: (features, m_i) float64 each: A_i / sqrt(m_i), held otherwise.
    factors: tuple[Array, ...]
    #: (clients,) int64: Products with S_i asked of each client so far (a meter shared by the views
    #: of one run).
    products: IntArray = field(repr=False, compare=False)
    #: Positions of this view's clients in the whole client_data.
    members: IntArray = field(repr=False, compare=False)
    #: What was computed once from all clients' data and is shared by every view of it.
    facts: dict[str, Array] = field(default_factory=dict, repr=False, compare=False)
    #: Whether the matrices held carry noise and may have negative eigenvalues.
    indefinite: bool = False

    @classmethod
    def from_blocks(
        cls, blocks: Sequence[Array], weights: Array | None = None, keep: str = "auto"
    ) -> ClientData:
        """Build client data from validated blocks, (features, m_i) float64 each.

        ``weights``, (clients,) or None: Defaults to the share of records m_i/m.
        ``keep``, {"auto", "grams", "factors"}: What to hold; "auto" takes the cheaper product.
        """
        samples = np.array([block.shape[1] for block in blocks], dtype=np.int64)
        if keep == "auto":
            grams_cheaper = len(blocks) * blocks[0].shape[0] < 2 * int(samples.sum())
            keep = "grams" if grams_cheaper else "factors"
        if keep == "grams":
            grams = np.stack([second_moment(block) for block in blocks])
            return cls.from_grams(grams, samples, weights)
        factors = [np.ascontiguousarray(block) / np.sqrt(block.shape[1]) for block in blocks]
        return cls.from_factors(factors, weights)

    @classmethod
    def from_grams(
        cls, grams: Array, samples: IntArray, weights: Array | None = None
    ) -> ClientData:
        """Build client data from second-moment matrices S_i (sufficient statistics only)."""
        return cls._build(np.asarray(samples, np.int64), weights, grams=grams)

    @classmethod
    def from_factors(cls, factors: Sequence[Array], weights: Array | None = None) -> ClientData:
        """Build client data that holds ``A_i / sqrt(m_i)`` as given: nothing is copied."""
        samples = np.array([factor.shape[1] for factor in factors], dtype=np.int64)
        return cls._build(samples, weights, factors=tuple(factors))

    @classmethod
    def _build(
        cls,
        samples: IntArray,
        weights: Array | None,
        grams: Array | None = None,
        factors: tuple[Array, ...] = (),
    ) -> ClientData:
        share = samples / samples.sum() if weights is None else np.asarray(weights, float)
        return cls(
            samples=samples,
            weights=checked_weights(share, len(samples)),
            grams=grams,
            factors=factors,
            products=np.zeros(len(samples), dtype=np.int64),
            members=np.arange(len(samples), dtype=np.int64),
        )

    @cached_property
    def features(self) -> int:
        """Rows of every block."""
        return (self.factors[0] if self.grams is None else self.grams[0]).shape[0]

    @property
    def clients(self) -> int:
        return len(self.members)

    def metered(self) -> ClientData:
        """The same data with a product meter of its own, at zero."""
        return replace(self, products=np.zeros(len(self.samples), dtype=np.int64))

    def only(self, clients: IntArray) -> ClientData:
        """View of some clients (positions within this view); no data is copied."""
        return replace(self, members=self.members[np.asarray(clients, dtype=np.int64)])

    def for_everybody(self) -> Self:
        """The view of all clients, which an algorithm's start has."""
        return replace(self, members=np.arange(len(self.samples), dtype=np.int64))

    @cached_property
    def _whole(self) -> bool:
        return np.array_equal(self.members, np.arange(len(self.samples)))

    @cached_property
    def _gathered(self) -> Array | None:
        """This view's S_i side by side, where they need no copy or are small; gathered once."""
        if self.grams is None:
            return None
        if self._whole:
            return self.grams
        return self.grams[self.members] if self.grams[0].nbytes <= _GATHER_BYTES else None

    def apply(self, frames: Array, active: BoolArray | None = None) -> Array:
        """Products ``S_i X_i`` for every client of this view, (clients, features, columns).

        ``frames``, (clients, features, columns), or (features, columns) for all clients.
        ``active``, (clients,) bool: Clients that really compute; rows of the others come back as
            zeros and cost nothing.
        """
        self.charge(1 if active is None else active)
        return self.multiply(frames, None if active is None or active.all() else active)

    def multiply(self, frames: Array, active: BoolArray | None = None) -> Array:
        """`apply` without the meter, for a caller that charges several products at once."""
        if active is None:
            return self._multiply(frames)
        if self.grams is not None and self.grams[0].nbytes <= _GATHER_BYTES:
            # Small products cost less than picking out the matrices of the chosen clients.
            return np.where(active[:, None, None], self._multiply(frames), 0.0)
        chosen = np.flatnonzero(active)
        stacked = np.broadcast_to(frames, (self.clients, *frames.shape[-2:]))
        result = np.zeros(stacked.shape)
        if len(chosen):
            result[chosen] = self.only(chosen).multiply(stacked[chosen])
        return result

    def charge(self, products: BoolArray | IntArray | int) -> None:
        """Meter so many more products, (clients,), that were made without `apply`.

        Or columns that travelled along with other products: p of them cost as much as one.
        """
        np.add.at(self.products, self.members, products)

    def _multiply(self, frames: Array) -> Array:
        members = self.members
        held = self._gathered if self.features < _TALL else None
        if held is not None:
            if frames.ndim == 2:  # one frame for all: a single product with the stacked matrices
                rows = held.reshape(-1, self.features) @ frames
                return rows.reshape(len(members), self.features, frames.shape[1])
            return np.matmul(held, frames)
        grams, factors = self.grams, self.factors
        stacked = np.broadcast_to(frames, (len(members), *frames.shape[-2:]))
        result = np.empty(stacked.shape)

        # One BLAS call a client: at this size a single product outweighs the loop, and gathering
        # the matrices would copy more memory than the product reads.
        def one(row: int) -> None:
            if grams is None:
                result[row] = _thin_product(factors[members[row]], stacked[row])
            else:
                result[row] = _tall_product(grams[members[row]], stacked[row])

        width = self.features if grams is not None else int(self.samples[members].max(initial=0))
        share_out(one, len(members), self.features * width * frames.shape[-1])
        return result

    def coordinates(self, row: int) -> tuple[Array, Array]:
        """F, (features, m_i), and F^T F of a client whose ``S_i = F F^T`` is held as F.

        In coordinates of its records, products with S_i are those with F^T F, smaller and kept.
        """
        member = int(self.members[row])
        factor = self.factors[member]
        return factor, self._known(f"record_gram/{member}", lambda: factor.T @ factor)

    def _known(self, key: str, make: Callable[[], AnyArray]) -> Array:
        """A fact about all clients' data, made once."""
        if key not in self.facts:
            self.facts[key] = np.asarray(make(), dtype=float)
        return self.facts[key]

    def dense(self) -> Array:
        """S_i of this view's clients, (clients, features, features); formed if not held."""
        if self.grams is not None:
            return self.grams if self._whole else self.grams[self.members]
        result = np.empty((len(self.members), self.features, self.features))
        for row, member in enumerate(self.members):
            result[row] = self.factors[member] @ self.factors[member].T
        return result

    def traces(self) -> Array:
        """tr S_i, shape (clients,)."""
        if self.grams is not None:
            return np.trace(self.grams, axis1=1, axis2=2)[self.members]
        return np.array([float(np.vdot(self.factors[i], self.factors[i])) for i in self.members])

    def upper_triangles(self) -> Array:
        """S_i on and above the diagonal, by rows, (clients, features (features + 1)/2)."""
        rows, columns = np.triu_indices(self.features)
        return self.dense()[:, rows, columns]

    def positive(self) -> ClientData:
        """The same data with negative eigenvalues, which only noise makes, replaced by 0.

        That is post-processing, for methods whose local problem is unbounded without it.
        """
        if not self.indefinite:
            return self
        grams = self._known("positive", self._positive_parts)
        return replace(self, grams=grams, indefinite=False, facts={})

    def _positive_parts(self) -> Array:
        assert self.grams is not None  # only matrices that are held carry noise
        values, vectors = np.linalg.eigh(self.grams)
        kept = vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :]
        return kept @ kept.swapaxes(-1, -2)

    def spectral_norms(self) -> Array:
        """||S_i||_2, shape (clients,). What a client computes once from its own data."""
        return self._known("spectral_norms", self._spectral_norms)[self.members]

    def pooled_norm(self) -> float:
        """lambda_1(S), the largest eigenvalue of `mean` over all clients, or as it was agreed."""
        everyone = self.for_everybody()
        return float(
            self._known("pooled_norm", lambda: np.linalg.eigvalsh(everyone.mean())[-1:])[0]
        )

    def _spectral_norms(self) -> Array:
        if self.grams is not None:
            if self.indefinite:
                return np.asarray(np.abs(np.linalg.eigvalsh(self.grams)).max(axis=1), dtype=float)
            if self.features <= _DENSE_FEATURES:
                return np.asarray(np.linalg.eigvalsh(self.grams)[:, -1], dtype=float)
            return np.array([_largest_eigenvalue(matrix) for matrix in self.grams])
        everyone, norms = self.for_everybody(), np.empty(len(self.samples))

        # The Gram matrix of the shorter side has the same largest eigenvalue and costs less than
        # the singular values of the factor.
        def one(row: int) -> None:
            factor = self.factors[row]
            tall = factor.shape[0] > factor.shape[1]
            norms[row] = _largest_eigenvalue(
                everyone.coordinates(row)[1] if tall else factor @ factor.T
            )

        share_out(one, len(norms), self.features * int(self.samples.max()) ** 2)
        return norms

    def top_eigenvectors(self, components: int) -> tuple[Array, Array]:
        """Leading eigenpairs: (clients, components), and (clients, features, components)."""
        if self.grams is None:
            values = np.empty((len(self.members), components))
            vectors = np.empty((len(self.members), self.features, components))

            def one(row: int) -> None:
                factor = self.factors[self.members[row]]
                values[row], vectors[row] = _thin_eigenpairs(factor, components)

            share_out(one, len(values), self.features * int(self.samples.max()) ** 2)
            return values, vectors
        values, vectors = np.linalg.eigh(self.dense())
        leading = slice(None, -components - 1, -1)
        return values[:, leading], np.ascontiguousarray(vectors[:, :, leading])

    def gaps(self, centre: Array) -> Array:
        """||S_i - centre||_2, shape (clients,), for a symmetric (features, features) centre."""
        if self.features <= _DENSE_FEATURES:
            return np.abs(np.linalg.eigvalsh(self.dense() - centre)).max(axis=1)
        return np.array([self._gap(row, centre) for row in range(self.clients)])

    def _gap(self, row: int, centre: Array) -> float:
        """The same for one client of a large client data, by Lanczos iteration."""
        from scipy.sparse.linalg import LinearOperator

        own = self.only(np.array([row]))

        def difference(vector: Array) -> Array:
            return own._multiply(vector[:, None])[0, :, 0] - centre @ vector

        operator = LinearOperator((self.features, self.features), matvec=difference, dtype=float)
        found = _by_lanczos(operator, "LM", lambda: np.linalg.eigvalsh(own.dense()[0] - centre))
        return float(np.abs(found).max())

    def mean(self) -> Array:
        """S = sum_i w_i S_i over this view with its weights renormalised; (features, features)."""
        weights = self.weights[self.members] / self.weights[self.members].sum()
        if self.grams is not None:
            return np.tensordot(weights, self.dense(), axes=1)
        total = np.zeros((self.features, self.features))
        for weight, member in zip(weights, self.members, strict=True):
            total += weight * (self.factors[member] @ self.factors[member].T)
        return total


def checked_weights(weights: Array, clients: int) -> Array:
    """Weights that sum to one, in proportion to those given."""
    require(
        weights.shape == (clients,) and bool((weights > 0).all() and np.isfinite(weights).all()),
        f"There must be one positive weight for each of the {clients} clients, "
        f"not {np.array2string(weights, threshold=6)}; drop clients without weight.",
    )
    return weights / weights.sum()


def second_moment(block: Array) -> Array:
    """S_i = A_i A_i^T / m_i of a block (features x m_i)."""
    gram = block @ block.T / block.shape[1]
    return 0.5 * (gram + gram.T)


def _tall_product(matrix: Array, frame: Array) -> Array:
    """``M X`` for symmetric M, as quickly as BLAS can, which copies M most of its time.

    Where it need not copy, parts of M are up to twice as fast as ``(X^T M)^T``; elsewhere that way
    round is up to 1.7 times as fast as M X.
    """
    if matrix.shape[0] < _TALL:
        return matrix @ frame
    rows = _UNCOPIED // frame.size
    if rows < _ROWS or not copies_nothing():
        return (np.ascontiguousarray(frame.T) @ matrix).T
    product, frame = np.empty(frame.shape), np.ascontiguousarray(frame)
    for first in range(0, len(matrix), rows):
        part = slice(first, first + rows)
        np.matmul(matrix[part], frame, out=product[part])
    return product


def _thin_product(factor: Array, frame: Array) -> Array:
    """``F (F^T X)``, reading each cache-sized slice of F once for both halves."""
    columns = max(1, _CHUNK_BYTES // (8 * factor.shape[0]))
    across = np.ascontiguousarray(frame.T)
    if factor.shape[1] <= columns:
        return ((across @ factor) @ factor.T).T
    total = np.zeros(across.shape)
    for begin in range(0, factor.shape[1], columns):
        part = factor[:, begin : begin + columns]
        total += (across @ part) @ part.T
    return total.T


def _largest_eigenvalue(matrix: Array) -> float:
    """Of a positive semidefinite matrix, by Lanczos iteration where it is large."""
    if len(matrix) <= _DENSE_FEATURES:
        return float(np.linalg.eigvalsh(matrix)[-1])
    return float(_by_lanczos(matrix, "LA", lambda: np.linalg.eigvalsh(matrix))[-1])


def _by_lanczos(
    operator: Any, which: Literal["LM", "LA"], otherwise: Callable[[], AnyArray]
) -> AnyArray:
    """The eigenvalue at an end, or all of them where the iteration finds none."""
    from scipy.sparse.linalg import ArpackError, eigsh

    start = fixed_vector(operator.shape[0])
    try:
        return eigsh(operator, k=1, which=which, v0=start, return_eigenvectors=False)
    except ArpackError:  # no convergence, or a zero matrix
        return otherwise()


def _thin_eigenpairs(factor: Array, components: int) -> tuple[Array, Array]:
    left, singular, _ = np.linalg.svd(factor, full_matrices=False)
    if left.shape[1] < components:
        # A client with fewer samples than components knows only part of a frame; the rest is an
        # arbitrary completion with eigenvalue zero.
        padded = np.concatenate([left, np.eye(factor.shape[0])], axis=1)
        left = np.linalg.qr(padded)[0][:, :components]
        values = np.zeros(components)
        values[: len(singular)] = singular**2
        return values, left
    return singular[:components] ** 2, left[:, :components]


def checked_blocks(blocks: Sequence[Array], *, judged: bool = True) -> list[Array]:
    """Raw client blocks as contiguous float64 arrays.

    Raises InvalidInput: fewer than two clients, an empty client, unequal numbers of features, NaN
    or infinite entries; where ``judged``, which says something of the values, a client whose
    records are all the same, too large or too small, or data that are zero throughout.
    """
    require(
        len(blocks) >= 2,
        f"The number of clients is {len(blocks)}; federated PCA needs at least two blocks "
        "(features x samples).",
    )
    checked: list[Array] = []
    for index, array in enumerate(map(np.asarray, blocks)):
        require(
            array.ndim == 2 and array.dtype.kind in "fiub",
            f"The block of client {index} has shape {array.shape} and type {array.dtype}; "
            "each block must be a numeric matrix of features x samples.",
        )
        require(
            array.shape[1] > 0,
            f"Client {index} is empty (0 samples); leave it out or give it data.",
        )
        features = (checked[0] if checked else array).shape[0]
        require(
            array.shape[0] == features,
            f"Client {index} has {array.shape[0]} features but client 0 has {features}; "
            "all blocks must share the same features (rows).",
        )
        require(features > 0, "The blocks have 0 features; give at least two features (rows).")
        values = np.ascontiguousarray(array, dtype=float)
        bad = int((~np.isfinite(values)).sum())
        require(
            bad == 0,
            f"The block of client {index} holds {bad} missing or infinite "
            f"value{'s' if bad != 1 else ''}; drop or impute them first.",
        )
        checked.append(values)
        if not judged:
            continue
        size = float(np.abs(values).max())
        require(
            size == 0 or SMALLEST <= size <= LARGEST,
            f"The largest value in the block of client {index} is {size:.3g}, whose powers "
            f"{'overflow' if size > 1 else 'vanish'}; change the unit of the data so that values "
            f"lie between {SMALLEST:g} and {LARGEST:g}.",
        )
        require(
            values.shape[1] == 1 or bool((values != values[:, :1]).any()),
            f"The block of client {index} is constant: all its {values.shape[1]} records are the "
            "same; leave the client out or give it data that vary.",
        )
    require(
        not judged or any(bool(block.any()) for block in checked),
        "All values are zero (constant columns vanish after centring), so no direction is "
        "principal; give data that vary.",
    )
    return checked
