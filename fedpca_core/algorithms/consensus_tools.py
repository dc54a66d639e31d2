"""Pieces that FedPE, FedPG and their readers share: loss, gradient, averages, turns."""

from typing import Any

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import polar, transpose
from fedpca_core.protocol.algorithm import Inbox, ServerState, Setting
from fedpca_core.streams import Streams

#: Why noise on the uploads of either has no epsilon.
REFUSAL = (
    "several local steps multiply Sᵢ without noise, the length of a local step depends on the "
    "client's data, and a dual variable adds all of them up, so noise on the upload meets no "
    "stated sensitivity"
)


def smooth_gradient(products: Array, frames: Array) -> Array:
    """Gradient of f_i at any U: ``-4 SU + 2 SU (U^T U) + 2 U (U^T S U)``.

    ``products``, (..., features, components) float64: ``S_i U``.
    ``frames``, (..., features, components) float64: U, orthonormal or not.
    """
    gram = transpose(frames) @ frames
    return -4.0 * products + 2.0 * products @ gram + 2.0 * frames @ (transpose(frames) @ products)


def losses(traces: Array, products: Array, frames: Array) -> Array:
    """f_i(U) = tr S - 2 tr(U^T S U) + tr(U^T S U U^T U), one value for each client."""
    inner = transpose(frames) @ products
    gram = transpose(frames) @ frames
    return np.asarray(
        traces
        - 2.0 * np.trace(inner, axis1=-2, axis2=-1)
        + np.einsum("...ij,...ji->...", inner, gram)
    )


def average(rule: str, server: ServerState, inbox: Inbox) -> dict[str, Any]:
    """Server state after a round: the new Z by one of the rules of `ConsensusADMM`."""
    state = dict(server)
    if rule == "mean":
        state["frame"] = inbox.mean("frame")
    elif rule == "polar":
        state["frame"] = polar(inbox.individual("frame")).mean(axis=0)
    elif rule == "printed":
        state["frame"] = inbox.mean("shifted")
    else:
        memory = server["memory"].copy()
        memory[inbox.participants] = inbox.individual("shifted")
        state |= {"memory": memory, "frame": memory.mean(axis=0)}
    return state


def in_turn(round_: int, setting: Setting, streams: Streams) -> IntArray:
    """Participants of a round when everybody takes turns along a list shuffled at every pass."""
    size = setting.participants_per_round
    groups = -(-setting.clients // size)
    list_, group = divmod(round_ - 1, groups)
    order = streams.generator("sampling", list_).permutation(setting.clients)
    # The last group of a pass is filled up from the one before it.
    begin = min(group * size, setting.clients - size)
    return np.sort(order[begin : begin + size]).astype(np.int64)
