"""Under an epsilon nothing is decided by looking at the records; an audit of the whole preparation.

An adversary knows a table but for one record, chooses the columns, and sees all that a run shows:
names, sizes, notes, refusals, public facts, and what the clients release. Whatever that record
holds, many runs must prove no more than the epsilon that is stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedpca_core.attacks import matrix_scores
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import FROM_THE_SEED, SIZES
from fedpca_core.privacy import gaussian_audit
from fedpca_core.problems import table as table_module
from fedpca_core.problems import traffic, traffic_table
from fedpca_core.problems.images import images
from fedpca_core.problems.perturbation import Budget
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.table import CleanTable, from_table
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import noisy_task
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import meant as check_meant
from fedpca_core.questions.privacy import build as private
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.which.recommendation import meant
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.streams import Streams
from fedpca_core.study import build
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings

EPSILON, DELTA, CLIP, RUNS = 5.0, 1e-6, 4.0, 250
COLUMNS = ("age", "dose", "code", "rare")
#: A record of the first client as it might be: nothing about it is special.
PLAIN = {"age": 3.0, "dose": 0.5, "code": 1, "rare": 0}
NOTHING = "the only value that is not 0"
#: What it might hold instead, each a way to move what is fitted to a table as a whole.
SPECIAL: dict[str, dict[str, Any]] = {
    "a rare value in a column that is constant without it": {"rare": 1},
    "a category that nobody else has": {"code": 7},
    "text among numbers": {"dose": "unknown"},
    "an empty cell": {"age": None},
    "a new extreme": {"age": -1e12},
    "an infinite value": {"dose": np.inf},
    "one more decimal": {"dose": 0.123456},
    "a record far from all others": {"age": 0, "dose": 0, "code": 0, "rare": 1e6},
    NOTHING: {"rare": 5},
}


def table(record: dict[str, Any], nothing_else: bool = False) -> pd.DataFrame:
    """Two clients of six records; the first record is the adversary's question."""
    generator = np.random.default_rng(0)
    rest = {
        "age": generator.integers(1, 5, 11).astype(float),
        "dose": generator.integers(0, 8, 11) / 10,
        "code": generator.integers(0, 2, 11),
        "rare": 0,
    }
    if nothing_else:
        rest, record = dict.fromkeys(COLUMNS, 0), dict.fromkeys(COLUMNS, 0) | record
    rows = pd.concat([pd.DataFrame([PLAIN | record]), pd.DataFrame(rest, index=range(11))])
    return rows.reset_index(drop=True).assign(site=["a"] * 6 + ["b"] * 6)


#: From a table to a problem that an epsilon is asked for.
Preparation = Callable[[pd.DataFrame], Problem]


def by_schema(frame: pd.DataFrame, scaling: str = "none") -> Problem:
    return from_table(frame, COLUMNS, "site", scaling=scaling, public_schema=True)


def shown(prepare: Preparation, frame: pd.DataFrame) -> tuple[Problem | None, str]:
    """The problem, and in words all of it that is plain to see."""
    try:
        problem = prepare(frame)
        once = problem.private(EPSILON, DELTA, CLIP, Streams(0), mean_share=share(problem))
    except InvalidInput as refusal:
        return None, str(refusal)
    assert once.source is not None
    seen = (once.feature_names, once.client_names, once.note, once.record_norm, once.announced)
    data = once.client_data
    return problem, repr((*seen, data.samples, data.weights, once.source.noise, once.guarantee))


def share(problem: Problem) -> float:
    return 0.0 if problem.own_mean is None else 0.1


def audited(prepare: Preparation, special: str, runs: int = RUNS) -> float:
    """What many runs on a table and on its neighbour prove, at a confidence of 99.9 %."""
    alone = special == NOTHING
    tables = [table(record, alone) for record in ({}, SPECIAL[special])]
    pair = [shown(prepare, frame) for frame in tables]
    if pair[0][1] != pair[1][1]:  # told apart at a glance, in every run
        first, second = np.ones(runs), -np.ones(runs)
    else:
        problems = [problem for problem, _ in pair]
        first, second = (scores(problem, problems, runs) for problem in problems)
    return gaussian_audit(first, second, DELTA, confidence=0.999).epsilon


def scores(drawn: Problem | None, pair: list[Problem | None], runs: int) -> np.ndarray:
    """Log-likelihood ratios of runs on one problem, given both: of the noisy mean, and of M_i."""
    assert drawn is not None and pair[0] is not None and pair[1] is not None
    releases = [
        drawn.private(EPSILON, DELTA, CLIP, Streams(seed), mean_share=share(drawn))
        for seed in range(runs)
    ]
    found, variance = np.zeros(runs), mean_variance(drawn)
    for run, one in enumerate(releases):
        assert one.source is not None
        truths, means = zip(*(explained(problem, one) for problem in pair), strict=True)
        for client, spread in enumerate(one.source.noise):
            held = one.client_data.dense()[client]
            found[run] += float(
                matrix_scores(held[None], truths[0][client], truths[1][client], spread[None])[0]
            )
        if one.source.mean is not None:
            middle = one.source.mean - 0.5 * (means[0] + means[1])
            found[run] += float(middle @ (means[0] - means[1])) / variance
    return found


