"""From a simulated run to what its server has, and to what only the simulation knows."""

from typing import Any

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.attack import Deployment
from fedpca_core.errors import check_client
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.trial import Truth


def public_deployment(
    settings: Any, algorithm: Algorithm, features: int, samples: IntArray, **known: Any
) -> Deployment:
    """What the settings of a channel state, without a run; ``known`` besides or instead."""
    public: dict[str, Any] = {
        "participation": settings.participation,
        "sums": settings.secure_aggregation,
        "dtype": settings.dtype,
        "upload_noise": settings.upload_noise,
        "trace": 1.0,
    }
    clients, components = len(samples), algorithm.components
    return Deployment(
        features, clients, components, samples=samples, algorithm=algorithm, **public | known
    )


def deployment_of(
    problem: Problem,
    algorithm: Algorithm,
    settings: Any,
    client: int,
    *,
    rounds: int,
    centring: str = "",
    earlier: Transcript | None = None,
) -> Deployment:
    """What is public of a run; of the problem only what its clients state is read.

    ``problem``: As its clients answer, with noise where there is any.
    ``settings``: Of a page with the channel's parameters (participation, precision, sums, noise).
    ``centring``, {"", "none", "own", "announced", "secret"}: Empty: as the problem has it.
    ``earlier``: Of a run before some records joined.
    """
    facts = problem.unperturbed.announced
    mean = facts is not None and facts.mean is not None
    told = getattr(settings, "mean_known", True)
    return public_deployment(
        settings,
        algorithm,
        problem.features,
        problem.client_data.samples,
        rounds=rounds,
        guarantee=problem.guarantee,
        records=facts,
        grid_known=getattr(settings, "grid_known", True),
        centring=centring or ("none" if not mean else "announced" if told else "secret"),
        mean_paid=problem.source is not None and problem.source.mean is not None,
        trace=stated_trace(problem, client),
        earlier=earlier,
    )


def private_matrix(problem: Problem, client: int) -> Array:
    """The attacked client's true S_i, without noise (simulation only).

    Raises InvalidInput: there is no such client.
    """
    check_client(client, problem.clients, "an attacked client")
    return held_matrix(problem.unperturbed, client)


def held_matrix(problem: Problem, client: int) -> Array:
    """What the client answers with: S_i, or with noise at the source what it released of it."""
    return problem.client_data.only(np.array([client])).dense()[0]


def stated_trace(problem: Problem, client: int) -> float:
    """The trace that the client states: of what it answers with, so that noise covers it too.

    Noise may leave nothing positive of it; then the client states next to nothing.
    """
    held = held_matrix(problem, client)
    return max(float(np.trace(held)), 1e-9 * float(np.linalg.norm(held)))


def subtracted(problem: Problem) -> Array:
    """What was subtracted from every record, (features,) float64, in the units of the blocks."""
    mean = None if problem.announced is None else problem.announced.mean
    return np.zeros(problem.features) if mean is None else np.asarray(mean)


def truth_of(
    problem: Problem,
    client: int,
    components: int,
    *,
    strangers: Array | None = None,
    newcomer: Array | None = None,
) -> Truth:
    """What the simulation knows of a client; records where they are kept and lie on a grid."""
    honest = problem.unperturbed
    held = None if honest.blocks is None else honest.blocks[client]
    on_grid = None if honest.announced is None else held
    return Truth(
        matrix=private_matrix(problem, client),
        components=components,
        records=None if on_grid is None else on_grid + subtracted(honest)[:, None],
        members=held,
        strangers=strangers,
        newcomer=newcomer,
    )
