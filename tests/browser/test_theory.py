"""The Theory page end to end: a claim holds, says nothing, or is not there."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.tools import drawn, set_slider

QUICK = {"clients": 4, "features": 3, "rounds": 50}


def main(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_a_larger_condition_number_makes_theorem_1_vacuous(open_page):
    page = open_page("/theory", {**QUICK, "penalty": 2})
    assert "Theorem 1: holds" in main(page)
    assert "It speaks for every r at this condition number" in main(page)
    set_slider(page, "kappa", 7)  # 100
    # Keys reach the server when Streamlit has gathered them; until then the page rests as it was.
    expect(page.get_by_text("Theorem 1: says nothing here (1 or more)")).to_be_visible()
    drawn(page)
    expect(page).to_have_url(re.compile("kappa=100"))


def test_fedavg_stops_at_a_wrong_point_unless_clients_are_alike(open_page):
    page = open_page("/theory", {**QUICK, "rounds": 100})
    assert "FedAvg stops" in main(page)
    set_slider(page, "heterogeneity", 0)
    expect(page.get_by_text("the clients are alike")).to_be_visible()
    drawn(page)


def test_the_verdicts_are_recomputed_for_another_family(open_page):
    page = open_page("/theory", QUICK)
    table = page.get_by_role("region", name="Statements and verdicts")
    table.wait_for()
    page.locator(".st-key-family button").last.click()
    page.wait_for_url("**family=1**")
    drawn(page)
    assert table.count() == 1
