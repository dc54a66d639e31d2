"""What stands before Streamlit: headers everywhere, closed doors, a cap on uploads."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dashboard.shell import guard, log


async def page(_: object) -> PlainTextResponse:
    return PlainTextResponse("open")


APP = Starlette(
    routes=[
        Route("/status", guard.status),
        Route("/_stcore/upload_file/{session}/{file}", page, methods=["PUT"]),
        Route("/{path:path}", page),
    ],
    middleware=[Middleware(guard.Guard)],
)


def visit(path: str, host: str = "203.0.113.7", method: str = "GET", **headers: str) -> Any:
    """One request from some address: status, headers and body of the answer."""
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": told, "client": (host, 5000), "server": ("lab", 80),
        "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(APP(scope, receive, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return SimpleNamespace(status=sent[0]["status"], headers=answered, body=sent[1]["body"])


def test_every_answer_closes_the_browser():
    answer = visit("/converge")
    for name, value in guard.HEADERS.items():
        assert answer.headers[name.lower()] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "http" not in policy


@pytest.mark.parametrize("path", ["/status", "/_stcore/metrics", "/lab/pca/_stcore/metrics"])
def test_only_the_operator_sees_figures(monkeypatch, path):
    assert visit(path).status == 404
    assert visit(path, "127.0.0.1").status == 200
    assert visit(path, "::ffff:127.0.0.1").status == 200
    assert visit(path, "127.0.0.1", x_forwarded_for="203.0.113.7").status == 404
    assert visit(path, authorization="Bearer ").status == 404
    monkeypatch.setenv("FEDPCA_STATUS_TOKEN", "long and secret")
    assert visit(path, authorization="Bearer long and secret").status == 200
    assert visit(path, authorization="Bearer other").status == 404


def test_the_status_counts_and_names_nobody():
    told = json.loads(visit("/status", "127.0.0.1").body)
    assert told["visitors"] == 0 and told["memory_mb"] > 10
    assert set(told["jobs"]) == {"unfinished", "kept", "kept_mb"}


def test_a_session_holds_a_few_files(monkeypatch):
    monkeypatch.setattr(guard, "held", lambda session: ["a", "b", "c"] if session == "full" else [])
    assert visit("/_stcore/upload_file/full/d", method="PUT").status == 413
    assert visit("/_stcore/upload_file/full/a", method="PUT").status == 200
    assert visit("/_stcore/upload_file/other/d", method="PUT").status == 200


def test_the_log_names_the_study_and_no_setting(caplog):
    with caplog.at_level("INFO", logger="fedpca"):
        log.job(("convergence", (("seed", 3), ("columns", ("salary",)))), 1.234, "done", 0.5)
    assert '"study": "convergence"' in caplog.text
    assert "salary" not in caplog.text and "seed" not in caplog.text
