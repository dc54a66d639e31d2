"""What every study shares: steps, stopping, the cache key, sweeps and their bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput, require
from fedpca_core.questions.catalogue import RUNNABLE, STUDIES, read_settings, studies_of
from fedpca_core.settings import Settings, Value, choice, number
from fedpca_core.steps import Part, Run, Step, outcome, part
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.study import Study, registered
from fedpca_core.study.sweep import Measured, Sweep


@dataclass(frozen=True)
class Few(Settings):
    kind: ClassVar[str] = "few"
    count: int = number(4, "Count", 0, 9)
    seed: int = number(0, "Seed", 0, 9)
    colour: str = choice("red", "Colour", {"red": "R", "blue": "B"}, view=True)


class Counting(Study[Few, int]):
    key: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"
    settings: ClassVar[type[Few]] = Few

    def run(self, settings: Few, data: OwnData | None = None) -> Run[int]:
        for one in range(settings.count):
            yield Step(one / settings.count, f"number {one}", one or None)
        return settings.count

    def tables(self, result: int, settings: Few) -> dict[str, pd.DataFrame]:
        return {"numbers": pd.DataFrame({"number": range(result)})}


def test_a_run_ends_with_its_result_or_keeps_the_last_when_stopped():
    seen: list[str] = []

    def watch(step: Step[int]) -> bool:
        seen.append(step.text)
        return len(seen) < 3

    assert outcome(Counting().run(Few())) == 4
    assert outcome(Counting().run(Few()), watch) == 2
    assert seen == ["number 0", "number 1", "number 2"]
    assert outcome(Counting().run(Few(count=3)), lambda step: False) is None


def test_the_identity_is_what_the_run_reads():
    study = Counting()
    assert study.identity(Few()) == study.identity(Few(colour="blue"))
    assert study.identity(Few()) != study.identity(Few(count=5))
    table, same, other = OwnData("a", b"1"), OwnData("b", b"1"), OwnData("a", b"2")
    assert study.identity(Few(), table) == study.identity(Few(), same)
    assert study.identity(Few(), table) != study.identity(Few(), other)

    class Less(Counting):
        reads: ClassVar[frozenset[str]] = frozenset({"seed"})

    assert Less().identity(Few()) == Less().identity(Few(count=5))


def test_a_part_takes_its_share_of_the_whole():
    def whole() -> Part[int]:
        first = yield from part(Counting().run(Few(count=2)), 0.0, 0.5)
        second = yield from part(Counting().run(Few(count=2)), 0.5, 1.0)
        return first + second

    steps = whole()
    fractions = [step.fraction for step in steps]
    assert fractions == [0.0, 0.25, 0.5, 0.75]


class Squares(Sweep[Few]):
    key: ClassVar[str] = "squares"
    title: ClassVar[str] = "Squares"
    settings: ClassVar[type[Few]] = Few

    def parameter(self, settings: Few) -> str:
        return "count"

    def values(self, settings: Few) -> Sequence[Value]:
        return (1, 2, 3)

    def seeds(self, settings: Few) -> Sequence[int]:
        return (0, 1, 2)

    def measure(self, settings: Few, seed: int, data: OwnData | None) -> Part[Measured]:
        require(settings.count != 2, "Two is not for squares; take another.")
        yield Step(0.5, "half way")
        return {"all": {"square": settings.count**2 + settings.seed}}


def test_a_sweep_keeps_every_number_and_draws_bands():
    swept = outcome(Squares().run(Few()))
    assert swept is not None
    assert list(swept.table["result"]) == [1.0, 2.0, 3.0, 9.0, 10.0, 11.0]
    assert swept.refusals == {2: "Two is not for squares; take another."}
    band = swept.band("all", "square")
    assert list(band.x) == [1.0, 3.0]
    assert list(band.middle) == [2.0, 10.0]
    assert list(band.lower) == [1.0, 9.0] and list(band.upper) == [3.0, 11.0]
    table = Squares().tables(swept, Few())["sweep"]
    assert list(table.columns) == ["count", "seed", "series", "measure", "result"]


def test_a_sweep_that_is_stopped_shows_what_it_has():
    partial = outcome(Squares().run(Few()), lambda step: step.fraction < 0.3)
    assert partial is not None and set(partial.table["value"]) == {1}


def test_a_sweep_with_nothing_to_show_says_why():
    class Never(Squares):
        def values(self, settings: Few) -> Sequence[Value]:
            return (2,)

    with pytest.raises(InvalidInput, match="Two is not for squares"):
        outcome(Never().run(Few()))


def test_two_studies_never_share_a_key():
    with pytest.raises(ValueError, match="share a key"):
        registered(Counting(), Counting())
    assert all(key == study.key for key, study in STUDIES.items())


def test_what_opens_a_study_or_varies_is_a_value_of_a_field():
    found = set()
    for study in RUNNABLE.values():
        described = study.settings.parameters()
        named = [study.opened_by] if study.opened_by else []
        name, grid = getattr(study, "along", ("", ()))
        named += [(name, value) for value in grid]
        for name, value in named:
            assert described[name].check(value) == value
            found.add(study.key)
        if study.opened_by:
            opened = replace(study.settings(), **dict([study.opened_by]))
            assert study.wanted(opened) or hasattr(study, "obstacle")
    assert {"price_of_products", "noise_at_risk", "detection-sweep", "defences"} <= found


def test_files_of_any_kind_find_their_studies():
    settings = read_settings(ConvergeSettings(clients=3).to_json())
    assert settings == ConvergeSettings(clients=3)
    assert [study.key for study in studies_of(settings)] == ["convergence"]
    for text in ("", "[]", "{}", '{"kind": 3}', "[" * 100_000):
        with pytest.raises(InvalidInput, match="This is not a configuration file"):
            read_settings(text)
    with pytest.raises(InvalidInput, match="no settings of kind “moon”"):
        read_settings('{"kind": "moon"}')


def test_own_data_are_known_by_content(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("a,b\n1,2\n3,4\n5,6\n")
    own = OwnData.of(file)
    assert own.digest == OwnData("other.csv", file.read_bytes()).digest
    assert list(own.table.columns) == ["a", "b"]
    with pytest.raises(InvalidInput, match="cannot be read"):
        OwnData.of(tmp_path / "none.csv")


def test_a_table_of_ones_own_runs_from_its_settings():
    rows = "\n".join(f"{i % 3},{i},{i * i % 7},{i * 5 % 11}" for i in range(60))
    own = OwnData("own.csv", f"site,x,y,z\n{rows}\n".encode())
    chosen = ConvergeSettings(
        problem="table", client_column="site", components=1, methods=("ssi",), starts=1, rounds=10
    )
    study = STUDIES["convergence"]
    found = outcome(study.run(chosen, own))
    assert found.facts.clients == 3 and found.facts.features == 3
    fewer = outcome(study.run(replace(chosen, columns=("x", "z")), own))
    assert fewer.facts.features == 2
    with pytest.raises(InvalidInput, match="choose a CSV, Parquet or NumPy file"):
        outcome(study.run(chosen))
