"""A page on one sheet."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pypdf import PdfReader

from dashboard.shell import bundle, handout, jobs, share
from dashboard.shell.bundle import caption
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import PAGES, studies_of
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import LeakCheck
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import PrivateRun
from fedpca_core.questions.told import asked
from fedpca_core.questions.trace.opened import EXAMPLE, OpenedRun, example
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.recommendation import Recommendation
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings, powers
from fedpca_core.steps import outcome
from fedpca_core.study import parts
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.version import __version__

ASKED = FrontierSettings(
    features=6, clients=3, samples=100, components=2, rounds=10, seeds=1, searches=False,
    candidates=("block_krylov", "centralized"), needed_epsilon=50.0, most_lost=0.5,
)  # fmt: skip
LINK = "http://localhost:8501/which?features=6"


@pytest.fixture(scope="module")
def advice():
    return {Recommendation(): outcome(Recommendation().run(ASKED))}


@pytest.fixture(scope="module")
def made(advice):
    return handout.sheet(ASKED, advice, {}, link=LINK)


def test_it_has_question_answer_figure_findings_guarantee_settings_link_and_citation(made):
    assert made.question.startswith("Which federated PCA for 3 clients of 100 records, 6 feat")
    assert "ε ≤ 50" in made.question and "loses least" in " ".join(made.answer)
    assert made.pictures and made.pictures[0].startswith(b"\x89PNG")
    assert "What leaks" in made.tables and "Every candidate" in made.tables
    assert "Left out because it" in made.tables["Every candidate"]
    assert "Secure aggregation" not in made.settings and "ε, at most 50" in made.settings
    assert any("any clients in any round" in text for text in made.small)
    page = handout.page(made)
    for part in ("<b>", LINK.replace("&", "&amp;"), "@software", "Features 6", "seed 0", "<img"):
        assert part in page
    assert "**" not in page
    made_on = f"Made on {date.today()} with version {__version__}."
    assert made_on in page and made.settings.endswith(made_on)


def test_the_pdf_is_one_page(made):
    content = handout.pdf(made)
    assert content.startswith(b"%PDF") and len(PdfReader(BytesIO(content)).pages) == 1


@pytest.mark.usefixtures("two_seeds")
def test_where_nothing_does_all_of_it_the_sheet_says_what_would():
    asks = replace(ASKED, most_lost=0.001, needed_epsilon=1.0)
    study = Recommendation()
    made = handout.sheet(asks, {study: outcome(study.run(asks))}, {})
    said = " ".join(made.answer)
    assert "nothing that was run here does all of it" in said and "in place of 0.1%" in said


def test_a_long_link_stays_on_the_paper_and_is_whole_behind_it(made):
    names = "&columns=".join(f"lab_{k}" for k in range(300))
    content = handout.pdf(replace(made, link=f"{LINK}&columns={names}"))
    assert b"lab_299" in content and content.count(b"/Annot") >= 1
    asks = replace(ASKED, problem="table", columns=tuple(f"lab_{k}" for k in range(300)))
    assert "lab_7 + 292 more" in caption(asks) and "lab_8" not in caption(asks)


def test_a_text_with_signs_of_formulas_is_printed_as_it_is(made):
    odd = replace(made, answer=["costs 5 $ or 6 $ <b> & _x_"], link="")
    assert handout.pdf(odd).startswith(b"%PDF")
    assert "&lt;b&gt; &amp;" in handout.page(odd)


def test_a_page_that_draws_by_itself_gives_its_first_figure_and_tables():
    alone = ASKED.alone("centralized", epsilon=math.inf)
    front = outcome(Frontier().run(alone))
    drawn = []

    def printed(caption, **which):
        drawn.append((caption, which))
        return {"a.png": b"\x89PNG"}

    made = handout.sheet(alone, {Frontier(): front}, {"x": printed})
    assert made.pictures == [b"\x89PNG"] and made.tables
    which = [{"kinds": ("png",), "only": at} for at in (0, -1)]
    assert drawn == [("", one) for one in which], "drawing all takes seconds"


def test_every_study_is_told_but_those_that_a_page_draws_by_itself():
    from fedpca_core.questions.catalogue import STUDIES

    assert set(STUDIES) - set(handout.TOLD) == {"frontier", "sent_models", "paper-experiment"}
    assert set(handout.TOLD) <= set(STUDIES)


def test_links_code_and_lists_become_plain_text():
    made = handout.Sheet("?")
    handout._put(made, "Of [this](there) `x`:\n- **one**")
    assert made.answer == ["Of this x:\n- **one**"]
    made.small.append("**Open**: see `check` & ask")
    assert "Of this x:<br><b>one</b>" in handout.page(made)
    assert "<p><b>Open</b>: see check &amp; ask</p>" in handout.page(made)


def test_any_page_says_its_settings():
    small = ConvergeSettings(features=6, clients=3, samples=50, components=2, rounds=10, starts=1)
    found = outcome(Convergence().run(small))
    made = handout.sheet(small, {Convergence(): found}, {})
    assert made.question.startswith("How fast do SSI, LocalPower, FAPS, Block Krylov find 2")
    assert "medians over 1 start)" in made.answer[0] and made.pictures
    for said in ("Methods SSI + LocalPower", "Rounds 10", "Budget ε ∞", "Secure aggregation false"):
        assert said in made.settings, said
    assert any("Seeking Consensus" in paper for paper in made.papers)
    assert "Attacked client" not in made.settings, "another page's"


@pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.kind)
def test_every_question_is_asked_with_its_settings(kind):
    asks = kind()
    said = asked(asks, "")
    assert said.endswith("?") and "{" not in said
    if kind.kind in ("converge", "attack", "which", "check", "privacy", "personalise"):
        assert asked(replace(asks, clients=asks.clients + 1), "") != said
    if kind.kind not in ("trace", "theory", "papers"):
        assert asked(replace(asks, **{budget(asks): 0.5}), "") != said


def budget(asks: Settings) -> str:
    return "needed_epsilon" if hasattr(asks, "needed_epsilon") else "epsilon"


def test_cells_are_filled_with_medians_but_under_an_epsilon():
    own = replace(ASKED, problem="table", missing="fill")
    assert "Fill with medians + 0 under an ε" in caption(own)
    assert "medians" not in caption(replace(own, epsilon=1.0))


def test_a_long_cell_is_told_whole():
    words = "has it: relative error below 10⁻⁶, in 100% of draws (70–100%); compared with the truth"
    rows = pd.DataFrame({"What": ["covariance"], "The server": [words], "Attack": ["a" * 60]})
    content = handout.pdf(handout.Sheet("?", tables={"Findings": rows}))
    read = PdfReader(BytesIO(content)).pages[0].extract_text()
    assert words in " ".join(read.split())


def test_the_figure_is_printed_as_fine_as_it_was_drawn(made):
    """An image of 1,440 pixels, and not of what a screen would have for it."""
    assert b"/Width 1440" in handout.pdf(made)


def test_digits_that_stand_in_are_told_apart():
    asks = AttackSettings(features=10, components=2, samples=40, rounds=10, attacked=("ssi",))
    studies = studies_of(asks)[:2]
    made = handout.sheet(asks, {one: outcome(one.run(asks)) for one in studies}, {})
    said = " ".join(made.answer)
    assert "on digits (64 features, 5 clients of 30 records)" in said
    assert "Of the covariance (10 features, 5 clients of 40 records)" in said
    assert "Data: 10 features, 5 clients of 40 records." in made.settings
    assert len(made.pictures) == 2, "a curve, and what the server made of the records"


def test_an_opened_run_whose_records_were_taken_has_a_sheet():
    """Its rows have numbers for columns."""
    study = OpenedRun()
    made = handout.sheet(EXAMPLE, {study: outcome(study.run(EXAMPLE, example()))}, {})
    rows = made.tables["First of 20 rows, 64 columns"]
    assert list(rows)[:2] == ["0", "1"] and "-0" not in rows.to_numpy()
    assert handout.pdf(made).startswith(b"%PDF") and "<td>" in handout.page(made)


def test_the_sheet_of_an_opened_run_holds_the_leak_and_what_would_have_stopped_it():
    asks = replace(EXAMPLE, remedy=True)
    study, check, file = OpenedRun(), LeakCheck(), example()
    found = outcome(study.run(asks, file))
    alike = replace(found.alike, features=16, clients=3, samples=6, components=3, rounds=6)
    results = {study: found, check: outcome(check.run(alike))}
    made = handout.sheet(asks, results, {}, data=file)
    assert made.question.endswith("and what would have stopped it?")
    said = " ".join(made.answer)
    assert "has it: 20 of 20 records" in said and "No change that was tried" in said
    shown = [name for name in made.tables if not name.startswith("First of")]
    assert shown == ["Every client", "Defences", "Facts of the run"], "what is folded away is last"
    assert "What is known of every target" not in made.tables, "the run's own answer stands there"
    assert "LeakCheck" not in bundle.script(asks, list(results), file), "its settings are others"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ε = 2.52e7; 3.4e-5, and 1e-6.", "ε = 2.52×10⁷; 3.4×10⁻⁵, and 10⁻⁶."),
        ("within 4e-10 of the grid", "within 4×10⁻¹⁰ of the grid"),
        ("within 1e-09 of the grid", "within 10⁻⁹ of the grid"),
        ("digest 3e45abc…, x2e5, 1.2.3e4", "digest 3e45abc…, x2e5, 1.2.3e4"),
    ],
)
def test_powers_of_ten_are_written_as_by_hand(text, written):
    assert powers(text) == written


def test_what_is_cut_says_so():
    made = handout.Sheet("?")
    handout._put(made, parts.Table(pd.DataFrame({"n": range(50)}), "Numbers"))
    ((label, table),) = made.tables.items()
    assert label == "Numbers (the first 40 of 50)" and len(table) == 40
    handout._put(made, parts.Table(pd.DataFrame({"n": range(3)}), "Few"))
    assert "Few" in made.tables


def test_a_list_of_a_guarantee_keeps_its_words_apart_without_bold():
    assert handout._plain("**δ** 10⁻⁶ · **unit** one `record`") == "δ: 10⁻⁶ · unit: one record"
    assert handout._plain("Lin, *A title*, 2024; ω*(r)") == "Lin, A title, 2024; ω*(r)"
    assert handout._plain("so:\n- **one** is") == "so:\n• one is"


@pytest.mark.usefixtures("two_seeds")
def test_data_are_described_as_they_were_read_and_not_as_they_were_asked_for():
    """A table of 3 wards with gaps: neither sizes of drawn data nor a number of clients on it."""
    draw = np.random.default_rng(0)
    rows = pd.DataFrame(draw.standard_normal((90, 5)).round(2), columns=list("abcde"))
    rows.loc[:9, "a"] = np.nan
    content = rows.assign(ward=["x", "y", "z"] * 30).to_csv(index=False).encode()
    own = OwnData("mine.csv", content)
    asks = replace(
        ASKED, problem="table", client_column="ward", clients=20, needed_epsilon=math.inf
    )
    study = Recommendation()
    made = handout.sheet(asks, {study: outcome(study.run(asks, own))}, {}, data=own)
    said = handout.page(made)
    assert "5 features, 3 clients of 26 to 27 records" in made.settings and own.digest[:12] in said
    assert any("10 of 90 rows were dropped" in text for text in made.small)
    for untrue in ("Features 6", "Clients 20", "Samples per client", "of the 20 clients"):
        assert untrue not in said, untrue
    few = outcome(study.run(ASKED))
    assert "6 features, 3 clients of 100 records" in handout.sheet(ASKED, {study: few}, {}).settings


@pytest.mark.parametrize(
    "settings",
    [
        ConvergeSettings(features=6, clients=3, samples=50, components=2, rounds=10, starts=1),
        AttackSettings(features=10, components=2, samples=40, rounds=10),
        PrivacySettings(),
        PersonaliseSettings(clients=3, features=8, components=2, samples=10, rounds=50),
        AnomalySettings(problem="synthetic", clients=20, components=6, rounds=20),
    ],
    ids=lambda settings: settings.kind,
)
def test_every_page_with_data_says_how_much_was_read(settings):
    study = studies_of(settings)[0]
    said = caption(settings, [outcome(study.run(settings))])
    assert re.search(r"Data: .*\d+ features, \d+ clients", said), said


def test_a_distance_under_noise_has_its_quartiles():
    asks = PrivacySettings(repetitions=3, samples=500, products=2)
    study = PrivateRun()
    said = handout.sheet(asks, {study: outcome(study.run(asks))}, {}).answer[0]
    assert re.search(r"exact noise; quartiles 0\.\d+ and 0\.\d+\)", said), said


#: A number by itself that is one, and a noun for several.
MANY_OF_ONE = re.compile(
    r"(?<![\w.,/ⁿ×-])(?<!\d )1 (?:masked )?(?:client|round|record|seed|feature|component|direction|"
    r"column|row|product|draw|repetition|start|message|attack|model|client|upload|release|cell)s\b"
)


@pytest.mark.usefixtures("two_seeds")
@pytest.mark.parametrize(
    "settings",
    [
        replace(ASKED, components=1, budget_rounds=1.0, samples=20),
        ConvergeSettings(features=6, clients=2, samples=5, components=1, rounds=10, starts=1),
        AttackSettings(features=5, clients=2, samples=20, components=1, rounds=10),
        AttackSettings(clients=4, components=1, records_per_client=8.0, rounds=10, resolution=4,
                       problem="digits"),
        *(PrivacySettings(view=view, products=1, repetitions=1, local_steps=1, components=1)
          for view in ("run", "utility", "accountants")),
        PersonaliseSettings(clients=2, features=4, components=1, samples=2, rounds=50),
        AnomalySettings(problem="synthetic", clients=2, components=1, rounds=20),
        CheckSettings(clients=2, components=1, samples=1, features=5, rounds=1),
        SceneSettings(clients=2, components=1, records_per_client=8.0, rounds=10, resolution=4),
        SceneSettings(clients=2, components=1, rounds=10, secure_aggregation=True, resolution=4),
    ],
    ids=lambda settings: settings.kind,
)  # fmt: skip
def test_one_of_a_thing_is_no_several(settings):
    results = {study: outcome(study.run(settings)) for study in studies_of(settings)}
    page = re.sub(r"<[^>]*>", " ", handout.page(handout.sheet(settings, results, {})))
    assert [page[one.start() - 60 : one.end()] for one in MANY_OF_ONE.finditer(page)] == []


def test_a_sheet_of_a_part_of_the_results_says_so(monkeypatch, advice):
    makers, job = {}, jobs.Job(None)

    def offered(title, make, *_, **__):
        makers[title] = make

    monkeypatch.setattr(share.layout, "download", offered)
    monkeypatch.setattr(share, "link", lambda _: LINK)
    monkeypatch.setattr(share.printed, "kept", dict)
    asked = {"_job_leak_check": "what the page has asked for"}
    monkeypatch.setattr(share.jobs.st, "session_state", asked)
    monkeypatch.setattr(
        share.jobs, "registry", lambda: SimpleNamespace(find={asked["_job_leak_check"]: job}.get)
    )
    for done in (False, True):
        if done:
            job.end()
        share.offers(ASKED, {**advice, LeakCheck(): None}, None)
        assert ("still computing" in makers["One page as HTML"]()) is not done
