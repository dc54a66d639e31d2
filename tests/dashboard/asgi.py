"""One request to an application, without a server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any


def visit(
    app: Any, path: str, host: str = "203.0.113.7", method: str = "GET", **headers: str
) -> Any:
    """One request from some address: status, headers and body of the answer."""
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": told, "client": (host, 5000), "server": ("lab", 80),
        "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    sent: list[Any] = []

    asked: list[bool] = []

    async def receive() -> dict[str, Any]:
        if asked:  # a client that stays on the line
            await asyncio.Event().wait()
        asked.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return SimpleNamespace(status=sent[0]["status"], headers=answered, body=sent[1]["body"])
