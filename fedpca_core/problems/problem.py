"""A problem: private data of client data plus the truth that only a simulation knows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require, require_whole
from fedpca_core.problems.client_data import ClientData, checked_blocks


@dataclass(frozen=True, eq=False)
class Problem:
    """Federated PCA problem: clients' blocks, one target, and what the simulation knows of it.

    Attributes
    ----------
    name : str
        Short name for legends and file names.
    client_data : ClientData
        The private data behind products with S_i.
    blocks : tuple of (features, m_i) float64, or None
        The raw private blocks where they are small enough to keep (simulation only: used to show
        what an attack recovered, and for scores on records).
    image_shape : (rows, columns) or None
        Set when the features are the pixels of a grey image.
    client_names, feature_names : tuple of str
        Labels for tables and tooltips; may be empty.
    note : str
        One sentence on how the data were made, split or cleaned.
    record_norm : float or None
        Upper bound on the Euclidean norm of every record, where the generator guarantees one.
    spectrum : (features,) float64, or None
        Set by generators that make S exactly diagonal: its diagonal, largest first. The truth is
        then known without decomposing anything.
    """

    name: str
    client_data: ClientData
    blocks: tuple[Array, ...] | None = None
    image_shape: tuple[int, int] | None = None
    client_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    note: str = ""
    record_norm: float | None = None
    spectrum: Array | None = None

    @property
    def features(self) -> int:
        """Number of features (rows of every block)."""
        return self.client_data.features

    @property
    def clients(self) -> int:
        """Number of clients."""
        return self.client_data.clients

    @cached_property
    def covariance(self) -> Array:
        """S = sum_i w_i S_i, (features, features): the matrix whose leading space is sought."""
        return self.client_data.mean() if self.spectrum is None else np.diag(self.spectrum)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
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
        return float(self.client_data.gaps(self.covariance).max()) / float(self.eigenvalues[0])

    @cached_property
    def digest(self) -> str:
        """Short hash of the data, for cache keys and to recognise a problem in a log."""
        state = hashlib.sha256(
            self.client_data.samples.tobytes() + self.client_data.weights.tobytes()
        )
        held = (
            self.client_data.factors
            if self.client_data.grams is None
            else (self.client_data.grams,)
        )
        for array in held or ():
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()[:16]


def check_components(components: int, features: int) -> None:
    """Refuse a number of components that does not fit the features."""
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
    image_shape: tuple[int, int] | None = None,
    client_names: Sequence[str] = (),
    feature_names: Sequence[str] = (),
    note: str = "",
) -> Problem:
    """Problem from the clients' own blocks.

    Parameters
    ----------
    blocks : sequence of (features, m_i) arrays
        One block for each client; columns are records. Nothing is centred or scaled here.
    weights : {"records", "equal"} or sequence of float
        How clients count in the target S = sum_i w_i S_i: by their share of records (the pooled
        covariance) or each the same.

    Raises
    ------
    InvalidInput
        Empty or non-finite blocks, unequal features, all zero.
    """
    checked = checked_blocks(blocks)
    share = client_weights(weights, len(checked))
    client_data = ClientData.from_blocks(checked, share)
    return Problem(
        name=name,
        client_data=client_data,
        blocks=tuple(checked),
        image_shape=image_shape,
        client_names=tuple(client_names),
        feature_names=tuple(feature_names),
        note=note,
    )


def without_record(problem: Problem, client: int, record: int) -> Problem:
    """The same problem before one record of one client was there.

    Centring and scaling stay as they are: they were agreed on before.

    Raises
    ------
    InvalidInput
        A problem whose records are not kept, or one without that client or record.
    """
    if problem.blocks is None:
        raise InvalidInput(
            "The records of this problem are not kept, so none can be left out; choose a smaller "
            "problem."
        )
    require(
        0 <= client < problem.clients,
        f"There is no client {client} among {problem.clients}; "
        f"choose one from 0 to {problem.clients - 1}.",
    )
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
    return from_blocks(
        blocks,
        weights="records" if by_records else [float(weight) for weight in share],
        name=problem.name,
        image_shape=problem.image_shape,
        client_names=problem.client_names,
        feature_names=problem.feature_names,
        note=problem.note,
    )


def client_weights(weights: str | Sequence[float], clients: int) -> Array | None:
    """The weights a caller asked for; None stands for the share of records."""
    if isinstance(weights, str):
        require(
            weights in ("records", "equal"),
            f"Weights must be 'records' or 'equal' (or one number a client), not {weights!r}.",
        )
        return None if weights == "records" else np.full(clients, 1.0 / clients)
    share = np.asarray(weights, dtype=float)
    require(
        share.shape == (clients,) and bool((share > 0).all()) and bool(np.isfinite(share).all()),
        f"There must be one positive weight for each of the {clients} clients, "
        f"not {np.array2string(share, threshold=6)}.",
    )
    return share / share.sum()
