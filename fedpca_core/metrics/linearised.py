"""What a run does near the solution, to first order: the dashed lines of convergence charts.

Write a frame close to the limit V of a run as the span of ``V + T`` with ``V^T T = 0``, and keep
what is linear in T. One round then maps the T of the clients and of the server linearly, with
matrices that follow from the S_i that the clients hold (simulation only): with noise at the source
these are the noisy ones, and V is their leading space. Started from the recorded frames of the
round in which a run has come close, this map alone says how every later round goes: the clients may
differ, the penalties and inner steps too.

SSI, and LocalPower once it takes single steps: ``T <- (I - VV^T) S T (V^T S V)^{-1}``.

FAPS: with ``M_i = V^T S_i V``, ``D_i`` the block of S_i outside V, T_i of client i and T of the
server, J_i inner steps ``T_i <- (K_i + D_i T_i) (M_i + beta_i I)^{-1}`` from the T_i of the last
round, with ``K_i = T_i M_i - D_i T_i + beta_i T`` of that round held fixed (first order of
``H = S_i + Lambda_i + beta_i Z Z^T``); the server's T becomes the sum of
``w_i (beta_i T_i + D_i T_i - T_i M_i)`` over the sum of ``w_i beta_i`` (first order of ``Q_i Z``).
In the eigenbases of D_i and M_i every entry obeys a recurrence of its own. For identical clients
the factor of a round is ``1 - (1 - (d/(m + beta))^J) g/(g + beta)`` with the gap ``g = m - d``.
"""

from typing import cast

import numpy as np
import pandas as pd

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.faps.rules import largest_stable_steps
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise, projector_distance, remove_span
from fedpca_core.linalg.threads import one_thread
from fedpca_core.metrics.table import subspace_errors
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace import Trace
from fedpca_core.remembered import Remembered

#: A run is close once every frame is within this projector distance of the solution.
CLOSE = 0.05
#: What every start of FAPS on a problem needs.
_BLOCKS: Remembered[tuple[Array, Array, Array, Array, Array]] = Remembered(1)


def predicted(trace: Trace, problem: Problem) -> pd.DataFrame:
    """Measures of a run from the round in which it has come close, by the linear map alone.

    Holds for SSI, LocalPower after its last round of several steps, and FAPS with the inner rules
    "fixed" and "auto" and the penalties that the run had; every client takes part in every round
    and uploads carry no noise (which a trace does not tell: the caller knows). Clients that hold
    noisy matrices lead to the leading space of these; errors are those to the honest one.

    Columns are as in `fedpca_core.metrics.frame`; the first row is the recorded state, and the last
    where the rounding of messages moves the run as much as a round does.
    """
    algorithm = trace.algorithm
    _check(trace)
    with one_thread(problem.features):
        limit = _limit(problem, algorithm.components)
        first = _first_close(trace, limit)
        through = _faps if algorithm.near == "multipliers" else _power
        tangents, gaps = through(trace, problem, first, limit)
        clear = _above_rounding(tangents, trace.transcript.dtype)
        errors = subspace_errors(orthonormalise(limit + tangents[:clear]), problem)
    rounds = np.arange(first, first + clear)
    return pd.DataFrame({"round": rounds, **errors, "consensus_gap": gaps[:clear]})


def _check(trace: Trace) -> None:
    algorithm, setting = trace.algorithm, trace.setting
    require(
        algorithm.near != "",
        "no linear map of its round is known here; SSI, LocalPower and FAPS have one.",
    )
    present, everyone = setting.participants_per_round, setting.clients
    require(
        present == everyone,
        f"{present} of {everyone} clients take part in a round, drawn anew each time, and a round "
        "has one linear map only if everyone does; set the participation to 1.",
    )
    if algorithm.near == "multipliers":
        faps = cast(FAPS, algorithm)
        require(
            faps.inner_rule in ("fixed", "auto") and not faps.random_inner_steps,
            "each client's inner steps depend on its iterate or on chance, so no linear map holds "
            "for two rounds; choose the inner rule Automatic or Fixed number, and no random steps.",
        )
        require(
            trace.frames is not None,
            "its clients' frames are needed and this run was too large to keep them; choose fewer "
            "rounds, clients, features or components.",
        )


def _above_rounding(tangents: Array, dtype: str) -> int:
    """How many rows come before the first one that a round moves by no more than rounding does.

    Entries are rounded by up to half a unit in the last place, in the broadcast and the uploads.
    """
    steps = np.linalg.norm(np.diff(tangents, axis=0), axis=(1, 2))
    lost = np.flatnonzero(steps <= np.finfo(dtype).eps * np.sqrt(tangents.shape[-1]))
    return int(lost[0]) + 1 if len(lost) else len(tangents)


