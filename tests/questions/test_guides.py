"""Dashed lines of Converge: they lie on the curves they predict, and only where they hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.converge import figures as convergence
from fedpca_core.questions.converge.study import SHORTEST_GUIDE, Comparison, Convergence
from fedpca_core.steps import Step, outcome
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
        sizes=one("even", "uneven"),
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


CHOSEN = ConvergeSettings(
    features=20, clients=4, components=3, samples=500, rounds=100, seed=2,
    methods=("ssi", "local_power", "faps", "block_krylov"),
)  # fmt: skip


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compared(CHOSEN)


@pytest.mark.parametrize("measure", MEASURES)
def test_guides_lie_on_the_medians_they_predict(comparison: Comparison, measure: str) -> None:
    wanted = ["faps"] if measure == "consensus_gap" else ["ssi", "local_power", "faps"]
    found = {method: comparison.guide(method, measure) for method in comparison.tables}
    assert [method for method, guide in found.items() if guide is not None] == wanted
    for method in wanted:
        rounds, values = found[method]
        line = comparison.line(method, measure, "round")
        assert line is not None and len(rounds) >= SHORTEST_GUIDE
        slopes = [
            np.polyfit(rounds, np.log(y), 1)[0] for y in (line.middle[rounds.astype(int)], values)
        ]
        assert slopes[0] == pytest.approx(slopes[1], rel=0.05)
    drawn = convergence.panel(comparison, replace(CHOSEN, measure=measure)).curves
    titles = {title for curve in drawn if curve.guide for title in curve.labels}
    assert titles == {METHODS[method].title for method in wanted}


#: Draws with ε and float64, with ε and float32, with float32 alone.
DRAWS = (0, 6, 7, 19, 22, 23, 27, 28)


@pytest.mark.parametrize("number", DRAWS)
def test_guides_stay_within_half_a_decade_of_drawn_runs(number: int) -> None:
    distances = apart(compared(drawn(number)))
    assert len(distances) >= 9
    assert max(distances.values()) <= 0.5, distances


def test_the_draws_have_noise_and_both_formats() -> None:
    kinds = {(drawn(n).dtype, np.isfinite(drawn(n).epsilon)) for n in DRAWS}
    assert kinds >= {("float64", True), ("float32", True), ("float32", False)}


def test_nothing_is_drawn_against_bytes(comparison: Comparison) -> None:
    against_bytes = convergence.panel(comparison, replace(CHOSEN, axis="bytes"))
    assert not any(curve.guide for curve in against_bytes.curves)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"participation": 0.5}, "2 of 4 clients take part in a round"),
        ({"upload_noise": 1e-3}, "every upload carries fresh noise"),
        ({"rounds": 10}, "10 rounds end before it comes close"),
    ],
)
def test_where_nothing_is_predicted_the_page_says_why(changes: dict[str, float], why: str) -> None:
    settings = replace(CHOSEN, **changes, methods=("ssi", "local_power", "faps"))
    found = compared(settings)
    assert not found.predictions
    assert not any(curve.guide for curve in convergence.panel(found, settings).curves)
    (said,) = convergence.undrawn(found, "kkt")
    assert said.startswith("No predicted run of SSI, LocalPower, FAPS: ") and why in said


def test_a_method_without_a_map_is_named(comparison: Comparison) -> None:
    (said,) = convergence.undrawn(comparison, "kkt")
    assert said.startswith("No predicted run of Block Krylov: no linear map of its round is known")
    assert convergence.undrawn(comparison, "consensus_gap") == []  # it has no such curve


def test_a_comparison_that_has_just_begun_has_no_guides(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of few rounds has no inner steps to average and no future to predict yet."""
    monkeypatch.setattr("fedpca_core.questions.converge.study.PARTIAL_SECONDS", 0.0)
    begun: list[Comparison] = []

    def stop(step: Step[Comparison]) -> bool:
        begun.extend([] if step.result is None else [step.result])
        return not begun

    outcome(Convergence().run(replace(CHOSEN, methods=("faps",))), stop)
    assert not begun[0].complete and len(begun[0].tables["faps"][0]) < 20
    assert begun[0].guide("faps", "relative_error") is None
    started = replace(begun[0], tables={"faps": (begun[0].tables["faps"][0].iloc[:1],)})
    assert started.guide("faps", "relative_error") is None
    fewer = {"faps": comparison.predictions["faps"][:1]}
    assert replace(comparison, predictions=fewer).guide("faps", "relative_error") is None


def test_arrival_at_consensus_comes_after_the_start(comparison: Comparison) -> None:
    summary = comparison.summary("consensus_gap", 1e-7).set_index("method")
    assert list(summary.index) == ["FAPS"]  # the others have no frames at the clients
    assert summary.loc["FAPS", "round"] > 1
    assert "needs the fewest rounds" in convergence.verdict(summary.reset_index(), 1e-7)
