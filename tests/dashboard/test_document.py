"""The document that the server sends: our font, and the parts of our pages asked for at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette

from dashboard.shell.document import rewritten, routes
from dashboard.shell.navigation import PLACES
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


@pytest.mark.parametrize("base", ["", "lab"])
@pytest.mark.parametrize("name", ["", *PLACES])
def test_every_page_is_sent_with_our_document(base, name):
    before = st.get_option("server.baseUrlPath")
    st.config.set_option("server.baseUrlPath", base)
    try:
        app = Starlette(routes=routes())
        path = f"/{base}/{name}".replace("//", "/")
        answer = visit(app, path, host="lab", x_forwarded_proto="https")
    finally:
        st.config.set_option("server.baseUrlPath", before)
    assert answer.status == 200 and answer.headers["cache-control"] == "no-cache"
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert b"modulepreload" in answer.body and b"<title>Streamlit</title>" not in answer.body
    assert f"https://localhost{base and '/'}{base}/app/static/preview.png".encode() in answer.body
