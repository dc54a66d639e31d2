"""One rule for all verdicts: each of the seven, and what must not be called by its name."""

import math
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.papers.entries import PAPERS, Entry, Reading, paper
from fedpca_core.papers.experiment import COLUMNS
from fedpca_core.papers.judge import CASES, STATED, WORDS, Tried, Verdict, judge, together
from fedpca_core.papers.measured import OVER, Cells, interval, measured
from fedpca_core.papers.registry import ENTRIES, EXPERIMENTS, keys_of, verdicts, verdicts_of
from fedpca_core.papers.results import shipped
from fedpca_core.questions.papers.page import Judged

NUMBER = Entry("faps", "a", "Table 9", 1, "10", "number", "Ten.", series="A", measure="m",
               experiment="e", within=0.1)  # fmt: skip
CLAIM = replace(NUMBER, kind="claim", within=0.0, holds={"at_least": 9.5}, decides="It.")
LATER = Reading("later", "Stops later.", {"stop": 2}, reads={"measure": "{stem}, later"})
UNTRIED = Reading("other", "Another.", {"stop": 3})


def cells(*values, part="", series="A", measure="m"):
    """Rows of a tidy table, a seed each."""
    return [("e", "paper", part, seed, series, measure, math.nan, value)
            for seed, value in enumerate(values)]  # fmt: skip


def results(*tables, size="paper", exact=False):
    rows = [row for table in tables for row in table]
    made = Cells.of(pd.DataFrame(rows, columns=list(COLUMNS)), exact)
    return lambda key: {size: made} if key == "e" else {}


def word(entry, *tables, **how):
    return judge(entry, results(*tables, **how)).word


def test_a_number_is_reproduced_where_it_lies_in_our_interval_widened_by_its_tolerance():
    assert word(NUMBER, cells(9.9, 10.0, 10.1)) == "reproduced"
    assert word(NUMBER, cells(9.2, 9.2, 9.2)) == "reproduced"
    assert word(NUMBER, cells(9.0, 9.0, 9.0)) == "differs"
    assert word(replace(NUMBER, within=0.0, points=1.5), cells(9.0, 9.0, 9.0)) == "reproduced"


def test_a_bound_that_nothing_comes_near_is_no_evidence():
    bound = replace(CLAIM, holds={"at_most": 1.000001})
    assert word(bound, cells(0.4, 0.5, 0.6)) == "reproduced"
    far = judge(bound, results(cells(1e-6, 2e-6, 1e-6)))
    assert far.word == "undetermined" and "1,000,000 times" in far.why
    # Both sides of an identity are held to 0, and a count of failures is 0 where none was found.
    assert word(replace(CLAIM, holds={"at_most": 1e-9}), cells(1e-15, 1e-16, 0.0)) == "reproduced"
    assert word(bound, cells(0.0, 0.0, 0.0)) == "reproduced"


def test_an_interval_too_wide_reproduces_nothing():
    found = judge(NUMBER, results(cells(2.0, 10.0, 40.0)))
    assert found.word == "undetermined" and found.tried[0].wide
    assert "too wide to tell" in found.why
    few = judge(NUMBER, results(cells(10.0, 10.0)))
    assert few.word == "undetermined" and few.tried[0].wide


def test_data_that_are_not_the_papers_reproduce_nothing():
    other = replace(NUMBER, other_data="Ours is another release.")
    found = judge(other, results(cells(10.0, 10.1, 9.9)))
    assert found.word == "undetermined" and "another release" in found.why


def test_how_many_readings_agree_too_widely_is_counted():
    one = cells(2.0, 10.0, 40.0)
    assert "lies within our range and tolerance, too wide" in judge(NUMBER, results(one)).why
    several = replace(NUMBER, readings=(LATER, UNTRIED))
    both = judge(several, results(one, cells(2.0, 10.0, 41.0, measure="m, later")))
    assert "In 2 of 2 readings what is printed lies within our range" in both.why


