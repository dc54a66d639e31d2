"""The leak check: what a deployment gives away, by a count, by runs at its size, or by both.

Runs are on stand-in records of its sizes, on its grid and centred as it is, and are attacked by
everything that fits."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import Belief, Deployment, Effort
from fedpca_core.attacks.registry import ON_MATRICES, searching
from fedpca_core.errors import InvalidInput, require
from fedpca_core.findings import Finding, Target, frame
from fedpca_core.guarantee import in_words
from fedpca_core.problems import Problem, without_record
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.perturbation import Budget, source_guarantee
from fedpca_core.problems.problem import from_blocks
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.which import runs
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import plural
from fedpca_core.shares import NARROW, counted
from fedpca_core.steps import Run, Step
from fedpca_core.streams import Streams
from fedpca_core.study import Cost, InPieces, OwnData
from fedpca_core.study.deployed import held_matrix, public_deployment, truth_of
from fedpca_core.trial import Trial, Truth, compared, findings, without_run

# ---------------------------------------------------------------------- records that stand in
#: Smallest standard deviation of a direction, where the largest is 1.
FLATTEST, STEEPEST = 0.3, 0.1
#: Standard deviation of a grid value in steps, and where it is centred.
SPREAD, MIDDLE = 4.0, 8.0
#: Categories of a coded column; the last may have fewer.
CATEGORIES = 4
#: Records of the same kind that no client holds, to ask about membership.
STRANGERS = 200


def drawn(settings: CheckSettings, seed: int) -> tuple[Problem, Array]:
    """A problem like the deployment's, and records of the same kind that nobody holds.

    Returns the problem, of as many clients as are needed to hide in, each of the stated size, and
    the strangers, (features, STRANGERS) float64, treated as the attacked client's records are.
    """
    generator = Streams(seed).generator("data")
    n, m = settings.features, settings.samples
    turn = np.linalg.qr(generator.standard_normal((n, n)))[0]
    spread = np.linspace(1.0, generator.uniform(STEEPEST, FLATTEST), n)
    blocks = []
    for number in range(settings.clients):
        own = spread * np.exp(0.2 * generator.standard_normal(n))
        count = m + (STRANGERS if number == 0 else 0)
        raw = turn @ (own[:, None] * generator.standard_normal((n, count)))
        blocks.append(_codes(raw) if settings.values == "codes" else raw)
    if settings.values == "grid":
        size = float(np.std(blocks[0]))
        blocks = [np.rint(MIDDLE + SPREAD / size * one) for one in blocks]
    held = [blocks[0][:, :m], *blocks[1:]]
    strangers = blocks[0][:, m:]
    mean: Array | None = None
    if settings.centring == "own":
        strangers = strangers - held[0].mean(axis=1, keepdims=True)
        held = [one - one.mean(axis=1, keepdims=True) for one in held]
    elif settings.centring in ("pooled", "secret"):
        mean = sum((one.sum(axis=1) for one in held), np.zeros(n)) / (settings.clients * m)
        held = [one - mean[:, None] for one in held]
        strangers = strangers - mean[:, None]
    public = _announced(settings, mean)
    return from_blocks(held, name="stand-in", announced=public, own_mean=mean), strangers


def _announced(settings: CheckSettings, mean: Array | None) -> PublicFacts | None:
    """What the server knows of the records' grid; None of real numbers."""
    n, values = settings.features, settings.values
    codes = np.tile([0.0, 1.0], (n, 1)) if values == "codes" else None
    total = settings.clients * settings.samples
    return None if values == "real" else PublicFacts(np.ones(n), mean, total, bounds=codes)


def _codes(raw: Array) -> Array:
    """One-hot columns: in every group of features a 1 for the largest, (features, records)."""
    found = np.zeros_like(raw)
    for begin in range(0, len(raw), CATEGORIES):
        found[begin + raw[begin : begin + CATEGORIES].argmax(axis=0), np.arange(raw.shape[1])] = 1.0
    return found


# ---------------------------------------------------------------------- a run on them, attacked
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
    trial: Trial
    #: How far off the deployment's own answer is.
    sine: float
    bytes_client: float


def runnable(settings: CheckSettings) -> bool:
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
    guarantee = None
    if c.formal:  # its meaning does not hang on the norm at which records are clipped
        budget = Budget(c.epsilon, c.delta, 1.0)
        guarantee = source_guarantee(samples, samples / samples.sum(), budget)[1]
    return public_deployment(
        c,
        METHODS[c.method].make(run_settings(c)),
        c.features,
        samples,
        rounds=c.rounds,
        guarantee=guarantee,
        records=_announced(c, mean),
        centring=CENTRINGS[c.centring],
    )


def attacked(settings: CheckSettings, seed: int) -> Attacked:
    """Run the deployment on records drawn from ``seed`` and attack it.

    Raises InvalidInput: the method does not run on this channel.
    """
    c = settings
    honest, strangers = drawn(c, seed)
    assert honest.blocks is not None
    there = replace(run_settings(c), seed=seed % 100_000)
    # Under an ε records are clipped at the longest of the median client.
    clip = float(np.median([np.linalg.norm(one, axis=0).max() for one in honest.blocks]))

    def run_on(problem: Problem, **noise: Any) -> runs.Made:
        if c.formal:
            problem = replace(problem, own_mean=None, public=PUBLIC)
            problem = problem.private(c.epsilon, c.delta, clip, **noise)
        return runs.made(c.method, there, problem, c.rounds)

    run = run_on(honest, streams=Streams(seed))
    record = earlier = None
    if c.repeats:
        record, before = honest.blocks[there.client][:, 0], without_record(honest, there.client, 0)
        with suppress(InvalidInput):  # its server cannot be served
            earlier = run_on(before, streams=Streams(there.seed), release=1).trace.transcript
    client, problem = there.client, run.problem
    truth = truth_of(problem, client, there.components, strangers=strangers, newcomer=record)
    centring, rounds = CENTRINGS[c.centring], run.trace.rounds

    def tried(unmask: bool) -> Trial:
        known: Any = {"earlier": earlier, "centring": centring, "truth": truth}
        return runs.attempt(run, there, rounds, replace(EFFORT, unmask=unmask), **known)

    found = tried(not c.formal)
    if c.formal:
        found = _granted(found, held_matrix(problem, client), truth) or tried(True)
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


