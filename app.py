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
from dashboard.shell import document  # noqa: E402
from dashboard.shell.guard import Guard, status  # noqa: E402


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Do the slow imports before the first visitor comes."""
    from dashboard.shell.warmup import warm

    warm()
    yield


def routes() -> list[BaseRoute]:
    """The status page, the document, rooms for phones, and the guides where they are built."""
    phones = rooms.routes(document.base())
    served: list[BaseRoute] = [Route("/status", status), *document.routes(), *phones]
    if (built := document.guides()) is not None:
        served.append(Mount("/docs", StaticFiles(directory=built, html=True)))
    return served


app = st.App(
    ROOT / "dashboard" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=[Middleware(Guard)],
)

if __name__ == "__main__":
    app.run()
