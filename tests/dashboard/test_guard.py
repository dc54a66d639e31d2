"""What stands before Streamlit: headers everywhere, closed doors, a cap on uploads."""

from __future__ import annotations

import json
import logging
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dashboard.shell import guard, log
from tests.dashboard import asgi


async def page(_: object) -> PlainTextResponse:
    return PlainTextResponse("open")


APP = Starlette(
    routes=[
        Route("/status", guard.status),
        Route("/{path:path}", page),
    ],
    middleware=[Middleware(guard.Guard)],
)


visit = partial(asgi.visit, APP)


def test_every_answer_closes_the_browser():
    answer = visit("/converge")
    for name, value in guard.HEADERS.items():
        assert answer.headers[name.lower()] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "http" not in policy


@pytest.mark.parametrize("path", ["/status", "/_stcore/metrics", "/lab/pca/_stcore/metrics"])
def test_only_the_operator_sees_figures(monkeypatch, path):
    """Who has the token. A stranger behind a proxy on this machine comes from it as well."""
    monkeypatch.setenv("FEDPCA_STATUS", "here")  # once let in whoever seemed to come from here
    for token in ("", "long and secret"):
        monkeypatch.setenv("FEDPCA_STATUS_TOKEN", token)
        for host in ("203.0.113.7", "127.0.0.1", "::1", "::ffff:127.0.0.1"):
            assert visit(path, host).status == 404
            assert visit(path, host, authorization="Bearer ").status == 404
            assert visit(path, host, authorization="Bearer other").status == 404
    assert visit(path, authorization="Bearer long and secret").status == 200


def test_the_status_counts_and_names_nobody(monkeypatch):
    monkeypatch.setenv("FEDPCA_STATUS_TOKEN", "secret")
    told = json.loads(visit("/status", authorization="Bearer secret").body)
    assert told["visitors"] == 0 and told["memory_mb"] > 10
    assert set(told["jobs"]) == {"unfinished", "kept", "kept_mb"}


@pytest.fixture
def upload():
    """PUT or DELETE of a session's file; ``too-large`` is refused behind the guard."""

    async def taken(request: Request) -> PlainTextResponse:
        if request.path_params["file"] == "breaks":
            raise ConnectionError
        return PlainTextResponse("", 413 if request.path_params["file"] == "too-large" else 204)

    path = "/_stcore/upload_file/{session}/{file}"
    app = Starlette(
        routes=[Route(f"/lab{path}", taken, methods=["PUT", "DELETE"])],
        middleware=[Middleware(guard.Guard)],
    )
    guard.held.cache_clear()
    yield (
        lambda where, method="PUT": (
            asgi.visit(app, f"/lab/_stcore/upload_file/{where}", method=method).status
        )
    )
    guard.held.cache_clear()


def test_a_session_holds_a_few_files(upload):
    assert [upload(f"full/{name}") for name in "abcd"] == [204, 204, 204, 413]
    assert upload("full/a") == 204, "it is there already"
    assert upload("other/d") == 204
    assert upload("full/b", "DELETE") == 204 and upload("full/d") == 204
    assert upload("full/b") == 413


def test_what_was_refused_or_broke_off_is_not_held(upload):
    for _ in range(5):
        assert upload("one/too-large") == 413
        with pytest.raises(ConnectionError):
            upload("one/breaks")
        assert upload("one/too-large", "DELETE") == 413
    assert [upload(f"one/{name}") for name in "abcd"] == [204, 204, 204, 413]


def test_the_log_names_the_study_and_no_setting(caplog, monkeypatch):
    # A server that was started in this process keeps its log to itself.
    monkeypatch.setattr(logging.getLogger("fedpca"), "propagate", True)
    with caplog.at_level("INFO", logger="fedpca"):
        log.job(("convergence", (("seed", 3), ("columns", ("salary",)))), 1.234, "done", 0.5)
    assert '"study": "convergence"' in caplog.text
    assert "salary" not in caplog.text and "seed" not in caplog.text
