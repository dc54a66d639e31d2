"""No page and no run opens a connection: everything here happens with sockets refused."""

from __future__ import annotations

import socket
import urllib.request
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import jobs
from dashboard.shell.navigation import ENTRIES
from fedpca_core.problems.data_sets import DATA_SETS, MissingData
from fedpca_core.questions.catalogue import KINDS, PRESETS, studies_of
from fedpca_core.remembered import forget_everything
from fedpca_core.study.here import instead, missing, require_here

ROOT = Path(__file__).resolve().parents[2]
#: Other methods, more rounds and more repetitions run by the same lines.
SMALL: dict[str, dict[str, str | list[str]]] = {
    "which": {"candidates": ["FAPS", "Block Krylov", "FedPower"], "seeds": "1", "rounds": "10"},
    "personalise": {"datasets": "1", "rounds": "50"},
}
pytestmark = pytest.mark.usefixtures("two_seeds")


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Whatever is asked for over a network is refused, and noted."""
    noted: list[object] = []

    def refuse(*what, **_):
        noted.append(what[-1])
        raise OSError("no connection here")

    def connect(one, address):
        if one.family == getattr(socket, "AF_UNIX", None):  # between processes of this machine
            return plain(one, address)
        return refuse(address)

    plain = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in ("connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    forget_everything()
    yield noted
    forget_everything()


def connected(address):
    with socket.socket() as one:
        one.connect(address)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: urllib.request.urlopen("https://example.org/faces.mat"),
        lambda: urllib.request.urlopen("http://127.0.0.1:80/faces.mat"),
        lambda: socket.create_connection(("192.0.2.1", 80)),
        lambda: connected(("192.0.2.1", 80)),
        lambda: socket.gethostbyname("example.org"),
    ],
)
def test_whoever_asked_would_be_found(ask, asked):
    with suppress(OSError):
        ask()
    assert asked


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
def test_no_page_asks_for_anything(name, asked, monkeypatch):
    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: job._done.wait(60))
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone
    app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=60)
    for key, value in SMALL.get(name, {}).items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert asked == []


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_asks_for_anything(name, asked):
    """A run whose data are missing is refused before it begins; others read theirs at once."""
    settings = PRESETS[name].settings
    for study in studies_of(settings):
        if missing(settings) and study.needs(settings):
            with pytest.raises(MissingData):
                require_here(study.needs(settings))
        with suppress(MissingData):  # of those that are missing, whoever runs it all the same
            list(islice(study.run(settings), 2))
    assert asked == []


@pytest.mark.parametrize(
    "key", [key for key, one in DATA_SETS.items() if one.files and not one.bundled]
)
def test_every_page_that_offers_missing_data_names_the_command_and_shows_others(
    key, asked, monkeypatch
):
    """Before any work, in one sentence, with a link to the same on data that come along."""
    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: job._done.wait(60))
    links: list[str] = []
    monkeypatch.setattr(st, "page_link", lambda *where, label, **_: links.append(label))
    offering = [
        kind
        for kind in dict.fromkeys(KINDS.values())
        if "problem" in kind.parameters() and key in kind.parameters()["problem"].choices
    ]
    for kind in offering:
        settings = kind(problem=key)
        script = ENTRIES[0].name if kind.kind == "scene" else kind.kind
        app = AppTest.from_file(str(ROOT / "pages" / f"{script}.py"), default_timeout=60)
        app.query_params.update(settings.query())
        links.clear()
        app.run()
        assert not app.exception and not app.get("progress")
        said = "\n".join(one.value.replace("\\", "") for one in app.warning)
        assert f"“python -m fedpca_core data {DATA_SETS[key].name}”" in said
        other = instead(settings)
        assert other is not None and missing(other) is None
        title = settings.parameters()["problem"].text(other.problem)
        assert f"Show it with {title}, which is here" in links, kind.kind
    assert offering or key == "beijing"
    assert asked == []


def test_what_is_shown_instead_can_be_run():
    for preset in PRESETS.values():
        other = instead(preset.settings)
        if other is not None:
            for study in studies_of(other):
                require_here(study.needs(other))
                list(islice(study.run(other), 1))
