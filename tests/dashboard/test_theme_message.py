"""The message that begins a run holds the same theme whether it is read or remembered."""

from __future__ import annotations

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from dashboard.shell import theme_message

SECTIONS = ("", "light", "dark", "sidebar", "light.sidebar", "dark.sidebar")


def whole() -> CustomThemeConfig:
    message = CustomThemeConfig()
    for section in SECTIONS:
        part = message
        for name in filter(None, section.split(".")):
            part = getattr(part, name)
        app_session._populate_theme_msg(part, ".".join(filter(None, ("theme", section))))
    return message


def test_the_remembered_theme_is_the_one_that_is_read(monkeypatch) -> None:
    monkeypatch.setattr(app_session, "_populate_theme_msg", app_session._populate_theme_msg)
    read = whole()
    theme_message.remember()
    assert whole() == read and whole() == read
    assert read.primary_color or read.light.primary_color
    assert not read.HasField("sidebar")
