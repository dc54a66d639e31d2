"""The document that the server sends: our font, and the parts of our pages asked for at once."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
import streamlit as st
from starlette.responses import Response

from dashboard.shell.document import Document, rewritten
from tests.dashboard.asgi import visit

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


@pytest.mark.parametrize("zipped", [False, True])
def test_a_document_is_rewritten_compressed_or_not(zipped):
    """Streamlit compresses that of a deep link, which once made every deep link an error."""
    theirs = (STATIC / "index.html").read_bytes()
    body = gzip.compress(theirs) if zipped else theirs
    headers = {"content-encoding": "gzip"} if zipped else {}
    app = Document(Response(body, media_type="text/html", headers=headers))
    answer = visit(app, "/trace", host="127.0.0.1")
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert b"modulepreload" in answer.body
    assert b"<title>Streamlit</title>" not in answer.body
