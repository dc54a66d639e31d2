"""The Attack page on methods whose uploads are models, not products: FedPG and personalised PCA."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import exposure
from dashboard.views.anomaly import data as anomaly_data
from dashboard.views.anomaly.leaks import leaks
from dashboard.views.anomaly.view import View
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.personalised.exposure import Exposure
from fedpca_core.studies.personalised.settings import PersonaliseSettings

#: Small enough that the whole covariance can be fitted while one waits.
_TRAFFIC: dict[str, Any] = {"components": 4, "clients": 20, "rounds": 100}
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
            _fedpg(controls)
    elif other == "personal":
        layout.threat_card(
            "An honest-but-curious server",
            sees="every upload V − β hᵢ, and the common frame V it sent",
            knows="the step sizes, the prior and the noise variance",
            does="solves the upload for the client's private frame Uᵢ, and consecutive Uᵢ for Sᵢ",
            outcome="from a common start the frames exactly, and with them the covariances",
        )
        jobs.study(Exposure(), _PERSONAL, exposure.draw)


def _fedpg(controls: Controls[AttackSettings]) -> None:
    """IoT-23 where it is found, because its eight features can be fitted whole."""
    with st.container():
        try:
            settings = AnomalySettings(data="iot23", **_TRAFFIC)
            traffic = anomaly_data.current_traffic(settings)
        except InvalidInput:
            settings = AnomalySettings(data="synthetic", **_TRAFFIC)
            traffic = anomaly_data.current_traffic(settings)
        st.caption(f"FedPG with {settings.clients} clients on {traffic.name}.")
        detection = anomaly_data.current_detection(settings)
    published = anomaly_data.published_as(traffic)
    # The view of leaks draws no parameter of its own page, so it gets this page's controls.
    leaks(View(settings, detection, traffic, published, cast(Any, controls)))
