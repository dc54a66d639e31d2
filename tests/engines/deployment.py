"""A SuperLink and SuperNodes as processes on this machine, for tests and measurements."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL

from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import load_trace

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "engines" / "flower"
#: Seconds after which nothing is waited for any more.
LIMIT = float(os.environ.get("FEDPCA_DEPLOYMENT_LIMIT", "600"))


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _starts_in_time() -> bool:
    """Whether what an app imports is there long before its first heartbeat is due.

    Every message starts a process; one that is silent for that long is given up, and its message
    with it. Four start at a time.
    """
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", "import flwr.clientapp, fedpca_core"], cwd=ROOT, check=True
    )
    in_time = 4 * (time.monotonic() - began) < HEARTBEAT_DEFAULT_INTERVAL
    time.sleep(0 if in_time else 5)  # looking is work, too
    return in_time


def nginx(folder: Path, port: int, behind: int) -> list[str]:
    """The command of the hospitals' proxy on a port of the loopback, before another one.

    ``folder`` holds the certificates.
    """
    text = (ROOT / "deploy" / "hospital" / "nginx-fleet.conf").read_text()
    text = text.replace("443 ssl", f"127.0.0.1:{port} ssl").replace("/etc/fedpca", str(folder))
    text = text.replace(":8000/", f":{behind}/")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {paths}\n{text} }}"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def asked(port: int, path: str) -> int:
    """The answer's number for a path that is sent as it is; 0 where nobody answers."""
    context = ssl._create_unverified_context()
    for _ in range(200):
        try:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", port, context=context, timeout=LIMIT
            )
            with contextlib.closing(connection):
                connection.putrequest("POST", path, skip_accept_encoding=True)
                connection.putheader("Connection", "close")
                connection.endheaders()
                with connection.getresponse() as answer:
                    return answer.status
        except ConnectionRefusedError:
            time.sleep(0.1)
    return 0


class Deployment:
    """A federation on the loopback; leaving it ends every process it has started.

    Parameters
    ----------
    folder : Path
        For logs, configuration and memories.
    data : sequence of paths
        One for each node.
    superlink : sequence of str
        Further options of its command; without any the connections are not encrypted.
    connection : str
        Further lines of the connection that ``flwr`` uses.
    """

    def __init__(
        self,
        folder: Path,
        data: Sequence[Path],
        superlink: Sequence[str] = ("--insecure",),
        connection: str = "insecure = true",
    ) -> None:
        self.folder, self.data = folder, data
        self._superlink = list(superlink)
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.runs = 0
        home = folder / "flower"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            '[superlink]\ndefault = "local"\n\n[superlink.local]\n'
            f'address = "127.0.0.1:{self.port}"\n{connection}\n'
        )
        self.environment = {
            **os.environ,
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def __enter__(self) -> Deployment:
        try:
            self._open(
                "superlink",
                [
                    "flower-superlink",
                    *self._superlink,
                    "--port",
                    str(self.port),
                    "--disable-runtime-dependency-installation",
                ],
            )
            self.wait(self._listens, "the SuperLink listens")
            for node in range(len(self.data)):
                self.start(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.end(name)

    # ------------------------------------------------------------------ nodes
    def start(self, node: int) -> None:
        """Start a node on its own file, with a secret that makes runs comparable."""
        configuration = (
            f'client={node} data="{self.data[node]}" memory="{self.memory(node)}" secret=0'
        )
        command = ["flower-supernode", "--insecure"]
        command += ["--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())]
        self._open(f"node-{node}", [*command, "--node-config", configuration])

    def kill(self, node: int) -> None:
        """End a node and all it has started, without a word."""
        self.end(f"node-{node}")

    def memory(self, node: int) -> Path:
        """The folder of a node's memory."""
        return self.folder / f"memory-{node}"

    def reached(self, node: int) -> int:
        """The latest round that a node remembers having worked on; 0 before the first."""
        files = sorted(self.memory(node).glob("run-*.npz"), key=lambda path: path.stat().st_mtime)
        if not files:
            return 0
        with np.load(files[-1]) as stored:
            told = json.loads(bytes(stored["told"]).decode())
        return int((told.get("last") or {"round": 0})["round"])

    # ------------------------------------------------------------------ runs
    def submit(self, settings: Path, **options: str | int | float) -> Path:
        """Begin a run when this machine has time for it; returns where its trace will be."""
        self.runs += 1
        for node in range(len(self.data)):  # what `reached` reads belongs to this run
            shutil.rmtree(self.memory(node), ignore_errors=True)
        out = self.folder / f"trace-{self.runs}.npz"
        self._begin(settings, out, options)
        return out

    def resume(self, settings: Path, out: Path, **options: str | int | float) -> None:
        """Let a run that was stopped go on; every node still has its memory."""
        self._begin(settings, out, {**options, "resume": True})

    def kill_app(self) -> None:
        """End the app's process at the server without a word; SuperLink and nodes stay."""
        ended = 0
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                ours = f"127.0.0.1:{self.port}".encode() in words
                if ours and any(word.endswith(b"flwr-serverapp") for word in words[:2]):
                    os.kill(int(folder.name), signal.SIGKILL)
                    ended += 1
        assert ended, "no app runs at the server"

    def _begin(self, settings: Path, out: Path, options: Mapping[str, Any]) -> None:
        self.wait(_starts_in_time, "an app would start before Flower gives its message up")
        values = {"settings": str(settings), "out": str(out), **options}
        text = " ".join(f"{name}={json.dumps(value)}" for name, value in values.items())
        self.flwr("run", str(APP), "local", "--run-config", text)

    def flwr(self, *arguments: str) -> str:
        """A command of Flower's command line; what it says."""
        told = subprocess.run(
            ["flwr", *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr
        return told.stdout

    def trace(self, out: Path) -> Trace:
        """Wait for a run's trace, or for the sentence that says why there is none."""
        result = out.with_suffix(".result.json")
        self.wait(result.exists, f"{result.name} is there")
        told = json.loads(result.read_text())
        assert told["finished"], told["said"]
        return load_trace(out)

    def wait(self, happened, what: str) -> None:
        """Wait until something has happened, or tell what the processes said."""
        end = time.monotonic() + LIMIT
        while not happened():
            ended = [name for name, one in self.processes.items() if one.poll() is not None]
            if time.monotonic() > end or ended:
                said = "\n".join(
                    f"--- {path.name}\n" + "\n".join(path.read_text().splitlines()[-15:])
                    for path in sorted(self.folder.glob("*.log"))
                )
                raise AssertionError(f"Waited in vain until {what}; ended: {ended}\n{said}")
            time.sleep(0.2)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _open(self, name: str, command: list[str], **environment: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.environment | environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # one group of processes, to be ended together
            )

    def end(self, name: str) -> None:
        """End a process and all it has started, without a word."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
