"""How often the leak check agrees with attacks run on other records of the same description."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpca_core.attacks.counts import CLOSED_RANKING, counted
from fedpca_core.errors import InvalidInput, require_choice
from fedpca_core.findings import Finding, Target
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import Attacked, attacked, attempts, runnable
from fedpca_core.shares import Share
from fedpca_core.streams import Streams
from fedpca_core.trial import IN_PART, RANKED, Got, findings

DEPLOYMENTS = 1000
#: Of deployments that nothing here was chosen on.
UNSEEN = 4001
#: From the seed of the check's draws to that of the fresh ones.
FRESH = 15_485_863
#: An interval wider than this says too little.
WIDEST = 0.6
#: Deployments between two lines.
PROGRESS = 10
METHODS = (
    *("ssi", "block_krylov", "local_power", "fedpower", "one_shot", "centralized"),
    *("variable_splitting", "faps", "fedpg"),
)


def random_deployment(generator: np.random.Generator) -> CheckSettings:
    """A deployment of a size that can be run here."""
    pick = generator.choice
    method = str(pick(METHODS))
    searched = method in ("faps", "fedpg")
    features = int(generator.integers(8, 12 if searched else 30))
    few = generator.random() < 0.5
    samples = int(generator.integers(3, features) if few else features * pick([2, 10, 40]))
    secure, clients = bool(generator.random() < 0.3), int(generator.integers(2, 10))
    if secure and few and generator.random() < 0.5:  # all of them hold fewer records than features
        clients = int(generator.integers(2, 4))
        samples = int(generator.integers(2, max(features // clients, 3)))
    return CheckSettings(
        method=method,
        clients=clients,
        samples=samples,
        features=features,
        components=int(generator.integers(2, 4 if searched else 6)),
        rounds=int(pick([10, 15] if searched else [1, 3, 10, 20, 40])),
        participation=float(pick([1.0, 1.0, 0.5])),
        centring=str(pick(["none", "own", "pooled", "secret"])),
        values=str(pick(["grid", "grid", "codes", "real"])),
        secure_aggregation=secure,
        repeats=bool(generator.random() < 0.3),
        upload_noise=float(pick([0.0, 0.0, 0.0, 1e-3, 0.03, 0.3])),
        epsilon=float(pick([np.inf, np.inf, np.inf, 1.0, 10.0])),
        dtype=str(pick(["float64", "float64", "float32"])),
        seed=int(generator.integers(0, 90_000)),
    )


@dataclass(frozen=True)
class Statement:
    """One share that the check states, and the same share of draws that it never saw."""

    finding: Finding
    stated: Share
    fresh: float

    @property
    def agrees(self) -> bool:
        """Whether the fresh share is as stated, and the statement says enough to be wrong."""
        return self.stated.width <= WIDEST and self.stated.holds(self.fresh)


@dataclass(frozen=True)
class Compared:
    """What the check says of a deployment, beside attacks on records it never saw."""

    findings: tuple[Finding, ...]
    statements: tuple[Statement, ...]
    #: Targets that a theorem calls closed and an attack opened, or calls open and none did.
    refuted: tuple[str, ...]


def compared(deployment: CheckSettings) -> Compared:
    """Attack a deployment as often again as the check did.

    Raises InvalidInput: it does not run at all.
    """
    *_, made = attempts(deployment)
    fresh = [attacked(deployment, deployment.seed + FRESH + 7919 * k) for k in range(len(made))]
    said = findings([one.trial for one in made])
    statements = [
        Statement(one, one.share, _fresh(one, [each.trial.got[one.target] for each in fresh]))
        for one in said
        if one.share is not None
    ]
    return Compared(said, tuple(statements), tuple(_refuted([*made, *fresh])))


def _fresh(finding: Finding, got: Sequence[Got]) -> float:
    """The share that a finding states, of other draws."""
    if finding.target in RANKED:
        return float(np.mean([one.figure for one in got]))
    some = finding.share is not None and finding.share.of == IN_PART
    return float(np.mean([one.place < 1.0 if some else one.open for one in got]))


def _refuted(made: Sequence[Attacked]) -> list[str]:
    """Theorems that a run contradicts."""
    found: list[str] = []
    ranks: dict[str, list[float]] = {}
    for one in made:
        for target, theorem in counted(one.trial.deployment, one.trial.client).items():
            got = one.trial.got.get(target)
            if theorem.open and not one.trial.heard:  # it speaks of clients that take part
                continue
            if got is None:
                taken = one.trial.newcomers if target is Target.NEWCOMER else one.trial.taken
                opened = [key for key, each in taken.items() if each.whole is not None]
                found += [f"{target}: {theorem.basis}; {key}" for key in opened]
            elif target in RANKED:
                ranks.setdefault(theorem.basis, []).append(got.figure)
            elif got.open != theorem.open:
                found.append(f"{target}: {theorem.basis}; {got}")
    for basis, seen in ranks.items():  # a bound on an average over draws
        error = np.std(seen) / np.sqrt(len(seen)) if len(seen) > 1 else 0.25
        if np.mean(seen) > CLOSED_RANKING + 3 * error:
            found.append(f"{basis}; ranked right {np.mean(seen):.2f}")
    return found


def main(
    deployments: int = DEPLOYMENTS, seed: int = UNSEEN, methods: tuple[str, ...] = METHODS
) -> None:
    """Print in how many deployments every share is as stated, how often each status occurs, and
    every theorem that a run contradicts.

    A deployment agrees where every share in as many fresh draws lies in the stated interval. An
    interval wider than `WIDEST` says too little and counts as wrong.
    """
    for method in methods:
        require_choice("The method", method, METHODS)
    generator = Streams(seed).generator("deployments")
    began, done, right, refuted = time.process_time(), 0, 0, 0
    statuses: Counter[str] = Counter()
    every: list[Statement] = []
    while done < deployments:
        deployment = random_deployment(generator)
        if deployment.method not in methods or not runnable(deployment):
            continue
        try:
            found = compared(deployment)
        except InvalidInput:
            continue
        done, right = done + 1, right + all(one.agrees for one in found.statements)
        refuted += len(found.refuted)
        statuses.update(str(one.status) for one in found.findings)
        every += found.statements
        for text in found.refuted:
            print(f"  REFUTED {text}; {deployment.changed()}", flush=True)
        for one in [one for one in found.statements if not one.agrees]:
            print(
                f"  {one.finding.target}: {one.finding.status}, stated {one.stated.low:.2f} to "
                f"{one.stated.high:.2f}; fresh {one.fresh:.2f}; {deployment.changed()}",
                flush=True,
            )
        if done % PROGRESS == 0 or done == deployments:
            print(
                f"{done} deployments, {time.process_time() - began:.0f} s of CPU: {refuted} "
                f"theorems refuted; {right} agree in all they state "
                f"({sum(one.agrees for one in every)} of {len(every)} statements); "
                f"{dict(statuses)}",
                flush=True,
            )
