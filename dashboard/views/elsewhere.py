"""The Attack page on methods whose uploads are models or eigenvectors, not products."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dashboard.player import chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.shell.parts import lay_out
from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.records.from_models import FromModels
from fedpca_core.questions.attack.sent_models import SentModel, SentModels, borrowed
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.settings import short
from fedpca_core.study.parts import Caption, Part, Parts, words
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import sheet

STUDY = SentModels()
#: Who sends what, and what the study of its page found, by method.
READ: Mapping[str, tuple[Callable[[Any], list[Part]], Callable[[Any, Any], Parts]]] = {
    "fedpg": (lambda small: [_clients(small), anomaly.THREAT], anomaly.leaks),
    "personal": (lambda small: [personalise.threat()], personalise.exposure),
    "one_shot": (lambda small: [words("attack-one-shot")], lambda found, small: iter(())),
}


def _clients(small: Any) -> Caption:
    name = small.parameters()["problem"].text(small.problem)
    return Caption(f"FedPG with {small.clients} clients on {name}.")


def show(controls: Controls[AttackSettings], data: object = None) -> dict[Any, Any]:
    """Choose another method and read its uploads, with the settings its own page explains."""
    controls.parameter("elsewhere", as_buttons=True)
    settings = controls.settings()
    if not STUDY.wanted(settings):
        return {}
    other = borrowed(settings)
    small = None if other is None else other[1]
    lead, read = READ[settings.elsewhere]
    lay_out(lead(small))

    def draw(found: SentModel) -> None:
        if found.read is not None:
            lay_out(read(found.read, small))
        if found.records is not None:
            _records(found.records)

    return {STUDY: jobs.study(STUDY, settings, draw).result}


def _records(found: FromModels) -> None:
    """From the uploads to the matrix, and from the matrix to the very records."""
    size = found.size
    st.markdown(f"**And on to the records**, on digits of {size.side} × {size.side} pixels")
    if found.recovered is None:
        layout.sentence(f"The server has no record. {found.note}", kind="note")
        return
    uploads = "one upload" if size.rounds == 1 else f"{size.rounds} uploads"
    dense = size.rounds > 1
    st.markdown(
        f"From {uploads} of {size.components} components the server gets the client's matrix, to "
        f"{short(found.error, 1)} (simulation only), and takes it apart into **all {size.records} "
        f"pictures of the client**. {found.note} In truth {found.exact} of {size.records} are "
        "exact, to the last grey level (simulation only)."
        + " The pictures are small because every entry is an unknown of one dense solve."
        * dense
    )
    made = sheet(
        "What the server made of it",
        [found.recovered],
        ["✓ certified"],
        "The client's records as the server found them, side by side.",
    )
    truth = sheet(
        "The private records",
        [found.truth],
        ["never sent"],
        "The client's private records side by side.",
        simulation_only=True,
    )
    chart(key="sent_records", images=[[made, truth]])
