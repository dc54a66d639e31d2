"""Network traffic: the project's Parquet copies of public data sets, and synthetic devices.

The latter are for when no real data are at hand. The logarithms of a device's counters follow a
few shared factors (how busy it is, upload against download, ...) plus small independent noise;
counters are their exponentials and therefore heavy-tailed like real ones. Attacks break the
relations between counters in four ways.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_known
from fedpca_core.problems.data_sets import files_of, find
from fedpca_core.problems.traffic_schemas import SCHEMAS
from fedpca_core.streams import Streams

#: Counters of a synthetic device.
FEATURES = (
    *("duration", "packets_out", "packets_in", "bytes_out", "bytes_in", "mean_size_out"),
    *("mean_size_in", "gap_out", "gap_in", "jitter_out", "jitter_in", "retransmissions"),
    *("handshake_time", "flows_same_service", "flows_same_target", "distinct_ports"),
    *("distinct_targets", "dns_queries", "dns_name_length", "failed_logins", "http_requests"),
    *("response_size", "tls_records", "idle_time"),
)

_FACTORS = 6
_NOISE = 0.25
#: Width of the logarithms: counters then stay positive and span a few powers of ten.
_SPREAD = 0.4


@dataclass(frozen=True, eq=False)
class Traffic:
    """Raw traffic: normal records to train on, labelled records to test."""

    #: Data set's title.
    name: str
    feature_names: tuple[str, ...]
    #: (records, features) float64: Normal training records.
    normal: Array
    #: Feature by which records are sorted for the non-iid split.
    split_key: str
    #: (records, features) float64.
    test: Array
    #: (records,) bool: Labels of the test records.
    attack: np.ndarray
    #: (records,) object: Attack type as text, "normal" for normal records, "unlabelled" where
    #: nobody says.
    types: np.ndarray
    #: False where nobody knows which records are attacks: ``attack`` is then False throughout.
    labelled: bool = True
    #: Where the records come from and how they were split.
    note: str = ""
    #: (records,) object, optional: Whose normal training record each is, where the records say so.
    owners: np.ndarray | None = None
    #: What was decided by looking at the records, as in `Problem`.
    looked: str = ""

    def __post_init__(self) -> None:
        require(
            len(self.normal) >= 20,
            f"{self.name}: only {len(self.normal)} normal records remain to train on; "
            "at least 20 are needed.",
        )
        if not self.labelled:
            return
        attacks = int(self.attack.sum())
        for count, what in ((attacks, "attacks"), (len(self.attack) - attacks, "normal records")):
            require(
                count > 0,
                f"{self.name}: the test records hold no {what}, so nothing can be detected or "
                "missed; choose a file or a label column that tells both apart, or no labels.",
            )

    @property
    def attack_types(self) -> list[str]:
        return sorted({str(name) for name in self.types[self.attack]})


def available(folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Keys of the real data sets that can be read here; see `data_sets.data_folder`."""
    return tuple(key for key in SCHEMAS if find(key, folder) is not None)


def load(key: str, folder: str | os.PathLike[str] | None = None) -> Traffic:
    """Read a public data set from its Parquet copy; refused where it is not known or not here."""
    require_known("set of traffic", key, SCHEMAS)
    schema = SCHEMAS[key]
    files = files_of(key, folder)
    # Rows of no split (duplicates, further attacks) are never read.
    kept: dict[str, list[tuple[str, str, Any]]] = {
        "unsw": [("paper_test", "==", True)],
        "ton": [("split", "in", ("train", "test"))],
    }
    tables = [
        pd.read_parquet(file, filters=kept.get(key) if file == files[-1] else None)
        for file in files
    ]
    if key == "unsw":
        training, test = tables
    else:
        split = tables[0]["split"].astype(str)
        training, test = tables[0][split.isin(("train", "train20"))], tables[0][split == "test"]
        if "label" in training:
            training = training[training["label"] == 0]
    attack, types = schema.labels(test)
    return Traffic(
        name=schema.title,
        feature_names=schema.feature_names,
        normal=schema.values(training, files[0].name),
        split_key=schema.split_key,
        test=schema.values(test, files[-1].name),
        attack=attack,
        types=types,
        note=schema.note,
    )


def synthetic(normal: int = 12_000, test: int = 8_000, seed: int = 0) -> Traffic:
    """Draw normal training records, and test records of which half are attacks of four types.

    ``flood`` scales the shared factors up (large, but shaped like normal traffic: the length of a
    record finds it and the distance to the subspace hardly does); ``scan`` pushes ports and targets
    up without the packets that belong to them; ``exfiltration`` sends much and receives little;
    ``beacon`` is small and regular and breaks several relations slightly.
    """
    require(
        normal >= 100 and test >= 40,
        f"{normal} training and {test} test records are too few; draw at least 100 and 40.",
    )
    generator = Streams(seed).generator("data", 0)
    features = len(FEATURES)
    loadings = generator.standard_normal((features, _FACTORS)) * np.linspace(1.3, 0.6, _FACTORS)
    level = generator.uniform(4.0, 8.0, features) / _SPREAD

    def logarithms(count: int) -> tuple[Array, Array]:
        factors = generator.standard_normal((count, _FACTORS))
        noise = _NOISE * generator.standard_normal((count, features))
        return level + factors @ loadings.T + noise, factors

    column = {name: index for index, name in enumerate(FEATURES)}
    each = test // 8
    flood, factors = logarithms(each)
    flood += (1.2 * factors) @ loadings.T
    scan, _ = logarithms(each)
    scan[:, [column["distinct_ports"], column["distinct_targets"]]] += generator.normal(
        1.6, 0.5, (each, 2)
    )
    exfiltration, _ = logarithms(each)
    exfiltration[:, [column["bytes_out"], column["mean_size_out"]]] += generator.normal(
        1.2, 0.4, (each, 1)
    )
    exfiltration[:, column["bytes_in"]] -= 1.0
    beacon, _ = logarithms(each)
    beacon += 0.32 * generator.standard_normal((each, features))
    attacks = {"flood": flood, "scan": scan, "exfiltration": exfiltration, "beacon": beacon}
    calm, _ = logarithms(test - 4 * each)
    training, _ = logarithms(normal)
    types = np.repeat(
        np.array(["normal", *attacks], dtype=object), [len(calm), *([each] * len(attacks))]
    )
    return Traffic(
        name="Synthetic traffic",
        feature_names=FEATURES,
        normal=_counters(training),
        split_key="packets_out",
        test=_counters(np.concatenate([calm, *attacks.values()])),
        attack=types != "normal",
        types=types,
        note=f"Synthetic: drawn by this program, not measured. The logarithms of {features} "
        f"counters follow {_FACTORS} shared factors; four kinds of attack break their relations.",
    )


def _counters(logarithms: Array) -> Array:
    """Counters whose log(1 + x) is the given number times the common width; never negative."""
    return np.asarray(np.expm1(np.maximum(_SPREAD * logarithms, 0.0)))
