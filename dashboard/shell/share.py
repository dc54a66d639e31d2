"""Taking results away: the link that reproduces a page, and downloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import pandas as pd
import streamlit as st

Parameters = Mapping[str, str | int | float | bool | Sequence[str]]


def address(base: str, parameters: Parameters) -> str:
    """Return ``base`` with the query string made of ``parameters`` (lists repeat the name)."""
    parts = urlsplit(base)
    pairs = [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in parameters.items()
        for one in ([value] if isinstance(value, (str, int, float, bool)) else value)
    ]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(pairs), ""))


def link(parameters: Parameters | None = None) -> str:
    """Return the address of the page as it is set now.

    Without ``parameters`` the query string is the one in the visitor's address bar, where widgets
    made with ``bind="query-params"`` keep every setting that is not the default.
    """
    if parameters is None:
        parameters = {name: st.query_params.get_all(name) for name in st.query_params}
    return address(st.context.url or "", parameters)


def copy_link(parameters: Parameters | None = None, *, key: str = "link") -> None:
    """Show a button that opens the page's address, ready to be copied."""
    with st.popover("Copy link", icon=":material/link:", key=f"copy-{key}"):
        st.markdown("This address opens the page with exactly these settings, seed included.")
        st.code(link(parameters), language=None, wrap_lines=True)
        st.caption("With embed=true added it opens with the controls folded away, for a lecture.")


def download_csv(
    frame: pd.DataFrame | Callable[[], pd.DataFrame],
    *,
    name: str,
    label: str = "Download CSV",
    key: str | None = None,
) -> None:
    """Offer a table as CSV, written only when somebody asks for it (no rerun).

    ``name`` is the file's name without ending.
    """

    def data() -> bytes:
        table = frame() if callable(frame) else frame
        return table.to_csv(index=False).encode()

    st.download_button(
        label,
        data=data,
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key=key or f"csv-{name}",
    )


def download_json(
    configuration: Mapping[str, Any] | str,
    *,
    name: str,
    label: str = "Download configuration",
    key: str | None = None,
) -> None:
    """Offer a configuration (a mapping, or JSON text) as a file; no rerun."""

    def data() -> bytes:
        if isinstance(configuration, str):
            return configuration.encode()
        return (json.dumps(configuration, indent=2, ensure_ascii=False) + "\n").encode()

    st.download_button(
        label,
        data=data,
        file_name=f"{name}.json",
        mime="application/json",
        icon=":material/settings:",
        on_click="ignore",
        key=key or f"json-{name}",
    )
