"""The Theory page end to end: a claim holds, says nothing, or is not there."""

from __future__ import annotations

from tests.browser.tools import drawn, set_slider

QUICK = {"t-clients": 4, "t-features": 3, "t-rounds": 50}


def main(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_a_larger_condition_number_makes_theorem_1_vacuous(open_page):
    page = open_page("/theory", {**QUICK, "t-penalty": 2})
    assert "Theorem 1: holds" in main(page)
    assert "It speaks for every r at this condition number" in main(page)
    set_slider(page, "t-kappa", 7)  # 100
    drawn(page)
    assert "Theorem 1: says nothing here (1 or more)" in main(page)
    assert "t-kappa=100" in page.url


def test_fedavg_stops_at_a_wrong_point_unless_clients_are_alike(open_page):
    page = open_page("/theory", {**QUICK, "t-rounds": 100})
    assert "FedAvg stops" in main(page)
    set_slider(page, "t-heterogeneity", 0)
    drawn(page)
    assert "the clients are alike" in main(page)


def test_other_step_sizes_leave_no_theorem_but_our_bound(open_page):
    page = open_page("/theory", {**QUICK, "t-omega": 2, "t-penalty": 0, "t-rounds": 400})
    assert "No theorem speaks of this choice" in main(page)
    assert "The run diverged" in main(page)


def test_the_verdicts_are_recomputed_for_another_family(open_page):
    page = open_page("/theory", QUICK)
    table = page.locator("[data-testid=stDataFrame]").last
    table.wait_for()
    page.locator(".st-key-t-family button").last.click()
    drawn(page)
    assert "t-family=1" in page.url
    assert table.count() == 1


def test_a_logistic_problem_works_too(open_page):
    page = open_page("/theory", {**QUICK, "t-problem": "Logistic regression", "t-method": "ADMM"})
    assert "Theorem 11: holds" in main(page)
