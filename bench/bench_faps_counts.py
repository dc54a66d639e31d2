"""Rounds and products to relative error 1.07e-7 on the uneven problem of FAPS: counts, no times.

Takes some minutes. At 1000 features and 5 starts FAPS with 5 inner steps should need at most a
third of SSI's rounds in the median, and block Krylov at most 13.
"""

from __future__ import annotations

import statistics

import fedpca_core as fp
from fedpca_core.protocol.algorithm import Algorithm

ACCURACY, COMPONENTS = 1.07e-7, 10


def fixed(steps: int) -> fp.FAPS:
    """FAPS with a fixed number of inner steps."""
    return fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=steps)


def count(
    problem: fp.problems.Problem, algorithm: Algorithm, seed: int, limit: int
) -> tuple[int, float] | None:
    """Rounds and products a client to the accuracy; None where the limit comes first."""
    run = fp.Simulation(
        problem, algorithm, rounds=limit, seed=seed, channel=fp.Channel(record="estimates")
    )
    for round_ in run:
        errors = fp.metrics.subspace_errors(round_.estimate[None], problem)
        if errors["relative_error"][0] <= ACCURACY:
            break
    else:
        return None
    trace = run.trace()
    return round_.index, float(trace.local_products[-1]) / problem.clients


def report(
    name: str,
    problem: fp.problems.Problem,
    compared: dict[str, Algorithm],
    starts: int,
    limit: int = 600,
) -> None:
    """Print the rounds from every start, their median and the median of the products."""
    print(f"{name}: rounds to relative error {ACCURACY:g}, starts 0 to {starts - 1}")
    print(f"  {'':<26}{'median':>8}{'products':>10}   each start")
    for label, algorithm in compared.items():
        found = [count(problem, algorithm, seed, limit) for seed in range(starts)]
        rounds = [float(each[0]) if each else float("inf") for each in found]
        products = [each[1] if each else float("inf") for each in found]
        listed = " ".join(f"{value:g}" for value in rounds)
        print(
            f"  {label:<26}{statistics.median(rounds):>8g}{statistics.median(products):>10.0f}"
            f"   {listed}",
            flush=True,
        )
    print()


def main() -> None:
    """Print the tables."""
    clients = range(1, 9)
    few = fp.problems.decay_spectrum(300, [300 * i for i in clients], 1.01)
    many = fp.problems.decay_spectrum(300, [1000 * i for i in clients], 1.01)
    everything: dict[str, Algorithm] = {
        "SSI": fp.SSI(COMPONENTS),
        "LocalPower": fp.LocalPower(COMPONENTS),
        "LocalPower (decay)": fp.LocalPower(COMPONENTS, schedule="decay"),
        **{f"FAPS, J = {steps}": fixed(steps) for steps in (1, 2, 3, 4, 5, 8)},
        "FAPS, auto": fp.FAPS(COMPONENTS),
        "FAPS, change": fp.FAPS(COMPONENTS, inner_rule="change"),
        "FAPS, conditions": fp.FAPS(COMPONENTS, inner_rule="conditions"),
        "variable splitting, J = 5": fp.VariableSplitting(COMPONENTS, inner_steps=5),
        "variable splitting, J = 8": fp.VariableSplitting(COMPONENTS, inner_steps=8),
        "block Krylov": fp.BlockKrylov(COMPONENTS),
        "block Krylov, all kept": fp.BlockKrylov(COMPONENTS, blocks=30),
    }
    report("A, 300 features, 300 i samples", few, everything, starts=3)
    report("B, 300 features, 1000 i samples", many, everything, starts=3)
    free: dict[str, Algorithm] = {
        f"free, factor {factor:g}": fp.VariableSplitting(COMPONENTS, factor, 5, "free")
        for factor in (2.0, 3.0)
    }
    report("A, variable splitting with free X_i", few, free, starts=3, limit=2000)
    full = fp.problems.decay_spectrum(1000, [1000 * i for i in clients], 1.01)
    compared: dict[str, Algorithm] = {
        "SSI": fp.SSI(COMPONENTS),
        "LocalPower": fp.LocalPower(COMPONENTS),
        "FAPS, J = 5": fixed(5),
        "FAPS, auto": fp.FAPS(COMPONENTS),
        "variable splitting, J = 5": fp.VariableSplitting(COMPONENTS, inner_steps=5),
        "block Krylov": fp.BlockKrylov(COMPONENTS),
    }
    report("uneven, 1000 features, 1000 i samples", full, compared, starts=5)


if __name__ == "__main__":
    main()