def test_how_many_readings_have_too_few_seeds_is_counted():
    assert "fewer than 3 seeds." in judge(NUMBER, results(cells(9.0, 9.0))).why
    several = replace(NUMBER, readings=(LATER, UNTRIED))
    one = judge(several, results(cells(9.0, 9.0, 9.0), cells(8.0, 8.0, measure="m, later")))
    assert "fewer than 3 seeds in 1 of 2 readings." in one.why


def test_what_a_run_has_chosen_is_a_reading():
    """Of Figure 1 the text names neither data nor clients."""
    for name in ("very-few", "figure-1a", "figure-1b"):
        found = verdicts()[f"faps/leak/{name}"]
        assert found.word == "reproduced under a reading" and "128 clients" in found.why


def test_a_claim_holds_for_every_seed_unless_it_says_usually():
    assert word(CLAIM, cells(9.6, 10.0, 12.0)) == "reproduced"
    assert word(CLAIM, cells(9.4, 10.0, 12.0)) == "differs"
    usual = replace(CLAIM, holds={"at_least": 9.5, "usually": True})
    assert word(usual, cells(9.4, 10.0, 12.0, 12.0)) == "reproduced"
    assert word(usual, cells(9.4, 9.4, 10.0, 12.0, 12.0)) == "undetermined"
    assert word(usual, cells(9.4, 9.4, 9.4, 12.0, 12.0)) == "differs"
    with pytest.raises(InvalidInput, match="holds “around”; choose among at_least"):
        word(replace(CLAIM, holds={"around": 1}), cells(1.0))


def test_under_a_reading_it_is_named():
    entry = replace(NUMBER, readings=(LATER,))
    found = judge(entry, results(cells(7.0, 7.0, 7.0), cells(10.0, 10.0, 10.0, measure="m, later")))
    assert found.word == "reproduced under a reading" and found.shown.reading == "later"
    assert [one.reading for one in found.tried] == ["later", STATED]


def test_it_differs_only_where_nothing_is_left_to_try():
    far = cells(7.0, 7.0, 7.0)
    assert word(NUMBER, far) == "differs"
    assert word(replace(NUMBER, readings=(UNTRIED,)), far) == "undetermined"
    assert word(replace(NUMBER, open="Its rank."), far) == "undetermined"
    assert word(NUMBER, cells(7.0, 7.0)) == "undetermined"
    assert word(NUMBER, far, size="live") == "undetermined"
    assert word(replace(NUMBER, any_size=True), far, size="live") == "differs"
    assert word(NUMBER, cells(7.0), exact=True) == "differs"
    assert word(NUMBER, cells(10.0), exact=True) == "reproduced"
    assert judge(NUMBER, lambda key: {}).why == "Its run is not stored yet."


def test_a_smaller_size_reproduces_nothing_either():
    near = cells(10.0, 10.0, 10.0)
    small = judge(NUMBER, results(near, size="live"))
    assert small.word == "undetermined" and "Not all of it was run at the paper's size" in small.why
    assert judge(NUMBER, results(near, size="live"), anywhere=True).word == "reproduced"


def test_a_reading_that_is_given_the_number_does_not_count():
    given = replace(LATER, given=("m",))
    near = cells(7.0, 7.0, 7.0), cells(10.0, 10.0, 10.0, measure="m, later")
    assert word(replace(NUMBER, readings=(given,)), *near) == "differs"
    other = replace(NUMBER, readings=(replace(LATER, only=("B",)),))
    assert word(other, *near) == "differs"
    vague = replace(other, within=0.0, readings=(*other.readings, UNTRIED))
    assert judge(vague, results(*near)).untried == ("other",)


def test_arguments_go_before_runs():
    shown = replace(CLAIM, demonstration="print(1)", shows="1")
    near = cells(10.0, 10.0, 10.0)
    assert word(replace(shown, proves="false"), near) == "proved false"
    assert word(replace(shown, contradicts=("b",)), near) == "contradicts itself"
    assert word(replace(shown, out_of_scope="No card."), near) == "out of scope"
    assert judge(replace(shown, proves="true", holds={}), lambda key: {}).word == "reproduced"
    assert word(replace(CLAIM, counterexample=True), cells(9.0)) == "proved false"
    assert word(replace(CLAIM, counterexample=True), cells(10.0)) == "undetermined"
    under = replace(shown, proves="true", under="r = 0", why="Proof: so.")
    assert judge(under, results(near)).why == "Under r = 0. Proof: so."
    assert word(under, near) == "reproduced under a reading"


