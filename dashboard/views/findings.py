"""Drawing findings: the same words and the same order wherever something is said about leakage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.controls import Controls
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.findings import TARGETS, Finding, Status, in_short

#: How the sentence begins that names targets of a status, the worst first.
LEADS = {
    Status.OPEN: "Open",
    Status.PARTLY: "Open in part",
    Status.NOT_OPENED: "Not opened by our attacks, which proves nothing",
    Status.NOT_TRIED: "Not tried",
    Status.PROVED_CLOSED: "Proved closed",
}


def sentence(findings: Sequence[Finding]) -> str:
    """All findings in a line, by status."""
    said = []
    for status, lead in LEADS.items():
        names = [TARGETS[one.target].lower() for one in findings if one.status is status]
        if names:
            said.append(f"{lead}: {'; '.join(names)}.")
    return " ".join(said)


def table(findings: Sequence[Finding], label: str) -> None:
    """One row a target: its status, the words of the finding, the attack behind it."""
    rows = [
        {
            "What": TARGETS[one.target],
            "Status": str(one.status),
            "The server": one.words,
            "Attack": ATTACKS[one.attack].title if one.attack else "–",
        }
        for one in findings
    ]
    layout.small_table(pd.DataFrame(rows), label=label)


def offer(findings: Iterable[Finding], settings: Any, controls: Controls[Any]) -> None:
    """A button that runs what ``settings`` left waiting, with its price."""
    waiting = {
        one.basis: one.seconds for one in findings if one.status is Status.NOT_TRIED and one.seconds
    }
    if not waiting or settings.unmask:
        return
    st.button(
        f"Try it: {'; '.join(waiting)}, about {max(waiting.values()):.2g} s",
        key=f"try_{controls.settings_class.kind}",
        icon=":material/play_arrow:",
        on_click=harder(controls),
    )


def harder(controls: Controls[Any]) -> Callable[[], None]:
    """A callback that runs what was left waiting."""
    return controls.changer(lambda: replace(controls.settings(), unmask=True))


def leaks(findings: Sequence[Finding]) -> bool:
    """Whether any target is open, whole or in part."""
    return any(one.status in (Status.OPEN, Status.PARTLY) for one in findings)


def caption(matrix: Finding, records: Finding) -> str:
    """What a picture of the server's belief shows, from the findings of matrix and records."""
    if records.status is Status.OPEN and records.figure is not None:
        return f"certified: all {records.figure}"
    if matrix.status is Status.PROVED_CLOSED:
        return "nothing has been sent"
    if matrix.figure is not None:
        directions = f"{matrix.figure.value:.0f} directions, drawn as pictures"
        return f"{directions}; records: {in_short(records)}"
    return f"read as products: a mask; records: {in_short(records)}"
