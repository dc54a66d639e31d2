"""What a hospital's roles refuse before they start, and which apps a node lets in."""

import hashlib
import importlib.util
import json
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

from flwr.supercore.fab import Fab
from flwr.supernode import start_client_internal as inner

from tests.engines.credentials import certificates
from tests.engines.deployment import asked, free_port, nginx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "hospital"
_SPEC = importlib.util.spec_from_file_location("hospital", FOLDER / "hospital.py")
hospital = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hospital)


def key(folder, name, kind="ed25519"):
    """A key pair as ssh-keygen makes it, and its public half."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(folder / name)]
    subprocess.run(command, check=True)
    return (folder / f"{name}.pub").read_text().strip()


@pytest.fixture
def signed(tmp_path):
    """An app, the hospital's folder with its signature, and whom the hospital trusts."""
    trusted = {"fpk_reviewer": key(tmp_path, "reviewer")}
    key(tmp_path, "stranger")
    folder = tmp_path / "signatures"
    folder.mkdir()
    app = folder / "app.fab"
    app.write_bytes(b"the reviewed bytes")
    hospital.sign(app, tmp_path / "reviewer", "fpk_reviewer")
    return app, folder, trusted


def let_in(content, folder, trusted, sent=None):
    """Whether Flower's own check lets an app in, with the signatures of the hospital's folder."""
    fab = Fab("whatever the server says", content, sent or {})
    return inner._verify_fab(hospital.with_own_signatures(fab, folder), trusted)


def test_only_the_reviewed_bytes_are_let_in(signed, tmp_path):
    app, folder, trusted = signed
    content = app.read_bytes()
    assert let_in(content, folder, trusted)
    assert not let_in(content + b" ", folder, trusted)
    app.write_bytes(content + b" ")  # an edited copy beside the old signature
    assert not let_in(content + b" ", folder, trusted)
    said = json.loads((folder / "app.fab.sig.json").read_text())
    sent = {"fpk_reviewer": json.dumps({"signature": said["signature"], "signed_at": 1})}
    (folder / "app.fab.sig.json").unlink()  # revoked: what the server sends along counts nothing
    assert not let_in(content, folder, trusted, sent)


@pytest.mark.parametrize("name", ["fpk_stranger", "fpk_reviewer"])
def test_a_stranger_signs_in_vain(name, signed, tmp_path):
    _, folder, trusted = signed
    other = folder / "other.fab"
    other.write_bytes(b"foreign code")
    hospital.sign(other, tmp_path / "stranger", name)
    assert not let_in(b"foreign code", folder, trusted)
    forged = json.loads((folder / "app.fab.sig.json").read_text())
    forged["fab"] = json.loads((folder / "other.fab.sig.json").read_text())["fab"]
    (folder / "forged.sig.json").write_text(json.dumps(forged))
    assert not let_in(b"foreign code", folder, trusted)


def test_a_pinned_node_looks_into_its_own_folder(signed, monkeypatch):
    """Every message passes the check, and a node without trusted keys stops instead of running."""
    app, folder, trusted = signed
    seen = []
    real = inner._pull_and_store_message

    def pull(*, get_fab, trusted_entities, **_):
        seen.append(inner._verify_fab(get_fab("digest", 1), trusted_entities))

    pull.__signature__ = hospital.inspect.signature(real)
    monkeypatch.setattr(inner, "_pull_and_store_message", pull)
    hospital.pinned(folder)
    fab = Fab("", app.read_bytes(), {})
    inner._pull_and_store_message(get_fab=lambda *_: fab, trusted_entities=trusted)
    inner._pull_and_store_message(
        get_fab=lambda *_: Fab("", b"foreign", {}), trusted_entities=trusted
    )
    assert seen == [True, False]
    for nobody in (None, {}):
        with pytest.raises(SystemExit, match="runs nothing"):
            inner._pull_and_store_message(get_fab=lambda *_: fab, trusted_entities=nobody)
    monkeypatch.setattr(inner, "_pull_and_store_message", lambda state, get_fab: None)
    with pytest.raises(SystemExit, match=r"use flwr 1\.41"):
        hospital.pinned(folder)


