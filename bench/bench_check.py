"""How often the leak check agrees with attacks run on other records of the same description."""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_core.studies.check.rules import expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.shares import Share
from fedpca_core.studies.check.study import Verdict, attacked, judged, values
from fedpca_core.studies.check.trial import LIMITS, runnable, tried

DEPLOYMENTS = 200
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


@dataclass(frozen=True)
class Statement:
    """One share that the check states, and what as many fresh attacks gave.

    Attributes
    ----------
    verdict : Verdict
    event : str
        "got" or "something".
    stated : Share
    fresh : float
        The same share of draws that the check never saw.
    """

    verdict: Verdict
    event: str
    stated: Share
    fresh: float

    @property
    def agrees(self) -> bool:
        """Whether the fresh share is as stated, and the statement says enough to be wrong."""
        return self.stated.width <= WIDEST and self.stated.holds(self.fresh)


def compared(deployment: CheckSettings) -> tuple[list[Statement], float]:
    """What the check states, beside as many attacks on records it never saw.

    Returns
    -------
    statements : list of Statement
    within : float
        Share of the fresh figures within the span that the check states.

    Raises
    ------
    InvalidInput
        It does not run at all.
    """
    *_, trials = attacked(deployment)
    fresh = [tried(deployment, deployment.seed + FRESH + 7919 * k) for k in range(len(trials))]
    statements, inside = [], []
    for verdict in judged(deployment, trials):
        got = [one.got[verdict.target] for one in fresh]
        for event, stated in verdict.stated.items():
            seen = float(np.mean(values(stated.of, event, got)))
            statements.append(Statement(verdict, event, stated, seen))
        # Rounding is no difference.
        low, high = verdict.least - 1e-6, verdict.most + 1e-6
        inside += [low <= one.figure <= high for one in got if not math.isnan(one.figure)]
    return statements, float(np.mean(inside))


def main(passed_on: Sequence[str] = ()) -> None:
    """Print in how many deployments every share is as stated, and how much is stated.

    A deployment agrees where every share in as many fresh draws lies in the stated interval. An
    interval wider than `WIDEST` says too little and counts as wrong.
    """
    options = argparse.ArgumentParser(prog="python -m bench check")
    options.add_argument("--deployments", type=int, default=DEPLOYMENTS)
    options.add_argument("--seed", type=int, default=UNSEEN)
    options.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    chosen = options.parse_args(passed_on)
    count, generator = chosen.deployments, Streams(chosen.seed).generator("deployments")
    began, done, right, plain = time.process_time(), 0, 0, 0
    rules, rules_wrong = 0, 0
    every: list[Statement] = []
    spans: list[float] = []
    methods: Counter[str] = Counter()
    while done < count:
        deployment = random_deployment(generator)
        if deployment.method not in chosen.methods or not runnable(deployment):
            continue
        try:
            statements, within = compared(deployment)
        except InvalidInput:
            continue
        done, right = done + 1, right + all(one.agrees for one in statements)
        plain += all(one.verdict.answer != "split" for one in statements)
        methods[deployment.method] += 1
        every += statements
        spans.append(within)
        bare = expected(deployment)
        for one in statements:
            rule = bare[one.verdict.target].open
            half = np.mean(LIMITS["membership"]) if one.stated.of == "pairs" else 0.5
            if one.event == "got" and rule is not None:
                rules, rules_wrong = rules + 1, rules_wrong + (rule != (one.fresh >= half))
            if not one.agrees:
                print(
                    f"  {one.verdict.target}: check says {one.verdict.answer}, {one.event} in "
                    f"{one.stated.low:.2f} to {one.stated.high:.2f}; fresh {one.fresh:.2f}; "
                    f"{deployment.changed()}",
                    flush=True,
                )
        if done % PROGRESS and done < count:
            continue
        answers = Counter(one.verdict.answer for one in every if one.event == "got")
        widths = [one.stated.width for one in every]
        split = [one.stated.width for one in every if one.verdict.answer == "split"]
        print(
            f"{done} deployments, {time.process_time() - began:.0f} s of CPU: {right} agree in all "
            f"they state ({sum(one.agrees for one in every)} of {len(every)} statements); {plain} "
            f"without a split; answers {dict(answers)}; intervals are {np.mean(widths):.2f} "
            f"wide, of splits {np.mean(split or [0.0]):.2f}, at most {max(widths):.2f}; "
            f"{np.mean(spans):.0%} of fresh figures within their span; bare rules {rules}, "
            f"{rules_wrong} wrong; {dict(methods)}",
            flush=True,
        )
