"""The page as a script: what to type in a notebook to get the numbers on the screen."""

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard.shell import layout
from fedpca_core.questions.catalogue import studies_of
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study


def text(
    settings: Settings, studies: Sequence[Study[Any, Any]], data: OwnData | None = None
) -> str:
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
    about = {"cell_type": "markdown", "id": "what", "metadata": {}, "source": title}
    script = {"cell_type": "code", "id": "script", "metadata": {}, "source": code}
    cells = [about, {**script, "execution_count": None, "outputs": []}]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def fold(
    settings: Settings,
    data: OwnData | None = None,
    studies: Sequence[Study[Any, Any]] = (),
    *,
    label: str = "The same as a script",
    key: str = "script",
) -> None:
    """The script of a page's studies, or of these alone, folded away."""
    studies = studies or studies_of(settings)
    if place := layout.opened(label, key):
        with place:
            st.markdown("In a notebook, after `pip install .` in the project's folder:")
            code = text(settings, studies, data)
            st.code(code, language="python")
            title = f"# {', '.join(study.title for study in studies)}"
            file, written = f"{settings.kind}.ipynb", partial(notebook, title, code)
            look = {"key": f"{key}-notebook", "icon": ":material/book:"}
            layout.download("As a notebook", written, file, **look)


def _call(kind: str, changed: dict[str, Any]) -> str:
    written = {name: repr(value) for name, value in changed.items()}
    written |= {name: 'float("inf")' for name, value in changed.items() if value == math.inf}
    arguments = [f"{name}={text}" for name, text in written.items()]
    line = f"settings = {kind}({', '.join(arguments)})"
    if len(line) <= 90:
        return line
    return "\n".join([f"settings = {kind}(", *(f"    {each}," for each in arguments), ")"])
