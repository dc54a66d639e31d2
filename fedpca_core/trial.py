"""One run, every attack that fits, and what is known afterwards: one finding for each target.

Attacks see the transcript and the deployment's public facts. With the truth, which only a
simulation has, what they got is compared with it; without it a certificate decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks import scaled_identity, scores
from fedpca_core.attacks.attack import USUAL, Attack, Belief, Deployment, Effort
from fedpca_core.attacks.counts import counted
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.attacks.registry import ATTACKS, ON_MATRICES, ON_RECORDS, fitting
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Figure, Finding, Status, Target
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.shares import NEARLY, Share, averaged
from fedpca_core.shares import counted as shared
from fedpca_core.steps import Part, Run, Step, in_turn, part

T = TypeVar("T")
#: What gives all of a target away, and what gives nothing (relative error as a share of the best
#: public guess's, sine of an angle, share of the records, how often a member is ranked above a
#: stranger); how its figure is counted.
LIMITS: Mapping[Target, tuple[float, float, str]] = {
    Target.COVARIANCE: (0.25, 0.75, "relative error"),
    Target.LEADING: (0.1, 0.5, "sine of the largest angle"),
    Target.RECORDS: (1.0, 0.0, "records"),
    Target.MEMBERSHIP: (0.9, 0.6, "of pairs ranked right"),
    Target.NEWCOMER: (0.9, 0.6, "of pairs ranked right"),
}
#: Targets whose figure is how often one of two records is ranked right, an average over draws.
RANKED = (Target.MEMBERSHIP, Target.NEWCOMER)
#: What a share is of, where an attack got something and never the better half.
IN_PART = "draws, something"
#: Key of the comparison of two runs.
TWO_RUNS = "two_runs"


@dataclass(frozen=True, eq=False)
class Truth:
    """What only a simulation knows of the attacked client."""

    #: (features, features) float64: S_i without noise.
    matrix: Array
    #: Leading directions that are compared.
    components: int
    #: (features, records) float64 or None: Before anything was subtracted, on their grid; None
    #: where they are not kept.
    records: Array | None = None
    #: members, strangers: (features, many) float64 or None: Records as they are in the data, and
    #: records of the same kind that nobody holds.
    members: Array | None = None
    strangers: Array | None = None
    #: (features,) float64 or None: The record that joined between two runs.
    newcomer: Array | None = None


@dataclass(frozen=True)
class Got:
    """What the best attack got of a target (simulation only)."""

    #: Key in the registry; empty where none got anything.
    attack: str
    #: In the unit of the target; NaN where nothing was read.
    figure: float
    #: Where it lies between clearly got (0 and below) and clearly not (1 and above).
    place: float

    @classmethod
    def of(cls, target: Target, attack: str, figure: float, measured: float) -> Got:
        """A figure, placed by what was measured between the limits of its target."""
        yes, no, _ = LIMITS[target]
        place = (measured - yes) / (no - yes)
        return cls(attack, figure, 1.0 if math.isnan(place) else place)

    @property
    def open(self) -> bool:
        """Whether the attack got it, by the middle of the two limits."""
        return self.place < 0.5


@dataclass(frozen=True, eq=False)
class Trial:
    deployment: Deployment
    client: int
    #: mapping of key to beliefs round by round: Of every attack on the matrix that was run.
    beliefs: Mapping[str, Sequence[Belief]] = field(default_factory=dict)
    #: Of every attack on the records that was run.
    taken: Mapping[str, Records] = field(default_factory=dict)
    #: Attacks that fit and were not run.
    waiting: Mapping[str, float] = field(default_factory=dict)
    #: Attacks that fit and whose messages were missing.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Records that joined since an earlier run, of every attack on them.
    newcomers: Mapping[str, Records] = field(default_factory=dict)
    #: With the truth only.
    got: Mapping[Target, Got] = field(default_factory=dict)
    #: The round of the client's first message, or of the first sum that it is in.
    since: int | None = None
    #: Rounds that were read.
    rounds: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        return findings([self])

    @property
    def best(self) -> tuple[str, Sequence[Belief]]:
        """The first reading whose messages determine the matrix, else the first of all."""
        own = self.of_matrix.items()
        return next(iter([one for one in own if one[1][-1].whole is not None] or own), ("", ()))

    @property
    def of_matrix(self) -> dict[str, Sequence[Belief]]:
        """The beliefs about the client's matrix itself, of attacks on one run."""
        return {
            key: states
            for key, states in self.beliefs.items()
            if ATTACKS[key].target is not Target.NEWCOMER
        }

    def waits(self, target: Target) -> dict[str, float]:
        """Attacks that could tell of a target and were not run, and their seconds."""
        return _serving(self.waiting, target)

    @property
    def ended(self) -> Records:
        """The client's records, or those that joined, where an attack certified them; else how the
        first attack on them ended."""
        taken = self.taken if self.deployment.earlier is None else self.newcomers
        sought = sorted(taken.values(), key=lambda one: one.whole is None)
        return next((one for one in sought if one.note), Records(False, ""))

    @property
    def shown(self) -> list[Belief]:
        """The belief after every round: what newcomers are made of where there was an earlier run,
        else the first matrix that is whole, else what the first reading has."""
        if TWO_RUNS in self.beliefs:
            return list(self.beliefs[TWO_RUNS])
        own = list(self.beliefs.values())
        if not own:
            return [Belief.nothing(self.deployment.features)]
        return [
            next((state for state in after if state.whole is not None), after[0])
            for after in zip(*own, strict=True)
        ]

    def until(self, round_: int) -> Trial:
        """What was known after a round; a certificate counts from the round that it needs.

        A search over all messages that found no matrix in the first of them was not tried on these.
        """

        def early(taken: Mapping[str, Records]) -> dict[str, Records]:
            return {
                key: replace(one, round=None, whole=None) if round_ < (one.round or 0) else one
                for key, one in taken.items()
            }

        beliefs = {key: states[: round_ + 1] for key, states in self.beliefs.items()}
        untried = {
            key: ATTACKS[key].seconds(self.deployment, self.client)
            for key, states in beliefs.items()
            if ATTACKS[key].searches and round_ < self.rounds and states[-1].whole is None
        }
        return replace(
            self,
            beliefs=_without(beliefs, *untried),
            waiting={**self.waiting, **untried},
            taken=early(self.taken),
            newcomers=early(self.newcomers),
            got={},
            rounds=round_,
        )

    @property
    def heard(self) -> bool:
        return self.since is not None and self.since <= self.rounds


