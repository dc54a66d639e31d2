"""The inner loop of FAPS, and the same in coordinates of records, against the loop as printed."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.faps import fast as faps_fast
from fedpca_core.algorithms.faps import inner as faps_inner
from fedpca_core.algorithms.faps import rules as faps_rules
from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import householder, projector_distance
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.simulate import Simulation

FEATURES, COMPONENTS = 60, 4
SAMPLES = (12, 9, 30, 75)


def both_ways(blocks: list[Array]) -> list[fp.problems.Problem]:
    """The problem held as records and as second moments."""
    return [
        fp.problems.Problem(name=keep, client_data=ClientData.from_blocks(blocks, keep=keep))
        for keep in ("factors", "grams")
    ]


def blocks(seed: int = 0) -> list[Array]:
    """Clients of few records from one spectrum, and one whose data are zero."""
    rng = np.random.default_rng(seed)
    scales = 1.1 ** -np.arange(FEATURES)
    drawn = [scales[:, None] * rng.standard_normal((FEATURES, count)) for count in SAMPLES]
    return [*drawn, np.zeros((FEATURES, 5))]


def as_printed(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> IntArray:
    """``X <- orth(H X)``, a frame after each product with the H that is formed."""
    tall, wide = faps_inner.low_rank_part(state, received)
    operators = data.dense() + tall @ wide
    start = frames = state.frame
    going, made = rule.budget > 0, np.zeros_like(rule.budget)
    while going.any():
        before, made = frames, made + going
        pairs = zip(operators, frames, strict=True)
        moved = np.stack([householder(h @ x) if h.any() else x for h, x in pairs])
        frames = np.where(going[:, None, None], moved, frames)
        if rule.follow and made.max() == 1:
            faps_rules.follow(data, state, frames, going)
        if rule.test == "change":
            going = going & (projector_distance(frames, before) > rule.tolerance)
        elif rule.test == "conditions":
            first, now = (start, operators @ start), (frames, operators @ frames)
            going = going & ~conditions_hold(rule, state, first, now)
        going = going & (rule.budget > made)
    products = data.dense() @ frames
    state.product = np.where((made > 0)[:, None, None], products, state.product)
    state.frame = frames
    return made


RUNS = [
    ({"inner_rule": "fixed", "inner_steps": 1}, 1.0),
    ({"inner_rule": "fixed", "inner_steps": 5}, 0.6),
    ({"inner_rule": "fixed", "inner_steps": 12}, 1.0),
    ({"random_inner_steps": True, "private_start": True}, 0.6),
    ({"inner_rule": "auto"}, 1.0),
    ({"inner_rule": "auto", "private_penalty": True}, 0.6),
    ({"inner_rule": "change"}, 1.0),
    ({"inner_rule": "change", "inner_tolerance": 0.03, "inner_limit": 4}, 0.6),
    ({"inner_rule": "conditions", "private_start": True}, 0.6),
]


@pytest.mark.parametrize("held", ["records", "moments"])
@pytest.mark.parametrize(("options", "participation"), RUNS)
def test_a_run_equals_the_loop(
    options: dict, participation: float, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = both_ways(blocks())[held == "moments"]
    algorithm = fp.FAPS(COMPONENTS, **options)
    monkeypatch.setattr(faps_fast, "FEATURES", 0)
    quick = fp.simulate(problem, algorithm, rounds=12, seed=3, participation=participation)
    everybody = lambda rule, *_: np.ones(len(rule.budget), dtype=bool)  # noqa: E731
    monkeypatch.setattr(faps_fast, "iterate_in_coordinates", everybody)
    monkeypatch.setattr(faps_fast, "iterate", as_printed)
    plain = fp.simulate(problem, algorithm, rounds=12, seed=3, participation=participation)
    assert np.allclose(quick.estimates, plain.estimates, rtol=0, atol=1e-10)
    assert np.array_equal(quick.local_products, plain.local_products)
    assert np.allclose(quick.state("penalty"), plain.state("penalty"), rtol=1e-12, atol=0)


def test_rounding_does_not_grow_from_round_to_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """F^T X_i is carried from round to round, never made anew: its error might feed on itself."""
    monkeypatch.setattr(faps_fast, "FEATURES", 0)
    problem = both_ways(blocks())[0]
    algorithm = fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=1)
    run = Simulation(problem, algorithm, rounds=400)
    last = [entry.estimate for entry in run][-1]
    errors = fp.metrics.subspace_errors(last[None], problem, COMPONENTS)
    assert errors["relative_error"][-1] < 1e-13
    factors = problem.client_data.factors
    for factor, frame, pulled in zip(
        factors[:-1], run.clients["frame"], run.clients["pulled"], strict=False
    ):
        if factor.shape[1] > FEATURES:  # made anew in every round
            assert np.isnan(pulled).all()
            continue
        carried = pulled[: factor.shape[1]]
        assert np.linalg.norm(carried - factor.T @ frame) < 1e-13 * np.linalg.norm(carried)
        assert np.isnan(pulled[factor.shape[1] :]).all()


def test_dependent_columns_are_left_to_the_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with fewer records than components has an S_i that maps columns onto each other."""
    rng = np.random.default_rng(1)
    few = [rng.standard_normal((FEATURES, count)) for count in (2, 12, 30)]
    left = []
    plain = faps_fast.iterate_in_coordinates
    monkeypatch.setattr(faps_fast, "FEATURES", 0)

    def watched(*arguments):
        left.append(plain(*arguments))
        return left[-1]

    monkeypatch.setattr(faps_fast, "iterate_in_coordinates", watched)
    # Frames that a client draws itself and a tiny penalty: H is S_i, of rank 2, and little else.
    algorithm = fp.FAPS(
        COMPONENTS, inner_rule="fixed", penalty_factor=1e-9, private_start=True, adaptive=False
    )
    first, second = (fp.simulate(p, algorithm, rounds=3) for p in both_ways(few))
    assert np.any(left)
    assert not np.all(left)
    assert np.array_equal(first.local_products, second.local_products)
    assert np.allclose(first.estimates, second.estimates, rtol=0, atol=1e-6)
