"""The page as a script: what to type in a notebook to get the numbers on the screen."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard.shell import layout
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study


def text(
    settings: Settings, studies: Sequence[Study[Any, Any]], data: OwnData | None = None
) -> str:
    """A script that runs the studies that take these settings and prints all their tables."""
    kind = type(settings)
    studies = [study for study in studies if isinstance(settings, study.settings)]
    imports = [
        f"from {kind.__module__} import {kind.__name__}",
        *(f"from {type(study).__module__} import {type(study).__name__}" for study in studies),
        "from fedpca_core.steps import outcome",
    ]
    own = []
    if data is not None:
        imports += ["from fedpca_core.study.own_data import OwnData", "from pathlib import Path"]
        own = [f"data = OwnData.of(Path({data.name!r}))  # your own file"]
    given = "settings" if data is None else "settings, data"
    names = ", ".join(f"{type(study).__name__}()" for study in studies)
    return "\n".join(
        [
            *sorted(imports, key=lambda line: (line.startswith("from fedpca"), line)),
            "",
            _call(kind.__name__, settings.changed()),
            *own,
            f"for study in [{names}]:",
            f"    result = outcome(study.run({given}))",
            "    for name, table in study.tables(result, settings).items():",
            "        print(study.title, name, table, sep='\\n')",
        ]
    )


def notebook(title: str, code: str) -> str:
    """The script as a Jupyter notebook (nbformat 4.5): what it is, then the code."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "what", "metadata": {}, "source": title},
        {
            "cell_type": "code",
            "id": "script",
            "metadata": {},
            "source": code,
            "execution_count": None,
            "outputs": [],
        },
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def fold(
    settings: Settings,
    studies: Sequence[Study[Any, Any]],
    data: OwnData | None = None,
    *,
    label: str = "The same as a script",
    key: str = "script",
) -> None:
    """Fold away the script; it travels when the fold is opened."""
    place = st.expander(label, key=key, on_change="rerun")
    if not place.open:
        return
    with place:
        st.markdown("In a notebook, after `pip install .` in the project's folder:")
        code = text(settings, studies, data)
        st.code(code, language="python")
        title, file = f"# {', '.join(study.title for study in studies)}", f"{settings.kind}.ipynb"
        written, key = partial(notebook, title, code), f"{key}-notebook"
        layout.download("As a notebook", written, file, key=key, icon=":material/book:")


def _call(kind: str, changed: dict[str, Any]) -> str:
    """The settings on one line where they fit, else with one on each."""
    arguments = [f"{name}={_literal(value)}" for name, value in changed.items()]
    line = f"settings = {kind}({', '.join(arguments)})"
    if len(line) <= 90:
        return line
    return "\n".join([f"settings = {kind}(", *(f"    {each}," for each in arguments), ")"])


def _literal(value: Any) -> str:
    return 'float("inf")' if value == float("inf") else repr(value)