def test_cases_are_counted_and_prove_nothing():
    """A statement for every case: its sentence counts the cases, whoever writes the entry."""
    shown = replace(CLAIM, kind="statement", holds={}, demonstration="print(1)", shows="1")
    tried = replace(
        shown, proves="cases", shows="below the claim in 1,000 of 1,000 cases", why="So."
    )
    found = judge(tried, lambda key: {})
    assert found.word == "reproduced"
    assert found.why == "It held in 1,000 of 1,000 cases, which is no proof. So."
    bound = replace(CLAIM, kind="statement", holds={"at_most": 1.000001})
    assert "held in 3 of 3 seeds, which is no proof" in judge(bound, results(cells(1, 0.9, 1))).why
    assert "held in every case that was run" in judge(bound, results(cells(1, 1, 1))).why
    # Both sides of an identity, a claim of an experiment, what is usual: nothing is added.
    near = results(cells(1e-15, 1e-16, 0.0))
    assert judge(replace(bound, holds={"at_most": 1e-9}), near).why == ""
    assert judge(CLAIM, results(cells(10, 10, 10))).why == ""
    usual = replace(bound, holds={"at_most": 1.5, "usually": True})
    assert judge(usual, results(cells(1, 1, 1))).why == ""


def test_numbers_that_follow_from_one_that_is_given_count_once():
    """At a given recall accuracy, precision and F1 are one number in three forms."""
    stated = Tried(STATED, 1.0, 1.0, 1.0, 3, "paper", agrees=False)
    given = replace(stated, reading="at the recall", agrees=True, follows=True)
    one = Verdict("reproduced under a reading", "", (stated, given))
    none = Verdict("undetermined", "", (stated,))
    found = together({"a": one, "b": one, "c": one, "d": none, "e": none})
    assert {verdict.word for verdict in found.values()} == {"undetermined"}
    free = Verdict(one.word, "", (stated, replace(given, follows=False)))
    assert together({"a": free, "b": free, "c": free, "d": none, "e": none})["a"].word == one.word
    made = judge(
        replace(NUMBER, readings=(replace(LATER, given=("other",)),)),
        results(cells(1, 1, 1), cells(10, 10, 10, measure="m, later")),
    )
    assert [tried.follows for tried in made.tried] == [True, False]


def test_numbers_of_a_row_come_from_one_reading():
    """Four numbers, each given by some reading: only those of the best one count."""
    entry = replace(
        NUMBER, readings=(LATER, replace(LATER, name="last", reads={"measure": "{stem}, last"}))
    )

    def one(stated, later, last):
        return judge(
            entry,
            results(
                cells(stated, stated, stated),
                cells(later, later, later, measure="m, later"),
                cells(last, last, last, measure="m, last"),
            ),
        )

    row = {"a": one(1, 10, 1), "b": one(1, 10, 10), "c": one(10, 1, 1), "d": one(1, 10, 1)}
    found = {name: verdict.word for name, verdict in together(row).items()}
    under = "reproduced under a reading"
    assert found == {"a": under, "b": under, "c": "undetermined", "d": under}
    poor = {"a": one(1, 10, 1), "b": one(1, 1, 1), "c": one(1, 1, 1)}
    assert together(poor)["a"].word == "undetermined"
    assert "gives 1 of the 3" in together(poor)["a"].why
    even = {"a": one(1, 10, 1), "b": one(1, 1, 1)}  # half of a row is refuted by its other half
    assert together(even)["a"].word == "undetermined"
    # What is quoted once more does not make a reading better.
    twice = {"a": one(1, 10, 1), "b": one(1, 1, 10), "c": one(1, 1, 10), "d": one(1, 10, 1)}
    assert together(twice)["b"].word == "undetermined"
    assert together(twice, {"d"})["b"].word == under
    far = cells(10, 10, 10, measure="m, last")
    wide = judge(entry, results(cells(1, 1, 1), cells(2, 10, 40, measure="m, later"), far))
    assert "too wide to tell of this one" in together(row | {"e": wide})["e"].why
    whole = {"a": one(10, 10, 1), "b": one(10, 10, 10)}
    assert {verdict.word for verdict in together(whole).values()} == {"reproduced"}


