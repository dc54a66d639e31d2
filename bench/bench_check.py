"""How often the leak check agrees with attacks run on other records of the same description."""

from __future__ import annotations

import time

import numpy as np

from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_core.studies.check.rules import expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.study import Verdict, attacked, judged
from fedpca_core.studies.check.trial import Got, runnable, tried

DEPLOYMENTS = 200
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
    samples = int(generator.integers(4, features) if few else features * pick([2, 10, 40]))
    return CheckSettings(
        method=method,
        clients=int(generator.integers(4, 10)),
        samples=samples,
        features=features,
        components=int(generator.integers(2, 4 if searched else 6)),
        rounds=int(pick([10, 15] if searched else [1, 3, 10, 20, 40])),
        participation=float(pick([1.0, 1.0, 0.5])),
        centring=str(pick(["none", "own", "pooled", "secret"])),
        values=str(pick(["grid", "real"])),
        secure_aggregation=bool(generator.random() < 0.25),
        repeats=bool(generator.random() < 0.3),
        upload_noise=float(pick([0.0, 0.0, 0.0, 1e-3, 0.03, 0.3])),
        epsilon=float(pick([np.inf, np.inf, np.inf, 1.0, 10.0])),
        dtype=str(pick(["float64", "float64", "float32"])),
        seed=int(generator.integers(0, 90_000)),
    )


def compared(deployment: CheckSettings) -> dict[str, tuple[Verdict, bool | None, Got]]:
    """By target: the check's verdict, the bare rule's, and an attack on records it never saw.

    Raises
    ------
    InvalidInput
        It does not run at all.
    """
    *_, trials = attacked(deployment)
    other = tried(deployment, deployment.seed + 104_729)
    rules = expected(deployment)
    return {
        verdict.target: (verdict, rules[verdict.target].open, other.got[verdict.target])
        for verdict in judged(deployment, trials)
    }


def main(count: int = DEPLOYMENTS, seed: int = 0) -> None:
    """Print how often check and attack contradict each other, and how often the check commits."""
    generator = Streams(seed).generator("deployments")
    began, done, right, sure = time.perf_counter(), 0, 0, 0
    answers, depends, contradicted, rules, rules_wrong = 0, 0, 0, 0, 0
    while done < count:
        deployment = random_deployment(generator)
        if not runnable(deployment):
            continue
        try:
            found = compared(deployment)
        except InvalidInput:
            continue
        done, whole = done + 1, True
        for target, (verdict, rule, got) in found.items():
            answers, depends = answers + 1, depends + (verdict.answer == "depends")
            wrong = verdict.answer != "depends" and (verdict.answer == "open") != got.open
            rules, rules_wrong = rules + (rule is not None), rules_wrong + (rule == (not got.open))
            contradicted, whole = contradicted + wrong, whole and not wrong
            if wrong:
                print(
                    f"  {target}: check says {verdict.answer} ({verdict.evidence}; {verdict.why}), "
                    f"the attack has {got.figure:.3g}; {deployment.changed()}",
                    flush=True,
                )
        right += whole
        sure += whole and all(verdict.answer != "depends" for verdict, *_ in found.values())
        if done % PROGRESS and done < count:
            continue
        print(
            f"{done} deployments in {time.perf_counter() - began:.0f} s: {right} without a "
            f"contradiction, {sure} of them without a “depends” either; "
            f"{answers} answers, {depends} of them “depends on the data”, "
            f"{contradicted} contradicted; bare rules {rules}, {rules_wrong} wrong",
            flush=True,
        )
