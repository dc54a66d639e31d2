"""Traffic: public files recognised by their columns, any other table, and the detection task."""

import itertools

import numpy as np
import pandas as pd
import pytest

from fedpca_core import InvalidInput
from fedpca_core.anomaly.evaluation import area, score
from fedpca_core.problems import traffic, traffic_table
from fedpca_core.problems.traffic_table import HEADERLESS, SCHEMAS, recognise


def unsw_table(rows=200, seed=0):
    generator = np.random.default_rng(seed)
    names = SCHEMAS["unsw"].numeric
    table = pd.DataFrame(generator.integers(0, 50, (rows, len(names))), columns=list(names))
    table.insert(0, "id", np.arange(rows))
    table["proto"] = "tcp"
    attack = np.arange(rows) % 4 == 0
    table["attack_cat"] = np.where(attack, "Fuzzers", "Normal")
    table["label"] = attack.astype(int)
    return table


def csv(table, **options):
    return table.to_csv(index=False, **options).encode()


def read(table, **options):
    return traffic_table.read_traffic(csv(table), "mine.csv", **options)


def other_table(rows=200):
    """A table of no known data set: four features, two columns of text, row numbers, labels."""
    generator = np.random.default_rng(1)
    table = pd.DataFrame(
        generator.normal(size=(rows, 4)), columns=["heat", "load", "noise", "flow"]
    )
    table.insert(0, "row", np.arange(1, rows + 1))
    table["site"] = np.where(np.arange(rows) % 2, "north", "south")
    broken = np.arange(rows) % 5 == 0
    table.loc[broken, "heat"] += 8
    table["state"] = np.where(broken, np.where(np.arange(rows) % 10, "jam", "leak"), "fine")
    return table


# ---------------------------------------------------------------------- reading
def test_a_public_csv_is_recognised_and_nothing_is_lost():
    table = unsw_table()
    found = read(table)
    assert found.name == "UNSW-NB15"
    assert found.feature_names == SCHEMAS["unsw"].numeric
    assert len(found.normal) + len(found.test) == 200
    assert found.attack.sum() == 50
    assert set(found.types[found.attack]) == {"Fuzzers"}
    kept = np.concatenate([found.normal, found.test])
    original = table[list(found.feature_names)].to_numpy(float)
    np.testing.assert_array_equal(np.sort(kept, axis=0), np.sort(original, axis=0))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_and_capitals(separator):
    table = unsw_table().rename(columns=str.upper)
    found = traffic_table.read_traffic(csv(table, sep=separator), "mine.csv")
    assert len(found.test) == 50 + 60


def test_the_files_of_nsl_kdd_have_no_header():
    generator = np.random.default_rng(0)
    rows = pd.DataFrame(generator.integers(0, 9, (120, len(HEADERLESS))), columns=list(HEADERLESS))
    rows = rows.astype(object)
    rows["protocol_type"], rows["service"], rows["flag"] = "tcp", "http", "SF"
    rows["attack"] = np.where(np.arange(120) % 3 == 0, "neptune", "normal")
    found = traffic_table.read_traffic(csv(rows, header=False), "KDDTest+.txt")
    assert found.name == "NSL-KDD"
    assert len(found.feature_names) == 34
    assert found.attack.sum() == 40


def test_dashes_flags_and_categories_of_ton_iot():
    schema = SCHEMAS["ton"]
    assert len(schema.feature_names) == 49
    table = pd.DataFrame({name: ["1", "2", "3"] for name in schema.numeric})
    table["dns_AA"] = ["-", "F", "T"]
    table["http_trans_depth"] = ["-", "1", "2"]
    table["proto"], table["conn_state"] = ["tcp", "udp", "icmp"], ["SF", "S0", "REJ"]
    table["service"] = ["-", "dns", "smb;gssapi"]
    values = pd.DataFrame(schema.values(table, "x"), columns=list(schema.feature_names))
    assert list(values["dns_AA"]) == [-1, 0, 1]
    assert list(values["http_trans_depth"]) == [0, 1, 2]
    assert list(values["service=none"]) == [1, 0, 0]
    assert list(values["service=smb;gssapi"]) == [0, 0, 1]
    assert values.filter(like="proto=").to_numpy().sum() == 3


def test_a_dash_of_a_known_data_set_survives_the_file():
    names = SCHEMAS["ton"].numeric
    table = pd.DataFrame({name: np.arange(60) % 7 for name in names}).astype(object)
    table["dns_AA"], table["service"] = "-", "-"
    table["proto"], table["conn_state"] = "tcp", "SF"
    table["label"] = (np.arange(60) % 3 == 0).astype(int)
    found = read(table)
    values = pd.DataFrame(found.test, columns=list(found.feature_names))
    assert found.name == "TON-IoT" and len(found.normal) + len(found.test) == 60
    assert set(values["dns_AA"]) == {-1.0} and set(values["service=none"]) == {1.0}


