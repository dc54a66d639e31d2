"""The Attack page on methods whose uploads are models, not products: FedPG and personalised PCA."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import exposure
from dashboard.views.anomaly import leaks
from fedpca_core.studies.catalogue import STUDIES
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.detection.task import present
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.personalised.exposure import Exposure
from fedpca_core.studies.personalised.settings import PersonaliseSettings

#: Small enough that the whole covariance can be fitted while one waits.
_TRAFFIC: dict[str, Any] = {"components": 4, "clients": 20, "rounds": 100, "topic": "leaks"}
_PERSONAL = PersonaliseSettings(features=12, components=3, samples=10, exposure=True)


def show(controls: Controls[AttackSettings]) -> None:
    """Choose another method and read its uploads, with the settings its own page explains."""
    layout.section(
        "Methods that send models",
        "FedPE, FedPG and personalised PCA never answer a frame with a product: clients send "
        "their own frames. That hides less than it seems.",
    )
    other = controls.parameter("elsewhere", as_buttons=True)
    if other == "fedpg":
        with layout.guard():
            _fedpg()
    elif other == "personal":
        layout.threat_card(
            "An honest-but-curious server",
            sees="every upload V − β hᵢ, and the common frame V it sent",
            knows="the step sizes, the prior and the noise variance",
            does="solves the upload for the client's private frame Uᵢ, and consecutive Uᵢ for Sᵢ",
            outcome="from a common start the frames exactly, and with them the covariances",
        )
        jobs.study(Exposure(), _PERSONAL, exposure.draw)


def _fedpg() -> None:
    """IoT-23 where it is found, because its eight features can be fitted whole."""
    problem = "iot23" if present("iot23") else "synthetic"
    settings = AnomalySettings(problem=problem, **_TRAFFIC)
    name = settings.parameters()["problem"].text(problem)
    st.caption(f"FedPG with {settings.clients} clients on {name}.")
    leaks.threat()
    jobs.study(STUDIES["leaks"], settings, lambda found: leaks.draw(found, settings))