def _limit(problem: Problem, components: int) -> Array:
    """Where a run goes: the leading space of what the clients hold."""
    if problem.truth is None:
        return problem.target(components)
    values, vectors = np.linalg.eigh(problem.pooled)
    leading = np.argsort(-np.abs(values), kind="stable")[:components]
    return np.ascontiguousarray(vectors[:, leading])


def _first_close(trace: Trace, limit: Array) -> int:
    distances = projector_distance(trace.estimates, limit)
    if trace.frames is not None:
        distances = np.maximum(distances, projector_distance(trace.frames, limit).max(axis=1))
    far = np.flatnonzero(distances > CLOSE)
    first = 1 if not len(far) else int(far[-1]) + 1
    while trace.algorithm.steps(first + 1) > 1:
        first += 1
    require(
        first < trace.rounds,
        f"its {trace.rounds} rounds end before it comes close to where it goes (a projector "
        f"distance of {CLOSE}); allow more rounds.",
    )
    return first


def _tangents(frames: Array, target: Array) -> Array:
    """T with span(V + T) the span of a frame, (..., features, components)."""
    return remove_span(frames, target) @ np.linalg.inv(target.mT @ frames)


def _power(trace: Trace, problem: Problem, first: int, target: Array) -> tuple[Array, Array]:
    """T after every round from ``first`` on, and no gaps: clients keep no frames."""
    pooled = problem.pooled
    inverse = np.linalg.inv(target.mT @ pooled @ target)
    path = [_tangents(trace.estimates[first], target)]
    for _ in range(first, trace.rounds):
        path.append(remove_span(pooled @ path[-1], target) @ inverse)
    return np.stack(path), np.full(len(path), np.nan)


def _faps(trace: Trace, problem: Problem, first: int, target: Array) -> tuple[Array, Array]:
    """T of the server after every round from ``first`` on, and the mean squared gap to it."""
    algorithm = cast(FAPS, trace.algorithm)
    assert trace.frames is not None
    weights = problem.client_data.weights[:, None, None]
    penalties = trace.state("penalty")

    key = problem.digest, algorithm.components
    outer, outside, left, inside, right = _BLOCKS.get(key, lambda: _blocks(problem, target))
    gap = inside[:, None, :] - outside[:, :, None]

    # Everything outside V in the coordinates of ``outer``; a client's own in its eigenbases.
    server = outer.mT @ _tangents(trace.estimates[first], target)
    frames = outer.mT @ _tangents(trace.frames[first], target)
    clients, received = (left.mT @ part @ right for part in (frames, server))
    path, gaps = [server], [_mean_gap(clients, received)]
    used = np.full(len(inside), np.nan)
    beside = np.hstack(list(left))  # all clients' bases side by side
    turned = right.mT
    for round_ in range(first + 1, trace.rounds + 1):
        if not np.array_equal(penalties[round_ - 1], used):
            used = penalties[round_ - 1]
            if algorithm.inner_rule == "auto":
                lowest, highest = inside[:, 0], outside[:, -1]
                steps = largest_stable_steps(highest, lowest, used, algorithm.inner_limit)
            else:
                steps = np.full(len(used), algorithm.inner_steps)
            penalty = used[:, None, None]
            kept, gain = _inner(outside[:, :, None], inside[:, None, :] + penalty, steps)
            own, pulled = kept + gain * gap, gain * penalty
            answer = weights * (penalty - gap) / float((weights * penalty).sum())
        clients = own * clients + pulled * received
        server = beside @ (answer * clients @ turned).reshape(-1, turned.shape[1])
        received = (beside.T @ server).reshape(clients.shape) @ right
        path.append(server)
        gaps.append(_mean_gap(clients, received))
    return outer @ np.stack(path), np.array(gaps)


def _blocks(problem: Problem, target: Array) -> tuple[Array, Array, Array, Array, Array]:
    """A basis outside V, and the eigenvalues and -vectors of every S_i outside and inside V."""
    outer = np.linalg.qr(target, mode="complete")[0][:, target.shape[1] :]
    dense = problem.client_data.dense()
    outside = np.linalg.eigh(outer.mT @ dense @ outer)
    return outer, *outside, *np.linalg.eigh(target.mT @ dense @ target)


def _mean_gap(clients: Array, received: Array) -> float:
    """First order of the mean of ||X_i X_i^T - ZZ^T||_F^2: that of 2 ||T_i - T||_F^2."""
    apart = clients - received
    return 2.0 * float(np.vdot(apart, apart)) / len(clients)


def _inner(outside: Array, total: Array, steps: IntArray) -> tuple[Array, Array]:
    """r^J and (1 + r + ... + r^(J-1))/(m + beta) with r = d/(m + beta), J the client's own."""
    ratio = outside / total
    power, gain = np.ones_like(ratio), np.zeros_like(ratio)
    for step in range(int(steps.max())):
        running = (steps > step)[:, None, None]
        gain = np.where(running, gain + power / total, gain)
        power = np.where(running, power * ratio, power)
    return power, gain
