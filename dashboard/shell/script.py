"""The page as a script: what to type in a notebook to get the numbers on the screen."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.shell import own_table
from fedpca_core.studies.pca import AttackConfiguration, Configuration

#: How each adversary's path is asked for, given ``transcript``, ``client`` and ``truth``.
_PATHS = {
    "linear": "attacks.linear_path(transcript, client)",
    "symmetric": "attacks.symmetric_path(transcript, client, trace=float(np.trace(truth)))",
    "ridge": "attacks.ridge_path(transcript, client, trace=float(np.trace(truth)))",
    "pooled": "attacks.pooled_path(transcript, client)",
}


def comparison(configuration: Configuration) -> str:
    """The script of the Converge page."""
    return "\n".join(
        [
            *_imports(configuration, "Configuration", "build_problem, compare"),
            "",
            _configuration(configuration, "Configuration"),
            *_problem(configuration),
            "comparison = compare(configuration, problem)",
            f"print(comparison.summary({configuration.measure!r}, {configuration.accuracy!r}))",
            "print(comparison.curves())  # a row for every method, start and round",
        ]
    )


def attack(configuration: AttackConfiguration) -> str:
    """The script of the Attack page: errors after each round, from the first start."""
    colluding: list[str] = []
    extra: list[str] = []
    if configuration.attack == "collude":
        extra = ["from dataclasses import replace", ""]
        colluding = [
            "    openly = replace(configuration, secure_aggregation=False)",
            "    seen = attacked_run(problem, method, openly)[0].transcript",
            "    others = [other for other in range(problem.clients) if other != client]",
            "    told = [attacks.testify(seen, i) for i in others[: configuration.colluders]]",
            "    transcript = attacks.collude(transcript, told)",
        ]
    if configuration.attack != "collude":
        path = [f"    path = {_PATHS[configuration.attack]}"]
    else:
        path = [
            "    # With all others colluding, the client's own uploads are left.",
            "    alone = all(each.uploads is not None for each in transcript.exchanges)",
            "    read = attacks.symmetric_path if alone else attacks.pooled_path",
            "    path = read(transcript, client)",
        ]
    return "\n".join(
        [
            *extra,
            "import numpy as np",
            *_imports(configuration, "AttackConfiguration", "attacked_run, build_problem"),
            "from fedpca_core import attacks",
            "from fedpca_core.attacks import scores",
            "",
            _configuration(configuration, "AttackConfiguration"),
            *_problem(configuration),
            "client = configuration.client",
            "truth = problem.client_data.dense()[client]  # only a simulation knows it",
            "for method in configuration.attacked:",
            "    trace, metrics = attacked_run(problem, method, configuration)",
            "    transcript = trace.transcript  # all that the server saw",
            *colluding,
            *path,
            "    print(method, scores.relative_errors(path.estimates, truth))",
        ]
    )


def fold(text: str) -> None:
    """Fold away a script; it travels when the fold is opened."""
    place = st.expander("The same as a script", key="script", on_change="rerun")
    if not place.open:
        return
    with place:
        st.markdown("In a notebook, after `pip install .` in the project's folder:")
        st.code(text, language="python")


def _imports(configuration: Configuration, kind: str, functions: str) -> list[str]:
    table = configuration.problem == "table"
    return [
        *(["import pandas as pd"] if table else []),
        *(["import fedpca_core as fp"] if table else []),
        f"from fedpca_core.studies.pca import {kind}",
        f"from fedpca_core.studies.laboratory import {functions}",
    ]


def _configuration(configuration: Configuration, kind: str) -> str:
    return f"configuration = {_call(kind, configuration.changed())}"


def _problem(configuration: Configuration) -> list[str]:
    if configuration.problem != "table":
        return ["problem = build_problem(configuration)"]
    name, options = own_table.reading(
        clients=configuration.clients,
        heterogeneity=configuration.heterogeneity,
        seed=configuration.seed,
    )
    read = _call("fp.problems.from_table", options, first=f"pd.read_csv({name!r})")
    return [f"table = {read}", "problem = build_problem(configuration, table)"]


def _call(function: str, options: dict[str, Any], first: str = "") -> str:
    """A call on one line where it fits, else with an argument on each."""
    arguments = ([first] if first else []) + [
        f"{name}={value!r}" for name, value in options.items()
    ]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 80:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])