def test_benign_is_normal_in_iot_23():
    schema = SCHEMAS["iot23"]
    table = pd.DataFrame({"label": ["Benign", "Malicious   C&C", "benign"]})
    attack, types = schema.labels(table)
    assert list(attack) == [False, True, False]
    assert types[1] == "Malicious   C&C" and types[0] == "normal"


def test_rows_with_empty_or_infinite_cells_are_counted():
    table = unsw_table().astype({"dur": float})
    table.loc[[3, 7], "dur"] = np.nan
    table.loc[5, "dur"] = np.inf
    found = read(table)
    assert len(found.normal) + len(found.test) == 197
    assert "3 with empty or infinite cells left out" in found.note


def test_long_files_are_sampled_evenly_and_say_so(monkeypatch):
    monkeypatch.setattr(traffic_table, "MAX_RECORDS", 100)
    table = unsw_table(1000)
    table["dur"] = np.arange(1000)
    found = read(table)
    assert found.attack.sum() == 100
    assert len(found.normal) + (~found.attack).sum() == 100
    assert "1,000 records read" in found.note and "200 are kept" in found.note
    kept = np.concatenate([found.normal, found.test])[:, found.feature_names.index("dur")]
    assert 400 < kept.mean() < 600


# ---------------------------------------------------------------------- any other table
def test_any_table_with_a_label_column_will_do():
    found = read(other_table(), label_column="state")
    assert found.name == "mine.csv" and found.labelled
    assert found.feature_names == ("heat", "load", "noise", "flow")
    assert set(found.types) == {"normal", "jam", "leak"} and found.attack.sum() == 40
    assert "Left out, not numeric or mere row numbers: row, site." in found.note
    assert "most frequent label, “fine”, counts as normal" in found.note
    swapped = read(other_table(400), label_column="state", normal_value="jam")
    assert set(swapped.types) == {"normal", "fine", "leak"}


def test_a_column_of_labels_is_found_by_its_name():
    table = other_table().rename(columns={"state": "Class"}).replace({"fine": "normal"})
    found = read(table)
    assert found.labelled and set(found.types) == {"normal", "jam", "leak"}
    assert "counts as normal" not in found.note
    coded = table.assign(Class=(table["Class"] != "normal").astype(int))
    assert set(read(coded).types) == {"normal", "attack"}
    # Another column of labels is no feature: it would give the answer away.
    both = coded.assign(label=coded["Class"])
    assert read(both, label_column="Class").feature_names == ("heat", "load", "noise", "flow")


@pytest.mark.parametrize("options", [{}, {"label_column": traffic_table.NO_LABELS}])
def test_a_table_without_labels_counts_as_normal(options):
    table = other_table() if not options else other_table().rename(columns={"state": "label"})
    found = read(table, **options)
    assert not found.labelled and not found.attack.any()
    assert set(found.types) == {"unlabelled"}
    assert len(found.normal) == 120 and len(found.test) == 80
    assert "Nobody says which records are attacks" in found.note
    assert traffic.prepare(found, clients=10).problem.clients == 10


def test_features_may_be_chosen():
    found = read(other_table(), label_column="state", columns=("flow", "heat"))
    assert found.feature_names == ("flow", "heat")


def test_likely_label_columns_come_first():
    table = other_table().assign(attack=np.arange(200) % 2)
    assert traffic_table.label_columns(table) == ["attack", "site", "state"]


@pytest.mark.parametrize(
    "options,words",
    [
        ({"label_column": "colour"}, "mine.csv has no column “colour”"),
        ({"label_column": "state", "normal_value": "good"}, "No record has the label “good”"),
        ({"columns": ("heat", "cold")}, "mine.csv has no column “cold”"),
        ({"columns": ("heat",)}, "has 1 numeric column besides its labels"),
    ],
)
def test_settings_that_do_not_fit_a_table_get_a_sentence(options, words):
    with pytest.raises(InvalidInput, match=words):
        read(other_table(), **options)


# ---------------------------------------------------------------------- refusals
def spoil(**changes):
    return unsw_table().assign(**changes)


@pytest.mark.parametrize(
    "table,words",
    [
        (pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}), "has 0 numeric columns"),
        (spoil(rate="fast"), "Column 'rate' of mine.csv holds text .*“fast” in record 1"),
        (spoil(label=0, attack_cat="Normal"), "test records hold no attacks"),
        (spoil(label=1, attack_cat="DoS"), "only 0 normal records remain"),
        (unsw_table().iloc[:0], "holds a header but no records"),
        (spoil(dur=np.nan), "Every record of mine.csv has an empty or infinite cell"),
        (unsw_table(24), "only 10 normal records remain"),
    ],
)
def test_bad_files_get_a_sentence(table, words):
    with pytest.raises(InvalidInput, match=words):
        read(table)