def trial(
    view: Transcript,
    deployment: Deployment,
    client: int = 0,
    *,
    truth: Truth | None = None,
    effort: Effort = USUAL,
    thorough: bool = True,
    only: str = "",
) -> Run[Trial]:
    """Run every attack of the registry that fits, or one of them.

    Args:
        truth: With it attacks are compared, and the one that came closest counts.
        effort: Of attacks that search; what it leaves is left waiting.
        thorough: False: the messages are read in the first way that fits, and searched.
        only: Key of an attack on the matrix that is run whether or not a count says that it fits,
            and no other.

    Raises InvalidInput: the client's records are public.
    """
    deployment.algorithm.check_protected(client)
    listed = fitting(ON_MATRICES, deployment, client)
    if not thorough:
        quick = [one for one in listed if not one.searches and one.target is not Target.NEWCOMER]
        listed = quick[:1] + [one for one in listed if one not in quick]
    # All wait until they are run: a result on the way says of none that it failed.
    every: list[Attack[Any]] = [*listed, *fitting(ON_RECORDS, deployment, client)]
    prices = {one.key: one.seconds(deployment, client) for one in every}
    if only:
        listed = [ON_MATRICES[only]]
    since = next((one.round for one in view.exchanges if client in one.participants), None)
    found = Trial(deployment, client, waiting=prices, since=since, rounds=len(view.exchanges))
    for attack, share in in_turn(listed, 0.0, 0.7):
        if not only and effort.leaves(attack, prices[attack.key]):
            continue
        try:
            reading = attack.read(view, deployment, client, effort)
            states: Sequence[Belief] = yield from part(reading, *share)
            found = replace(found, beliefs={**found.beliefs, attack.key: states})
        except InvalidInput as refusal:  # these messages are not for this attack
            found = replace(found, refused={**found.refused, attack.key: str(refusal)})
        found = replace(found, waiting=_without(found.waiting, attack.key))
        yield Step(share[1], attack.title, found)
    if not only:
        taken = yield from part(_records(view, found, deployment, found.best[1], effort), 0.7, 0.9)
        found = replace(found, taken=taken, waiting=_without(found.waiting, *taken))
    if not only and (two := found.beliefs.get(TWO_RUNS)):
        joined = yield from part(_records(view, found, deployment.newcomers, two, effort), 0.9, 1.0)
        found = replace(found, newcomers=joined)
    return found if truth is None else replace(found, got=compared(found, truth))