def explained(problem: Problem | None, released: Problem) -> tuple[list[np.ndarray], np.ndarray]:
    """S_i of a problem around the mean that was released, and its own mean without noise."""
    assert problem is not None and problem.blocks is not None and released.source is not None
    own = 0.0 if problem.own_mean is None else problem.own_mean[:, None]
    raw = [block + own for block in problem.blocks]
    mean = np.mean([clipped(one).mean(axis=1) for one in raw], axis=0)
    centre = released.source.mean
    moved = raw if centre is None else [one - centre[:, None] for one in raw]
    return [clipped(one) @ clipped(one).T / one.shape[1] for one in moved], mean


def clipped(block: np.ndarray) -> np.ndarray:
    return block * (CLIP / np.maximum(np.linalg.norm(block, axis=0), CLIP))


def mean_variance(problem: Problem) -> float:
    """Of every entry of the noisy mean of two equal clients."""
    paid = Budget(EPSILON, DELTA, CLIP, mean_share=0.1).paid_mean(problem.client_data.samples)
    assert paid is not None
    return (2 * CLIP / (6 * paid.mu)) ** 2 / 2


# ---------------------------------------------------------------------- formal above empirical
@pytest.mark.parametrize("scaling", ["none", "centre"])
@pytest.mark.parametrize("special", SPECIAL)
def test_no_record_tells_more_than_epsilon_through_the_preparation(
    special: str, scaling: str
) -> None:
    assert audited(lambda frame: by_schema(frame, scaling), special) < EPSILON


def test_the_audit_has_teeth() -> None:
    """Records as far apart as they can be prove a good part of what is stated."""
    for scaling in ("none", "centre"):
        proved = audited(
            lambda frame, how=scaling: by_schema(frame, how), "a record far from all others", 1500
        )
        assert 0.4 * EPSILON < proved < EPSILON


# ---------------------------------------------------------------------- mutants that must die
def without_constant(frame: pd.DataFrame) -> Problem:
    """Constant columns are left out by looking, as a table without an ε is read."""
    prepared = table_module.public_table

    def looking(frame: pd.DataFrame, *names: Any) -> CleanTable:
        found = prepared(frame, *names)
        kept = np.ptp(found.records, axis=0) > 0
        names = tuple(np.array(found.features)[kept])
        return replace(found, records=found.records[:, kept], features=names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "public_table", looking)
        return by_schema(frame)


def without_gaps(frame: pd.DataFrame) -> Problem:
    """Rows with empty cells are dropped."""
    numbers = frame[list(COLUMNS)].apply(pd.to_numeric, errors="coerce")
    return by_schema(frame[np.isfinite(numbers).all(axis=1)])


def refusing_text(frame: pd.DataFrame) -> Problem:
    """A column of which one cell is text is refused."""
    for name in COLUMNS:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise InvalidInput(f"Column {name} is not numeric.")
    return by_schema(frame)


def scaled_by_itself(frame: pd.DataFrame) -> Problem:
    """Every column is scaled to the same largest value."""
    numbers = frame[list(COLUMNS)].apply(pd.to_numeric, errors="coerce").fillna(0)
    return by_schema(frame.assign(**(10 * numbers / numbers.abs().max().replace(0, 1))))


def with_categories_found(frame: pd.DataFrame) -> Problem:
    """One column for every code that occurs."""
    codes = pd.get_dummies(frame["code"], prefix="code").astype(float)
    whole = pd.concat([frame, codes], axis=1)
    return from_table(whole, ("age", *codes.columns), "site", scaling="none", public_schema=True)


