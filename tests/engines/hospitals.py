"""Hospitals and their server as `deploy/hospital` starts them, for tests on the loopback.

Encrypted connections, registered keys, a proxy, apps that a reviewer has signed. One user starts
all roles, so what is kept apart by users is not tried here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.engines.credentials import certificates, node_key
from tests.engines.deployment import APP, LIMIT, ROOT, Deployment, free_port, nginx

FOLDER = ROOT / "deploy" / "hospital"
#: Of a hospital.
_ROLES = ("data", "node", "node-app")
COMMAND = [sys.executable, str(FOLDER / "hospital.py")]


def reviewer(folder: Path, name: str) -> str:
    """An Ed25519 key pair as ssh-keygen makes it; its public half."""
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
    subprocess.run(key, check=True)
    return (folder / f"{name}.pub").read_text().strip()


class Hospitals(Deployment):
    """Server, its app and the proxy; at each hospital a node, its app, and who keeps the records.

    Parameters
    ----------
    folder, data : Path, sequence of paths
        As for `Deployment`.
    limits : str
        What each hospital allows, instead of what the delivered example does.
    """

    def __init__(self, folder: Path, data: Sequence[Path], limits: str = "least = 20") -> None:
        super().__init__(folder, data, connection=f'root-certificates = "{folder}/ca.crt"')
        self.outside = free_port()
        self.ports = [free_port() for _ in data]
        config = self.folder / "flower" / "config.toml"
        config.write_text(
            f'{config.read_text()}\n[superlink.outside]\naddress = "127.0.0.1:{self.outside}"\n'
            f'root-certificates = "{folder}/ca.crt"\n'
        )
        certificates(folder)
        (folder / "server.key").chmod(0o600)
        public = reviewer(folder, "reviewer")
        reviewer(folder, "stranger")
        for node in range(len(data)):
            home = self.home(node)
            (home / "signatures").mkdir(parents=True)
            (home / "memory").mkdir()
            (home / "trusted.yaml").write_text(f"fpk_reviewer: '{public}'\n")
            node_key(home / "node")
            (home / "hospital.toml").write_text(self._written(node, limits))
        for secret in (folder / "server.secret", *(self.home(n) / "node.secret" for n in self.all)):
            secret.write_bytes(str(secret).encode())
            secret.chmod(0o600)

    @property
    def all(self) -> range:
        """The hospitals by number."""
        return range(len(self.data))

    def home(self, node: int) -> Path:
        """What is /etc/fedpca, /srv/fedpca and /var/lib on a hospital's own machine."""
        return self.folder / f"hospital-{node}"

    def memory(self, node: int) -> Path:
        return self.home(node) / "memory"

    def _written(self, node: int, limits: str) -> str:
        """`hospital.toml` as it is delivered, with these folders, ports and one authority."""
        text = (FOLDER / "hospital.toml").read_text()
        for old, new in {
            "epsilon = 1.0\ndelta = 1e-6\nleast = 100": limits,
            "client = 0": f"client = {node}",
            'service = "/run': 'secret = 0\nservice = "/run',  # which makes runs comparable
            "federation.example.org:443": f"localhost:{self.outside}",
            "127.0.0.1:8000": f"127.0.0.1:{self.port}",
            "127.0.0.1:9094": f"127.0.0.1:{self.ports[node]}",
            "port = 8000": f"port = {self.port}",
            "port = 9094": f"port = {self.ports[node]}",
            "/srv/fedpca/records.parquet": str(self.data[node]),
            "/srv/fedpca": str(self.home(node)),
            "/var/lib/fedpca-app": str(self.memory(node)),
            "/var/lib/fedpca-server": str(self.folder),
            "/run/fedpca-data": str(self.home(node)),
            "/etc/fedpca/own-ca.crt": f"{self.folder}/ca.crt",
            "/etc/fedpca/ca.crt": f"{self.folder}/ca.crt",
            "/etc/fedpca/own.": f"{self.folder}/server.",
            "/etc/fedpca/server.": f"{self.folder}/server.",
            "/etc/fedpca": str(self.home(node)),
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        # The secret of a pair is the same bytes in two files; here there is one of them.
        own = f'"{self.folder}/server.secret"'
        text = re.sub(r'(\[server-app\][^\[]*secret = )"[^"]*"', rf"\1{own}", text)
        return text.replace("app.secret", "node.secret")

    # ------------------------------------------------------------------ roles
    def role(self, role: str, node: int | None = None) -> None:
        """Start a role by its one command: of a hospital, or of the server."""
        home = self.folder / "server-home" if node is None else self.home(node)
        name = role if node is None else f"{role}-{node}"
        # The app's code is installed for the service, and reaches the others as what was signed.
        more = {"PYTHONPATH": f"{ROOT}{os.pathsep}{APP}"} if role == "data" else {}
        file = self.home(node or 0) / "hospital.toml"
        self._open(name, [*COMMAND, role, str(file)], FLWR_HOME=str(home), **more)

    def __enter__(self) -> Hospitals:
        try:
            self._serve()
            for node in self.all:
                self.flwr("supernode", "register", str(self.home(node) / "node.pub"), "local")
                self.start(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _serve(self) -> None:
        self.role("server")
        self._open("proxy", nginx(self.folder, self.outside, self.port))
        self.wait(self._listens, "the SuperLink listens")
        self.role("server-app")

    def start(self, node: int) -> None:
        """Start a hospital's three roles."""
        for role in _ROLES:
            self.role(role, node)

    def kill(self, node: int) -> None:
        """A hospital's machine is gone, without a word."""
        for name in {f"{role}-{node}" for role in _ROLES} & set(self.processes):
            self.end(name)

    def back(self, node: int) -> None:
        """It is there again, and its node tries until it is let in, as its unit says."""
        self.kill(node)
        name, began = f"node-{node}", time.monotonic()
        log = self.folder / f"{name}.log"
        seen = log.stat().st_size
        self.start(node)
        while b"SuperNode ID" not in log.read_bytes()[seen:]:
            assert time.monotonic() < began + LIMIT, log.read_text()[-2000:]
            if self.processes[name].poll() is not None:  # Flower lists it for a minute
                time.sleep(10)
                self.role("node", node)
            time.sleep(0.2)

    def restart_server(self) -> None:
        """The server's machine is switched off and on again."""
        for name in ("server", "server-app", "proxy"):
            self.end(name)
        self._serve()

    # ------------------------------------------------------------------ apps
    def sign(self, app: Path, key: str = "reviewer") -> str:
        """Build an app and put its signature into every hospital's folder; the app's SHA-256."""
        self.flwr("build", "--app", str(app))
        (fab,) = self.folder.glob("*.fab")
        sign = [*COMMAND, "sign", str(fab), str(self.folder / key), "fpk_reviewer"]
        subprocess.run(sign, check=True, capture_output=True)
        (signature,) = self.folder.glob("*.sig.json")
        digest = str(json.loads(signature.read_text())["fab"])
        for node in self.all:
            shutil.copy(signature, self.home(node) / "signatures" / f"{digest}.sig.json")
        fab.unlink()
        signature.unlink()
        return digest
