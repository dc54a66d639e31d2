"""A hospital's roles as processes, with certificates and a proxy, and somebody who tries to get in.

One user starts them all, so what is kept apart by users is not tried here.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import closing

import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")
if not shutil.which("nginx") or not shutil.which("ssh-keygen"):
    pytest.skip("needs nginx and ssh-keygen on this machine", allow_module_level=True)

from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from tests.engines.credentials import certificates, node_key
from tests.engines.deployment import LIMIT, ROOT, Deployment, asked, free_port, nginx

FOLDER = ROOT / "deploy" / "hospital"
HOSPITAL = [sys.executable, str(FOLDER / "hospital.py")]
PROJECT = """
[project]
name = "visit"
version = "1.0.0"
[tool.flwr.app]
publisher = "lab"
[tool.flwr.app.components]
serverapp = "visit.app:server"
clientapp = "visit.app:client"
[tool.flwr.app.config]
out = ""
"""
#: An app that leaves its name beside the records, and tells the server how the node answered.
VISIT = """
import time
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

client = ClientApp()
server = ServerApp()

@client.query()
def visit(message, context):
    with (Path(context.node_config["memory"]) / "visitors").open("a") as file:
        file.write("{name}\\n")
    return Message(RecordDict(), reply_to=message)

@server.main()
def main(grid, context):
    while not (nodes := list(grid.get_node_ids())):
        time.sleep(0.2)
    content = RecordDict({{"nothing": ConfigRecord({{"a": 1}})}})
    sent = set(grid.push_messages([Message(content, nodes[0], "query")]))
    while not (replies := list(grid.pull_messages(sent))):
        time.sleep(0.1)
    said = replies[0].error.reason if replies[0].has_error() else "answered"
    part = Path(context.run_config["out"] + ".part")
    part.write_text(said)
    part.rename(context.run_config["out"])