def test_a_reading_that_takes_numbers_from_the_paper_is_not_said_to_equal_others():
    free = Tried("free", 1.0, 1.0, 1.0, 3, "paper", agrees=True)
    bound = replace(free, reading="bound", follows=True)
    under, no = "reproduced under a reading", replace(free, agrees=False)
    row = {"a": Verdict(under, "", (bound, free)), "b": Verdict(under, "", (bound, no))}
    row["c"] = Verdict("undetermined", "", (no,))
    told = together(row)["a"].why
    pair = together({"a": row["a"], "c": row["c"]})["a"].why
    assert "takes 1 of the 2 numbers of the same runs as given and gives the other" in pair
    assert "“bound” takes 1 of the 3 numbers" in told and "which follow from one, which" in told


def test_a_smaller_run_does_not_count_beside_one_of_the_papers_size():
    stated = Tried(STATED, 1.0, 1.0, 1.0, 3, "paper", agrees=False)
    later = replace(stated, reading="later", agrees=True)
    small = replace(later, reading="small", size="live")
    row = {name: Verdict("reproduced under a reading", "", (small, stated, later)) for name in "ab"}
    assert "“later” gives 2 of the 2 numbers of the same runs." in together(row)["a"].why
    less = Verdict("undetermined", "", (replace(stated, size="live"), small))
    found = together({"a": less, "b": less})["a"]
    assert [one.reading for one in found.tried] == ["small", STATED]


def test_what_is_read_off_the_cells():
    other = cells(1.0, 2.0, series="B", part="1")
    made = results(cells(2.0, 4.0, part="1"), cells(4.0, 1.0, part="2"), other)("e")["paper"]
    at = replace(NUMBER, part="1")
    assert measured(at, made) == {0: 2.0, 1: 4.0}
    assert measured(replace(at, against=("B",)), made) == {0: 2.0, 1: 2.0}
    assert measured(replace(at, against=("B",), by="difference"), made) == {0: 1.0, 1: 2.0}
    assert measured(replace(at, against=("A",), against_part="2"), made) == {0: 0.5, 1: 4.0}
    assert measured(replace(at, chain=("A", "B")), made) == {0: 2.0, 1: 2.0}
    assert measured(replace(at, each=("A", "B")), made) == {0: 2.0, 1: 4.0}
    assert measured(replace(at, each=("A", "B"), holds={"above": 1}), made) == {0: 1.0, 1: 2.0}
    assert measured(replace(NUMBER, over="mean"), made) == {0: 3.0, 1: 2.5}
    assert measured(replace(NUMBER, over="largest over smallest"), made) == {0: 2.0, 1: 4.0}
    assert measured(replace(NUMBER, series="B", over="mean"), made) == {}
    assert {name: take([3.0, 1.0, 2.0]) for name, take in OVER.items()} == {
        "mean": 2.0, "largest": 3.0, "smallest": 1.0, "range": 2.0, "largest over smallest": 3.0,
        "first over least later": 3.0, "last over first": 2 / 3, "least step down": 0.5,
        "largest step down": 3.0,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="by “median”; choose one of mean"):
        measured(replace(NUMBER, over="median"), made)


def test_nothing_is_divided_by_what_is_zero():
    made = results(cells(1.0), cells(1e-15, series="B"))("e")["paper"]
    assert measured(replace(NUMBER, against=("B",)), made) == {}
    parts = results(cells(1e-15, part="1"), cells(1e-16, part="2"))("e")["paper"]
    assert measured(replace(NUMBER, over="least step down"), parts) == {}


