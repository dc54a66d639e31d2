"""The anomaly page: one view for each question, drawn only when it is asked."""

from collections.abc import Callable

from dashboard.anomaly.alarms import alarms
from dashboard.anomaly.costs import costs
from dashboard.anomaly.detection import detection
from dashboard.anomaly.leaks import leaks
from dashboard.anomaly.learning import learning
from dashboard.anomaly.poisoning import poisoning
from dashboard.anomaly.published import published
from dashboard.anomaly.sweeps import sweeps
from dashboard.anomaly.view import View

#: Views by the key of the page's topic.
VIEWS: dict[str, Callable[[View], None]] = {
    "detection": detection,
    "learning": learning,
    "alarms": alarms,
    "costs": costs,
    "leaks": leaks,
    "poisoning": poisoning,
    "sweeps": sweeps,
    "published": published,
}

__all__ = ["VIEWS", "View"]
