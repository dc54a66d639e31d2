"""The document that the server sends before any script runs: title, description, preview picture.

Streamlit's own page is called “Streamlit” until its script has run, and says nothing to those who
only read the document: search engines, and whoever shows a preview of a link. It also asks early
for a font that is not ours, and late, one after the other, for the parts that draw our pages.
"""

import base64
import gzip
import os
import re
from functools import cache, lru_cache
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.shell.markup import html
from dashboard.shell.streamlit_internals import scripts

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


class Document:
    """Middleware that writes our own `head` into the document, and touches nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; hold back an HTML answer until it is whole and rewrite it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def changing(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                kind = Headers(scope=message).get("content-type", "")
                if kind.startswith("text/html") and message["status"] == 200:
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                headers = MutableHeaders(scope=start)
                # Streamlit sends the document of a deep link compressed.
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                changed = body  # the guides and the page for phones are theirs to write
                if _TITLE in body:
                    changed = rewritten(body).replace(_TITLE, head(_address(scope)), 1)
                # They are of Streamlit's file: another length, and unchanged when ours is not.
                for name in ("content-encoding", "content-length", "etag", "last-modified"):
                    if name in headers:
                        del headers[name]
                if scope["method"] != "HEAD":
                    headers["content-length"] = str(len(changed))
                await send(start)
                await send({"type": "http.response.body", "body": changed})
                start = None
                return
            await send(message)

        await self._app(scope, receive, changing)


def _address(scope: Scope) -> str:
    """Where the visitor reached the application, with a slash at its end."""
    headers = Headers(scope=scope)
    scheme = headers.get("x-forwarded-proto", scope.get("scheme", "http")).split(",")[0]
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{scheme}://{headers.get('host', 'localhost')}/{base}{'/' if base else ''}"
