"""Augmented Lagrangian and progress measure of FedPE and FedPG, read off a finished run.

Everything is replayed from the run's local frames and the averages on the wire: the duals follow
from ``Y_i += penalty (U_i - Z)``, so the algorithms need not store them for display. These readers
use private data: simulation only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.consensus_tools import losses, smooth_gradient
from fedpca_core.algorithms.fedpe import FedPE, excess, surrogate_gradient, surrogate_value
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace import Trace


@dataclass(frozen=True)
class Duals:
    """State after one round: Z, and every client's U_i, Y_i and T_i (stale ones included)."""

    round: int
    consensus: Array
    frames: Array
    duals: Array
    multipliers: Array


def replay(trace: Trace) -> Iterator[Duals]:
    """Replay Z, U_i, Y_i and T_i round by round, the start first.

    Raises
    ------
    InvalidInput
        The run is not one of FedPE or FedPG, or its messages or local frames were not kept.
    """
    algorithm = trace.algorithm
    if not isinstance(algorithm, ConsensusADMM):
        raise InvalidInput(
            f"The augmented Lagrangian belongs to FedPE and FedPG, not to {algorithm.title}; "
            "choose a run of one of these."
        )
    exchanges = trace.transcript.exchanges
    if trace.frames is None or not all(exchange.recorded for exchange in exchanges):
        raise InvalidInput(
            "The augmented Lagrangian needs every round's messages and local frames, but this run "
            "kept only some; run fewer rounds, or record in full."
        )
    require(len(exchanges) > 0, "The run has no rounds yet; run at least one.")
    consensus = exchanges[0].downlink["frame"]
    penalty = float(exchanges[0].downlink["penalty"])
    duals = np.zeros_like(trace.frames[0])
    components = trace.frames.shape[-1]
    multipliers = np.zeros((trace.setting.clients, components, components))
    was_reset = np.zeros(trace.setting.clients, dtype=bool)
    yield Duals(0, consensus, trace.frames[0], duals, multipliers)
    for index, exchange in enumerate(exchanges, start=1):
        assert exchange.feedback is not None
        consensus = exchange.feedback["frame"]
        present = exchange.participants
        duals, multipliers = duals.copy(), multipliers.copy()
        if algorithm.dual_reset and index >= algorithm.dual_reset:
            duals[present[~was_reset[present]]] = 0.0
            was_reset[present] = True
        local = trace.frames[index][present]
        duals[present] += penalty * (local - consensus)
        if isinstance(algorithm, FedPE) and algorithm.surrogate:
            multipliers[present] += penalty * excess(local) ** 2
        yield Duals(index, consensus, trace.frames[index], duals, multipliers)


def approach(trace: Trace, problem: Problem) -> pd.DataFrame:
    """How near each round's estimate is to the centralised answer; for any method.

    Columns
    -------
    round
    excess_loss
        Reconstruction loss per record beyond the centralised one's (simulation only). The measure
        to look at where neighbouring eigenvalues are close: the subspace is then not
        identifiable, but the loss is.
    distance
        ``||sin Theta||_F / sqrt(components)``, in [0, 1].
    """
    components = trace.estimates.shape[-1]
    target = problem.target(components)
    kept = np.einsum(
        "rfc,fg,rgc->r", trace.estimates, problem.covariance, trace.estimates, optimize=True
    )
    best = float(problem.eigenvalues[:components].sum())
    rest = np.linalg.norm(remove_span(trace.estimates, target), axis=(1, 2))
    return pd.DataFrame(
        {
            "round": np.arange(len(trace.estimates)),
            "excess_loss": np.maximum(best - kept, 0.0),
            "distance": rest / np.sqrt(components),
        }
    )


def frame(trace: Trace, problem: Problem, every: int = 1) -> pd.DataFrame:
    """Progress of a FedPE or FedPG run, one row for every ``every``-th round.

    Columns
    -------
    round
    lagrangian
        Augmented Lagrangian over all clients, with f_i multiplied by N w_i.
    consensus, stationarity
        ``sum_i ||U_i - Z||_F^2`` and ``sum_i ||grad_{U_i} L||_F^2`` (projected on the tangent
        space as in the run for FedPG): the two parts of the progress measure P.
    progress
        Their sum; it tends to zero exactly when the run reaches consensus and stationarity.
    loss, excess_loss
        Reconstruction loss per record and what it exceeds the centralised answer by.
    distance
        ``||sin Theta||_F / sqrt(components)`` to the centralised answer, in [0, 1].
    dual_sum, dual_size
        ``||sum_i Y_i||_F`` (0 unless a message was corrupted or Z is "printed"), ``max |Y_i|``.
    departure
        ``||Z^T Z - I||_F``.
    """
    require(every >= 1, f"Rows are kept for every 1st, 2nd, ... round, not {every}.")
    algorithm = trace.algorithm
    client_data = problem.client_data.metered()
    scale = problem.clients * client_data.weights[:, None, None]
    traces = scale[:, 0, 0] * client_data.traces()
    components = trace.estimates.shape[-1]
    target = problem.target(components)
    best = float(problem.eigenvalues[components:].sum())
    rows = []
    for state in replay(trace):
        if state.round % every and state.round != trace.rounds:
            continue
        penalty = float(trace.transcript.exchanges[0].downlink["penalty"])
        gap = state.frames - state.consensus
        products = scale * client_data.apply(state.frames)
        value = losses(traces, products, state.frames).sum()
        value += (state.duals * gap).sum() + 0.5 * penalty * (gap**2).sum()
        slope = smooth_gradient(products, state.frames) + state.duals + penalty * gap
        if isinstance(algorithm, FedPE) and algorithm.surrogate:
            value += surrogate_value(state.frames, state.multipliers, np.array(penalty)).sum()
            slope = slope + surrogate_gradient(state.frames, state.multipliers, np.array(penalty))
        elif isinstance(algorithm, FedPG):
            slope = algorithm.project(state.frames, slope)
        estimate = trace.estimates[state.round]
        residual = remove_span(estimate, target)
        kept = float(np.sum(estimate * (problem.covariance @ estimate)))
        loss = float(problem.eigenvalues.sum()) - kept
        gram = state.consensus.T @ state.consensus
        rows.append(
            {
                "round": state.round,
                "lagrangian": float(value),
                "consensus": float((gap**2).sum()),
                "stationarity": float((slope**2).sum()),
                "progress": float((gap**2).sum() + (slope**2).sum()),
                "loss": loss,
                "excess_loss": max(loss - best, 0.0),
                "distance": float(np.linalg.norm(residual)) / np.sqrt(components),
                "dual_sum": float(np.linalg.norm(state.duals.sum(axis=0))),
                "dual_size": float(np.abs(state.duals).max()),
                "departure": float(np.linalg.norm(gram - np.eye(components))),
            }
        )
    return pd.DataFrame(rows)
