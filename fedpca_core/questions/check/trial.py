"""A deployment run on stand-in records, and attacked by everything that fits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import Effort
from fedpca_core.attacks.belief import Belief
from fedpca_core.attacks.deployment import Deployment
from fedpca_core.attacks.registry import ON_MATRICES
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import in_words
from fedpca_core.problems import Problem, without_record
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.perturbation import Budget, source_guarantee
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.stand_in import drawn
from fedpca_core.questions.which.runs import attempt, made
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.streams import Streams
from fedpca_core.study.build import build_algorithm
from fedpca_core.study.deployed import held_matrix, public_deployment, truth_of
from fedpca_core.trial import Trial, Truth, compared

#: What an ε of these runs takes as public.
PUBLIC = ("the mean that is subtracted", "the clip norm, though it is read off the random sets")
#: Sizes up to which a deployment is run here.
FEATURES, CLIENTS, RECORDS, ROUNDS = 40, 40, 20_000, 200
#: Work for one lattice: a second or two; and the longest search, since several draws are attacked.
EFFORT = Effort(work=5e8, longest=8.0)
#: What was subtracted, as the attacks name it.
CENTRINGS = {"none": "none", "own": "own", "pooled": "announced", "secret": "secret"}


@dataclass(frozen=True)
class Attacked:
    """What came of one draw."""

    trial: Trial
    #: How far off the deployment's own answer is.
    sine: float
    bytes_client: float


def runnable(settings: CheckSettings) -> bool:
    """Whether a deployment of this size is run here."""
    c = settings
    small = c.features <= FEATURES and c.clients <= CLIENTS and c.samples <= RECORDS
    fits = c.features * c.clients * c.samples <= 2_000_000 and c.components < c.features
    return small and fits and c.rounds <= ROUNDS


def run_settings(settings: CheckSettings) -> FrontierSettings:
    """The same channel and method as settings of a run."""
    there = settings.carried(FrontierSettings)
    return replace(there, candidates=(settings.method,), vary="none", seeds=1)


def meant(settings: CheckSettings) -> str:
    """What every ε of these runs means: it never stands alone."""
    return in_words(
        settings.delta, "the largest norm of the median client in the random sets", PUBLIC
    )


def stated(settings: CheckSettings) -> Deployment:
    """What counting alone has to go by: the deployment without a run."""
    c = settings
    samples = np.full(c.clients, c.samples)
    mean = np.zeros(c.features) if c.centring in ("pooled", "secret") else None
    codes = np.tile([0.0, 1.0], (c.features, 1)) if c.values == "codes" else None
    on_grid = PublicFacts(np.ones(c.features), mean, c.clients * c.samples, bounds=codes)
    guarantee = None
    if c.formal:  # its meaning does not hang on the norm at which records are clipped
        budget = Budget(c.epsilon, c.delta, 1.0)
        guarantee = source_guarantee(samples, samples / samples.sum(), budget)[1]
    return public_deployment(
        c,
        build_algorithm(c.method, run_settings(c)),
        c.features,
        samples,
        rounds=c.rounds,
        guarantee=guarantee,
        records=None if c.values == "real" else on_grid,
        centring=CENTRINGS[c.centring],
    )


def attacked(settings: CheckSettings, seed: int) -> Attacked:
    """Run the deployment on records drawn from ``seed`` and attack it.

    Raises InvalidInput: the method does not run on this channel.
    """
    honest, strangers = drawn(settings, seed)
    there = replace(run_settings(settings), seed=seed % 100_000)
    # Under an ε records are clipped at the longest of the median client.
    clip = float(np.median([np.linalg.norm(one, axis=0).max() for one in honest.blocks or ()]))
    problem = honest
    if settings.formal:
        problem = replace(honest, own_mean=None, public=PUBLIC).private(
            settings.epsilon, settings.delta, clip, Streams(seed)
        )
    run = made(settings.method, there, problem, settings.rounds)
    assert honest.blocks is not None
    record = honest.blocks[there.client][:, 0] if settings.repeats else None
    truth = truth_of(problem, there.client, there.components, strangers=strangers, newcomer=record)
    earlier = _before(settings, there, honest, clip) if settings.repeats else None
    centring, rounds = CENTRINGS[settings.centring], run.trace.rounds

    def tried(unmask: bool) -> Trial:
        known: Any = {"earlier": earlier, "centring": centring, "truth": truth}
        return attempt(run, there, rounds, replace(EFFORT, unmask=unmask), **known)

    found = tried(not settings.formal)
    if settings.formal:
        found = _granted(found, held_matrix(problem, there.client), truth) or tried(True)
    last = run.table.iloc[-1]
    wire = float(last["bytes_up"] + last["bytes_down"]) / problem.clients
    return Attacked(found, float(last["sin_theta"]), wire)


def _granted(found: Trial, released: Array, truth: Truth) -> Trial | None:
    """A trial whose searches for a matrix found it, as the client released it, with noise.

    More they cannot get: messages are made of it alone. None where it tells of anything, so that
    they have to be run.
    """
    granted = {one: [Belief(released, dense=True)] for one in found.waiting if one in ON_MATRICES}
    telling = compared(replace(found, beliefs=granted), truth)
    if any(one.place < 1.0 for one in telling.values()):
        return None
    waiting = {key: price for key, price in found.waiting.items() if key not in granted}
    found = replace(found, beliefs={**found.beliefs, **granted}, waiting=waiting)
    return replace(found, got=compared(found, truth))


def _before(
    settings: CheckSettings, there: FrontierSettings, honest: Problem, clip: float
) -> Transcript | None:
    """Messages of a run before a record joined; None where its server cannot be served."""
    problem = without_record(honest, there.client, 0)
    try:
        if settings.formal:  # a release of its own
            problem = replace(problem, own_mean=None).private(
                settings.epsilon, settings.delta, clip, Streams(there.seed), release=1
            )
        return made(settings.method, there, problem, settings.rounds).trace.transcript
    except InvalidInput:
        return None