def test_a_live_run_at_its_first_part_has_no_steps_yet():
    first = results(cells(1.0, part="1"))("e")["paper"]
    for over in ("least step down", "largest step down", "first over least later"):
        assert measured(replace(NUMBER, over=over), first) == {}
    assert measured(replace(NUMBER, over="largest"), first) == {0: 1.0}


def test_the_interval_settles_with_more_runs():
    random = np.random.default_rng(0)
    few = np.mean([np.ptp(interval(random.normal(10, 1, 4))) for _ in range(300)])
    many = np.mean([np.ptp(interval(random.normal(10, 1, 100))) for _ in range(300)])
    assert many < few and many == pytest.approx(2 * 1.98, rel=0.05)
    inside = 0
    for _ in range(2000):
        low, high = interval(random.normal(10, 1, 4))
        inside += low <= random.normal(10, 1) <= high
    assert inside / 2000 == pytest.approx(0.95, abs=0.02)
    shares = np.array([60.0, 80.0, 99.0])
    assert interval(shares, most=100.0) == (interval(shares)[0], 100.0)
    small = np.array([0.75, 1.01, 0.19])  # in points: logarithms would reach 43
    low, high = interval(small, ratios=False, most=100.0)
    assert low == 0.0 and high < 3.0 < interval(small)[1]


@pytest.mark.parametrize("least", [0.0, 0.02])
def test_the_interval_of_a_range_of_shares_stays_between_0_and_1(least):
    run = results(*(cells(*values, part=part) for part, values in
                    (("a", (0.5, 0.5, 0.5)), ("b", (0.5 + least, 0.6, 1.0)))))  # fmt: skip
    claim = replace(CLAIM, over="range", holds={"at_most": 0.1})
    assert judge(claim, run).tried[0].high > 1.0
    one = judge(replace(claim, unit="share of the records"), run).tried[0]
    assert 0.0 <= one.low < one.high == 1.0


def test_a_proof_outweighs_a_reading_and_a_reading_sets_aside_what_it_does_for_every_rival():
    later = replace(LATER, aside={"A": [7], "B": [5], "C": [3]})
    claim = replace(CLAIM, method="A", against=("B",), holds={"above": 1.0}, readings=(later,))
    run = results(cells(2.0, 2.1, 2.2, measure="m, later"), cells(1.0, 1.0, 1.0, series="B",
                  measure="m, later"))  # fmt: skip
    assert judge(claim, run).tried[0].under.endswith("in line 5 and line 7 of the text.")
    assert judge(claim, run).word == "reproduced under a reading"
    proved = replace(claim, proves="true", demonstration="print(1)", shows="1")
    assert judge(proved, run).word == "reproduced"


# ---------------------------------------------------------------- what is shipped
def test_every_entry_has_one_of_seven_verdicts_and_a_reason():
    found = verdicts()
    assert set(found) == set(ENTRIES) and len(ENTRIES) > 400
    for name, one in found.items():
        assert one.word in WORDS, name
        assert one.why or one.shown is not None, name
    assert {entry.paper for entry in ENTRIES.values()} == set(PAPERS)


def test_claims_at_a_smaller_size_are_left_open():
    for name, one in verdicts().items():
        entry = ENTRIES[name]
        if one.word in ("reproduced", "reproduced under a reading", "differs") and one.shown:
            sized = any("paper" in EXPERIMENTS[key].sizes for key in keys_of(entry))
            assert one.shown.size == "paper" or entry.any_size or not sized, name


#: What tells that a demonstration compares instead of showing two sides that are equal.
COMPARED = re.compile(r"[<>]|\b(?:max|min|argmax|argmin)\(|eigvalsh|matrix_rank")


def test_every_verdict_says_why():
    assert [name for name, found in verdicts().items() if not found.why] == []


def test_what_is_shown_of_some_cases_is_proved_or_counted():
    """Comparing settles a general statement only beside a proof; else its cases are counted."""
    found = verdicts()
    for name, entry in ENTRIES.items():
        if entry.proves == "true" and entry.kind == "statement":
            compares = COMPARED.search(entry.demonstration)
            assert not compares or entry.why.startswith("Proof: "), name
        assert entry.proves != "cases" or CASES.search(entry.shows), name
        if found[name].word.startswith("reproduced") and "which is no proof" in found[name].why:
            assert entry.kind == "statement", name


