"""What every view of the anomaly page needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.shell import jobs
from dashboard.shell.controls import Controls
from fedpca_core.problems.traffic import Detection, Traffic
from fedpca_core.studies.detection import comparison
from fedpca_core.studies.detection.comparison import Findings
from fedpca_core.studies.detection.settings import AnomalySettings

PER_CENT = st.column_config.NumberColumn(format="%.1f")
#: How long the rivals wait while the first results travel to the browser.
DELIVERY_SECONDS = 0.6
THREE = st.column_config.NumberColumn(format="%.3f")

#: Colours of what is not an algorithm of the palette.
COLOURS: Mapping[str, str] = {
    "Centralised PCA": "Centralized",
    "Norm only": "guide",
    "Random subspace": "series 7",
    "FedAE": "VariableSplitting",
    "FedAE-2": "BlockKrylov",
    "FedPG, corrected": "FedPG",
    "FedPE, corrected": "FedPE",
    "FedPG, printed average": "series 2",
    "FedPG, printed projection": "series 1",
}


@dataclass(frozen=True, eq=False)
class View:
    """What every view needs."""

    settings: AnomalySettings
    detection: Detection
    traffic: Traffic
    published_as: str
    controls: Controls[AnomalySettings]

    def key(self, *more: Any) -> tuple[Any, ...]:
        """Identity of a computation on these data and settings."""
        found = self.detection
        tested = len(found.attack), int(found.attack.sum()), float(found.records.sum())
        return ("anomaly", self.settings.run_key(), found.problem.digest, *tested, *more)

    @property
    def title(self) -> str:
        """Name of the configured method."""
        return self.settings.algorithm().title


def with_findings(view: View, draw: Callable[[Findings], None]) -> None:
    """Draw what depends on the trained detectors; the jobs are shared by all views.

    The method with its baselines is a job of its own and comes first: drawn while nothing else
    computes, it is on screen before its rivals are trained.
    """

    def quick(job: jobs.Job) -> Findings:
        return comparison.essentials(view.detection, view.settings, job.report)

    def whole(job: jobs.Job) -> Findings:
        job.publish(first.result)
        # The interpreter's lock is shared: without a pause the page would wait for the rivals.
        time.sleep(DELIVERY_SECONDS)
        return comparison.compare(
            view.detection, view.settings, job.report, job.publish, first.result
        )

    name = f"compare_{view.settings.topic}"
    first = jobs.registry().submit(view.key("essentials"), quick, seconds=120.0)
    first.wait(1.5)
    if first.done and first.result is not None:
        jobs.show(view.key("compare"), whole, draw, name=name, patience=0.05)
    else:
        jobs.show(view.key("essentials"), quick, draw, name=name)


def threshold(view: View) -> AnomalySettings:
    """The controls of the alarm level; returns the settings with them."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        rule = view.controls.parameter("rule", as_buttons=True)
        level = view.settings.share if rule == "oracle" else view.controls.parameter("share")
    return replace(view.settings, rule=rule, share=level)


def colour(name: str) -> str:
    """The palette's name for a method."""
    return COLOURS.get(name, name)


def floor(values: pd.Series) -> np.ndarray:
    """Values for a logarithmic axis: zero becomes rounding."""
    return np.maximum(values.to_numpy(dtype=float), 1e-18)
