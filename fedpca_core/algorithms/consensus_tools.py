"""Pieces that FedPE, FedPG and their readers share: loss, gradient, turns."""

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import transpose
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.streams import Streams

#: Why noise on the uploads of either has no epsilon.
REFUSAL = (
    "several local steps multiply Sᵢ without noise, the length of a local step depends on the "
    "client's data, and a dual variable adds all of them up, so noise on the upload meets no "
    "stated sensitivity"
)


def smooth_gradient(products: Array, frames: Array) -> Array:
    """Gradient of f_i at any U: ``-4 SU + 2 SU (U^T U) + 2 U (U^T S U)``, with ``products`` SU."""
    gram = transpose(frames) @ frames
    return -4.0 * products + 2.0 * products @ gram + 2.0 * frames @ (transpose(frames) @ products)


def losses(traces: Array, products: Array, frames: Array) -> Array:
    """f_i(U) = tr S - 2 tr(U^T S U) + tr(U^T S U U^T U), one value for each client."""
    inner = transpose(frames) @ products
    return np.asarray(
        traces
        - 2.0 * np.trace(inner, axis1=-2, axis2=-1)
        + np.einsum("...ij,...ji->...", inner, transpose(frames) @ frames)
    )


def in_turn(round_: int, setting: Setting, streams: Streams) -> IntArray:
    """Participants of a round when everybody takes turns along a list shuffled at every pass."""
    size = setting.participants_per_round
    list_, group = divmod(round_ - 1, -(-setting.clients // size))
    order = streams.generator("sampling", list_).permutation(setting.clients)
    # The last group of a pass is filled up from the one before it.
    begin = min(group * size, setting.clients - size)
    return np.sort(order[begin : begin + size]).astype(np.int64)