def test_missing_data_sets_name_the_command():
    assert traffic_table.available() == ("iot23",)
    with pytest.raises(InvalidInput, match="data ton-iot” says where to get it, or choose IoT-23"):
        traffic_table.load("ton")
    with pytest.raises(InvalidInput, match="no set of traffic “kdd99”"):
        traffic_table.load("kdd99")


def test_the_widest_data_set_that_fits_is_recognised():
    both = (*SCHEMAS["iot23"].needed, *SCHEMAS["unsw"].needed)
    assert recognise(both).key == "unsw"
    assert recognise(both[1:8]) is None


# ---------------------------------------------------------------------- preparing
def test_training_records_are_standardised_and_split():
    source = traffic.synthetic(normal=1000, test=80)
    detection = traffic.prepare(source, clients=30)
    assert detection.problem.clients == 30
    assert set(detection.problem.client_data.samples) == {33, 34}
    np.testing.assert_allclose(detection.training.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(detection.training.std(axis=0), 1, atol=1e-12)
    key = detection.problem.feature_names.index(source.split_key)
    blocks = detection.problem.blocks
    assert blocks is not None
    assert all(a[key].max() <= b[key].min() for a, b in itertools.pairwise(blocks))


def test_local_standardising_makes_every_client_standard():
    detection = traffic.prepare(traffic.synthetic(normal=2000, test=80), standardising="local")
    assert detection.problem.blocks is not None
    for block in detection.problem.blocks:
        np.testing.assert_allclose(block.mean(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose(block.std(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("clients", [30, 70])
def test_baselines_do_not_depend_on_the_split(clients):
    """Sorting puts the most extreme records last: none of them may be left out of anything."""
    source = traffic.synthetic(normal=1000, test=80)
    parts = {
        split: traffic.prepare(source, clients=clients, split=split, transform="none")
        for split in ("sorted", "iid")
    }
    np.testing.assert_array_equal(parts["sorted"].records, parts["iid"].records)
    assert len(parts["sorted"].training) == 1000
    np.testing.assert_allclose(
        parts["sorted"].problem.covariance, parts["iid"].problem.covariance, atol=1e-10
    )


def test_real_baselines_do_not_depend_on_the_split():
    """IoT-23 raw: the length alone had AUC .292 or .450, depending on the split."""
    raw = traffic_table.load("iot23")
    for split in ("sorted", "iid"):
        found = traffic.prepare(raw, split=split, transform="none")
        assert area(found.attack, score(found.records, None)) == pytest.approx(0.292, abs=5e-4)
        pca = score(found.records, found.problem.target(4))
        assert area(found.attack, pca) == pytest.approx(0.810, abs=5e-4)


def test_a_shuffled_split_is_less_heterogeneous():
    source = traffic.synthetic(normal=4000, test=80)
    eta = {
        split: traffic.prepare(source, split=split).problem.heterogeneity
        for split in ("sorted", "iid")
    }
    assert eta["iid"] < 0.7 * eta["sorted"]


def test_constant_features_are_dropped_and_named():
    table = spoil(dur=3.7, sttl=0)
    detection = traffic.prepare(read(table), clients=20, transform="none")
    assert detection.dropped == ("dur", "sttl")
    assert detection.problem.features == 37
    flat = {name: 1 for name in SCHEMAS["unsw"].numeric if name != "rate"}
    with pytest.raises(InvalidInput, match="Only 1 of the 39 features of UNSW-NB15 vary"):
        traffic.prepare(read(spoil(**flat)), clients=20)


def test_too_many_clients_are_refused():
    with pytest.raises(InvalidInput, match="cannot be split over 300 clients"):
        traffic.prepare(traffic.synthetic(normal=500, test=80), clients=300)


def test_synthetic_traffic_says_so_and_keeps_its_seed():
    first, again, other = (traffic.synthetic(500, 80, seed=seed) for seed in (3, 3, 4))
    assert first.note.startswith("Synthetic")
    np.testing.assert_array_equal(first.normal, again.normal)
    assert not np.array_equal(first.normal, other.normal)
    assert set(first.types) == {"normal", "flood", "scan", "exfiltration", "beacon"}


@pytest.mark.parametrize(
    "key,features,train,normal,attacks",
    [
        pytest.param("unsw", 39, 56_000, 20_000, 45_332, marks=pytest.mark.data("unsw")),
        pytest.param("ton", 49, 31_940, 10_000, 56_557, marks=pytest.mark.data("ton")),
        pytest.param("nsl", 34, 13_449, 9_711, 12_833, marks=pytest.mark.data("nsl")),
        ("iot23", 8, 29_539, 7_260, 7_728),
    ],
)
def test_real_sets_have_the_published_sizes(key, features, train, normal, attacks):
    found = traffic_table.load(key)
    assert found.normal.shape == (train, features)
    assert int(found.attack.sum()) == attacks
    assert int((~found.attack).sum()) == normal
    assert (found.types[~found.attack] == "normal").all()
