"""How often the leak check agrees with attacks run on other records of the same description."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_core.studies.check.rules import expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.study import TRIES, judged
from fedpca_core.studies.check.trial import runnable, tried

DEPLOYMENTS = 200
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


def agreement(count: int, seed: int = 0) -> tuple[Counter[str], Counter[str], list[str]]:
    """Targets judged and agreed on, by kind of evidence, and the deployments that differ."""
    generator = Streams(seed).generator("deployments")
    judged_, agreed, differing = Counter[str](), Counter[str](), []
    done = 0
    while done < count:
        deployment = random_deployment(generator)
        if not runnable(deployment):
            continue
        try:
            trials = [tried(deployment, deployment.seed + 7919 * k) for k in range(TRIES)]
            other = tried(deployment, deployment.seed + 104_729)
        except InvalidInput:
            continue  # it does not run at all
        done += 1
        rules = expected(deployment)
        for verdict in judged(deployment, trials):
            got = other.got[verdict.target].open
            for kind in ("check", "rule") if rules[verdict.target].open is not None else ("check",):
                judged_[f"{kind} {verdict.target}"] += 1
                said = verdict.open if kind == "check" else rules[verdict.target].open
                agreed[f"{kind} {verdict.target}"] += said == got
            if verdict.open != got:
                differing.append(
                    f"{verdict.target}: check {verdict.open} ({verdict.evidence}; {verdict.why}), "
                    f"run {got} {other.got[verdict.target].figure:.3g}; {deployment.changed()}"
                )
    return judged_, agreed, differing


def main() -> None:
    """Print the agreement."""
    began = time.perf_counter()
    judged_, agreed, differing = agreement(DEPLOYMENTS)
    for name, count in sorted(judged_.items()):
        print(f"  {name:<20} {agreed[name]:4d} of {count:4d}  {agreed[name] / count:7.1%}")
    for kind in ("check", "rule"):
        names = [name for name in judged_ if name.startswith(kind)]
        share = sum(agreed[n] for n in names) / sum(judged_[n] for n in names)
        print(f"{kind}: {share:.2%} of {sum(judged_[n] for n in names)} answers")
    print(f"{DEPLOYMENTS} deployments in {time.perf_counter() - began:.0f} s; these differ:")
    print("\n".join(differing))
