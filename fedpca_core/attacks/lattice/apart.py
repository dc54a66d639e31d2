"""The lattice attacks on records, from the matrices that a server believes in round by round."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import Belief, Deployment, Effort, RecordsAttack
from fedpca_core.attacks.lattice.codes import are_codes, records_of_codes
from fedpca_core.attacks.lattice.records import Records, record_stages
from fedpca_core.attacks.lattice.without_mean import records_without_mean
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.findings import Target
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.steps import Part, Step

#: Steps that a server without a schema tries on all features: whole numbers and the usual scales,
#: coarse ones first, because they fail quickly.
USUAL_STEPS = (1.0, 0.1, 1 / 16, 0.01, 1 / 255, 1 / 1020)
#: What a mean leaves of whole numbers is rounding below this, in grid units.
_WHOLE = 1e-3
#: Share of the work that a guessed step gets.
_GUESSED = 0.05
#: A step for all features, or of each.
Grid = float | Array
#: How far a search has come; the last state is its result.
Stages = Iterator[Records]
#: One way to take a factor apart on a grid.
Apart = Callable[[Factor, Grid, Deployment, float], Stages]


def take_apart(
    apart: Apart,
    view: Transcript,
    deployment: Deployment,
    client: int,
    effort: Effort,
    beliefs: Sequence[Belief],
) -> Part[Records]:
    """The records behind the first matrix that can be taken apart.

    The first that is whole is tried, then the last; where only the last gives way the rounds
    between are halved, because later messages never tell less. Of the states that ``apart`` goes
    through, the last one counts.
    """
    noise = 0.0 if deployment.guarantee is None else deployment.guarantee.noise
    factors: list[tuple[int, Factor]] = []
    for k, state in enumerate(beliefs):
        if state.whole is not None and (not factors or state.whole is not beliefs[k - 1].whole):
            factors.append((k, _noisy(state.whole, noise)))
    if not factors:
        return Records(False, "")
    known = deployment.grid_known
    grids: Sequence[Grid] = [deployment.steps] if known else USUAL_STEPS

    def tried(number: int) -> Part[Records]:
        round_, factor = factors[number]
        for grid in grids:
            for count, stage in enumerate(apart(factor, grid, deployment, effort.work), 1):
                last = stage
                yield Step(1.0 - 1.0 / count, "Taking the matrix apart")
            if last.certified:
                return replace(last, round=round_, step=None if known else float(np.min(grid)))
        return last

    low, high = 0, len(factors) - 1
    best: Records = yield from tried(low)
    if best.round is not None or low == high:
        return best
    best = yield from tried(high)
    while best.round is not None and high - low > 1:
        middle = (low + high) // 2
        between: Records = yield from tried(middle)
        if between.round is None:
            low = middle
        else:
            high, best = middle, between
    return best


def _noisy(factor: Factor, noise: float) -> Factor:
    """The same, known to the noise at the source of an entry of the matrix."""
    if not noise or not factor.rank:
        return factor
    weakest = float(np.linalg.norm(factor.matrix, axis=0).min())
    return replace(factor, error=max(factor.error, noise / weakest))


def _whole(factor: Factor, grid: Grid, deployment: Deployment, work: float) -> Stages:
    facts, known = deployment.records, deployment.grid_known
    assert facts is not None  # else there is no grid
    return record_stages(
        factor,
        grid,
        deployment.mean,
        None if deployment.mean is None else facts.records_total,
        bounds=facts.bounds if known else None,
        budget=work if known else _GUESSED * work,
    )


def _differences(factor: Factor, grid: Grid, deployment: Deployment, work: float) -> Stages:
    found = records_without_mean(factor, grid)
    yield found
    if found.whole is None or deployment.mean is None:
        return
    # All records together are centred on their own mean, which everybody was told: it says what
    # they have in common, and their sign.
    steps = np.broadcast_to(np.asarray(grid, dtype=float), (deployment.features,))
    for whole in (found.whole, -found.whole):
        common = deployment.mean / steps - whole.mean(axis=1)
        if np.abs(common - np.rint(common)).max() < _WHOLE:
            raised = whole + np.rint(common).astype(np.int64)[:, None]
            note = f"{found.note.rstrip('.')}, which the announced mean tells."
            yield Records(True, note, raised, raised * steps[:, None])
            return


def _codes(factor: Factor, grid: Grid, deployment: Deployment, work: float) -> Stages:
    yield records_of_codes(factor, deployment.mean, work)


def _few(deployment: Deployment, client: int) -> str:
    """Why there are too many records for a lattice, or no grid."""
    if deployment.records is None:
        return "the records are real numbers, which lie on no grid"
    if deployment.rank(client) >= deployment.features:
        return (
            f"{deployment.held(client)} records span all {deployment.features} features, and a "
            "matrix of that rank fits many sets"
        )
    return ""


def _with_mean(deployment: Deployment, client: int) -> str:
    told = deployment.centring in ("none", "announced")
    return _few(deployment, client) or ("" if told else "the mean that was subtracted is not told")


def _no_mean(deployment: Deployment, client: int) -> str:
    if deployment.centring in ("none", "announced") and not deployment.sums:
        return "the mean is told, so the records themselves follow"
    if deployment.centring == "none":
        return "nothing was subtracted"
    if deployment.held(client) < 3:
        return "two records have one difference, of either sign"
    return _few(deployment, client)


def _coded(deployment: Deployment, client: int) -> str:
    if not are_codes(deployment):
        return "the schema names columns that are no codes of 0 and 1"
    if deployment.centring not in ("none", "announced"):
        return "the mean that was subtracted is not told, and counts need it"
    return ""


def _seconds(deployment: Deployment, client: int) -> float:
    """Reduction of some dozen rows: about the fourth power of the records."""
    return 0.05 + 2e-5 * min(deployment.held(client), deployment.features) ** 4 / 10


LATTICE_ATTACKS = tuple(
    RecordsAttack(key, title, fits, seconds, partial(take_apart, way), Target.RECORDS, True)
    for key, title, fits, seconds, way in (
        ("lattice", "lattice reduction", _with_mean, _seconds, _whole),
        ("differences", "lattice reduction without the mean", _no_mean, _seconds, _differences),
        ("codes", "counts of codes", _coded, lambda deployment, client: 0.2, _codes),
    )
)