"""


def app(folder, name):
    """The folder of an app that calls itself so."""
    (folder / name / "visit").mkdir(parents=True)
    (folder / name / "pyproject.toml").write_text(PROJECT)
    (folder / name / "visit" / "__init__.py").write_text("")
    (folder / name / "visit" / "app.py").write_text(VISIT.format(name=name))
    return folder / name


class Hospital(Deployment):
    """Server, its app, the proxy, one node and its app, each started as its operator would."""

    def __init__(self, folder):
        super().__init__(folder, [], connection=f'root-certificates = "{folder}/ca.crt"')
        self.outside = free_port()
        config = self.folder / "flower" / "config.toml"
        config.write_text(
            f'{config.read_text()}\n[superlink.outside]\naddress = "127.0.0.1:{self.outside}"\n'
            f'root-certificates = "{folder}/ca.crt"\n'
        )
        self.node_port, self.memory_ = free_port(), folder / "memory"
        for name in ("memory", "signatures", "server-home", "node-home"):
            (folder / name).mkdir()
        certificates(folder)
        node_key(folder / "node")
        for name in ("server.secret", "node.secret"):
            (folder / name).write_bytes(name.encode() * 3)
        for name in ("server.secret", "node.secret", "server.key"):
            (folder / name).chmod(0o600)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "reviewer")],
            check=True,
        )
        public = (folder / "reviewer.pub").read_text().strip()
        (folder / "trusted.yaml").write_text(f"fpk_reviewer: '{public}'\n")
        self._written(self.configuration())

    def configuration(self):
        """`hospital.toml` as it is delivered, with this folder, these ports and one authority."""
        text = (FOLDER / "hospital.toml").read_text()
        for old, new in {
            "federation.example.org:443": f"localhost:{self.outside}",
            "127.0.0.1:8000": f"127.0.0.1:{self.port}",
            "127.0.0.1:9094": f"127.0.0.1:{self.node_port}",
            "port = 8000": f"port = {self.port}",
            "port = 9094": f"port = {self.node_port}",
            "/var/lib/fedpca-server": str(self.folder),
            "/var/lib/fedpca-app": str(self.memory_),
            "/etc/fedpca/own-ca.crt": f"{self.folder}/ca.crt",
            "/etc/fedpca/own.": f"{self.folder}/server.",
            "/srv/fedpca": str(self.folder),
            "/etc/fedpca": str(self.folder),
        }.items():
            assert old in text
            text = text.replace(old, new)
        # The secret of a pair is the same bytes in two files; here there is one of them.
        text = re.sub(r"(\[server-app\][^\[]*)app\.secret", r"\1server.secret", text)
        return text.replace("app.secret", "node.secret")

    def _written(self, text):
        tomllib.loads(text)
        (self.folder / "hospital.toml").write_text(text)

    def role(self, name, home):
        """Start a role by its one command."""
        self.environment["FLWR_HOME"] = str(self.folder / home)
        self._open(name, [*HOSPITAL, name, str(self.folder / "hospital.toml")])
        self.environment["FLWR_HOME"] = str(self.folder / "flower")

    def __enter__(self):
        try:
            self.role("server", "server-home")
            self._open("proxy", nginx(self.folder, self.outside, self.port))
            self.wait(self._listens, "the SuperLink listens")
            self.flwr("supernode", "register", str(self.folder / "node.pub"), "local")
            for name, home in (("server-app", "server-home"), ("node", "node-home")):
                self.role(name, home)
            self.role("node-app", "node-home")
        except BaseException:
            self.__exit__()
            raise
        return self

    def sent(self, folder):
        """Submit an app from the server's machine; what came back from the node."""
        self.runs += 1
        out = self.folder / f"said-{self.runs}"
        self.flwr("run", str(folder), "local", "--run-config", f"out={json.dumps(str(out))}")
        self.wait(out.exists, f"{folder.name} has been answered")
        return out.read_text()

    def visitors(self):
        """The apps that have run beside the records."""
        file = self.memory_ / "visitors"
        return file.read_text().split() if file.exists() else []


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A hospital that trusts one reviewer, and in whose folder of apps an edited copy waits."""
    folder = tmp_path_factory.mktemp("hospital")
    running = Hospital(folder)
    apps = folder / "apps"
    for name in ("reviewed", "unsigned", "foreign"):
        app(apps, name)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "stranger")], check=True
    )
    for name, key in (("reviewed", "reviewer"), ("foreign", "stranger")):
        running.flwr("build", "--app", str(apps / name))
        (fab,) = folder.glob("*.fab")
        sign = [*HOSPITAL, "sign", str(fab), str(folder / key), "fpk_reviewer"]
        subprocess.run(sign, check=True, capture_output=True)
        (signature,) = folder.glob("*.sig.json")
        signature.rename(folder / "signatures" / f"{name}.sig.json")
        digest = json.loads((folder / "signatures" / f"{name}.sig.json").read_text())["fab"]
        fab.unlink()
        installed = folder / "node-home" / "apps" / f"lab.visit.1.0.0.{digest[:8]}"
        shutil.copytree(apps / "unsigned", installed)
    with running:
        yield running


def test_foreign_code_is_refused_and_the_reviewed_runs_unedited(hospital):
    """Nobody's signature, a stranger's under the reviewer's name, then the reviewer's own."""
    apps = hospital.folder / "apps"
    for name in ("unsigned", "foreign"):
        assert "could not be verified" in hospital.sent(apps / name)
    assert hospital.visitors() == []
    assert hospital.sent(apps / "reviewed") == "answered"
    assert hospital.visitors() == ["reviewed"], "the edited copy was emptied from the folder"


def test_nobody_submits_through_the_proxy(hospital):
    """Of the server's interfaces the nodes' alone is reached from outside."""
    told = subprocess.run(
        ["flwr", "run", str(hospital.folder / "apps" / "unsigned"), "outside"],
        env=hospital.environment, capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert told.returncode != 0
    for path in ("/v1/control/start-run", "/v1/runtime/acquire-task", "/docs", "/openapi.json"):
        assert asked(hospital.outside, path) == 403
    assert asked(hospital.outside, "/v1/fleet/activate-node") not in (0, 403, 502)


@pytest.mark.parametrize("whose", ["server", "node"])
def test_no_task_is_given_to_who_has_no_secret(whose, hospital):
    """Not even to another process of the same machine."""
    port = hospital.port if whose == "server" else hospital.node_port
    hospital.wait(lambda: asked(port, "/") != 0, f"the {whose} listens")
    runtime = RuntimeHttpClient.from_server_address(
        server_address=f"127.0.0.1:{port}",
        insecure=False,
        root_certificates=(hospital.folder / "ca.crt").read_bytes(),
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec")],
    )
    kinds = ["flwr-serverapp", "flwr-clientapp"]
    with closing(runtime), pytest.raises(Exception, match=r"(?i)401|unauth"):
        runtime.AcquireTask(AcquireTaskRequest(supported_task_types=kinds))


@pytest.mark.parametrize("file", ["trusted.yaml", "node.secret"])
def test_a_node_whose_protection_is_off_does_not_start(file, hospital):
    """Flower alone would start without a word."""
    path = hospital.folder / file
    kept, mode = path.read_bytes(), path.stat().st_mode
    if file == "trusted.yaml":
        path.write_text("{}")
    else:
        path.chmod(0o644)
    try:
        told = subprocess.run(
            [*HOSPITAL, "node", str(hospital.folder / "hospital.toml")],
            env=hospital.environment, capture_output=True, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
    finally:
        path.write_bytes(kept)
        path.chmod(mode)
    assert told.returncode != 0
    assert told.stderr.startswith("Not started: ") and "Traceback" not in told.stderr
