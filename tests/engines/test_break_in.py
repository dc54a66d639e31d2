"""Roles of a hospital as processes, with certificates and a proxy, and somebody who breaks in."""

import json
import shutil
import subprocess
from contextlib import closing

import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")
if not shutil.which("nginx") or not shutil.which("ssh-keygen"):
    pytest.skip("needs nginx and ssh-keygen on this machine", allow_module_level=True)

from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from tests.engines.deployment import LIMIT, asked
from tests.engines.hospitals import COMMAND, Hospitals

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
nodes = 1
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
    while len(nodes := list(grid.get_node_ids())) < context.run_config["nodes"]:
        time.sleep(0.2)
    content = RecordDict({{"nothing": ConfigRecord({{"a": 1}})}})
    sent = set(grid.push_messages([Message(content, node, "query") for node in nodes]))
    replies = []
    while len(replies) < len(sent):
        replies += grid.pull_messages(sent)
        time.sleep(0.1)
    said = {{one.error.reason if one.has_error() else "answered" for one in replies}}
    part = Path(context.run_config["out"] + ".part")
    part.write_text("; ".join(said))
    part.rename(context.run_config["out"])
"""


def app(folder, name):
    """The folder of an app that calls itself so."""
    (folder / name / "visit").mkdir(parents=True)
    (folder / name / "pyproject.toml").write_text(PROJECT)
    (folder / name / "visit" / "__init__.py").write_text("")
    (folder / name / "visit" / "app.py").write_text(VISIT.format(name=name))
    return folder / name


def sent(hospital, folder):
    """Submit an app from the server's machine; what came back from the nodes, each once."""
    hospital.runs += 1
    out = hospital.folder / f"said-{hospital.runs}"
    told = f"out={json.dumps(str(out))} nodes={len(hospital.data)}"
    hospital.flwr("run", str(folder), "local", "--run-config", told)
    hospital.wait(out.exists, f"{folder.name} has been answered")
    return out.read_text()


def visitors(hospital, node=0):
    """The apps that have run beside a hospital's records."""
    file = hospital.memory(node) / "visitors"
    return file.read_text().split() if file.exists() else []


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A hospital that trusts one reviewer, and in whose folder of apps an edited copy waits."""
    folder = tmp_path_factory.mktemp("hospital")
    (folder / "records.csv").write_text("a,b\n1,2\n3,4\n")
    running = Hospitals(folder, [folder / "records.csv"])
    apps = folder / "apps"
    for name in ("reviewed", "unsigned", "foreign"):
        app(apps, name)
    for name, key in (("reviewed", "reviewer"), ("foreign", "stranger")):
        digest = running.sign(apps / name, key)
        installed = running.home(0) / "apps" / f"lab.visit.1.0.0.{digest[:8]}"
        shutil.copytree(apps / "unsigned", installed)
    with running:
        yield running


def test_foreign_code_is_refused_and_the_reviewed_runs_unedited(hospital):
    """Nobody's signature, a stranger's under the reviewer's name, then the reviewer's own."""
    apps = hospital.folder / "apps"
    for name in ("unsigned", "foreign"):
        assert "could not be verified" in sent(hospital, apps / name)
    assert visitors(hospital) == []
    assert sent(hospital, apps / "reviewed") == "answered"
    assert visitors(hospital) == ["reviewed"], "the edited copy was emptied from the folder"


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
    port = hospital.port if whose == "server" else hospital.ports[0]
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
    path = hospital.home(0) / file
    kept, mode = path.read_bytes(), path.stat().st_mode
    if file == "trusted.yaml":
        path.write_text("{}")
    else:
        path.chmod(0o644)
    try:
        told = subprocess.run(
            [*COMMAND, "node", str(hospital.home(0) / "hospital.toml")],
            env=hospital.environment, capture_output=True, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
    finally:
        path.write_bytes(kept)
        path.chmod(mode)
    assert told.returncode != 0
    assert told.stderr.startswith("Not started: ") and "Traceback" not in told.stderr
