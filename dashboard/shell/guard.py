"""What stands before Streamlit: headers that close the browser, a cap on uploads, the status page.

The same on every host, whether or not a proxy does more.
"""

import hmac
import os
import resource
import time
from functools import lru_cache
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.shell import jobs, layout, limits, workers

#: Files that one session may hold at a time.
FILES = 3
#: Scripts are ours alone; Streamlit's components arrive as blobs and its styles are inline. Who may
#: show the laboratory in a frame is the host's business: FEDPCA_FRAMES, anybody by default.
_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss: data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": os.environ.get("FEDPCA_FRAMES", "*"),
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_STARTED = time.time()
#: Connections that are open now.
_OPEN: set[int] = set()


class Guard:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            _OPEN.add(id(scope))
            try:
                await self.app(scope, receive, send)
            finally:
                _OPEN.discard(id(scope))
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        path, method = scope["path"], scope["method"]
        files, file, comes = set[str](), "", False
        if "/_stcore/upload_file/" in path and method in ("PUT", "DELETE"):
            session, file = path.rsplit("/", 2)[1:]
            files = held(session)
            comes = method == "PUT" and file not in files

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                done = message["status"] < 400
                if (done and method == "DELETE") or (comes and not done):
                    files.discard(file)
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer: ASGIApp = self.app
        if path.endswith("/_stcore/metrics") and not trusted(Request(scope)):
            answer = PlainTextResponse("Not found", status_code=404)
        elif comes and len(files) >= FILES:
            said = f"One session may hold {FILES} files; remove one first."
            answer = PlainTextResponse(said, status_code=413)
        elif comes:
            files.add(file)  # before it is there: others may come at the same time
        try:
            await answer(scope, receive, with_headers)
        except BaseException:
            if comes:
                files.discard(file)
            raise


@lru_cache(maxsize=10_000)
def held(session: str) -> set[str]:
    """The files that a session holds, as they came and went; of the latest sessions."""
    return set()


def trusted(request: Request) -> bool:
    """Whether this is the operator, who brings FEDPCA_STATUS_TOKEN; nobody is where it is not set.

    An address says nothing: through a proxy on this machine everybody comes from this machine.
    """
    token = os.environ.get("FEDPCA_STATUS_TOKEN", "")
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    return bool(token) and hmac.compare_digest(token.encode(), given.encode())


async def status(request: Request) -> Response:
    if not trusted(request):
        return PlainTextResponse("Not found", status_code=404)
    return JSONResponse(state())


def state() -> dict[str, Any]:
    processes, ticks = workers.pool().processes(), os.sysconf("SC_CLK_TCK")
    return {
        "seconds_up": round(time.time() - _STARTED),
        "visitors": len(_OPEN),
        "jobs": jobs.registry().state(),
        "memory_mb": round(resident_mb("self")),
        "workers_mb": [round(resident_mb(process)) for process in processes],
        "cpu_s": round(time.process_time(), 2),
        "workers_cpu_s": [round(_counts(one, "stat", 11, 13) / ticks, 2) for one in processes],
        "memory_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "limits": vars(limits.LIMITS) | {"upload_mb": layout.UPLOAD_MB, "workers": limits.WORKERS},
    }


def _counts(process: int | str, file: str, first: int, last: int) -> int:
    """Sum of some numbers that the system has of a process; 0 where there is none any more."""
    try:
        with open(f"/proc/{process}/{file}", encoding="ascii") as statistics:
            return sum(map(int, statistics.read().rpartition(")")[2].split()[first:last]))
    except OSError:
        return 0


def resident_mb(process: int | str) -> float:
    return _counts(process, "statm", 1, 2) * resource.getpagesize() / 2**20
