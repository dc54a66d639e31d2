"""What the server reads off FedPE and FedPG, whose uploads are models and not products with S_i.

Three steps, each from the transcript and the public parameters alone. Keeping Y_i on the device
hides nothing: it starts at zero and follows from the messages. At the limit
``Y_i = -grad f_i(Z)``, which gives the part of ``S_i Z`` outside the span of Z. And every
participation is a run of known code on an unknown matrix, so the whole of S_i follows from a few
of them by fitting.
"""

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.linear_system import check_took_part
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import polar, remove_span
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.transcript import Transcript

#: Entries of the candidate matrices held at once while fitting.
_ENTRIES = 40_000_000
#: Steps of a fit at most.
_ITERATIONS = 100


@dataclass(frozen=True)
class Participation:
    """One local run of a client, as the server can replay it."""

    round: int
    #: begin, end: (features, components) float64: Local frame before and after the local steps.
    begin: Array
    end: Array
    #: (features, components) float64: Z that the client was sent.
    consensus: Array
    #: dual, multiplier: (features, components), (components, components) float64: Y_i and T_i
    #: during the local steps.
    dual: Array
    multiplier: Array
    #: dual_after, average: (features, components) float64: Y_i and Z after the round.
    dual_after: Array
    average: Array
    penalty: float


def participations(
    transcript: Transcript, algorithm: Algorithm, client: int = 0
) -> list[Participation]:
    """Replay a client's Y_i and T_i from its uploads.

    Raises InvalidInput: another method; unknown client; uploads hidden by secure aggregation or not
    recorded.
    """
    require(
        algorithm.public_duals,
        f"This attack replays the duals of FedPE and FedPG, but {algorithm.title} has none; "
        "choose an attack made for this method.",
    )
    method = cast(ConsensusADMM, algorithm)
    seen = transcript.seen(client)
    check_took_part(transcript, client)
    frame = method.first_local(transcript.exchanges[0].downlink["frame"])
    dual = np.zeros_like(frame)
    multiplier = np.zeros((frame.shape[1], frame.shape[1]))
    was_reset = False
    result = []
    for exchange, row in seen:
        assert exchange.uploads is not None and exchange.feedback is not None
        penalty = float(exchange.downlink["penalty"])
        if method.dual_reset and exchange.round >= method.dual_reset and not was_reset:
            dual, was_reset = np.zeros_like(dual), True
        consensus = exchange.downlink["frame"]
        begin = polar(consensus) if method.local_start == "consensus" else frame
        if "shifted" in exchange.uploads:
            frame = exchange.uploads["shifted"][row] - dual / penalty
        else:
            frame = exchange.uploads["frame"][row]
        state = {
            "frame": frame[None],
            "dual": dual[None],
            "multiplier": multiplier[None],
            "penalty": np.array([penalty]),
        }
        after = method.dual_step(state, exchange.feedback["frame"])
        result.append(
            Participation(
                round=exchange.round,
                begin=begin,
                end=frame,
                consensus=consensus,
                dual=dual,
                multiplier=multiplier,
                dual_after=after["dual"][0],
                average=exchange.feedback["frame"],
                penalty=penalty,
            )
        )
        dual, multiplier = after["dual"][0], after["multiplier"][0]
    return result


def outside_path(
    transcript: Transcript, algorithm: Algorithm, client: int = 0
) -> list[tuple[int, Array, Array]]:
    """``(I - ZZ^T) S_i Z`` of one client, read off the average after each participation.

    At the limit ``Y_i = -grad f_i(Z) = 2 (I - ZZ^T) S_i Z``. The block ``Z^T S_i Z`` is invisible
    at that point. Exact at convergence; before it, as good as the consensus.

    Returns list of (round, (features, components) float64, (features, components) float64): the
    round, the polar factor of Z, and the product in its basis.
    """
    # The algorithms multiply f_i by N w_i (public), so that plain means have the right target.
    scale = transcript.clients * float(transcript.weights[client])
    path = []
    for run in participations(transcript, algorithm, client):
        consensus = polar(run.average)
        path.append((run.round, consensus, remove_span(run.dual_after, consensus) / (2.0 * scale)))
    return path


class Fitted(NamedTuple):
    """A matrix that was fitted to messages."""

    #: (features, features) float64, symmetric.
    matrix: Array
    #: Standard error of an entry, from what the fit leaves.
    error: float


