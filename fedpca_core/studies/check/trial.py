"""A deployment run on stand-in records, and attacked in every way we have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core import attacks
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import in_words
from fedpca_core.problems import Problem
from fedpca_core.streams import Streams
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.stand_in import drawn
from fedpca_core.studies.frontier.leakage import best_estimate, summed, whole_factor
from fedpca_core.studies.frontier.runs import Made, made
from fedpca_core.studies.frontier.settings import FrontierSettings

#: What an attack is after.
TARGETS: Mapping[str, str] = {
    "covariance": "The client's covariance",
    "leading": "Its leading space",
    "records": "Its records, to the last digit",
    "membership": "Whether a record is in it",
    "newcomer": "The record that joins between two runs",
}
#: What gives all of a target away, and what gives nothing.
#: Relative error as a share of the best public guess's, sine of an angle, share of records, and how
#: often a member is ranked above a stranger.
LIMITS: Mapping[str, tuple[float, float]] = {
    "covariance": (0.25, 0.75),
    "leading": (0.1, 0.5),
    "records": (1.0, 0.0),
    "membership": (0.9, 0.6),
    "newcomer": (0.1, 0.5),
}
#: Sizes up to which a deployment is run here.
FEATURES, CLIENTS, RECORDS, ROUNDS = 40, 40, 20_000, 200
#: Work for one lattice: a second or two.
WORK = 5e8
#: A matrix that is wrong by more tells no record to the last digit; nothing is searched then.
ROUGH = 0.1
#: Evaluations of one replay: one that succeeds takes 15 to 150, one that fails gets no nearer.
EVALUATIONS = 200
#: A search fits features (features + 1)/2 numbers: seconds up to so many features.
SEARCHED: Mapping[str, int] = {"replay": 16, "stationary": 20}


@dataclass(frozen=True)
class Got:
    """What one attack got of one target.

    Attributes
    ----------
    attack : str
        Key of `fedpca_core.studies.frontier.leakage.NAMES`, or "lattice", "score", "two runs".
    figure : float
        Relative error, sine, exact records, or rank probability; NaN where nothing was read.
    place : float
        Where it lies between clearly got (0 and below) and clearly not (1 and above).
    """

    attack: str
    figure: float
    place: float

    @property
    def open(self) -> bool:
        """Whether the attack got it, by the middle of the two limits."""
        return self.place < 0.5


def _got(target: str, attack: str, figure: float, measured: float) -> Got:
    """A figure, placed by what was measured between the limits of its target."""
    yes, no = LIMITS[target]
    place = (measured - yes) / (no - yes)
    return Got(attack, figure, 1.0 if math.isnan(place) else place)


@dataclass(frozen=True)
class Trial:
    """What came of a run.

    Attributes
    ----------
    got : mapping of target to Got
    sine : float
        How far off the deployment's own answer is.
    guess : float
        Error of the best public guess at the covariance.
    bytes_client : float
    """

    got: Mapping[str, Got]
    sine: float
    guess: float
    bytes_client: float


def runnable(settings: CheckSettings) -> bool:
    """Whether a deployment of this size is run here."""
    c = settings
    names = METHODS[c.method].attacks
    most = min((SEARCHED[name] for name in names if name in SEARCHED), default=FEATURES)
    searched = c.secure_aggregation or c.features <= most
    small = c.features <= FEATURES and c.clients <= CLIENTS and c.samples <= RECORDS
    fits = c.features * c.clients * c.samples <= 2_000_000 and c.components < c.features
    return searched and small and fits and c.rounds <= ROUNDS


def run_settings(settings: CheckSettings) -> FrontierSettings:
    """The same channel and method as settings of a run."""
    there = settings.carried(FrontierSettings)
    return replace(there, candidates=(settings.method,), vary="none", seeds=1, budget=EVALUATIONS)


def meant(settings: CheckSettings) -> str:
    """What every ε of these runs means: it never stands alone."""
    clipped = (
        "the largest norm of the median client in the random sets (the mean that is subtracted "
        "counts as public)"
    )
    return in_words(settings.delta, clipped)


def tried(settings: CheckSettings, seed: int) -> Trial:
    """Run the deployment on records drawn from ``seed`` and attack it.

    Raises
    ------
    InvalidInput
        The method does not run on this channel.
    """
    honest, strangers = drawn(settings, seed)
    there = replace(run_settings(settings), seed=seed % 100_000)
    problem = honest
    if settings.formal:
        clip = float(
            np.median([np.linalg.norm(block, axis=0).max() for block in honest.blocks or ()])
        )
        problem = replace(honest, own_mean=None).private(
            settings.epsilon, settings.delta, clip, Streams(seed)
        )
    run = made(settings.method, there, problem, settings.rounds)
    leak, estimate = best_estimate(run, settings.method, there, len(run.table) - 1)
    share = leak.error / leak.guess
    got = {
        "covariance": _got("covariance", leak.attack, leak.error, share),
        "leading": _got("leading", leak.attack, leak.sine, leak.sine),
        "records": _records(run, settings, there, honest, leak.error),
        "membership": _membership(estimate, honest, strangers),
    }
    if settings.repeats:
        got["newcomer"] = _newcomer(settings, there, problem)
    last = run.table.iloc[-1]
    wire = float(last["bytes_up"] + last["bytes_down"]) / problem.clients
    return Trial(got, float(last["sin_theta"]), leak.guess, wire)


def _records(
    run: Made, settings: CheckSettings, there: FrontierSettings, honest: Problem, error: float
) -> Got:
    """The lattice attack, with the mean or without, where the values lie on a grid."""
    nothing = _got("records", "lattice", 0.0, 0.0)
    facts = honest.announced
    if facts is None or honest.blocks is None or settings.samples >= settings.features:
        return nothing
    if error > ROUGH:
        return nothing
    private = honest.blocks[there.client]
    try:
        whole = whole_factor(run, settings.method, there, run.trace.transcript)
        if whole is None:
            return nothing
        if settings.centring in ("none", "pooled"):
            certified = attacks.records(
                whole,
                facts.grid,
                facts.mean,
                facts.records_total,
                bounds=facts.bounds,
                budget=WORK,
            ).certified
        else:
            certified = attacks.records_without_mean(whole, facts.grid).certified
    except InvalidInput:
        return nothing
    return _got("records", "lattice", float(private.shape[1] * certified), float(certified))


def _membership(estimate: Array | None, honest: Problem, strangers: Array) -> Got:
    """How often the attacker's matrix ranks a member above a stranger."""
    if estimate is None or honest.blocks is None or not estimate.any():
        return _got("membership", "score", 0.5, 0.5)
    members = honest.blocks[0][:, : strangers.shape[1]]
    values, vectors = np.linalg.eigh(0.5 * (estimate + estimate.T))
    floor = 1e-9 * float(np.abs(values).max())
    size = np.maximum(values, floor)
    scores = [
        -(((vectors.T @ some) ** 2) / size[:, None]).sum(axis=0) for some in (members, strangers)
    ]
    above = float((scores[0][:, None] > scores[1][None]).mean())
    return _got("membership", "score", above, above)


def _newcomer(settings: CheckSettings, there: FrontierSettings, problem: Problem) -> Got:
    """The record that joined, from two runs as they are, or from two releases under an ε."""
    if settings.formal:
        return _got("newcomer", "two runs", math.nan, math.nan)
    sine = summed(
        settings.method, there, problem, hidden=settings.secure_aggregation, rounds=settings.rounds
    ).newcomer
    return _got("newcomer", "two runs", sine, sine)
