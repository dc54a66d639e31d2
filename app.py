"""The server: ``streamlit run app.py`` (or ``uvicorn app:app``)."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from dashboard.classroom import rooms  # noqa: E402
from dashboard.shell.document import Document, guides  # noqa: E402
from dashboard.shell.guard import Guard, status  # noqa: E402


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Do the slow imports before the first visitor comes."""
    from dashboard.shell.warmup import warm

    warm()
    yield


def routes() -> list[BaseRoute]:
    """The status page, rooms for phones, and the documentation where ``make docs`` has built it."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    served: list[BaseRoute] = [Route("/status", status), *rooms.routes(f"/{base}" if base else "")]
    if (built := guides()) is not None:
        served.append(Mount("/docs", StaticFiles(directory=built, html=True)))
    return served


app = st.App(
    ROOT / "dashboard" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=[Middleware(Guard), Middleware(Document)],
)

if __name__ == "__main__":
    app.run()
