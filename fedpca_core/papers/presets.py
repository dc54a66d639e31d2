"""Presets of pages: points of the Anomalies page, and PerPCA's Figures 1(a)-(d) and 2(a)-(b).

The paper on IoT states neither the rank nor the step, rounds and batch size behind its table; the
public scripts use rank 2 and 20 clients. PerPCA does not print the values of its figures; what ours
are at its size is stored with the experiments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedpca_core.papers.entries import paper
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.settings import said_in
from fedpca_core.study.preset import Preset, listed

_AUC = next(one.printed for one in paper("iot").entries if one.id == "area/unsw")


@dataclass(frozen=True)
class PrintedFigure(Preset):
    """A figure at a size that answers at once: clients, rounds and pace are less than printed."""

    settings: PersonaliseSettings
    #: The field along the horizontal axis, or "round".
    axis: str
    #: Its values at paper size; for "round" the heterogeneities that are shown.
    values: tuple[float, ...]
    #: Clients there, where they are not along the axis.
    paper_clients: int = 0


_PERPCA = said_in("papers/perpca_figures")
FIGURES: Mapping[str, PrintedFigure] = {
    name: PrintedFigure(name, **one)
    for name, one in listed(_PERPCA["figures"], PersonaliseSettings)
}
#: What an experiment has otherwise than its figure, by the word in its key.
OTHERWISE: Mapping[str, Mapping[str, Any]] = _PERPCA["otherwise"]
IOT = tuple(
    Preset(name, **one)
    for name, one in listed(said_in("papers/iot_presets"), AnomalySettings, auc=_AUC)
)
PERPCA = (
    *FIGURES.values(),
    *(Preset(name, **one) for name, one in listed(_PERPCA["presets"], PersonaliseSettings)),
)
