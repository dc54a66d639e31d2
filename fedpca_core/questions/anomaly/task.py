"""From settings to traffic and a detection task: what the studies of this room share."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial

from fedpca_core.arrays import IntArray
from fedpca_core.errors import require
from fedpca_core.problems.problem import check_components
from fedpca_core.problems.traffic import DetectionTask, Traffic, prepare, synthetic
from fedpca_core.problems.traffic_table import (
    NO_LABELS,
    SCHEMAS,
    available,
    load,
    read_traffic,
)
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.remembered import Remembered
from fedpca_core.settings import plural
from fedpca_core.streams import Streams
from fedpca_core.study import own_table
from fedpca_core.study.facts import Facts
from fedpca_core.study.own_data import NoFile, OwnData
from fedpca_core.study.study import content_key

#: What pages need besides what is declared here.
__all__ = ["NO_LABELS"]

#: Rows of a file for each client, where the file decides how many there are.
ROWS_A_CLIENT = 20
#: Fields that the raw records depend on, and those that the task does.
_OWN = frozenset(
    {"problem", "label_column", "normal_value", "columns", "client_column", "missing", "seed"}
)
_SPLIT = frozenset({"clients", "split", "alpha", "each", "transform", "standardising"})
TASK = _OWN | _SPLIT
#: Fields that noise at the source depends on besides.
NOISE = frozenset({"epsilon", "delta", "clip_norm", "mean_share", "mean_clip", "seed"})
# Each entry holds up to a hundred megabytes, hence the few.
_SOURCES: Remembered[Traffic] = Remembered(3)
_TASKS: Remembered[DetectionTask] = Remembered(3)


@dataclass(frozen=True)
class TaskFacts:
    """What a page says of a detection task."""

    note: str
    #: Whether anybody knows which tested records are attacks.
    labelled: bool
    features: int
    clients: int
    training: int
    tested: int
    #: Of the tested records; the accuracy of always raising the alarm.
    attack_share: float
    #: (clients, kinds) int: Training records of each kind that a client holds.
    held: IntArray
    #: What noise at the source guarantees, where there is any.
    promised: Facts | None = None

    @classmethod
    def of(cls, found: DetectionTask) -> TaskFacts:
        left_out = ", ".join(found.dropped)
        return cls(
            note=found.problem.note + (f" Constant, left out: {left_out}." if left_out else ""),
            labelled=found.source.labelled,
            features=found.problem.features,
            clients=found.problem.clients,
            training=len(found.source.normal),
            tested=len(found.attack),
            attack_share=found.attack_share,
            held=found.held,
            promised=None if found.problem.guarantee is None else Facts.of(found.problem),
        )

    @property
    def read(self) -> str:
        """How much was read or drawn."""
        learnt, features = plural(self.training, "record"), plural(self.features, "feature")
        records = f"{learnt} to learn from and {self.tested:,} to be tested"
        return f"{records}, {features}, {plural(self.clients, 'client')}"


def resolve(problem: str) -> str:
    """The data set behind "best available": TON-IoT where it is found, else synthetic."""
    if problem != "auto":
        return problem
    return "ton" if "ton" in available() else "synthetic"


def most_components(problem: str) -> int | None:
    """How many components a public data set has room for; None where its features are not known."""
    schema = SCHEMAS.get(resolve(problem))
    return None if schema is None else len(schema.feature_names) - 1


def key_of(
    settings: AnomalySettings, data: OwnData | None, fields: frozenset[str]
) -> tuple[Hashable, ...]:
    """Some fields of the settings and the content of the file that they ask for, if any."""
    chosen = replace(settings, problem=resolve(settings.problem))
    return content_key(chosen, fields, data if settings.problem == "own" else None)


def source(settings: AnomalySettings, data: OwnData | None = None) -> Traffic:
    """The raw records of the settings; remembered, since several studies ask for them.

    Raises InvalidInput: data that are not there, or a file that could not be used.
    """
    c, problem = settings, resolve(settings.problem)

    def read() -> Traffic:
        if problem != "own":
            return synthetic(seed=c.seed) if problem == "synthetic" else load(problem)
        if data is None:
            raise NoFile(
                "There is no file yet: these settings are for a CSV file of your own, which a link "
                "cannot carry; choose it beside “Traffic”."
            )
        how = c.some(*_OWN - {"problem"})
        return read_traffic(data.content, data.name, public_schema=by_schema(c), **how)

    return _SOURCES.get((by_schema(c), *key_of(c, data, _read_fields(c))), read)


def task(settings: AnomalySettings, data: OwnData | None = None) -> DetectionTask:
    """The detection task of the settings; remembered.

    Raises InvalidInput: as `source`; more clients or components than the records allow.
    """
    traffic = source(settings, data)
    found = _TASKS.get(
        _task_key(settings, data),
        lambda: prepare(
            traffic,
            seed=settings.seed,
            public_schema=by_schema(settings),
            concentration=settings.alpha,
            **settings.some(*_SPLIT - {"alpha"}),
        ),
    )
    check_components(settings.components, found.problem.features)
    return found


#: Settings with no more clients and components than a file allows; it may hold labels.
fitting = partial(own_table.fitting, rows_each=ROWS_A_CLIENT, labels=1)


def _task_key(settings: AnomalySettings, data: OwnData | None) -> tuple[Hashable, ...]:
    drawn = frozenset({"seed"}) if settings.split != "sorted" else frozenset()
    return by_schema(settings), *key_of(settings, data, _read_fields(settings) | _SPLIT | drawn)


def by_schema(settings: AnomalySettings) -> bool:
    """Whether nothing may be decided by looking at the records, as under an ε that covers them."""
    return math.isfinite(settings.epsilon) and not without_guarantee(settings)


def without_guarantee(settings: AnomalySettings) -> bool:
    """Whether a finite ε is asked for records that are divided by deviations of their own."""
    return math.isfinite(settings.epsilon) and settings.standardising != "centre"


def noisy_task(settings: AnomalySettings, data: OwnData | None = None) -> DetectionTask:
    """The task with the settings' noise at the source; the task itself where ε is infinite.

    Raises InvalidInput: as `task`; records that are divided by deviations of their own.
    """
    found = task(settings, data)
    if math.isinf(settings.epsilon):
        return found
    require(
        not without_guarantee(settings),
        "No ε covers records that are divided by deviations of their own: one record changes all "
        "others. Choose “Mean only” under “Standardising” (in “Corrected or as printed”), for "
        "which a noisy mean is paid, or switch the noise off (ε = ∞).",
    )
    key = _task_key(settings, data), key_of(settings, None, NOISE)
    return _TASKS.get(key, lambda: with_noise(found, settings))


def with_noise(on: DetectionTask, settings: AnomalySettings, release: int = 0) -> DetectionTask:
    """The task with the settings' noise at the source; another release draws other noise."""
    c, mean = settings, settings.some("mean_share", "mean_clip")
    return on.private(c.epsilon, c.delta, c.clip_norm, Streams(c.seed), release=release, **mean)


def _read_fields(settings: AnomalySettings) -> frozenset[str]:
    """What the raw records depend on: a public data set on nothing but its name."""
    fields = {"own": _OWN, "synthetic": frozenset({"problem", "seed"})}
    return fields.get(resolve(settings.problem), frozenset({"problem"}))
