"""From the matrices that a server holds round by round to records, with public facts only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array, BoolArray
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.attacks.records import BUDGET, Records, record_stages
from fedpca_core.attacks.without_mean import Differences, records_without_mean
from fedpca_core.guarantee import Guarantee
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.studies.records.held import Held
from fedpca_core.studies.study import Part, Step

#: Steps that a server without a schema tries on all features: whole numbers and the usual scales,
#: coarse ones first, because they fail quickly.
USUAL_STEPS = (1.0, 0.1, 1 / 16, 0.01, 1 / 255, 1 / 1020)
#: Share of the work that a guessed step gets.
_GUESSED = 0.05


@dataclass(frozen=True, eq=False)
class TakenApart:
    """How far a server came with one client.

    Attributes
    ----------
    found : Records or Differences or None
        Of the round below, or of the last one that was tried; None where nothing was. Differences
        where a mean was subtracted that the server is not told.
    round : int or None
        The round after whose messages the records are certified.
    step : float or None
        The guessed step that led there, where no grid was announced.
    """

    found: Records | Differences | None = None
    round: int | None = None
    step: float | None = None


def take_apart(
    states: Sequence[Held],
    public: PublicFacts,
    *,
    guarantee: Guarantee | None = None,
    grid_known: bool = True,
    mean_known: bool = True,
) -> Part[TakenApart]:
    """Go on from the matrices to the records behind them.

    The first matrix that is whole is tried, then the last; where only the last gives way the rounds
    between are halved, because later messages never tell less.

    Parameters
    ----------
    states : sequence of Held
        After every round.
    public : PublicFacts
    guarantee : Guarantee, optional
        Noise at the source, whose size is public.
    grid_known, mean_known : bool
        Whether the server is told the grid, and the mean that was subtracted. Without a grid it
        tries the usual ones.
    """
    noise = 0.0 if guarantee is None else guarantee.noise
    factors: list[tuple[int, Factor]] = []
    for k, state in enumerate(states):
        if state.whole is not None and (not factors or state.whole is not states[k - 1].whole):
            whole = state.whole
            factors.append((k, replace(whole, error=max(whole.error, noise)) if noise else whole))
    if not factors:
        return TakenApart()
    mean = public.mean if mean_known else None
    kept_back = public.mean is not None and not mean_known
    grids = [public.grid] if grid_known else list(USUAL_STEPS)

    def tried(number: int) -> Part[TakenApart]:
        found: Records | Differences | None = None
        for grid in grids:
            factor = factors[number][1]
            if kept_back and factor.samples >= 3:
                found = records_without_mean(factor, grid)
                yield Step(0.5, "Taking the matrix apart into differences")
                if found.certified:
                    return TakenApart(
                        found, factors[number][0], None if grid_known else float(grid)
                    )
                continue
            budget = BUDGET if grid_known else _GUESSED * BUDGET
            total = None if mean is None else public.records_total
            bounds = public.bounds if grid_known else None
            for stage in record_stages(factor, grid, mean, total, bounds=bounds, budget=budget):
                found = stage
                share = 1.0 - 1.0 / (1 + len(stage.attempts))
                yield Step(share, "Taking the matrix apart into records")
            if found is not None and found.certified:
                step = None if grid_known else float(grid)
                return TakenApart(found, factors[number][0], step)
        return TakenApart(found)

    low, high = 0, len(factors) - 1
    first: TakenApart = yield from tried(low)
    if first.round is not None or low == high:
        return first
    best: TakenApart = yield from tried(high)
    if best.round is None:
        return best
    while high - low > 1:
        middle = (low + high) // 2
        between: TakenApart = yield from tried(middle)
        if between.round is None:
            low = middle
        else:
            high, best = middle, between
    return best


def exactly(found: Array, private: Array, grid: Array) -> BoolArray:
    """Which recovered values are the private ones (simulation only).

    The same point of the grid; files that keep pixels in single precision are off by 1e-4 of it.
    """
    return np.abs(found - private) < 1e-3 * grid[:, None]
