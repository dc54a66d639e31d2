"""First-order theory of a round: its law, the runs it predicts, and where it says nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.faps.rules import largest_stable_steps
from fedpca_core.arrays import Array
from fedpca_core.metrics import linearised
from fedpca_core.metrics.linearised import predicted
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams
from tests.algorithms.small_problems import client_spectra, identical, stability_numbers

COMPONENTS = 3
MEASURES = ("sin_theta", "kkt", "relative_error", "consensus_gap")


def rotated(heterogeneity: float, seed: int = 0, samples: int = 600) -> fp.problems.Problem:
    return fp.problems.decay_spectrum(
        24, [samples, 2 * samples, samples, 3 * samples], 1.08,
        heterogeneity=heterogeneity, seed=seed,
    )  # fmt: skip


def finished(problem: fp.problems.Problem, algorithm: Algorithm, rounds: int = 200) -> Trace:
    return fp.simulate(problem, algorithm, rounds=rounds, channel=fp.Channel(record="estimates"))


def closed_form(values: Array, penalty: float, steps: int) -> float:
    """Angle factor a round of FAPS with identical clients: the largest over all pairs l <= p < j
    of 1 - c g/(g + beta), g = lambda_l - lambda_j, c = 1 - (lambda_j/(lambda_l + beta))^J."""
    inside, outside = values[:COMPONENTS, None], values[None, COMPONENTS:]
    gap = inside - outside
    solved = 1.0 - (outside / (inside + penalty)) ** steps
    return float((1.0 - solved * gap / (gap + penalty)).max())


def log_slopes(*columns: pd.Series) -> list[float]:
    """Decay a round of each column where all of them stay clear of rounding."""
    joined = pd.concat(columns, axis=1, join="inner")
    clear = joined[(joined > 1e-11).all(axis=1)]
    assert len(clear) >= 10
    return [float(np.polyfit(clear.index, np.log(clear.iloc[:, k]), 1)[0]) for k in range(2)]


@pytest.mark.parametrize(
    ("steps", "factor"), [(1, 0.15), (1, 0.5), (2, 0.5), (3, 0.15), (5, 0.15), (8, 0.5), (60, 0.5)]
)
def test_identical_clients_obey_the_closed_form(steps: int, factor: float) -> None:
    problem = identical(1.05)
    algorithm = fp.FAPS(COMPONENTS, factor, adaptive=False, inner_rule="fixed", inner_steps=steps)
    trace = finished(problem, algorithm, 400)
    expected = closed_form(problem.eigenvalues, factor * float(problem.eigenvalues[0]), steps)
    found = predicted(trace, problem)
    angles = found.set_index("round")["sin_theta"]
    late = angles[angles > 1e-12].iloc[-10:]
    factors = (late.iloc[-1] / late.iloc[0]) ** (1 / 9)
    assert 1 - factors == pytest.approx(1 - expected, rel=0.01)
    measured = fp.metrics.frame(trace, problem)["sin_theta"].loc[late.index]
    assert (measured.iloc[-1] / measured.iloc[0]) ** (1 / 9) == pytest.approx(factors, rel=1e-3)


def test_power_methods_shrink_by_the_ratio_at_the_cut() -> None:
    problem = identical(1.05)
    for algorithm in (fp.SSI(COMPONENTS), fp.LocalPower(COMPONENTS)):
        found = predicted(finished(problem, algorithm), problem)
        assert found["consensus_gap"].isna().all()
        angles = found["sin_theta"].to_numpy()
        assert angles[60] / angles[59] == pytest.approx(1.05**-2, rel=1e-3)
        errors = found["relative_error"].to_numpy()
        assert errors[60] / errors[59] == pytest.approx(1.05**-4, rel=2e-3)


@pytest.mark.parametrize("rule", ["auto", "fixed"])
def test_the_map_is_the_derivative_of_a_round(monkeypatch, rule: str) -> None:
    """What it leaves out is of second order: ten times closer, ten times less of it."""
    problem = rotated(0.7)
    algorithm = fp.FAPS(COMPONENTS, 0.3, inner_rule=rule, inner_steps=4)
    trace = finished(problem, algorithm)
    measured = fp.metrics.frame(trace, problem).set_index("round")
    left_out = []
    for close in (1e-2, 1e-4):
        monkeypatch.setattr(linearised, "CLOSE", close)
        found = predicted(trace, problem)
        few = found.set_index("round").iloc[:6]
        ratios = few[["sin_theta", "kkt"]] / measured.loc[few.index, ["sin_theta", "kkt"]]
        left_out.append(float(np.abs(ratios - 1).to_numpy().max()))
    assert left_out[0] < 0.05
    assert left_out[1] < 0.03 * left_out[0]


SETTINGS = {
    "default": (0.0, {}),
    "one step": (0.5, {"inner_rule": "fixed", "inner_steps": 1}),
    "two steps": (0.5, {"inner_rule": "fixed", "inner_steps": 2}),
    "three steps": (0.8, {"inner_rule": "fixed", "inner_steps": 3}),
    "five steps": (0.2, {"inner_rule": "fixed", "inner_steps": 5}),
    "five steps, penalty raised": (1.0, {"inner_rule": "fixed", "inner_steps": 5}),
    "never raised": (1.0, {"adaptive": False}),
    "strong penalty": (0.5, {"penalty_factor": 0.5, "inner_rule": "fixed"}),
    "weak penalty": (0.3, {"penalty_factor": 0.05}),
    "heterogeneous": (1.0, {}),
    "secrets": (0.4, {"private_start": True, "private_penalty": True}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_predicted_slopes_are_the_measured_ones(name: str) -> None:
    heterogeneity, options = SETTINGS[name]
    problem = rotated(heterogeneity)
    trace = finished(problem, fp.FAPS(COMPONENTS, **options), 300)
    found = predicted(trace, problem)
    table, found = fp.metrics.frame(trace, problem).set_index("round"), found.set_index("round")
    for measure in MEASURES:
        measured, drawn = log_slopes(table[measure], found[measure])
        assert measured == pytest.approx(drawn, rel=0.05), measure


def test_the_closed_form_does_not_hold_for_small_clients() -> None:
    """Two samples a feature: the run is less than half as fast as clients all alike would be."""
    algorithm = fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=5)
    for problem in (
        rotated(0.0, samples=48),
        fp.problems.decay_spectrum(30, [60] * 12, 1.03, seed=0),  # penalties must rise first
    ):
        trace = finished(problem, algorithm, 500)
        found = predicted(trace, problem)
        table = fp.metrics.frame(trace, problem).set_index("round")
        measured, drawn = log_slopes(table["sin_theta"], found.set_index("round")["sin_theta"])
        old = np.log(closed_form(problem.eigenvalues, 0.15 * float(problem.eigenvalues[0]), 5))
        assert measured == pytest.approx(drawn, rel=0.05)
        assert measured / old < 0.5


def test_where_nothing_is_predicted_the_reason_is_said() -> None:
    problem = rotated(0.3)

    def said(algorithm: Algorithm, rounds: int = 100, participation: float = 1.0) -> str:
        trace = fp.simulate(problem, algorithm, rounds=rounds, participation=participation)
        with pytest.raises(fp.InvalidInput) as refused:
            predicted(trace, problem)
        return str(refused.value)

    assert "3 rounds end before it comes close" in said(fp.FAPS(COMPONENTS), rounds=3)
    assert "2 of 4 clients take part" in said(fp.FAPS(COMPONENTS), participation=0.5)
    for options in ({"inner_rule": "conditions"}, {"inner_rule": "change"}):
        assert "choose the inner rule" in said(fp.FAPS(COMPONENTS, **options))
    assert "no random steps" in said(fp.FAPS(COMPONENTS, random_inner_steps=True))
    for other in (fp.BlockKrylov(COMPONENTS), fp.VariableSplitting(COMPONENTS)):
        assert "SSI, LocalPower and FAPS have one" in said(other)


@pytest.mark.parametrize("algorithm", [fp.SSI(COMPONENTS), fp.FAPS(COMPONENTS)])
@pytest.mark.parametrize("epsilon", [3.0, 10.0])
def test_noise_at_the_source_is_in_the_map(algorithm: Algorithm, epsilon: float) -> None:
    """The matrices of the run, not the honest ones: those would fall to rounding."""
    problem = rotated(0.3, samples=5000).private(epsilon, 1e-6, 1.0, Streams(0))
    trace = finished(problem, algorithm, 300)
    found = predicted(trace, problem)
    measured = fp.metrics.frame(trace, problem).loc[found["round"]]
    assert measured["sin_theta"].iloc[-1] > 1e-4
    for measure in ("sin_theta", "kkt", "relative_error"):
        assert np.log10(found[measure].to_numpy() / measured[measure].to_numpy()) == pytest.approx(
            0.0, abs=0.1
        ), measure


def test_a_prediction_ends_where_rounded_messages_decide() -> None:
    problem = rotated(0.3)
    ends = {}
    for dtype in ("float64", "float32"):
        channel = fp.Channel(dtype=dtype, record="estimates")
        trace = fp.simulate(problem, fp.SSI(COMPONENTS), rounds=300, channel=channel)
        found = predicted(trace, problem).set_index("round")["sin_theta"]
        measured = fp.metrics.frame(trace, problem)["sin_theta"].loc[found.index]
        clear = found > 1e-13
        assert np.log10(found / measured)[clear].abs().max() < 0.1
        ends[dtype] = float(found.iloc[-1])
    assert ends["float64"] < 1e-12 < 1e-8 < ends["float32"] < 1e-4


def test_steps_of_the_rule_auto() -> None:
    outside, inside, penalty = np.array([0.5, 0.9]), np.array([0.8, 0.3]), np.array([0.15, 0.2])
    most = largest_stable_steps(outside, inside, penalty, 50)
    assert most[0] == 50  # the sum stays below 1 for ever
    assert stability_numbers(outside, inside, penalty, int(most[1]))[1] <= 1
    assert stability_numbers(outside, inside, penalty, int(most[1]) + 1)[1] > 1
    assert largest_stable_steps(np.ones(1), np.zeros(1), np.ones(1), 9).tolist() == [1]


def test_the_threshold_is_where_faps_leaves_the_consensus() -> None:
    """At the solution, FAPS with fixed J is stable for kappa well below 2, unstable above."""
    problem = fp.problems.decay_spectrum(40, (60, 60, 60), 1.05, heterogeneity=0.8, seed=1)
    outside, inside = client_spectra(problem.client_data, problem.target(COMPONENTS))
    norms = problem.client_data.spectral_norms()
    angles, numbers = [], []
    for factor in (0.1, 3.0):
        kappa = stability_numbers(outside, inside, factor * norms, 20).max()
        algorithm = fp.FAPS(COMPONENTS, factor, adaptive=False, inner_rule="fixed", inner_steps=20)
        trace = fp.simulate(problem, algorithm, rounds=800)
        numbers.append(kappa)
        angles.append(float(fp.metrics.frame(trace, problem).sin_theta.iloc[-1]))
    assert numbers[0] > 4 and angles[0] > 1e-3
    assert numbers[1] < 2 and angles[1] < 1e-6
