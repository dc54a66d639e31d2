"""If nothing does all of it: what would, and that it does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.questions.which.figures import would_do
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.recommendation import (
    Advice,
    Recommendation,
    rejudged,
    seed_counts,
)
from fedpca_core.questions.which.remedies import (
    Remedies,
    advice_of,
    at_hand,
    open_values,
    sentences,
    sure,
)
from fedpca_core.questions.which.runs import (
    FEWEST,
    LIVE,
    drawn,
    most_clients,
    problem_of,
    sized,
    smaller,
)
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Chart

FEW = ("block_krylov", "centralized")
SMALL = FrontierSettings(
    features=8, clients=3, samples=100, components=2, candidates=FEW, rounds=10, searches=False
)


def deployments(count: int) -> list[FrontierSettings]:
    """Drawn ones of which most ask for too much."""
    draw, found = np.random.default_rng(5), []
    for seed in range(count):
        found.append(
            replace(
                SMALL,
                features=int(draw.integers(5, 9)),
                clients=int(draw.integers(2, 4)),
                samples=int(draw.choice([100, 200, 500])),
                heterogeneity=float(draw.choice([0.0, 0.5])),
                server=str(draw.choice(["trusted", "curious", "sums"])),
                needed_epsilon=float(draw.choice([0.1, 0.5, math.inf])),
                budget_bytes=float(draw.choice([100.0, 1e3, math.inf])),
                budget_rounds=float(draw.choice([1.0, 2.0, math.inf])),
                most_lost=float(draw.choice([0.001, 0.01, 0.05])),
                seed=seed,
            )
        )
    return found


def advice(settings: FrontierSettings) -> Advice:
    """From all its seeds, without what is shown on the way."""
    return outcome(advice_of(settings, seed_counts(settings)[0], None))


def test_where_it_says_what_would_do_doing_that_does_it():
    asked = ((one, advice(one)) for one in deployments(8))
    settings, found = next(pair for pair in asked if pair[1].place(1) is None)
    searched = outcome(Remedies().run(settings))
    remedies = {**at_hand(found, settings), **searched}
    told = " ".join(sentences(remedies, settings))
    for name, one in remedies.items():
        if one.value is None:
            assert settings.parameters()[name].label in told
            continue
        done = advice(one.applied(settings))
        assert done.place(1) is not None
        same = done.table[
            (done.table["method"] == one.best["method"]) & (done.table["way"] == one.best["way"])
        ].iloc[0]
        assert same["excluded"] == "" and same["unexplained"] == one.best["unexplained"]
        # And a step less does not, of the values that were judged.
        short = one.tried[one.tried["value"].astype(float) < float(one.value)]
        for value in short["value"].tail(1):
            before = replace(one.applied(settings), **{name: type(one.value)(value)})
            assert sure(advice(before)) is None


def test_what_would_do_is_drawn_with_what_was_asked_for():
    asked = replace(SMALL, needed_epsilon=0.1, most_lost=0.02)
    found = outcome(Remedies().run(asked))
    assert {"needed_epsilon", "samples"} <= set(found)
    (chart,) = [one for one in would_do(found, asked) if isinstance(one, Chart)]
    for panel in chart.panels:
        assert panel.baselines[0].value == 0.02
        lost = panel.curves[0].y
        assert (np.diff(lost) <= 0).mean() > 0.5
    assert not Remedies().tables(found, asked)["tried"].empty


def test_only_what_asks_for_less_is_tried():
    infinite = replace(SMALL, needed_epsilon=math.inf, server="trusted")
    assert open_values(infinite, "needed_epsilon") == ()
    curious = replace(infinite, server="curious")
    assert open_values(curious, "needed_epsilon")[-1] == 100.0
    assert math.inf not in open_values(replace(curious, needed_epsilon=2.0), "needed_epsilon")
    assert math.inf in open_values(
        replace(curious, needed_epsilon=2.0, server="sums"), "needed_epsilon"
    )
    assert "samples" not in Remedies().pieces(replace(SMALL, problem="digits"))


def test_where_nothing_can_be_relaxed_nothing_is_searched_for():
    asked = replace(SMALL, problem="digits", needed_epsilon=math.inf, server="trusted", rounds=200)
    assert Remedies().pieces(asked) == []
    assert outcome(Remedies().run(asked)) == {}


def test_what_more_would_not_do_alone_names_what_else_must_be_relaxed():
    asked = replace(
        SMALL, needed_epsilon=0.1, most_lost=0.05, budget_bytes=100.0, candidates=("centralized",)
    )
    remedy = outcome(Remedies().run_piece(asked, "needed_epsilon", None))["needed_epsilon"]
    assert remedy.also == {"budget_bytes": 1e3}
    assert advice(remedy.applied(asked)).place(1) is not None
    for alone in ({"budget_bytes": 1e3}, {"needed_epsilon": remedy.value}):
        assert advice(replace(asked, **alone)).place(1) is None
    assert (
        "and **Bytes, at most 1 kB** in place of 100 bytes"
        in sentences({"needed_epsilon": remedy}, asked)[0]
    )


def test_where_no_value_does_it_the_nearest_says_why():
    asked = replace(SMALL, needed_epsilon=0.1, most_lost=0.001)
    remedy = outcome(Remedies().run_piece(asked, "rounds", None))["rounds"]
    assert remedy.value is None
    assert "no value up to 200 does it: there" in sentences({"rounds": remedy}, asked)[0]
    assert "of the variance." in sentences({"rounds": remedy}, asked)[0]


def test_a_budget_ends_a_run_and_what_it_has_by_then_counts():
    one = replace(SMALL, needed_epsilon=math.inf, server="trusted", candidates=("ssi",))
    whole = advice(one)
    for budget in (1.0, 5.0):
        short = replace(one, budget_rounds=budget)
        row = rejudged(whole, short).table.iloc[0]
        assert row["rounds"] == budget
        path = whole.paths[whole.paths["round"] == budget]
        assert row["unexplained"] == path["unexplained"].median()
        assert row["unexplained"] >= whole.table.iloc[0]["unexplained"]


# ---------------------------------------------------------------- real sizes
def test_a_large_problem_is_run_with_fewer_clients_and_says_so():
    large = FrontierSettings(features=1000, clients=1000, samples=1000)
    assert most_clients(16) > 1000 and most_clients(1000) == FEWEST
    small, _ = sized(large)
    assert small.clients * small.features**2 <= LIVE and small.features == 1000
    told = smaller(large, None, small.clients)
    assert "with 4 clients in place of 1,000 and the same spectrum" in told
    assert smaller(SMALL, None, SMALL.clients) == ""
    cost = Recommendation().cost(large)
    assert cost.megabytes < 1600 and cost.seconds < 600


def test_a_large_table_keeps_some_of_its_clients():
    rows = np.random.default_rng(0).standard_normal((240, 400))
    names = ",".join(["site", *(f"x{k}" for k in range(400))])
    lines = [f"s{k % 30}," + ",".join(f"{v:.3f}" for v in row) for k, row in enumerate(rows)]
    data = OwnData("wide.csv", "\n".join([names, *lines]).encode())
    asked = replace(
        SMALL, problem="table", client_column="site", needed_epsilon=math.inf, server="trusted",
        candidates=("centralized",),
    )  # fmt: skip
    problem = problem_of(asked, data)
    assert problem.clients == most_clients(401) == 24
    other = problem_of(replace(asked, seed=1), data)
    assert set(problem.client_names) != set(other.client_names)
    assert "on the rows of 24 of the 30 clients" in smaller(asked, data, 24)


def test_noise_is_that_of_all_records_where_fewer_are_drawn():
    """A release of m records of norm at most C changes by C²/m."""
    many = replace(SMALL, epsilon=1.0, samples=100_000, clients=50)
    fewer = replace(many, samples=drawn(many))
    assert drawn(many) == 10_000
    one, other = problem_of(many), problem_of(fewer)
    assert one.source.noise == pytest.approx(other.source.noise * 10_000 / 100_000)
    assert (one.client_data.samples == 100_000).all() and one.guarantee.budget == "1"
    found = outcome(Frontier().run(replace(many.alone("centralized"), searches=False)))
    assert found.table["unexplained"].iloc[0] < 1e-4
