"""Whether the advice of "Which one?" depends on its seed, over drawn deployments.

Run with ``python -m bench advice`` for 60 deployments. Each is asked from three seeds, whose data,
starts and noise have nothing in common. The advice holds where no answer puts a configuration into
its first group that another leaves out; what stands on the edge is neither. Where nothing does all
of it and an answer says what would, that is asked for from the other seeds. The target is 95% of
both.
"""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.questions.which.recommendation import CONFIGURATION, Advice, Recommendation
from fedpca_core.questions.which.remedies import Remedies, Remedy, at_hand
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome

#: Far enough from each other that the seeds of one answer are no seeds of another.
SEEDS = (0, 1000, 2000)


def drawn(number: int) -> FrontierSettings:
    """A deployment and what is asked of it."""
    generator = np.random.default_rng([19, number])

    def one(*of: Any) -> Any:
        return of[generator.integers(len(of))]

    return FrontierSettings(
        problem=one("decay_geometric", "decay_arithmetic"),
        features=one(8, 12, 20, 32),
        clients=one(3, 5, 8, 12),
        components=one(1, 2, 3, 5),
        samples=one(50, 200, 1000, 5000),
        heterogeneity=one(0.0, 0.3, 0.6),
        rounds=one(20, 30, 50),
        server=one("trusted", "curious", "sums"),
        needed_epsilon=one(0.5, 1.0, 2.0, 5.0, 10.0, math.inf),
        budget_bytes=one(1e3, 1e4, 1e5, 1e6, math.inf),
        budget_rounds=one(1.0, 5.0, 20.0, math.inf, math.inf),
        most_lost=one(0.01, 0.02, 0.05, 0.1, 0.2),
        searches=False,
    )


def advised(settings: FrontierSettings) -> Advice:
    """What the page would advise."""
    found = outcome(Recommendation().run(settings))
    assert found is not None
    return found


def names(rows: pd.DataFrame) -> frozenset[tuple[Any, ...]]:
    """The configurations in some rows of an advice."""
    return frozenset(rows[CONFIGURATION].itertuples(index=False, name=None))


def would_do(settings: FrontierSettings, advice: Advice) -> list[Remedy]:
    """What is said to do it."""
    searched = outcome(Remedies().run(settings))
    assert searched is not None
    every = {**at_hand(advice, settings), **searched}
    return [one for one in every.values() if one.value is not None]


def main(deployments: int = 60, first: int = 0) -> None:
    """Draw from number ``first`` on, ask from every seed, print the shares and what fails."""
    holds: list[bool] = []
    same: list[bool] = []
    told_first: list[bool] = []
    does: list[bool] = []
    for number in range(first, first + deployments):
        begun, asked = time.process_time(), drawn(number)
        advices = [advised(replace(asked, seed=seed)) for seed in SEEDS]
        groups = [names(one.group) for one in advices]
        others = [names(one.table) - names(one.edge) - names(one.group) for one in advices]
        same.append(len(set(groups)) == 1)
        told_first.append(len({names(one.table[one.table["rank"] == 1]) for one in advices}) == 1)
        holds.append(not frozenset.union(*groups) & frozenset.union(*others))
        if not same[-1]:
            print(f"{number}: {asked.query()}\n  " + "\n  ".join(map(str, map(sorted, groups))))
        if not any(groups):
            for remedy in would_do(asked, advices[0]):
                there = [replace(remedy.applied(asked), seed=seed) for seed in SEEDS[1:]]
                does.append(all(advised(one).place(1) is not None for one in there))
                if not does[-1]:
                    print(f"{number}: {remedy.name} {remedy.value} does not do {asked.query()}")
        seconds = time.process_time() - begun
        told = [f"{sum(some)} of {len(some)}" for some in (holds, same, told_first, does)]
        seeds = [one.seeds for one in advices]
        print(f"{number}: {', '.join(told)}, seeds {seeds}, {seconds:.0f} s", flush=True)
    print(f"Nothing contradicts in {told[0]} deployments, the group is the very same in {told[1]},")
    print(f"the one that comes first in {told[2]}; what would do did it in {told[3]}.")
