"""Configurations: one object for the link, the cache, the file and the download."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import read_settings
from fedpca_core.settings import Parameter
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings


def values_of(parameter: Parameter) -> st.SearchStrategy:
    if parameter.free:
        text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
        return st.lists(text.filter(bool)).map(tuple) if parameter.many else text
    if parameter.many:
        return st.lists(st.sampled_from(sorted(parameter.choices)), unique=True).map(tuple)
    if parameter.choices:
        return st.sampled_from(sorted(parameter.choices))
    if isinstance(parameter.default, bool):
        return st.booleans()
    if parameter.grid:
        return st.sampled_from([type(parameter.default)(number) for number in parameter.grid])
    assert parameter.low is not None and parameter.high is not None and parameter.step is not None
    steps = round((parameter.high - parameter.low) / parameter.step)
    low, step, kind = parameter.low, parameter.step, type(parameter.default)
    return st.integers(0, steps).map(lambda k: kind(round(low + k * step, 10)))


configurations = st.sampled_from([ConvergeSettings, AttackSettings]).flatmap(
    lambda cls: st.fixed_dictionaries(
        {name: values_of(parameter) for name, parameter in cls.parameters().items()}
    ).map(lambda values: cls(**values))
)


@given(configuration=configurations)
@settings(max_examples=60)
def test_file_and_link_round_trip(configuration: ConvergeSettings) -> None:
    cls = type(configuration)
    from_file = cls.from_json(configuration.to_json())
    assert from_file.configuration == configuration and not from_file.notes
    link = parse_qs(configuration.query_string(), keep_blank_values=True)
    from_link = cls.from_query(link)
    assert not from_link.notes
    if all(
        getattr(configuration, name)
        for name, parameter in cls.parameters().items()
        if parameter.many
    ):
        assert from_link.configuration == configuration
    assert hash(from_file.configuration) == hash(configuration)


def test_keys_are_unique_and_defaults_valid() -> None:
    for cls in (ConvergeSettings, AttackSettings):
        keys = [parameter.key for parameter in cls.parameters().values()]
        assert len(keys) == len(set(keys))
        assert cls().query_string() == ""


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"features": ["9999"]}, "Features cannot be “9999”: it must be a whole number from 4 to"),
        ({"features": ["12.5"]}, "Features cannot be “12.5”"),
        ({"seed": ["x"]}, "Seed cannot be “x”"),
        ({"decay": ["1.06"]}, "Spectral decay cannot be “1.06”: it must be one of"),
        ({"problem": ["Moon"]}, "Problem cannot be “Moon”: it must be one of Geometric spectrum"),
        ({"methods": ["SSI", "Magic"]}, "Methods cannot be “Magic”"),
        ({"adaptive": ["maybe"]}, "Adaptive penalty cannot be “maybe”: it must be true or false"),
        ({"participation": ["nan"]}, "Participation cannot be “nan”"),
        ({"colour": ["red"]}, "There is no setting called “colour”"),
    ],
)
def test_a_link_that_asks_for_another_run_is_refused(link, sentence: str) -> None:
    reading = ConvergeSettings.from_query(link)
    assert reading.configuration == ConvergeSettings() and len(reading.faults) == 1
    if "There is no" in sentence:
        assert reading.notes[0].startswith(sentence) and not reading.refused
        return
    assert not reading.notes
    ((name, (said, near)),) = reading.refused.items()
    assert said.startswith(sentence) and reading.faults[0].endswith(said)
    assert ConvergeSettings.parameters()[name].check(near) == near


@pytest.mark.parametrize(
    ("name", "asked", "near"),
    [
        ("features", "500", 300),
        ("features", "-1", 4),
        ("features", "nan", 50),
        ("decay", "1.06", 1.05),
        ("rounds", "inf", 3000),
        ("epsilon", "-inf", 0.1),
        ("problem", "Moon", "decay_geometric"),
        ("methods", ["FAPS", "Magic"], ("faps",)),
        ("methods", ["Magic"], ConvergeSettings().methods),
    ],
)
def test_the_nearest_that_fits(name: str, asked: object, near: object) -> None:
    described = ConvergeSettings.parameters()[name]
    assert described.fitting(asked) == near
    described.check(described.fitting(asked))


def test_what_only_shows_a_run_otherwise_is_replaced_with_a_note() -> None:
    reading = ConvergeSettings.from_query({"axis": ["Moons"], "accuracy": ["3"]})
    assert not reading.refused and len(reading.notes) == 2
    assert all("is used instead" in note for note in reading.notes)


def test_bad_values_are_refused_in_the_core() -> None:
    with pytest.raises(InvalidInput, match="Clients cannot be 0: it must be a whole number from 2"):
        ConvergeSettings(clients=0)
    with pytest.raises(InvalidInput, match="Methods cannot be “ssi”"):
        ConvergeSettings(methods="ssi")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a configuration file"),
        ("[1]", "holds no settings"),
        ('{"kind": "recipe"}', "of kind “recipe”"),
        ('{"version": 99}', "version 99"),
    ],
)
def test_bad_files_are_sentences(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ConvergeSettings.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        r'{"kind": "converge", "client_column": "\ud800"}',
        r'{"kind": "converge", "\udfff": 1}',
        r'{"kind": "\ud800"}',
    ],
)
def test_half_a_pair_in_a_file_is_refused_in_a_sentence_that_can_be_sent(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_settings(text)
    assert "“?”" in str(refusal.value) and str(refusal.value).encode()


def test_view_settings_do_not_change_the_run() -> None:
    shown = ConvergeSettings(measure="kkt", axis="bytes", accuracy=1e-3, guide=False)
    assert shown.run_key() == ConvergeSettings()
    assert ConvergeSettings(seed=5).run_key() != ConvergeSettings()


def test_attack_page_opens_with_the_settings_of_a_comparison() -> None:
    compared = ConvergeSettings(features=60, heterogeneity=0.4)
    attacked = AttackSettings(**compared.as_dict())
    link = parse_qs(attacked.query_string())
    assert AttackSettings.from_query(link).configuration.as_dict() == compared.as_dict()
