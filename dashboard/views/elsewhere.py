"""The Attack page on methods whose uploads are models, not products: FedPG and personalised PCA."""

from __future__ import annotations

from typing import cast

import streamlit as st

from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import exposure
from dashboard.views.anomaly import leaks
from fedpca_core.studies.detection.leaks import Leaked
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.personalised.exposure import Exposed
from fedpca_core.studies.sent_models import SentModels, borrowed

STUDY = SentModels()


def show(controls: Controls[AttackSettings]) -> Leaked | Exposed | None:
    """Choose another method and read its uploads, with the settings its own page explains."""
    layout.section(
        "Methods that send models",
        "FedPE, FedPG and personalised PCA never answer a frame with a product: clients send "
        "their own frames. That hides less than it seems.",
    )
    controls.parameter("elsewhere", as_buttons=True)
    settings = controls.settings()
    if not STUDY.wanted(settings):
        return None
    _, small = borrowed(settings)
    if isinstance(small, AnomalySettings):
        name = small.parameters()["problem"].text(small.problem)
        st.caption(f"FedPG with {small.clients} clients on {name}.")
        leaks.threat()
    else:
        exposure.threat()

    def draw(found: Leaked | Exposed) -> None:
        if isinstance(found, Leaked):
            leaks.draw(found, cast(AnomalySettings, small))
        else:
            exposure.draw(found)

    found: Leaked | Exposed | None = jobs.study(STUDY, settings, draw).result
    return found
