"""Every widget of a page keeps its container, whatever is chosen.

One that moved to another container is in no address from then on: a browser forgets whom a
parameter of the address belongs to when the widget's former place goes.
"""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import jobs, limits
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import PAGES
from fedpca_core.settings import Settings
from tests.test_headless import script_of

#: Other widgets hang on these values.
SHAPING: dict[str, dict[str, list[Any]]] = {
    "scene": {"step": ["5"], "problem": ["table"], "method": ["faps"]},
    "converge": {"problem": ["digits", "table", "decay_geometric"]},
    "attack": {"problem": ["digits", "table"], "attack": ["collude"], "attacked": [("ssi",)]},
    "which": {"problem": ["digits", "table"], "server": ["sums"], "vary": ["none"]},
    "check": {"centring": ["own"], "values": ["real"]},
    "anomaly": {
        "problem": ["synthetic", "own"],
        "view": ["learning", "alarms", "leaks", "poisoning", "sweeps"],
        "method": ["fedpe"],
    },
    "privacy": {
        "problem": ["table", "digits", "blocks"],
        "method": ["ssi"],
        "unit": ["person"],
        "trusted": ["clients"],
        "view": ["utility", "ways", "budget", "attacks", "accountants"],
    },
    "personalise": {"problem": ["table"], "exposure": [True]},
    "theory": {"problem": ["logistic", "table"], "method": ["fedavg"]},
    "papers": {"verdict": ["out of scope"], "row": ["faps/table-1/ssi/rounds"], "run_live": [True]},
    "trace": {"grid": ["real"]},
}


def places(page: type[Settings], **chosen: Any) -> dict[str, tuple[int, ...]]:
    """The container of every widget of a page that computes nothing."""
    app = AppTest.from_file(str(script_of(page.kind)), default_timeout=60)
    for name, value in chosen.items():
        described = page.parameters()[name]
        many = isinstance(value, tuple)
        app.query_params[described.key] = (
            [described.text(part) for part in value] if many else described.text(value)
        )
    app.run()
    assert not app.exception
    found: dict[str, tuple[int, ...]] = {}

    def walk(block: Any, path: tuple[int, ...]) -> None:
        for number, node in block.children.items():
            if getattr(node, "children", None):
                walk(node, (*path, number))
            elif getattr(node, "key", None):
                found[node.key] = path

    walk(app._tree, ())
    return {key: found[key] for p in page.parameters().values() if (key := p.key) in found}


@pytest.mark.parametrize("page", PAGES, ids=[page.kind for page in PAGES])
def test_a_widget_keeps_its_container(page, monkeypatch) -> None:
    def refused(self: Any, *rest: Any) -> None:
        raise InvalidInput("This server has the day off; come back tomorrow.")

    monkeypatch.setattr(type(limits.LIMITS), "check", refused)
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone
    first = places(page)
    for name, values in SHAPING[page.kind].items():
        for value in values:
            then = places(page, **{name: value})
            both = first.keys() & then.keys()
            moved = {key for key in both if first[key] != then[key]}
            assert both and not moved, f"{name} = {value} moves {sorted(moved)}"


@pytest.mark.parametrize("page", PAGES, ids=[page.kind for page in PAGES])
def test_a_widget_keeps_its_container_while_the_page_computes(page, monkeypatch) -> None:
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone
    monkeypatch.setattr(jobs, "_heard", lambda wait, seconds: False)  # nobody waits for the work
    monkeypatch.setattr(jobs.Registry, "submit", lambda self, key, *rest, **who: jobs.Job(key))
    under_way = places(page)
    refused = lambda self, key, *rest, **who: jobs.Job(key).refuse("It did not go well.")  # noqa: E731
    monkeypatch.setattr(jobs.Registry, "submit", refused)
    assert places(page) == under_way
