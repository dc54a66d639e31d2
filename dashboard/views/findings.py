"""The button that tries what was not tried."""

from collections.abc import Iterable
from typing import Any

import streamlit as st

from dashboard.shell.controls import Controls
from fedpca_core.findings import Finding, Status, priced


def offer(
    findings: Iterable[Finding], settings: Any, controls: Controls[Any], each: str = ""
) -> None:
    """A button that runs what ``settings`` left waiting, with its price, and of what that is."""
    waiting = {
        one.basis: one.seconds for one in findings if one.status is Status.NOT_TRIED and one.seconds
    }
    if not waiting or settings.unmask:
        return
    st.button(
        f"Try it: {'; '.join(waiting)}, {each}{priced(max(waiting.values()))}",
        key=f"try_{controls.settings_class.kind}",
        icon=":material/play_arrow:",
        on_click=controls.changer(unmask=True),
    )