@pytest.mark.parametrize("text", ["{}", "", "[]", "fpk_a: 3", "fpk_a: {}", "no: [yaml"])
def test_a_node_without_trusted_keys_is_not_started(text, tmp_path):
    """Flower takes an empty list for “no check”, without a word."""
    trusted = tmp_path / "trusted.yaml"
    trusted.write_text(text)
    with pytest.raises(SystemExit, match="Not started"):
        hospital.check_trusted(trusted)
    trusted.write_text(f"fpk_a: '{key(tmp_path, 'a')}'\nfpk_b: '{key(tmp_path, 'b', 'ecdsa')}'")
    with pytest.raises(SystemExit, match="not ssh-ed25519"):
        hospital.check_trusted(trusted)
    trusted.write_text(f"fpk_a: '{key(tmp_path, 'c')}'")
    hospital.check_trusted(trusted)


def test_secrets_that_others_can_read_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 32)
    secret.chmod(0o640)
    with pytest.raises(SystemExit, match="chmod 600"):
        hospital.check_secret(secret)
    secret.chmod(0o600)
    hospital.check_secret(secret)
    secret.write_bytes(b"")
    with pytest.raises(SystemExit, match="too short"):
        hospital.check_secret(secret)
    with pytest.raises(SystemExit, match="there is no file"):
        hospital.check_secret(tmp_path / "none")


@pytest.mark.parametrize("address", ["0.0.0.0:9094", "10.0.0.3:9094", "[::]:9094", "lab:9094", ""])
def test_a_runtime_that_others_reach_is_refused(address, tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match=r"must be 127\.0\.0\.1"):
        hospital.app({"runtime": address, "secret": "s", "ssl-ca-certfile": "c"})


