"""What the studies of the Anomalies page have in common."""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, TypeVar

from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.steps import Part, Step, changed
from fedpca_core.study.study import Study

R = TypeVar("R")
T = TypeVar("T")

#: Fields that the configured method depends on, besides its data.
LEARNING = frozenset(
    {
        *("method", "components", "rounds", "participation", "penalty_factor", "local_steps"),
        *("step_factor", "projection", "average", "local_start", "sampling", "initial", "seed"),
    }
)


class Topic(Study[AnomalySettings, R]):
    """A study that the page shows while its topic is open."""

    settings: ClassVar[type[AnomalySettings]] = AnomalySettings


def told(fractions: Generator[float, None, T], text: str) -> Part[T]:
    """Work that yields the share it has done, as a part of a study."""
    return changed(fractions, lambda fraction: Step(fraction, text))