def _without(attacks: Mapping[str, T], *keys: str) -> dict[str, T]:
    return {key: value for key, value in attacks.items() if key not in keys}


def _records(
    view: Transcript, found: Trial, deployment: Deployment, states: Sequence[Belief], effort: Effort
) -> Part[dict[str, Records]]:
    taken: dict[str, Records] = {}
    listed = fitting(ON_RECORDS, deployment, found.client)
    for attack in listed:
        if effort.leaves(attack, attack.seconds(deployment, found.client)):
            continue
        reading = attack.read(view, deployment, found.client, effort, states)
        taken[attack.key] = yield from part(reading, 0.0, 1.0)
        if taken[attack.key].round is not None:
            # The records are known, and other ways to them add nothing.
            return {one.key: Records(False, "") for one in listed} | taken
    return taken


# ------------------------------------------------------------------- compared with the truth
def compared(found: Trial, truth: Truth) -> dict[Target, Got]:
    """What the attacks got, by target (simulation only)."""
    deployment = found.deployment
    last = {key: states[-1] for key, states in found.of_matrix.items() if states}
    errors = {key: scores.relative_error(one.matrix, truth.matrix) for key, one in last.items()}
    best = min(errors, key=lambda key: errors[key], default="")
    guess = 1.0  # of the best guess that needs no message
    if deployment.trace is not None:
        even = scaled_identity(len(truth.matrix), deployment.trace)
        guess = min(scores.relative_error(even, truth.matrix), 1.0)
    error, share, sine = guess, 1.0, math.nan
    if best:
        error, share = errors[best], errors[best] / guess
        sine = leading_sine(last[best], truth, deployment.rank(found.client))
    got = {Target.COVARIANCE: (best, error, share), Target.LEADING: (best, sine, sine)}
    if truth.records is not None:
        got[Target.RECORDS] = _exact(found.taken, truth.records, deployment)
    if truth.members is not None and truth.strangers is not None:
        above = 0.5 if not best else ranked(last[best].matrix, truth.members, truth.strangers)
        key, listed = _listed(found, truth.members, truth.strangers)
        key, above = (key, listed) if listed > above else (best, above)
        got[Target.MEMBERSHIP] = key, above, above
    if truth.newcomer is not None and truth.strangers is not None:
        above = _told(found.beliefs.get(TWO_RUNS, ()), truth.newcomer, truth.strangers)
        got[Target.NEWCOMER] = TWO_RUNS, above, above
    return {target: Got.of(target, *one) for target, one in got.items()}


def leading_sine(belief: Belief, truth: Truth, rank: int) -> float:
    """Largest angle of the client's leading space, of as many directions as it has."""
    count = min(truth.components, rank)
    return float(scores.top_space_sines(belief.matrix[None], truth.matrix, count)[0])


def ranked(estimate: Array, members: Array, strangers: Array) -> float:
    """How often a matrix ranks a member above a stranger, by their lengths in its metric."""
    values, vectors = np.linalg.eigh(symmetric_part(estimate))
    size = np.maximum(values, 1e-9 * float(np.abs(values).max()))
    if not size.any():
        return 0.5
    member, stranger = (
        -(((vectors.T @ some) ** 2) / size[:, None]).sum(axis=0) for some in (members, strangers)
    )
    return float((member[:, None] > stranger[None]).mean())


def _listed(found: Trial, members: Array, strangers: Array) -> tuple[str, float]:
    """How often a member is among the certified records and a stranger is not; ties count half.

    Strangers who are equal to a member are none, and where no other is left nothing is ranked.
    """
    deployment = found.deployment
    for key, one in found.taken.items():
        if one.whole is None or one.differences or deployment.centring not in ("none", "announced"):
            continue
        grid = deployment.steps if one.step is None else np.full(deployment.features, one.step)
        mean = np.zeros(deployment.features) if deployment.mean is None else deployment.mean
        have = set(map(tuple, one.whole.T.tolist()))
        theirs = _whole(members, mean, grid)
        inside, held = float(np.mean([each in have for each in theirs])), set(theirs)
        others = [one in have for one in _whole(strangers, mean, grid) if one not in held]
        if others:
            return key, 0.5 + 0.5 * (inside - float(np.mean(others)))
    return "", 0.0