@pytest.mark.parametrize(
    ("role", "text", "sentence"),
    [
        ("node", "node = []", "no part with names"),
        ("node", "node = 'x'", "no part with names"),
        ("node", "[node]", "does not say 'trusted'"),
        ("node", "[node]\nsecret = 3", "there is no file 3"),
        ("node", "[node]\nsecret = ['a']", "there is no file"),
        ("node", "[node]\ntrusted = 3", r"a value in \[node\]"),
        ("node", '[node]\nsecret = "\\u001b[31m\\u202e"', r"no file \\x1b\[31m\\u202e;"),
        ("node", "a = " + "[" * 5000, "no readable part"),
        ("data", "[data]", "does not say 'node'"),
        ("data", "[data]\nnode = 'epsilon'", r"a value in \[data\]"),
        ("data", "[data.node]\nepsilon = nan", "epsilon in .* is nan"),
        ("data", "[data.node]\nepsilon = '1'", "epsilon in .* is '1'"),
        ("data", "[data.node]\nleast = 0", "least in .* is 0"),
        ("data", "[data.node]\nepsilon = 1\ndelta = true", "delta in .* is True"),
        ("data", "[data.node]\nleast = 2020-01-01", "least in .* is datetime"),
        ("node-app", "[node-app]", "does not say 'runtime'"),
    ],
)
def test_what_a_file_says_wrongly_is_a_sentence(role, text, sentence, tmp_path):
    file = tmp_path / "hospital.toml"
    file.write_text(text)
    with pytest.raises(SystemExit, match=sentence) as refused:
        hospital.main([role, str(file)])
    assert str(refused.value).startswith("Not started: ") and str(refused.value).isprintable()


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", "[" * 100_000, '{"fab": "DIGEST"}'])
def test_a_file_that_is_no_signature_lets_nothing_in(text, signed, capsys):
    """And ends no node: the others in the folder count."""
    app, folder, trusted = signed
    digest = hashlib.sha256(app.read_bytes()).hexdigest()
    (folder / "a.sig.json").write_text(text.replace("DIGEST", digest))
    assert let_in(app.read_bytes(), folder, trusted)
    assert "a.sig.json is no signature" in capsys.readouterr().out
    for signature in folder.glob("app*.sig.json"):
        signature.unlink()
    assert not let_in(app.read_bytes(), folder, trusted)


def test_nothing_is_signed_that_is_not_there(tmp_path):
    with pytest.raises(SystemExit, match="there is no file"):
        hospital.main(["sign", str(tmp_path / "a.fab"), str(tmp_path / "key"), "fpk_a"])


def test_an_installed_copy_of_an_app_is_gone_at_every_start(tmp_path, monkeypatch):
    """Flower runs an installed copy unread, so an edited one would run under a valid signature."""
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    edited = tmp_path / "apps" / "fedpca.app.0.2.0.12345678" / "client_app.py"
    edited.parent.mkdir(parents=True)
    edited.write_text("foreign code")
    hospital.app({"runtime": "127.0.0.1:9094", "secret": "s", "ssl-ca-certfile": "c"})
    assert not edited.exists()
    monkeypatch.setenv("FLWR_HOME", "")
    with pytest.raises(SystemExit, match="FLWR_HOME names no folder"):
        hospital.app({"runtime": "127.0.0.1:9094", "secret": "s", "ssl-ca-certfile": "c"})


def test_every_role_of_the_example_keeps_to_this_machine(tmp_path, monkeypatch):
    """Two users, one secret a pair, no port but on the loopback, no subprocess of the node."""
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    monkeypatch.setattr(hospital, "check_secret", lambda path: None)
    monkeypatch.setattr(hospital, "check_trusted", lambda path: None)
    commands = {
        role: " ".join(start(hospital.read(FOLDER / "hospital.toml", role)))
        for role, start in hospital.ROLES.items()
    }
    for role in ("server", "node"):
        assert "--host 127.0.0.1" in commands[role]
        assert "--isolation process --superexec-auth-secret-file" in commands[role]
    assert "--trusted-entities /etc/fedpca/trusted.yaml" in commands["node"]
    assert "--enable-supernode-auth" in commands["server"]
    for command in commands.values():
        assert "0.0.0.0" not in command and "--insecure" not in command
        assert "--allow-runtime-dependency-installation" not in command
    users = {}
    for role in hospital.ROLES:
        unit = (FOLDER / f"fedpca-{role}.service").read_text()
        assert f"hospital.py {role} /etc/fedpca/hospital.toml" in unit
        users[role] = unit.split("User=")[1].split()[0]
    assert users["node"] != users["node-app"] and users["server"] != users["server-app"]
    assert users["data"] not in (users["node"], users["node-app"])
    with pytest.raises(SystemExit, match="sets no limit"):
        hospital.data({"socket": "s", "node": {"client": 0}})
    assert "root" not in users.values()


def test_the_proxy_passes_the_nodes_messages_and_nothing_else():
    text = (FOLDER / "nginx-fleet.conf").read_text()
    assert text.count("proxy_pass") == 1 and text.count("location") == 2
    assert "location /v1/fleet/ {" in text
    assert "return 403" in text.split("location / {")[1]
    assert "127.0.0.1:8000/v1/fleet/;" in text


@pytest.mark.skipif(
    not shutil.which("nginx"), reason="nginx is not here: sudo apt-get install nginx-light"
)
def test_no_path_leads_around_the_proxy(tmp_path):
    """Whatever reaches the SuperLink through nginx begins with /v1/fleet/, however it is sent."""
    certificates(tmp_path)
    reached = []

    class Everything(BaseHTTPRequestHandler):
        def do_GET(self):
            reached.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_):
            pass

    behind = HTTPServer(("127.0.0.1", 0), Everything)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    behind.socket = context.wrap_socket(behind.socket, server_side=True)
    threading.Thread(target=behind.serve_forever, daemon=True).start()
    port = free_port()
    proxy = subprocess.Popen(nginx(tmp_path, port, behind.server_port))
    try:
        assert asked(port, "/v1/fleet/activate-node") == 200
        for path in [
            "/", "/docs", "/openapi.json", "/v1/control/start-run", "/v1/runtime/acquire-task",
            "/v1/fleet", "/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run",
            "/v1/fleet/..%2fcontrol/start-run", "/v1/fleet/../../docs", "/V1/FLEET/x",
            "/v1/fleetcontrol", "/v1/fleet/..;/control", "/v1/control/../fleet/x",
            "//v1//fleet//x", "/v1/fleet/%252e%252e/control",
        ]:  # fmt: skip
            asked(port, path)
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)
        behind.shutdown()
        behind.server_close()
    assert all(path.startswith("/v1/fleet/") and "/../" not in path for path in reached), reached
