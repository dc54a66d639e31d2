"""Augmented Lagrangian and progress measure of FedPE and FedPG, read off a finished run.

U_i, Y_i and T_i are the client state that the algorithm exposes, Z is the average on the wire.
These readers use private data: simulation only.
"""

from typing import cast

import numpy as np
import pandas as pd

from fedpca_core.algorithms.admm import ConsensusADMM, smooth_gradient
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace import Trace


def approach(trace: Trace, problem: Problem) -> pd.DataFrame:
    """How near each round's estimate is to the centralised answer; for any method.

    ``loss``, ``excess_loss``: Reconstruction loss per record, and that beyond the centralised one's
        (simulation only). Look at it where neighbouring eigenvalues are close: the subspace is then
        not identifiable, but the loss is.
    ``distance``: ``||sin Theta||_F / sqrt(components)``, in [0, 1].
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
            "loss": float(problem.eigenvalues.sum()) - kept,
            "excess_loss": np.maximum(best - kept, 0.0),
            "distance": rest / np.sqrt(components),
        }
    )


def frame(trace: Trace, problem: Problem, every: int = 1) -> pd.DataFrame:
    """Progress of a FedPE or FedPG run, one row for every ``every``-th round, with its `approach`.

    ``lagrangian``: Augmented Lagrangian over all clients, with f_i multiplied by N w_i.
    ``consensus``, ``stationarity``: ``sum_i ||U_i - Z||_F^2`` and ``sum_i ||grad_{U_i} L||_F^2``
        (projected on the tangent space as in the run for FedPG): the two parts of the progress
        measure P.
    ``progress``: Their sum; zero exactly when the run reaches consensus and stationarity.
    ``dual_sum``, ``dual_size``: ``||sum_i Y_i||_F`` (0 unless a message was corrupted or Z is
        "printed"), ``max |Y_i|``.
    ``departure``: ``||Z^T Z - I||_F``.
    """
    require(every >= 1, f"Rows are kept for every 1st, 2nd, ... round, not {every}.")
    exchanges = trace.transcript.exchanges
    require(
        "dual" in trace.kept_states()[0],
        f"The augmented Lagrangian belongs to FedPE and FedPG, not to {trace.algorithm.title}; "
        "choose a run of one of these.",
    )
    require(
        all(exchange.recorded for exchange in exchanges),
        "The augmented Lagrangian needs every round's messages, but this run kept only some; "
        "run fewer rounds, or record in full.",
    )
    require(len(exchanges) > 0, "The run has no rounds yet; run at least one.")
    algorithm = cast(ConsensusADMM, trace.algorithm.unwrapped)
    client_data = algorithm.seen(problem.client_data.metered())
    scale = problem.clients * client_data.weights[:, None, None]
    traces = scale[:, 0, 0] * client_data.traces()
    components = trace.estimates.shape[-1]
    penalty = float(exchanges[0].downlink["penalty"])
    rows = []
    for round_, state in enumerate(trace.kept_states()):
        if round_ % every and round_ != trace.rounds:
            continue
        averages = exchanges[round_ - 1].feedback if round_ else exchanges[0].downlink
        assert averages is not None  # recorded
        consensus, frames = averages["frame"], state["frame"]
        gap = frames - consensus
        products = scale * client_data.apply(frames)
        value = losses(traces, products, frames).sum()
        value += (state["dual"] * gap).sum() + 0.5 * penalty * (gap**2).sum()
        more, pull = algorithm.constraint(state, penalty)
        value += more.sum()
        slope = smooth_gradient(products, frames) + state["dual"] + penalty * gap + pull
        slope = algorithm.project(frames, slope)
        rows.append(
            {
                "round": round_,
                "lagrangian": float(value),
                "consensus": float((gap**2).sum()),
                "stationarity": float((slope**2).sum()),
                "progress": float((gap**2).sum() + (slope**2).sum()),
                "dual_sum": float(np.linalg.norm(state["dual"].sum(axis=0))),
                "dual_size": float(np.abs(state["dual"]).max()),
                "departure": float(np.linalg.norm(consensus.T @ consensus - np.eye(components))),
            }
        )
    return pd.DataFrame(rows).merge(approach(trace, problem), on="round")


def losses(traces: Array, products: Array, frames: Array) -> Array:
    """f_i(U) = tr S - 2 tr(U^T S U) + tr(U^T S U U^T U), one value for each client."""
    inner = frames.mT @ products
    return np.asarray(
        traces
        - 2.0 * np.trace(inner, axis1=-2, axis2=-1)
        + np.einsum("...ij,...ji->...", inner, frames.mT @ frames)
    )