def _whole(some: Array, mean: Array, grid: Array) -> list[tuple[int, ...]]:
    """Records in units of the grid, before the mean was taken."""
    whole = np.rint((some + mean[:, None]) / grid[:, None]).T.astype(int)
    return [tuple(one) for one in whole.tolist()]


def _exact(
    taken: Mapping[str, Records], records: Array, deployment: Deployment
) -> tuple[str, float, float]:
    """Records that came back to the last digit, or all differences between them; their share."""
    count, steps = records.shape[1], deployment.steps
    best, exact = "", 0
    for key, one in taken.items():
        if one.whole is None:
            continue
        grid = steps if one.step is None else np.full(len(steps), one.step)
        found = one.whole * grid[:, None]
        if one.differences:
            true, turns = scores.above_least(records), map(scores.above_least, (found, -found))
            most = max(scores.recovered_records(turned, true, grid) for turned in turns)
            number = count if most == count else 0
        else:
            number = scores.recovered_records(found, records, grid)
        if number > exact:
            best, exact = key, number
    return best, float(exact), exact / count


def _told(states: Sequence[Belief], record: Array, strangers: Array) -> float:
    """How often what two runs differ by is nearer to the record that joined than to a stranger."""
    if not states or not states[-1].read:
        return 0.5
    near = np.abs(states[-1].factor[:, 0] @ np.column_stack([record, strangers]))
    sizes = np.linalg.norm(np.column_stack([record, strangers]), axis=0)
    cosines = near / np.maximum(sizes, np.finfo(float).tiny)
    return float((cosines[0] > cosines[1:]).mean())