MUTANTS = [
    ("faps/rates/local-power-second", "rates", "LocalPower (decay)", "rounds", 2.0),
    ("dfl/theorem-1", "dfl-statements", "Theorem 1: exact solve, ω*(r)", "worst", 1.1),
    ("fedpower/figure-3/epsilon", "fedpower-figure-3", "ε = 0.5", "plateau", 0.1),
    ("fedpower/theorem-6", "fedpower-noise", "Model I", "true_over_stated", 30.0),
    ("dfl/figure-1", "dfl-figure-1", "ρ_GS", "least_penalty", 0.0),
    ("perpca/1b/apart", "perpca-1b", "Personalised PCA", "fresh", 0.1),
    ("iot/area/unsw", "iot-readings-unsw", "FedPG", "auc", 0.5),
]


@pytest.mark.parametrize(("name", "key", "series", "measure", "factor"), MUTANTS)
def test_a_verdict_hangs_on_its_cells(name, key, series, measure, factor):
    assert verdicts()[name].word.startswith("reproduced")
    changed = {one: dict(shipped(one)) for one in EXPERIMENTS}
    for size, table in shipped(key).items():
        hit = (table["series"] == series) & table["measure"].isin([measure, "training"])
        assert hit.any()
        scaled = table["result"].where(~hit, factor * table["result"])
        changed[key][size] = table.assign(result=scaled)
    one = ENTRIES[name]
    assert not verdicts_of([one], changed)[one.name].word.startswith("reproduced")


def test_a_cause_is_counted_once():
    found = Judged(verdicts())
    assert found.counts.to_numpy().sum() < len(found.rows)
    assert list(found.counts.columns) == list(WORDS)
    causes = {(e.paper, v.word, e.cause) for e, v in found.rows if e.cause}
    lonely = sum(not e.cause for e, _ in found.rows)
    assert found.counts.to_numpy().sum() == len(causes) + lonely


def test_what_one_demonstration_decides_or_excludes_each_other_has_one_cause():
    every = list(ENTRIES.values())
    for one, other in combinations(every, 2):
        if one.paper == other.paper:
            same = one.demonstration and one.demonstration == other.demonstration
            mutual = one.id in other.contradicts and other.id in one.contradicts
            if same or mutual:
                assert one.cause and one.cause == other.cause, (one.name, other.name)


def test_a_share_missed_and_a_share_found_are_one_number_of_a_row():
    row = [name for name in ENTRIES if name.startswith("iot/table-1/unsw/fedae-2/")]
    told = [why for name in row if "numbers of the same runs" in (why := verdicts()[name].why)]
    assert len(row) == 5 and told and all(" of the 4 numbers" in why for why in told)


def test_a_number_that_is_quoted_again_has_one_verdict():
    found = verdicts()
    for data, quoted in (("unsw", "accuracy"), ("unsw", "fnr-unsw"), ("ton", "fnr-ton")):
        rate = quoted.partition("-")[0]
        table, again = found[f"iot/table-1/{data}/fedpg/{rate}"], found[f"iot/quoted/{quoted}"]
        assert (table.word, table.shown) == (again.word, again.shown)


def test_demonstrated_verdicts_have_their_demonstration():
    for name, one in verdicts().items():
        entry = ENTRIES[name]
        if one.word == "contradicts itself":
            shown = [entry, *(ENTRIES[f"{entry.paper}/{other}"] for other in entry.contradicts)]
            assert any(each.demonstration for each in shown), name
        if one.word == "proved false":
            assert entry.demonstration or entry.counterexample, name


def test_papers_print_numbers_as_numbers():
    values = [entry.value for key in PAPERS for entry in paper(key).entries
              if entry.kind == "number"]  # fmt: skip
    assert len(values) > 100 and np.isfinite(values).all()
    with pytest.raises(InvalidInput, match="which is no number"):
        _ = replace(NUMBER, printed="ten").value