# ---------------------------------------------------------------------- the answer
#: Draws of stand-in records that are attacked: at least, and where they do not agree. Fewer where
#: an attack searches.
DRAWS, FEWER = (20, 80), (12, 48)
AS_IT_IS = "As it is"
#: What may be done about a leak, and the settings that do it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    AS_IT_IS: {},
    "Secure sums": {"secure_aggregation": True},
    "Secure sums, everybody in every round": {"secure_aggregation": True, "participation": 1.0},
    "Private source, ε = 10": {"epsilon": 10.0},
    "Private source, ε = 1": {"epsilon": 1.0},
    "Noise of 3% on uploads (masking)": {"upload_noise": 0.03},
}


@dataclass(frozen=True, eq=False)
class Checked:
    settings: CheckSettings
    findings: tuple[Finding, ...]
    #: Stand-ins on which it was run at its size; 0 where it is too large.
    draws: int
    #: Columns defence, a column for each target (its status), draws, sine, bytes_client, refusal.
    defences: pd.DataFrame

    @property
    def others(self) -> int:
        """How many of as many further draws may differ where all that were seen agree."""
        return round(self.draws * counted([0.0] * self.draws).high)


def draws(settings: CheckSettings) -> tuple[int, int]:
    """Draws that are attacked: at least, and where they do not agree."""
    return FEWER if searching(stated(settings)) else DRAWS


def attempts(settings: CheckSettings) -> Iterator[list[Attacked]]:
    """Attacks on stand-ins, all so far after each, until every share is known well enough."""
    made: list[Attacked] = []
    least, most = draws(settings)
    for number in range(most):
        made.append(attacked(settings, settings.seed + 7919 * number))
        yield made
        if len(made) >= least:
            shares = [one.share for one in findings([one.trial for one in made])]
            if all(one.width <= NARROW for one in shares if one is not None):
                return


class LeakCheck(InPieces[CheckSettings, Checked]):
    """Say which attack applies to a deployment, what it gets and, a piece each, what stops it."""

    key = "leak_check"
    title = "Leak check"
    unit = "deployments"
    most = Cost(megabytes=500, seconds=120)
    seconds = 180.0

    def pieces(self, settings: CheckSettings) -> Sequence[str]:
        every: dict[CheckSettings, str] = {}
        for name, changes in DEFENCES.items():
            every.setdefault(replace(settings, **changes), name)
        return list(every.values()) if runnable(settings) else ()

    def piece(self, settings: CheckSettings, data: OwnData | None) -> Run[Checked]:
        components, most = settings.components, settings.features - 1
        require(
            components <= most,
            f"{components} components of {most + 1} features leave nothing to find; choose fewer "
            f"components, at most {most}.",
        )
        yield Step(0.0, "Counting")
        # Newcomers are asked about only where the run is repeated.
        left_out = {Target.SUM} if settings.repeats else {Target.SUM, Target.NEWCOMER}
        asked = [target for target in Target if target not in left_out]
        return Checked(settings, tuple(without_run(stated(settings), asked)), 0, pd.DataFrame())

    def run_piece(self, settings: CheckSettings, which: str, data: OwnData | None) -> Run[Checked]:
        chosen = replace(settings, **DEFENCES[which])
        made: list[Attacked] = []
        for made in attempts(chosen) if which == AS_IT_IS else ():
            some = Checked(settings, _found(made), len(made), pd.DataFrame())
            told = f"attacked {plural(len(made), 'stand-in')}"
            yield Step(len(made) / draws(chosen)[1], told, some if len(made) > 1 else None)
        row = {"defence": which, **_defended(chosen, made)}
        return Checked(settings, _found(made) if made else (), len(made), pd.DataFrame([row]))

    def gathered(self, settings: CheckSettings, found: Sequence[Checked]) -> Checked:
        rows = [row for one in found for row in one.defences.to_dict("records")]
        return replace(found[0], defences=pd.DataFrame(rows))

    def tables(self, result: Checked, settings: CheckSettings) -> dict[str, pd.DataFrame]:
        tables = {"findings": frame(result.findings)}
        return {**tables, "defences": result.defences} if len(result.defences) else tables


def _found(made: Sequence[Attacked]) -> tuple[Finding, ...]:
    return findings([one.trial for one in made])


def _defended(settings: CheckSettings, made: list[Attacked]) -> dict[str, object]:
    """What becomes of every target with a defence, and what it costs; from a few draws."""
    try:
        for number in range(len(made), draws(settings)[0] // 2):
            made = [*made, attacked(settings, settings.seed + 7919 * number)]
    except InvalidInput as refusal:
        return {"refusal": str(refusal)}
    return {
        **{one.target.name.lower(): str(one.status) for one in _found(made)},
        "draws": len(made),
        "sine": float(np.median([one.sine for one in made])),
        "bytes_client": made[0].bytes_client,
        "refusal": "",
    }