# ------------------------------------------------------------------------------------- findings
def findings(trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """What is known of every target from one trial, or from several draws of one deployment."""
    first = trials[0]
    if all(one.got for one in trials):
        asked = dict.fromkeys((Target.COVARIANCE, Target.LEADING, Target.RECORDS, *first.got))
        return tuple(_drawn(target, trials) for target in asked)
    return (_covariance(first), *_leading(first), _certified(first))


def without_run(deployment: Deployment, targets: Sequence[Target]) -> list[Finding]:
    """What counting alone says of client 0, and what trying the rest would cost."""
    theorems, rank = counted(deployment, 0), float(deployment.rank(0))
    prices = {one.key: one.seconds(deployment, 0) for one in fitting(ATTACKS, deployment)}
    found = []
    for target in targets:
        theorem = theorems.get(target)
        if theorem is None:
            found.append(_untried(target, _serving(prices, target)))
        elif not theorem.open:
            found.append(Finding(target, Status.PROVED_CLOSED, basis=theorem.basis))
        else:
            known = rank if target is Target.COVARIANCE else min(float(deployment.components), rank)
            figure = Figure(known, "directions", rank)
            found.append(Finding(target, Status.OPEN, figure=figure, basis=theorem.basis))
    return found


def _untried(target: Target, prices: Mapping[str, float], why: str = "") -> Finding:
    """What attacks that were not run would cost; without any, why, or that none is known."""
    names = ", ".join(ATTACKS[key].title for key in prices)
    basis = names or why or "no attack of ours reads these messages"
    return Finding(target, Status.NOT_TRIED, basis=basis, seconds=sum(prices.values()))


def _drawn(target: Target, trials: Sequence[Trial]) -> Finding:
    """A finding by comparison with the truth, over all draws."""
    first = trials[0]
    if target not in first.got:
        return _unopened(target, first)
    got = [trial.got[target] for trial in trials]
    known = [one.figure for one in got if not math.isnan(one.figure)] or [math.nan]
    own = float(first.deployment.samples[first.client])
    of = own if target is Target.RECORDS else None
    middle, (*_, unit) = float(np.median(known)), LIMITS[target]
    figure = Figure(middle, unit, of, min(known), max(known), len(got))
    status, share = _shared(target, got)
    if status is None:
        return replace(_unopened(target, first, figure), share=share)
    best = min(got, key=lambda one: one.place).attack
    tried = _tried(first, target)
    return Finding(target, status, best, figure, "compared with the truth", share, tried)


def _shared(target: Target, got: Sequence[Got]) -> tuple[Status | None, Share | None]:
    """Whether the draws say open or partly, None for neither; and in how many of them."""
    if target in RANKED:
        yes, no, _ = LIMITS[target]
        ranks = [one.figure for one in got]
        share = averaged(ranks) if len(got) > 1 else None
        middle = float(np.mean(ranks))
        if middle >= (yes + no) / 2:
            return Status.OPEN, share
        return (Status.PARTLY if middle > no else None), share
    opened = [float(one.open) for one in got]
    some = [float(one.place < 1.0) for one in got]
    status, share = Status.PARTLY if any(some) else None, shared(opened)
    if np.mean(opened) >= NEARLY:
        status = Status.OPEN
    if any(some) and not any(opened):
        share = replace(shared(some), of=IN_PART)
    return status, share if len(got) > 1 else None


def _unopened(target: Target, trial: Trial, figure: Figure | None = None) -> Finding:
    theorem = counted(trial.deployment, trial.client).get(target)
    if theorem is not None and not theorem.open:
        return Finding(target, Status.PROVED_CLOSED, basis=theorem.basis)
    waiting, tried = trial.waits(target), _tried(trial, target)
    if waiting or not tried:
        refused = _serving(trial.refused, target).items()
        reasons = [f"{ATTACKS[key].title}: {why.rstrip('.')}" for key, why in refused]
        return _untried(target, waiting, "; ".join(reasons))
    unproved = "which proves nothing"
    return Finding(target, Status.NOT_OPENED, figure=figure, basis=unproved, tried=tried)


def _serves(key: str, target: Target) -> bool:
    """Whether an attack can tell of a target: whatever reads the matrix leads on to the rest."""
    aim = ATTACKS[key].target
    if target is Target.NEWCOMER:
        return aim is Target.NEWCOMER
    return aim is target or aim is Target.COVARIANCE


def _serving(attacks: Mapping[str, T], target: Target) -> dict[str, T]:
    return {key: value for key, value in attacks.items() if _serves(key, target)}


def _tried(trial: Trial, target: Target) -> int:
    return sum(_serves(key, target) for key in (*trial.beliefs, *trial.taken))


# ---------------------------------------------------------------------- findings without the truth
def _covariance(trial: Trial) -> Finding:
    (key, states), d = trial.best, trial.deployment
    target = Target.SUM if d.sums else Target.COVARIANCE
    if not states or not trial.heard:
        return Finding(target, Status.PROVED_CLOSED, basis="nothing has been sent")
    last, whole, rank = states[-1], states[-1].whole, d.rank(trial.client)

    def found(status: Status, got: int, of: int, basis: str, unit: str = "directions") -> Finding:
        return Finding(target, status, key, Figure(float(got), unit, float(of)), basis)

    if whole is not None and last.sure:
        noisy = d.upload_noise > 0 or d.guarantee is not None
        if noisy and whole.rank < rank:
            return found(Status.PARTLY, whole.rank, rank, "the others drown in the noise")
        known = "the messages determine it" + ", up to their noise" * noisy
        return found(Status.OPEN, whole.rank, whole.rank, known)
    if whole is not None and last.read:
        if not d.sums and any(one.whole is not None for one in trial.taken.values()):
            return found(Status.OPEN, whole.rank, whole.rank, "its certified records give it")
        unit = "directions of a matrix that explains the messages"
        return found(Status.PARTLY, last.read, rank, "whether no other does was not checked", unit)
    if last.read:
        return found(Status.PARTLY, last.read, rank, "read off the messages")
    return _unopened(target, trial)


def _leading(trial: Trial) -> list[Finding]:
    theorem = counted(trial.deployment, trial.client).get(Target.LEADING)
    if theorem is None or not theorem.open or not trial.heard:
        return []
    figure = Figure(float(trial.deployment.components), "directions")
    return [Finding(Target.LEADING, Status.OPEN, trial.best[0], figure, theorem.basis)]


def _certified(trial: Trial) -> Finding:
    newcomers = bool(trial.newcomers) or TWO_RUNS in trial.beliefs
    target = Target.NEWCOMER if newcomers else Target.RECORDS
    taken = trial.newcomers if newcomers else trial.taken
    if not trial.heard:
        return Finding(target, Status.PROVED_CLOSED, basis="nothing has been sent")
    for key, one in taken.items():
        if one.whole is not None:
            count = float(one.whole.shape[1])
            what = "records, less what is common to them" if one.differences else "records"
            figure = Figure(count, what, count)
            return Finding(target, Status.OPEN, key, figure, one.note.rstrip("."))
    return _unopened(target, trial)