def fit_runs(transcript: Transcript, algorithm: Algorithm, client: int = 0) -> Fitted:
    """All of S_i: the matrix whose replayed local runs land on the uploaded frames.

    Levenberg-Marquardt on the features (features + 1)/2 entries; every participation adds
    features x components equations. The step a client takes depends on its largest eigenvalue, so
    even the multiple of the identity that a run on the manifold hides otherwise is found.

    Raises InvalidInput: as `participations`; more features than fit in memory.
    """
    runs = participations(transcript, algorithm, client)
    method = cast(ConsensusADMM, algorithm)
    features = transcript.features
    rows, columns = np.tril_indices(features)
    unknowns = len(rows)
    require(
        (unknowns + 1) * len(runs) * features**2 <= _ENTRIES,
        f"Fitting {unknowns:,} unknowns to {len(runs)} participations needs more memory than is "
        "set aside; read fewer rounds or choose fewer features.",
    )
    fit = _Fit(method, runs, rows, columns)
    size = runs[0].penalty / method.penalty_factor  # the clients' mean largest eigenvalue
    start = 0.05 * size * np.eye(features)
    scale = transcript.clients * float(transcript.weights[client])
    best = start[rows, columns]
    damping, (error, slope) = 1e-2, fit.linearise(best)
    for _ in range(_ITERATIONS):
        normal = slope.T @ slope
        lifted = normal + damping * np.diag(np.diagonal(normal) + 1e-12 * np.trace(normal))
        step = np.linalg.lstsq(lifted, -slope.T @ error, rcond=None)[0]
        candidate = best + step
        if np.linalg.norm(fit.residual(candidate[None])[0]) < np.linalg.norm(error):
            best, damping = candidate, max(damping / 5.0, 1e-15)
            error, slope = fit.linearise(best)
            if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(best):
                break
        else:
            damping *= 4.0
            if damping > 1e8:
                break
    # As for any least squares, with what is left as noise.
    free = max(len(error) - unknowns, 1)
    spread = np.linalg.pinv(slope.T @ slope, hermitian=True).diagonal()
    left = float(np.linalg.norm(error)) / np.sqrt(free)
    off = left * float(np.sqrt(max(float(spread.mean()), 0.0)))
    return Fitted(fit.matrices(best[None])[0] / scale, off / scale)


class _Fit:
    """Residuals of candidate matrices, all candidates and participations in one batch."""

    def __init__(
        self, algorithm: ConsensusADMM, runs: list[Participation], rows: IntArray, columns: IntArray
    ) -> None:
        self.algorithm = algorithm
        self.rows, self.columns = rows, columns
        self.features = runs[0].begin.shape[0]
        self.begin = np.stack([run.begin for run in runs])
        self.end = np.stack([run.end for run in runs])
        self.consensus = np.stack([run.consensus for run in runs])
        self.dual = np.stack([run.dual for run in runs])
        self.multiplier = np.stack([run.multiplier for run in runs])
        self.penalty = np.array([run.penalty for run in runs])

    def matrices(self, entries: Array) -> Array:
        """Symmetric matrices from their lower triangles, (candidates, features, features)."""
        result = np.zeros((len(entries), self.features, self.features))
        result[:, self.rows, self.columns] = entries
        result[:, self.columns, self.rows] = entries
        return result

    def residual(self, entries: Array) -> Array:
        """Landing points minus uploads, (candidates, equations)."""
        count, runs = len(entries), len(self.begin)
        matrices = self.matrices(entries)
        clients = {
            "frame": np.tile(self.begin, (count, 1, 1)),
            "dual": np.tile(self.dual, (count, 1, 1)),
            "multiplier": np.tile(self.multiplier, (count, 1, 1)),
            "scale": np.ones(count * runs),
            "norm": np.repeat(np.linalg.eigvalsh(matrices)[:, -1], runs),
            "penalty": np.tile(self.penalty, count),
        }
        # The client's code is public, so the server can run it on any matrix.
        data = ClientData.from_grams(
            np.repeat(matrices, runs, axis=0), np.ones(count * runs, dtype=np.int64)
        )
        landed = self.algorithm.descend(data, clients, np.tile(self.consensus, (count, 1, 1)))
        ended = np.tile(self.end, (count, 1, 1))
        return np.asarray((landed - ended).reshape(count, -1))

    def linearise(self, entries: Array) -> tuple[Array, Array]:
        """Residual and its Jacobian by central differences."""
        width = 1e-6 * max(float(np.abs(entries).max()), 1e-12)
        shifts = width * np.eye(len(entries))
        ahead, behind = self.residual(entries + shifts), self.residual(entries - shifts)
        return self.residual(entries[None])[0], ((ahead - behind) / (2.0 * width)).T
