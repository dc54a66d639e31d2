"""Nguyen et al., FedPCA for IoT: the published numbers, and the presets of the Anomalies page.

The paper states neither the rank nor the step, rounds and batch size behind its table; the public
scripts use rank 2 and 20 clients. Ours are stated with every row.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from fedpca_core.papers.files import paper
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.study.preset import Preset, listed

FILE = Path(__file__).with_name("iot_presets.toml")


@dataclass(frozen=True)
class Published:
    """One row of the paper's Table I, in per cent; the areas are given for FedPG alone."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    fnr: float
    auc: float = float("nan")
    average_precision: float = float("nan")


#: Table I by data set and method, with FedPG's areas.
TABLE_I: dict[str, dict[str, Published]] = {
    data: {
        method: Published(
            **{
                one.measure.partition(",")[0]: one.value
                for one in paper("iot").entries
                if one.method == method
                and one.id.startswith(
                    (f"table-1/{data}/", f"area/{data}", f"average-precision/{data}")
                )
            }
        )
        for method in dict.fromkeys(
            one.method for one in paper("iot").entries if one.id.startswith(f"table-1/{data}/")
        )
    }
    for data in ("unsw", "ton")
}
_AUC = next(one.printed for one in paper("iot").entries if one.id == "area/unsw")

#: Points of the Anomalies page, each with its settings.
PRESETS = tuple(
    Preset(name, **one)
    for name, one in listed(
        tomllib.loads(FILE.read_text(encoding="utf-8")), AnomalySettings, auc=_AUC
    )
)
