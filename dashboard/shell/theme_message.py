"""The theme in the message that begins every run: written once, then copied.

Streamlit reads a hundred options for it each time a page or a fragment runs, and every look at a
job is such a run. They stay as they are while the server runs; who changes the theme starts it
again.
"""

from __future__ import annotations

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session


def remember() -> None:
    """Let Streamlit copy each section of the theme instead of reading it anew."""
    write = app_session._populate_theme_msg
    known: dict[str, CustomThemeConfig] = {}

    def written(msg: CustomThemeConfig, section: str = "theme") -> None:
        if section not in known:
            fresh = CustomThemeConfig()
            write(fresh, section)
            known[section] = fresh
        if known[section].ByteSize():  # an empty section is not in the message at all
            msg.MergeFrom(known[section])

    app_session._populate_theme_msg = written