def with_steps_announced(frame: pd.DataFrame) -> Problem:
    """The steps and bounds that were read off the records are told to everybody."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedpca_core.problems.announced.PublicFacts.read_off", False)
        problem = by_schema(frame)
    assert problem.announced is not None
    object.__setattr__(problem.announced, "read_off", False)
    return problem


@pytest.mark.parametrize(
    ("mutant", "special"),
    [
        (without_constant, "a rare value in a column that is constant without it"),
        (without_gaps, "an empty cell"),
        (refusing_text, "text among numbers"),
        (scaled_by_itself, "a new extreme"),
        (with_categories_found, "a category that nobody else has"),
        (with_steps_announced, "one more decimal"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_the_audit_catches_what_looks_at_the_records(mutant: Preparation, special: str) -> None:
    assert audited(mutant, special) > 1.5 * EPSILON


@pytest.mark.parametrize("special", SPECIAL)
def test_as_a_table_is_read_without_epsilon_it_is_not_covered(special: str) -> None:
    """What looks is refused where an ε is asked for, whether it would have mattered or not."""
    for record in ({}, SPECIAL[special]):
        try:
            found = from_table(table(record), ["age", "dose", "code"], "site", scaling="none")
        except InvalidInput:
            continue
        with pytest.raises(InvalidInput, match="left out and rows with empty cells dropped"):
            found.private(EPSILON, DELTA, CLIP, Streams(0))
        with pytest.raises(InvalidInput, match=r"no ε covers it\. Name the columns"):
            found.bounded(Budget(EPSILON, DELTA, CLIP), Streams(0))


# ---------------------------------------------------------------------- traffic
def flows(cell: str) -> bytes:
    """A labelled file in which one normal training record has a cell of its own."""
    generator = np.random.default_rng(1)
    rows = [f"{a},{b},7,{'attack' if k % 5 == 4 else 'normal'}" for k, (a, b) in enumerate(
        generator.integers(1, 9, (60, 2))
    )]  # fmt: skip
    rows[0] = f"{cell},3,7,normal"
    return "\n".join(["bytes,packets,flag,label", *rows]).encode()


def detection(cell: str, **changes: Any) -> traffic.DetectionTask:
    how = {"columns": ("bytes", "packets", "flag"), "public_schema": True, **changes}
    read = traffic_table.read_traffic(flows(cell), "mine.csv", seed=1, **how)
    assert read.normal.shape[1] == 3 or "columns" in changes
    return traffic.prepare(
        read, clients=3, split="iid", standardising="centre", public_schema=how["public_schema"]
    )


@pytest.mark.parametrize("cell", ["", "x", "inf", "-5", "1e200", "0.001"])
def test_no_flow_changes_what_becomes_of_the_others(cell: str) -> None:
    plain, other = detection("4"), detection(cell)
    pair = []
    for found in (plain, other):
        assert found.problem.blocks is not None and found.problem.own_mean is not None
        pair.append([block + found.problem.own_mean[:, None] for block in found.problem.blocks])
    changed = [np.abs(a - b).max(axis=0) > 1e-9 for a, b in zip(*pair, strict=True)]
    assert sum(int(one.sum()) for one in changed) == 1
    assert plain.problem.note == other.problem.note and plain.dropped == other.dropped == ()
    assert plain.problem.public == other.problem.public
    detected = other.private(EPSILON, DELTA, CLIP, Streams(0), mean_share=0.1, mean_clip=9.0)
    assert detected.problem.guarantee is not None


def test_traffic_that_was_looked_at_is_not_covered() -> None:
    looked = traffic_table.read_traffic(flows("4"), "mine.csv", seed=1)
    task = traffic.prepare(looked, clients=3, standardising="centre")
    with pytest.raises(InvalidInput, match="rows with empty cells left out by looking"):
        task.private(EPSILON, DELTA, CLIP, Streams(0), mean_share=0.1, mean_clip=9.0)
    kept = traffic.prepare(looked, clients=3, standardising="centre", public_schema=True)
    assert kept.problem.looked == looked.looked  # the file was read by looking
    with pytest.raises(InvalidInput, match="at least 2 columns are named beforehand"):
        detection("4", columns=())


# ---------------------------------------------------------------------- on pages and in files
CSV = OwnData("mine.csv", table({}).to_csv(index=False).encode())
OWN: dict[str, Any] = {"problem": "table", "client_column": "site", "scaling": "centre"}


def test_own_tables_are_read_by_their_schema_wherever_an_epsilon_is_set() -> None:
    """Without one constant columns go; under one the chosen columns stay, and unchosen are asked
    for in a sentence."""
    c = ConvergeSettings(**OWN, components=2, clip_norm=CLIP)
    assert build.build_problem(c, CSV).feature_names == COLUMNS[:3]
    with pytest.raises(InvalidInput, match="columns are named beforehand"):
        build.build_problem(replace(c, epsilon=1.0), CSV)
    named = build.build_problem(replace(c, epsilon=1.0, columns=COLUMNS), CSV)
    assert named.feature_names == COLUMNS
    assert named.unperturbed.features == 4  # errors are measured against the same columns
    page = PrivacySettings(**OWN, components=2, columns=COLUMNS, clip_norm=CLIP, method="ssi")
    stated = private.stated(page, CSV)
    for guarantee in (named.guarantee, stated):
        assert guarantee.public[0] == SIZES
        assert "the columns (age, dose, code, rare)" in guarantee.public
        assert "whose record each row is" in guarantee.public
    with pytest.raises(InvalidInput, match="columns are named beforehand"):
        private.stated(replace(page, columns=()), CSV)


def test_every_guarantee_says_what_it_takes_as_public_and_where_its_noise_is_from() -> None:
    digits = images("digits", 3, max_samples=60, centre=False)
    said = digits.private(1.0, 1e-6, 4.0, Streams(0)).guarantee
    assert said is not None and said.public[1:] == digits.public
    assert "how the records were dealt to the clients" in said.sentence()
    task = noisy_task(
        AnomalySettings(problem="synthetic", standardising="centre", epsilon=3.0, clients=10)
    )
    assert task.problem.guarantee is not None
    assert "which records are normal and train" in task.problem.guarantee.sentence()
    for words in (
        said.sentence(),
        check_meant(CheckSettings(epsilon=1.0)),
        meant(FrontierSettings(problem="digits")),
        build.beside_epsilon(ConvergeSettings(problem="digits", epsilon=1.0)),
    ):
        assert f"taken as public: {SIZES}" in words and FROM_THE_SEED in words
