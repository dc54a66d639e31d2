"""Network traffic, measured (`traffic_table`) or of synthetic devices, to a federated problem.

Clients hold normal records only, transformed, standardised and split; a test set of labelled
records is the same for all methods. The logarithms of a synthetic device's counters follow a few
shared factors (how busy it is, upload against download, ...) plus small independent noise; counters
are their exponentials and therefore heavy-tailed like real ones. Attacks break the relations
between counters in four ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require, require_choice
from fedpca_core.problems.heterogeneity import DEALT
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.splits import BY_KIND, by_kind
from fedpca_core.problems.table import MAX_CLIENTS
from fedpca_core.problems.table_columns import listed
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
_LOOKED = "constant features were left out by looking at the records"


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


# ---------------------------------------------------------------------- to a problem
@dataclass(frozen=True, eq=False)
class DetectionTask:
    """A detection task: training normals over clients, and labelled test records."""

    #: Each client's standardised normal records, weighted by their number.
    problem: Problem
    #: (tested, features) float64: Standardised test records.
    records: Array
    #: attack, types, (tested,): As in `Traffic`.
    attack: np.ndarray
    types: np.ndarray
    #: The records before transform and standardisation.
    source: Traffic
    #: Features left out because they are constant over the training records.
    dropped: tuple[str, ...]
    #: (clients, kinds) int: Training records of each kind that a client holds.
    held: IntArray

    def private(self, *given: Any, **more: Any) -> DetectionTask:
        """The same task with noise at the source, all records centred on the noisy mean.

        Parameters and refusals are those of `Problem.private`; the names of the features and the
        transform count as public.
        """
        problem = self.problem.private(*given, **more)
        assert problem.blocks is not None and problem.source is not None
        assert self.problem.own_mean is not None and problem.source.mean is not None
        moved = self.problem.own_mean - problem.source.mean
        blocks = tuple(block + moved[:, None] for block in problem.blocks)
        return replace(self, problem=replace(problem, blocks=blocks), records=self.records + moved)

    @cached_property
    def training(self) -> Array:
        """All clients' normal records, (records, features), as their own client sees them."""
        assert self.problem.blocks is not None
        return np.concatenate([block.T for block in self.problem.blocks])

    def raw(self, record: int) -> Array:
        """One test record as it was measured, (features,)."""
        columns = [self.source.feature_names.index(name) for name in self.problem.feature_names]
        return self.source.test[record, columns]

    @property
    def attack_share(self) -> float:
        """Share of attacks among the test records: the accuracy of always raising the alarm."""
        return float(self.attack.mean())


