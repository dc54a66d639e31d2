"""The protocol of docs/protocol.md against every rival at the same ε: answer, traffic, attacks.

``python -m bench protocol`` runs every way of spending ε on two federations, from three seeds: the
sine of the largest angle to the clean answer, the rounds after which it stays within a tenth of
where it ends, bytes a client sends until then, and what all attacks that fit make of client 0.
*: the protocol; T: ways in which clients trust each other and secure sums as it does. With
``--attacks`` it is the protocol alone. Below it stands every attack of the registry by itself.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.attacks.scores import relative_error
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Finding
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.metrics import frame
from fedpca_core.papers.results import commit
from fedpca_core.problems import Problem
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import WAYS, WayRun
from fedpca_core.steps import outcome
from fedpca_core.study.deployed import deployment_of, truth_of
from fedpca_core.trial import Trial, Truth, findings, leading_sine, trial

#: One client may be curious itself. Digits lie on a grid, so attacks have records to look for.
FEDERATIONS = (
    PrivacySettings(
        view="ways", problem="digits", clients=8, epsilon=10.0, clip_norm=3.0, mean_clip=5.0,
        colluding=1,
    ),
    PrivacySettings(
        view="ways", clients=20, features=40, samples=2_000, epsilon=1.0, method="faps",
        colluding=1,
    ),
)  # fmt: skip
SEEDS = (0, 1, 2)
#: A run has arrived where its error stays within this factor of its last one.
ARRIVED = 1.1


@dataclass(frozen=True)
class Outcome:
    """One way from one seed."""

    error: float
    rounds: int
    bytes_up: float
    attacked: Trial
    truth: Truth


def once(chosen: WayRun, clean: Problem, components: int, seed: int) -> Outcome:
    """Run one way, which may carry more columns than are sought, and attack client 0 in it."""
    wire = replace(chosen.channel, record="full")
    run = simulate(chosen.problem, chosen.algorithm, rounds=chosen.rounds, seed=seed, channel=wire)
    errors = largest_sine(run.estimates, clean.target(components))
    away = np.flatnonzero(errors > ARRIVED * errors[-1])
    there = int(away[-1]) + 1 if len(away) else 0
    public = SimpleNamespace(participation=1.0, **vars(wire))
    rounds = len(run.estimates) - 1
    deployment = deployment_of(chosen.problem, chosen.algorithm, public, 0, rounds=rounds)
    truth = truth_of(chosen.problem, 0, chosen.algorithm.components)
    attacked = outcome(trial(run.transcript, deployment, 0, truth=truth))
    assert attacked is not None  # nobody stops it
    sent = float(frame(run, clean)["bytes_up"].iloc[there]) / clean.clients
    return Outcome(float(errors[-1]), there, sent, attacked, truth)


def said(found: Sequence[Finding]) -> Iterator[str]:
    """Findings in short: how many of each status, and the targets that are open."""
    for status, many in Counter(one.status.value for one in found).items():
        yield f"{many} {status}"
    for one in found:
        if one.status.value in ("open", "partly"):
            yield f"[{one.target.value}: {one.status.value}]"


def alone(key: str, one: Outcome) -> str:
    """What one attack of the registry came to, in a few words."""
    found, truth = one.attacked, one.truth
    if found.beliefs.get(key):
        belief = found.beliefs[key][-1]
        sine = leading_sine(belief, truth, found.deployment.rank(found.client))
        return f"error {relative_error(belief.matrix, truth.matrix):.2f}, sine {sine:.2f}"
    if key in found.taken:
        whole = found.taken[key].whole
        return "no record" if whole is None else f"{whole.shape[1]} records"
    return found.refused.get(key, "") or ATTACKS[key].fits(found.deployment, found.client)


def main(attacks: bool = False) -> None:
    """Print one table for each federation."""
    print(f"commit {commit()}")
    for settings in FEDERATIONS:
        clean = build.records(settings, None)
        size = f"{clean.clients} clients, {clean.features} features"
        print(f"ε = {settings.epsilon:g}: {clean.name}, {size}")
        for key, way in WAYS.items() if not attacks else [("shared_source", WAYS["shared_source"])]:
            title = way.title(settings)
            try:
                runs = [
                    once(way.trial(settings, clean, seed, None), clean, settings.components, seed)
                    for seed in SEEDS
                ]
            except InvalidInput as refusal:
                print(f"{title:<46} {refusal}")
                continue
            errors = sorted(one.error for one in runs)
            found = findings([one.attacked for one in runs])
            mark = "*" if key == "shared_source" else "T" if way.trusting else " "
            print(
                f"{mark} {title:<46}{errors[1]:7.3f} ({errors[0]:.3f}–{errors[-1]:.3f})"
                f"{max(one.rounds for one in runs):4d} rounds"
                f"{np.median([one.bytes_up for one in runs]) / 1e3:9.1f} kB  "
                + ", ".join(said(found)),
                flush=True,
            )
            for name, attack in ATTACKS.items() if key == "shared_source" else ():
                print(f"| {attack.title} | {' | '.join(alone(name, one) for one in runs)} |")
