"""The document that the server sends: our font, and the parts of our pages asked for at once."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from dashboard.shell.document import rewritten

STATIC = Path(st.__file__).parent / "static"
OURS = Path(__file__).resolve().parents[2] / "dashboard" / "static"


def test_the_document_asks_for_what_is_there_once_and_for_no_font_that_is_not_ours():
    theirs = (STATIC / "index.html").read_bytes()
    document = rewritten(theirs).decode()

    named = re.findall(r'modulepreload" crossorigin href="\./(static/js/[^"]+)"', document)
    assert len(named) == len(set(named)) > theirs.count(b"modulepreload")
    assert any("BidiComponent" in name for name in named)
    for name in named:
        script = STATIC / name
        needed = re.findall(r'(?:from|import)\s*"\./([^"/]+\.js)"', script.read_text("utf-8"))
        assert all(other in document for other in needed), name

    (font,) = re.findall(r'href="\./app/static/([^"]+)" as="font"', document)
    assert (OURS / font).is_file()
    assert "SourceSans" not in document
