"""The anomaly page: one view for each question, drawn only when it is asked."""

from collections.abc import Callable

from dashboard.views.anomaly.alarms import alarms
from dashboard.views.anomaly.costs import costs
from dashboard.views.anomaly.detection import detection
from dashboard.views.anomaly.leaks import leaks
from dashboard.views.anomaly.learning import learning
from dashboard.views.anomaly.poisoning import poisoning
from dashboard.views.anomaly.published import published
from dashboard.views.anomaly.sweeps import sweeps
from dashboard.views.anomaly.view import View

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
