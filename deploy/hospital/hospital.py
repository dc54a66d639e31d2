"""One command per role of a federation of hospitals, with what Flower leaves to its operator.

``python hospital.py ROLE hospital.toml`` starts one of

* ``server``: the SuperLink, on 127.0.0.1 alone; in front of it stands ``nginx-fleet.conf``;
* ``server-app``: what runs the server's app, as another user;
* ``node``: a hospital's SuperNode, which runs what its own folder has signatures for;
* ``node-app``: what runs the signed app, as another user;
* ``data``: what keeps the records and the limits, as a third one.

``python hospital.py sign APP.fab KEY NAME`` writes the signature that a hospital puts there. Every
role refuses to start, in a sentence, where a protection would be off without anybody noticing.
Tried with Flower 1.41 and 1.42; what it uses is private to Flower, so a node checks it at a start.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import ipaddress
import json
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
#: Nobody else on the machine may read these.
_SECRETS = ("key", "secret", "ssl-keyfile")


class NotRun(SystemExit):
    """The role is not started; the text says why and what to do, and steers no terminal."""

    def __init__(self, sentence: str) -> None:
        super().__init__("".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence))


def refuse_unless(condition: bool, sentence: str) -> None:
    """End with a sentence unless ``condition`` holds."""
    if not condition:
        raise NotRun(f"Not started: {sentence}")


# ---------------------------------------------------------------------- what a role is told
def read(file: Path, role: str) -> dict[str, Any]:
    """One role's part of the file."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))[role]
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise NotRun(f"Not started: {file} has no readable part [{role}] ({error!r}).") from None
    refuse_unless(isinstance(told, dict), f"in {file} [{role}] is no part with names and values.")
    for name in _SECRETS:
        if name in told:
            check_secret(Path(str(told[name])))
    return dict(told)


