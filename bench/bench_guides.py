"""How far the dashed lines of Converge lie from the runs that they predict, over drawn settings.

Run with ``python -m bench guides`` for 40 settings, or with ``--settings 100`` for more; the target
is half a decade at every round that is drawn.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedpca_core.questions.converge.study import Comparison, Convergence
from fedpca_core.steps import outcome
from fedpca_core.study.pca_settings import ConvergeSettings

MEASURES = ("relative_error", "kkt", "sin_theta", "consensus_gap")


def drawn(number: int) -> ConvergeSettings:
    """Settings with ε, float32, clients that differ and absent ones, among others."""
    generator = np.random.default_rng([14, number])

    def one(*of: Any) -> Any:
        return of[generator.integers(len(of))]

    return ConvergeSettings(
        problem=one("decay_geometric", "decay_arithmetic"),
        features=one(12, 20, 40, 80),
        clients=one(3, 5, 10),
        components=one(2, 3, 5),
        samples=one(200, 500, 1000, 5000),
        decay=one(1.03, 1.05, 1.1, 1.2),
        condition=one(10.0, 50.0),
        split=one("even", "uneven"),
        heterogeneity=one(0.0, 0.3, 0.6, 1.0),
        epsilon=one(math.inf, math.inf, 1.0, 3.0, 10.0, 100.0),
        dtype=one("float64", "float32"),
        inner_rule=one("auto", "fixed"),
        inner_steps=one(1, 3, 5),
        adaptive=one(True, False),
        penalty_factor=one(0.05, 0.15, 0.5),
        participation=one(1.0, 1.0, 1.0, 0.5),
        rounds=one(100, 300),
        starts=one(1, 2),
        seed=int(generator.integers(1000)),
        methods=("ssi", "local_power", "local_power_decay", "faps"),
    )


def compared(settings: ConvergeSettings) -> Comparison:
    """The comparison that the page would draw."""
    found = outcome(Convergence().run(settings))
    assert found is not None
    return found


def apart(found: Comparison) -> dict[tuple[str, str], float]:
    """Largest distance of each dashed line from its run in decades, by method and measure."""
    result = {}
    for method in found.tables:
        for measure in MEASURES:
            guide, line = found.guide(method, measure), found.line(method, measure, "round")
            if guide is not None and line is not None:
                run = line.middle[guide[0].astype(int)]
                result[method, measure] = float(np.abs(np.log10(guide[1] / run)).max())
    return result


def main(options: Sequence[str] = ()) -> None:
    """Print the distances."""
    parser = argparse.ArgumentParser(prog="python -m bench guides")
    parser.add_argument("--settings", type=int, default=40)
    count = parser.parse_args(options).settings
    worst = [apart(compared(drawn(number))) for number in range(count)]
    lines = [distance for each in worst for distance in each.values()]
    print(f"{count} settings, {len(lines)} dashed lines in {sum(map(bool, worst))} of them")
    print(f"median {np.median(lines):.3f} decades, largest {max(lines):.2f}")
    print(f"within half a decade: {sum(distance <= 0.5 for distance in lines)} of {len(lines)}")


if __name__ == "__main__":
    main()
