"""The immutable result of a run; metrics, attacks and charts are its readers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.transcript import Transcript


@dataclass(frozen=True)
class Round:
    """One finished round, as `stream` yields it (round 0 is the start).

    Attributes
    ----------
    index : int
    estimate : (features, components) or (clients, features, components) float64
    bytes_up, bytes_down : int
        Bytes of this round, over all clients.
    local_products : int
        Products with S_i in this round, over all clients.
    seconds : float
        Time of the steps themselves.
    frames : (clients, features, components) float64, or None
        Local frames where the run keeps them (simulation only).
    """

    index: int
    estimate: Array
    bytes_up: int
    bytes_down: int
    local_products: int
    seconds: float
    frames: Array | None = None


@dataclass(frozen=True)
class Trace:
    """A whole run.

    Attributes
    ----------
    algorithm : Algorithm
        Its public parameters.
    setting : Setting
        Public facts of the run.
    seed : int
    estimates : (rounds + 1, features, components) float64
        Row 0 is the start. Personal models have a client axis after the first.
    local_frames : tuple of (clients, features, components) float64, or None
        Local frames after each round, kept below a size limit (simulation only).
    bytes_up, bytes_down, local_products : (rounds + 1,) int64
        Cumulative over rounds and clients.
    seconds : (rounds + 1,) float64
        Cumulative time of the steps.
    transcript : Transcript
        What the server saw.
    """

    algorithm: Algorithm
    setting: Setting
    seed: int
    estimates: Array
    local_frames: tuple[Array, ...] | None
    bytes_up: IntArray
    bytes_down: IntArray
    local_products: IntArray
    seconds: Array
    transcript: Transcript

    @cached_property
    def frames(self) -> Array | None:
        """Local frames as one array, (rounds + 1, clients, features, components), or None."""
        return None if self.local_frames is None else np.stack(self.local_frames)

    @property
    def rounds(self) -> int:
        """Rounds that were run."""
        return len(self.estimates) - 1

    @property
    def estimate(self) -> Array:
        """The last estimate."""
        return self.estimates[-1]