def signed_log(values: Array) -> Array:
    """sign(x) log(1 + |x|): tames counters so heavy-tailed that a few own the components."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def prepare(
    traffic: Traffic,
    *,
    clients: int = 100,
    split: str = "sorted",
    transform: str = "log",
    standardising: str = "global",
    seed: int = 0,
    public_schema: bool = False,
    concentration: float = 0.5,
    each: int = 2,
) -> DetectionTask:
    """Split the training normals over clients and standardise everything.

    ``clients``: Not read where the records say whose they are. Sizes differ by one at most: the
        paper drops the remainder of the division, which after sorting would be the most extreme
        records.
    ``split``, {"sorted", "iid", "dirichlet", "pathological", "shards"}: Cut after sorting by the
        data set's own column (each client sees a narrow kind of traffic), or after shuffling; or
        dealt by kind with ``concentration`` and ``each`` (`splits.by_kind`). Kinds are the tenths
        of that column, since all training records have one label: normal.
    ``transform``, {"log", "none"}: Signed logarithm before the z-score, or nothing (as the paper).
    ``standardising``, {"global", "local", "centre"}: z-score by pooled moments of all normal
        training records (each client sends its sums of x and x^2 once), or each client by its own
        in training and the pooled ones for the test, as the authors ran it: training and scoring
        then use different coordinates. "centre" subtracts the pooled mean only, which noise at the
        source can pay for.
    ``public_schema``: For an epsilon: constant features stay, since leaving them out looks at the
        records.
    """
    for what, value, allowed in (
        ("split", split, ("sorted", "iid", *BY_KIND)),
        ("transform", transform, ("log", "none")),
        ("standardising", standardising, ("global", "local", "centre")),
    ):
        require_choice(f"The {what}", value, allowed)
    normal, test = traffic.normal, traffic.test
    key = normal[:, traffic.feature_names.index(traffic.split_key)]
    ends = np.quantile(key, np.linspace(0.1, 0.9, 9))  # ties stay together
    kinds = np.unique(np.searchsorted(ends, key, side="left"), return_inverse=True)[1]
    if traffic.owners is not None:
        places, how = _owned(traffic, traffic.owners), "belong, as they say, to"
    elif split in BY_KIND:
        places = by_kind(split, kinds, clients, seed=seed, concentration=concentration, each=each)
        how = f"dealt by tenths of {traffic.split_key} ({split}) to"
    else:
        require(
            clients >= 1 and 2 * clients <= len(key),
            f"{len(key)} normal training records of {traffic.name} cannot be split over {clients} "
            f"clients with at least 2 each; choose between 1 and {len(key) // 2} clients.",
        )
        order, how = np.argsort(key, kind="stable"), f"sorted by {traffic.split_key} and cut into"
        if split == "iid":
            order = Streams(seed).generator("data", 3).permutation(len(key))
            how = "shuffled into"
        places = np.array_split(order, clients)
    if transform == "log":
        normal, test = signed_log(normal), signed_log(test)
    mean, deviation = normal.mean(axis=0), normal.std(axis=0)
    # A constant column leaves rounding noise in its deviation, relative to its own size.
    varies = (deviation > 1e-12 * np.maximum(1.0, np.abs(mean))) | public_schema
    require(
        int(varies.sum()) >= 2,
        f"Only {int(varies.sum())} of the {len(varies)} features of {traffic.name} vary over the "
        "normal training records; at least 2 must. Choose a file with more varied traffic.",
    )
    names = np.array(traffic.feature_names, dtype=object)
    mean, deviation = mean[varies], deviation[varies]
    if standardising == "centre":
        deviation = np.ones_like(deviation)
    require(
        not public_schema or standardising == "centre",
        "No ε covers records that are divided by deviations of their own; centre them only.",
    )
    test = (test[:, varies] - mean) / deviation
    blocks = [normal[place][:, varies] for place in places]
    if standardising == "local":
        blocks = [_standardised(block) for block in blocks]
    else:
        blocks = [(block - mean) / deviation for block in blocks]
    sizes = sorted({len(block) for block in blocks})
    many = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 2 else " or ".join(map(str, sizes))
    taken = (
        f"the columns ({listed(traffic.feature_names)})",
        "that a cell without a number counts as 0",
        "which records are normal and train",
        DEALT if traffic.owners is None else "whose record each row is",
    )
    problem = from_blocks(
        [block.T for block in blocks],
        weights="records",
        name=traffic.name,
        feature_names=tuple(names[varies]),
        note=f"{traffic.note} Training records {how} {len(places)} clients of {many}.",
        own_mean=mean if standardising == "centre" else None,
        own_scale=standardising != "centre",
        looked=traffic.looked or ("" if public_schema else _LOOKED),
        public=taken if public_schema else (),
        judged=not public_schema,
    )
    return DetectionTask(
        problem=problem,
        records=test,
        attack=np.asarray(traffic.attack, dtype=bool),
        types=traffic.types,
        source=traffic,
        dropped=tuple(names[~varies]),
        held=np.array([np.bincount(kinds[place], minlength=kinds.max() + 1) for place in places]),
    )


def _owned(traffic: Traffic, owners: np.ndarray) -> list[np.ndarray]:
    codes, names = pd.factorize(owners)
    sizes = np.bincount(codes, minlength=len(names))
    require(
        2 <= len(names) <= MAX_CLIENTS,
        f"The client column of {traffic.name} names {len(names)} clients; choose one with 2 to "
        f"{MAX_CLIENTS}, or split the records by a rule.",
    )
    least = names[int(sizes.argmin())]
    require(
        int(sizes.min()) >= 2,
        f"Client “{least}” of {traffic.name} has 1 normal training record; "
        "every client needs at least 2. Leave its rows out or split by a rule.",
    )
    return [np.flatnonzero(codes == at) for at in range(len(names))]


def _standardised(block: Array) -> Array:
    """A client's records by its own moments; what is constant there only loses its mean."""
    deviation = block.std(axis=0)
    return np.asarray((block - block.mean(axis=0)) / np.where(deviation > 1e-12, deviation, 1.0))
