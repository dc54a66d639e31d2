"""The Anomalies page: one study and one view for each topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.shell.controls import Controls
from dashboard.views.anomaly import (
    alarms,
    costs,
    detection,
    leaks,
    learning,
    poisoning,
    published,
    sweeps,
)
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import STUDIES
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

Choose = Callable[[Controls[AnomalySettings], OwnData | None], None]
Draw = Callable[[Any, AnomalySettings], None]


@dataclass(frozen=True)
class View:
    """One topic of the page.

    Attributes
    ----------
    study : Study
    choose : callable
        Draws the settings that only this topic has.
    draw : callable
        Draws a result, partial or whole.
    explain : callable
        What is said below, whatever the result.
    """

    study: Study[AnomalySettings, Any]
    choose: Choose
    draw: Draw
    explain: Callable[[], None]


def _nothing(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The topic has no settings of its own."""


#: Views by the key of the page's topic.
VIEWS: Mapping[str, View] = {
    "detection": View(STUDIES["detection"], detection.choose, detection.draw, detection.explain),
    "learning": View(STUDIES["learning"], _nothing, learning.draw, learning.explain),
    "alarms": View(STUDIES["alarms"], alarms.choose, alarms.draw, alarms.explain),
    "costs": View(STUDIES["detection-costs"], _nothing, costs.draw, costs.explain),
    "leaks": View(STUDIES["leaks"], leaks.choose, leaks.draw, leaks.explain),
    "poisoning": View(STUDIES["poisoned"], poisoning.choose, poisoning.draw, poisoning.explain),
    "sweeps": View(STUDIES["detection-sweep"], sweeps.choose, sweeps.draw, sweeps.explain),
    "published": View(STUDIES["published"], _nothing, published.draw, published.explain),
}
