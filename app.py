"""The server: ``streamlit run app.py`` (or ``uvicorn app:app``)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from dashboard.shell.document import Document  # noqa: E402
from dashboard.shell.guard import Guard, status  # noqa: E402


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Do the slow imports before the first visitor comes."""
    from dashboard.shell.warmup import warm

    warm()
    yield


app = st.App(
    ROOT / "dashboard" / "main.py",
    lifespan=lifespan,
    routes=[Route("/status", status)],
    middleware=[Middleware(Guard), Middleware(Document)],
)

if __name__ == "__main__":
    app.run()
