"""What the server reads off FedPE and FedPG, whose uploads are models and not products with S_i.

Keeping Y_i on the device hides nothing: it starts at zero and follows from the messages. At the
limit ``Y_i = -grad f_i(Z)``, which gives the part of ``S_i Z`` outside the span of Z. And every
participation is a run of known code on an unknown matrix, so all of S_i follows from a few of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.arrays import Array, Arrays
from fedpca_core.attacks.attack import Solved, mirrored
from fedpca_core.attacks.linear import check_took_part
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
    #: (features, components) float64: Z that the client was sent.
    consensus: Array
    #: The client's state before the local steps, without a client axis: U_i, Y_i, T_i and penalty.
    before: Arrays
    #: end, dual_after, average: (features, components) float64: U_i, Y_i and Z after the round.
    end: Array
    dual_after: Array
    average: Array


def participations(
    transcript: Transcript, algorithm: Algorithm, client: int = 0
) -> list[Participation]:
    """Replay a client's Y_i and T_i from its uploads, where `Transcript.seen` shows them."""
    require(
        algorithm.public_duals,
        f"This attack replays the duals of FedPE and FedPG, but {algorithm.title} has none; "
        "choose an attack made for this method.",
    )
    method = cast(ConsensusADMM, algorithm)
    check_took_part(transcript, client)
    frame = method.first_local(transcript.exchanges[0].downlink["frame"])
    dual = np.zeros_like(frame)
    multiplier = np.zeros((frame.shape[1], frame.shape[1]))
    was_reset = False
    result = []
    for exchange, row in transcript.seen(client):
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
        before = {"dual": dual, "multiplier": multiplier, "penalty": np.array(penalty)}
        landed = {name: part[None] for name, part in before.items()} | {"frame": frame[None]}
        average = exchange.feedback["frame"]
        after = method.dual_step(landed, average)
        dual, multiplier = after["dual"][0], after["multiplier"][0]
        before["frame"] = begin
        result.append(Participation(exchange.round, consensus, before, frame, dual, average))
    return result


def outside_path(
    transcript: Transcript, algorithm: Algorithm, client: int = 0
) -> list[tuple[int, Array, Array]]:
    """``(I - ZZ^T) S_i Z`` of one client, read off the average after each participation.

    At the limit ``Y_i = -grad f_i(Z) = 2 (I - ZZ^T) S_i Z``. The block ``Z^T S_i Z`` is invisible
    at that point. Exact at convergence; before it, as good as the consensus.

    Returns the round, the polar factor of Z, and the product in its basis, (features, components)
    each.
    """
    # The algorithms multiply f_i by N w_i (public), so that plain means have the right target.
    scale = transcript.clients * float(transcript.weights[client])
    path = []
    for run in participations(transcript, algorithm, client):
        consensus = polar(run.average)
        path.append((run.round, consensus, remove_span(run.dual_after, consensus) / (2.0 * scale)))
    return path


def fit_runs(transcript: Transcript, algorithm: Algorithm, client: int = 0) -> Solved:
    """All of S_i: the matrix whose replayed local runs land on the uploaded frames.

    Levenberg-Marquardt on the features (features + 1)/2 entries; every participation adds
    features x components equations. The step a client takes depends on its largest eigenvalue, so
    even the multiple of the identity that a run on the manifold hides otherwise is found.

    Raises InvalidInput: as `participations`; more features than fit in memory.
    """
    runs = participations(transcript, algorithm, client)
    method = cast(ConsensusADMM, algorithm)
    features = transcript.features
    lower = np.tril_indices(features)
    unknowns = len(lower[0])
    require(
        (unknowns + 1) * len(runs) * features**2 <= _ENTRIES,
        f"Fitting {unknowns:,} unknowns to {len(runs)} participations needs more memory than is "
        "set aside; read fewer rounds or choose fewer features.",
    )

    def residual(entries: Array) -> Array:
        return _missed(method, runs, mirrored(entries, features, lower))

    def linearise(entries: Array) -> tuple[Array, Array]:
        """Residual and its Jacobian by central differences."""
        width = 1e-6 * max(float(np.abs(entries).max()), 1e-12)
        shifts = width * np.eye(unknowns)
        ahead, behind = residual(entries + shifts), residual(entries - shifts)
        return residual(entries[None])[0], ((ahead - behind) / (2.0 * width)).T

    # The clients' mean largest eigenvalue.
    size = float(runs[0].before["penalty"]) / method.penalty_factor
    scale = transcript.clients * float(transcript.weights[client])
    best = (0.05 * size * np.eye(features))[lower]
    damping, (error, slope) = 1e-2, linearise(best)
    for _ in range(_ITERATIONS):
        normal = slope.T @ slope
        lifted = normal + damping * np.diag(np.diagonal(normal) + 1e-12 * np.trace(normal))
        step = np.linalg.lstsq(lifted, -slope.T @ error, rcond=None)[0]
        candidate = best + step
        if np.linalg.norm(residual(candidate[None])[0]) < np.linalg.norm(error):
            best, damping = candidate, max(damping / 5.0, 1e-15)
            error, slope = linearise(best)
            if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(best):
                break
        else:
            damping *= 4.0
            if damping > 1e8:
                break
    # As for any least squares, with what is left as noise.
    spread = np.linalg.pinv(slope.T @ slope, hermitian=True).diagonal()
    left = float(np.linalg.norm(error)) / np.sqrt(max(len(error) - unknowns, 1))
    off = left * float(np.sqrt(max(float(spread.mean()), 0.0)))
    size = float(np.linalg.norm([run.end for run in runs]))
    matrix = mirrored(best, features, lower) / scale
    return Solved(matrix, float(np.linalg.norm(error)) / size, off / scale)


def _missed(algorithm: ConsensusADMM, runs: Sequence[Participation], matrices: Array) -> Array:
    """Landing points minus uploads of candidates, in one batch, (candidates, equations)."""
    count, each = len(matrices), len(runs)
    before = {name: np.stack([run.before[name] for run in runs]) for name in runs[0].before}
    clients = {name: np.concatenate([part] * count) for name, part in before.items()}
    clients["scale"] = np.ones(count * each)
    clients["norm"] = np.repeat(np.linalg.eigvalsh(matrices)[:, -1], each)
    # The client's code is public, so the server can run it on any matrix.
    data = ClientData.from_grams(
        np.repeat(matrices, each, axis=0), np.ones(count * each, dtype=np.int64)
    )
    landed = algorithm.descend(data, clients, np.stack([run.consensus for run in runs] * count))
    ends = np.stack([run.end for run in runs])
    return np.asarray((landed.reshape(count, *ends.shape) - ends).reshape(count, -1))
