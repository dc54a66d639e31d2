"""The document that the server sends before any script runs: title, description, preview picture.

Streamlit's own page is called “Streamlit” until its script has run, and says nothing to those who
only read the document: search engines, and whoever shows a preview of a link. It also asks early
for a font that is not ours, and late, one after the other, for the parts that draw our pages.
"""

import base64
import os
import re
from functools import cache, lru_cache
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard.shell.markup import html
from dashboard.shell.navigation import PLACES
from dashboard.shell.streamlit_internals import INDEX, scripts

PRODUCT = "Federated-PCA laboratory"
DESCRIPTION = (
    "Turn clients, heterogeneity, penalty, privacy budget and participation, and watch federated "
    "PCA converge, what it sends, and what the server reconstructs of one client's data."
)
#: Size of the preview picture, which lies among the static files.
PREVIEW, WIDTH, HEIGHT = "app/static/preview.png", 1200, 630

_TITLE = b"<title>Streamlit</title>"
#: The preload of a font of Streamlit's.
_FONT = re.compile(rb'href="\./static/media/[^"]*"\s+as="font"')
_OWN_FONT = b'href="./app/static/fonts/inter-latin-wght-normal.woff2" as="font"'


@cache
def icon() -> str:
    """A picture of our own in the address itself.

    A Material symbol would be fetched from another host, and a file is forgotten by the server
    while another visitor's page is drawn.
    """
    picture = Path(__file__).resolve().parents[2] / "assets" / "favicon.png"
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def guides() -> Path | None:
    """The folder of the documentation; None where ``make docs`` has not built it."""
    built = Path(os.environ.get("FEDPCA_DOCS") or Path(__file__).resolve().parents[2] / "site")
    return built if (built / "index.html").is_file() else None


def head(address: str) -> bytes:
    """The elements that stand in place of Streamlit's title; a picture needs a whole address."""
    named = {"og:title": PRODUCT, "og:description": DESCRIPTION, "og:type": "website"}
    named |= {"og:image": address + PREVIEW, "og:image:width": str(WIDTH)}
    named["og:image:height"] = str(HEIGHT)
    return html("head", product=PRODUCT, description=DESCRIPTION, named=named).encode()


@lru_cache(maxsize=1)
def rewritten(document: bytes) -> bytes:
    """Streamlit's document with our font, and with all parts of our pages asked for at once."""
    document = _FONT.sub(_OWN_FONT, document, count=1)
    lines = [
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'
        for name in scripts(document.decode())
    ]
    return document.replace(b"</head>", "\n".join([*lines, "</head>"]).encode(), 1)


def base() -> str:
    """What stands before every address of the program: nothing, or a path such as ``/lab``."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


async def document(request: Request) -> Response:
    """Streamlit's document with our own `head`."""
    headers = request.headers
    scheme = headers.get("x-forwarded-proto", request.url.scheme).split(",")[0]
    own = head(f"{scheme}://{headers.get('host', 'localhost')}{base()}/")
    body = rewritten(INDEX.read_bytes()).replace(_TITLE, own, 1)
    return HTMLResponse(body, headers={"Cache-Control": "no-cache"})


def routes() -> list[BaseRoute]:
    """Where the document is; none where a newer Streamlit keeps its own elsewhere."""
    names = ("", *PLACES) if INDEX.is_file() else ()
    return [Route(f"{base()}/{name}", document) for name in names]
