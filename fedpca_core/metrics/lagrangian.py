"""Augmented Lagrangian of a finished FAPS run (uses private data: simulation only).

The multipliers follow from the local frames in closed form and the penalties from the public rule,
so FAPS stores nothing for display.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.faps.inner import multiplier
from fedpca_core.algorithms.faps.penalty import CEILING, adapt
from fedpca_core.arrays import Array, put, take
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import projector_distance, transpose
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams


def augmented_lagrangian(trace: Trace, problem: Problem) -> Array:
    """Value after every round, row 0 being the start; (rounds + 1,).

    The sum over clients of ``w_i`` times ``-tr(X_i^T S_i X_i)/2 - <Lambda_i, X_i X_i^T - Z Z^T>/2
    + beta_i ||X_i X_i^T - Z Z^T||_F^2 / 4`` (FAPS, section 3), with Z the server's estimate of that
    round and beta_i the penalty of the round that follows.

    Raises
    ------
    InvalidInput
        The run is not one of FAPS, or its messages or local frames were not kept.
    """
    path = penalties(trace, problem)
    assert trace.frames is not None
    client_data = problem.client_data.metered()
    values = np.empty(len(path))
    for row, (frames, estimate, penalty) in enumerate(
        zip(trace.frames, trace.estimates, path, strict=True)
    ):
        products = client_data.apply(frames)
        weight = multiplier(frames, products)
        # <Lambda, X X^T> vanishes because W_i is orthogonal to X_i.
        along, across = transpose(frames) @ estimate, transpose(weight) @ estimate
        local = -0.5 * (frames * products).sum(axis=(1, 2)) + (along * across).sum(axis=(1, 2))
        gap = projector_distance(frames, estimate)
        values[row] = float(client_data.weights @ (local + 0.25 * penalty * gap**2))
    return values


def penalties(trace: Trace, problem: Problem) -> Array:
    """beta_i at the start and after every round, (rounds + 1, clients).

    Raises
    ------
    InvalidInput
        As for `augmented_lagrangian`.
    """
    algorithm = trace.algorithm
    if not isinstance(algorithm, FAPS):
        raise InvalidInput(
            f"Penalties and multipliers of this kind belong to FAPS, not to {algorithm.title}; "
            "choose a run of FAPS."
        )
    exchanges = trace.transcript.exchanges
    if trace.frames is None or not all(exchange.recorded for exchange in exchanges):
        raise InvalidInput(
            "The augmented Lagrangian needs every round's messages and local frames, but this run "
            "kept only some; run fewer rounds, or record in full."
        )
    norms = problem.client_data.spectral_norms()
    first = algorithm.first_penalties(norms, Streams(trace.seed))
    nothing = np.zeros(len(norms))
    state = {
        "penalty": first,
        "ceiling": np.maximum(CEILING * norms, first),
        "gap": nothing,
        "rounds": nothing,
    }
    path = [first]
    for exchange, frames in zip(exchanges, trace.frames[1:], strict=True):
        present = take(state, exchange.participants)
        present["rounds"] = present["rounds"] + 1
        if algorithm.adaptive:
            adapt(present, frames[exchange.participants], exchange.downlink["frame"])
        state = put(state, exchange.participants, present)
        path.append(state["penalty"])
    return np.stack(path)