def command_of(file: Path, role: str, told: Mapping[str, Any]) -> list[str]:
    """What starts the role, from what the file says of it."""
    try:
        return ROLES[role](told)
    except KeyError as missing:
        raise NotRun(f"Not started: the part [{role}] of {file} does not say {missing}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise NotRun(f"Not started: a value in [{role}] of {file} is wrong ({error}).") from None


def check_secret(path: Path) -> None:
    """A secret is a file that its owner alone can read, and not an empty one."""
    refuse_unless(path.is_file(), f"there is no file {path}; make it, and name it in full.")
    refuse_unless(
        path.stat().st_mode & 0o077 == 0,
        f"{path} can be read by others on this machine; chmod 600 {path}",
    )
    refuse_unless(path.stat().st_size >= 16, f"{path} is too short to be a secret.")


def tls(told: Mapping[str, Any]) -> list[str]:
    """Certificates of a server role."""
    names = ("ssl-certfile", "ssl-keyfile", "ssl-ca-certfile")
    return [word for name in names for word in (f"--{name}", str(told[name]))]


# ---------------------------------------------------------------------- the server's machine
def server(told: Mapping[str, Any]) -> list[str]:
    """The SuperLink: one port carries everything, so it listens on this machine alone."""
    return [
        "flower-superlink", "--host", "127.0.0.1", "--port", str(told.get("port", 8000)),
        *tls(told), "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        "--database", str(told["database"]),
        "--isolation", "process", "--superexec-auth-secret-file", str(told["secret"]),
    ]  # fmt: skip


def app(told: Mapping[str, Any]) -> list[str]:
    """What runs the app, for the server or a node: nothing installed is left from before."""
    address = str(told["runtime"])
    check_loopback(address)
    home = Path(os.environ.get("FLWR_HOME", ""))
    refuse_unless(
        home.is_absolute(), "FLWR_HOME names no folder of its own; set it to an absolute path."
    )
    # An installed copy is used unread, so an edited one would run under a valid signature.
    shutil.rmtree(home / "apps", ignore_errors=True)
    refuse_unless(
        not (home / "apps").exists(), f"{home / 'apps'} cannot be emptied; see whose it is."
    )
    return [
        "flower-superexec", "--runtime-api-address", address,
        "--root-certificates", str(told["ssl-ca-certfile"]),
        "--superexec-auth-secret-file", str(told["secret"]),
    ]  # fmt: skip


def check_loopback(address: str) -> None:
    """The interface between a node and its app never leaves the machine."""
    try:
        inside = ipaddress.ip_address(address.rpartition(":")[0]).is_loopback
    except ValueError:
        inside = False
    refuse_unless(inside, f"the runtime address is {address}; it must be 127.0.0.1 and a port.")


# ---------------------------------------------------------------------- a hospital's node
def node(told: Mapping[str, Any]) -> list[str]:
    """The SuperNode; `pinned` must have been called in this process."""
    trusted = Path(told["trusted"])
    check_trusted(trusted)
    configuration = " ".join(f"{name}={json.dumps(value)}" for name, value in told["node"].items())
    return [
        "flower-supernode", "--superlink", str(told["superlink"]),
        "--root-certificates", str(told["authority"]),
        "--auth-supernode-private-key", str(told["key"]), *tls(told),
        "--host", "127.0.0.1", "--port", str(told.get("port", 9094)),
        "--trusted-entities", str(trusted),
        "--isolation", "process", "--superexec-auth-secret-file", str(told["secret"]),
        "--node-config", configuration,
    ]  # fmt: skip


def data(told: Mapping[str, Any]) -> list[str]:
    """What keeps the records: the app asks over a socket, and gets what the limits allow."""
    limits = dict(told["node"])
    refuse_unless(
        "epsilon" in limits or "least" in limits,
        "the part [data.node] sets no limit; give epsilon and delta, or least, the fewest records.",
    )
    for name in {"epsilon", "delta", "least", "sharers"} & set(limits):
        refuse_unless(
            type(limits[name]) in (int, float) and limits[name] > 0,
            f"{name} in [data.node] is {limits[name]!r}; it must be a number above 0.",
        )
    return [sys.executable, "-m", "fedpca_flower.kept", str(told["socket"]), json.dumps(limits)]


def check_trusted(file: Path) -> None:
    """At least one Ed25519 key: Flower takes an empty list for “no check”, without a word."""
    import yaml

    try:
        keys = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NotRun(f"Not started: {file} cannot be read ({error}).") from None
    fit = isinstance(keys, dict) and bool(keys)
    refuse_unless(
        fit and all(str(key).startswith("ssh-ed25519 ") for key in keys.values()),
        f"{file} names no trusted key, or one that is not ssh-ed25519, and without any every app "
        "would run; write fpk_NAME: 'ssh-ed25519 AAAA…' for everybody who may release an app.",
    )


def pinned(folder: Path) -> None:
    """Take signatures from the hospital's own folder, whatever the server sends along.

    Flower's own check of a signature does the refusing; only where signatures come from changes.
    """
    from flwr.supernode import start_client_internal as inner

    pull = getattr(inner, "_pull_and_store_message", None)
    needed = {"get_fab", "trusted_entities"}
    refuse_unless(
        pull is not None and needed <= set(inspect.signature(pull).parameters),
        "this version of Flower checks apps in another place, so the check would not hold; "
        "use flwr 1.41 or 1.42.",
    )

    def checked(**given: Any) -> Any:
        ask = given["get_fab"]
        given["get_fab"] = lambda digest, run: with_own_signatures(ask(digest, run), folder)
        if not given["trusted_entities"]:
            raise NotRun("Stopped: there are no trusted keys, so this node runs nothing.")
        return pull(**given)  # type: ignore[misc]

    inner._pull_and_store_message = checked


def with_own_signatures(fab: Any, folder: Path) -> Any:
    """An app with the signatures that the folder has for exactly these bytes, and no other."""
    from flwr.supercore.fab import Fab

    digest = hashlib.sha256(fab.content).hexdigest()
    found = {"valid_license": "signatures come from this node's folder"}
    for path in sorted(folder.glob("*.sig.json")):
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["fab"] == digest:
                kept = {name: said[name] for name in ("signature", "signed_at")}
                found[str(said["public_key_id"])] = json.dumps(kept)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            print(f"{path.name} is no signature ({type(error).__name__}); sign the app again.")
    return Fab(digest, fab.content, found)


def sign(fab: Path, key: Path, name: str) -> Path:
    """Write ``APP.fab.sig.json``: whoever reviewed the app says so with an Ed25519 key."""
    from flwr.supercore.primitives import asymmetric_ed25519 as ed25519

    for file in (fab, key):
        refuse_unless(file.is_file(), f"there is no file {file}; see its name and folder.")
    at, digest = int(time.time()), hashlib.sha256(fab.read_bytes()).digest()
    message = ed25519.create_message_to_sign(digest, at)
    signature = ed25519.sign_message(ed25519.load_private_key(key), message)
    said = {
        "fab": digest.hex(),
        "public_key_id": name,
        "signature": base64.urlsafe_b64encode(signature).rstrip(b"=").decode(),
        "signed_at": at,
    }
    written = fab.with_name(f"{fab.name}.sig.json")
    written.write_text(json.dumps(said), encoding="utf-8")
    return written


ROLES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "server": server,
    "server-app": app,
    "node": node,
    "node-app": app,
    "data": data,
}


def main(arguments: list[str]) -> None:
    """Start a role, or sign an app."""
    if len(arguments) == 4 and arguments[0] == "sign":
        print(sign(Path(arguments[1]), Path(arguments[2]), arguments[3]))
        return
    refuse_unless(
        len(arguments) == 2 and arguments[0] in ROLES,
        f"say one of {', '.join(ROLES)} and a file, or sign APP.fab KEY NAME.",
    )
    role, file = arguments[0], Path(arguments[1])
    told = read(file, role)
    command = command_of(file, role, told)
    os.environ.update(QUIET)
    if role == "node":
        folder = Path(str(told.get("signatures", "signatures")))
        refuse_unless(folder.is_dir(), f"there is no folder {folder} for signatures; make it.")
        pinned(folder)
        from flwr.supernode.cli import flower_supernode

        sys.argv = command
        flower_supernode()
    else:
        os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
