"""Everything of a page in one archive: figures, numbers, settings, citations, and the script that
gets the same numbers in a notebook."""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from dashboard.player.printed import Printer
from dashboard.shell import layout
from dashboard.shell.document import PRODUCT
from fedpca_core.errors import visible
from fedpca_core.papers.sources import SOFTWARE, cited
from fedpca_core.settings import Settings
from fedpca_core.study import OwnData, Study
from fedpca_core.study.facts import read_of
from fedpca_core.study.files import notebook
from fedpca_core.study.parts import names

#: Units by column, or by "table:column" where a table differs; what is in none of these rules is a
#: text, a yes or no, a count, or a number without a unit (a ratio, a sine, a relative error).
_UNITS = names("units")
_COUNTS = ("round", "rounds", "local_products", "evaluations", "communication", "products")
#: What stands in an archive beside the files.
_READ_ME = Path(__file__).resolve().parents[1] / "archive.txt"


def caption(
    settings: Settings,
    results: Iterable[Any] = (),
    data: OwnData | None = None,
    whole: bool = False,
) -> str:
    """What stands below every figure: product, page, settings off their defaults, seed, and data.

    A setting that makes no difference beside the others, or to these data, is left out. ``whole``
    names those too without which nobody can read a sheet of paper, at their defaults.
    """
    parameters, left = settings.parameters(), {*settings.idle(), "seed"}
    needed = names("sheet-settings")
    also = f"{needed['all']} {needed.get(settings.kind, '')}".split() * whole
    named = {name: getattr(settings, name) for name in parameters if name in also}
    values = {**named, **settings.changed()}
    values = {name: value for name, value in values.items() if name not in left}
    told = []
    for name, value in values.items():
        many = value if isinstance(value, tuple) else (value,)
        texts = [parameters[name].text(one) for one in many] or ["none"]
        if len(texts) > 9:  # the settings file has all
            texts[8:] = [f"{len(texts) - 8} more"]
        # “Which one?” runs some without an ε and some with one.
        texts += ["0 under an ε"] * (name == "missing" and hasattr(settings, "needed_epsilon"))
        told.append(f"{parameters[name].label} {' + '.join(texts)}")
    seed = getattr(settings, "seed", None)
    told.append("all else at its default" if told else "all settings at their defaults")
    told += [] if seed is None else [f"seed {seed}"]
    read, _ = read_of(results)
    if data is not None:
        file = f"own file {visible(data.name)}, SHA-256 {data.digest[:12]}…"
        read = f"{file}: {read}" if read else file
    return f"{PRODUCT}, {settings.kind}: {'; '.join(told)}." + f" Data: {read}." * bool(read)


def script(
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


def _call(kind: str, changed: dict[str, Any]) -> str:
    written = {name: repr(value) for name, value in changed.items()}
    written |= {name: 'float("inf")' for name, value in changed.items() if value == math.inf}
    arguments = [f"{name}={text}" for name, text in written.items()]
    line = f"settings = {kind}({', '.join(arguments)})"
    if len(line) <= 90:
        return line
    return "\n".join([f"settings = {kind}(", *(f"    {each}," for each in arguments), ")"])


def tables(settings: Settings, results: Mapping[Study[Any, Any], Any]) -> dict[str, pd.DataFrame]:
    """All tables of a page's results, by study and title."""
    return {
        f"{study.key}-{title}": table
        for study, result in results.items()
        for title, table in study.tables(result, settings).items()
    }


def described(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each column of each table: table, column, unit."""
    rows = [
        {"table": name, "column": column, "unit": _unit(name, str(column), table[column])}
        for name, table in tables.items()
        for column in table.columns
    ]
    return pd.DataFrame(rows, columns=["table", "column", "unit"])


def _unit(table: str, column: str, values: pd.Series) -> str:
    """SI or B, "per cent", "count", "1" for none, "text", "yes or no"."""
    given = _UNITS.get(f"{table}:{column}", _UNITS.get(column))
    if given is not None:
        return given
    if is_bool_dtype(values):
        return "yes or no"
    if not is_numeric_dtype(values):
        return "text"
    return "count" if is_integer_dtype(values) or column in _COUNTS else "1"


def archive(
    settings: Settings,
    results: Mapping[Study[Any, Any], Any],
    printers: Mapping[str, Printer],
    *,
    link: str = "",
    data: OwnData | None = None,
) -> bytes:
    """The ZIP file; slow (about a third of a second for a figure), so made only when asked for."""
    below = caption(settings, results.values(), data)
    files: dict[str, str | bytes] = {}
    for printer in list(printers.values()):
        files |= {f"figures/{name}": content for name, content in printer(below).items()}
    numbers = tables(settings, results)
    for title, table in numbers.items():
        files[f"tables/{title}.csv"] = table.to_csv(index=False)
    bibliography = "\n".join([*(paper.bibtex for paper in cited(settings)), SOFTWARE.bibtex])
    table_option = "" if data is None else f" --table={shlex.quote(data.name)}"
    code = script(settings, list(results), data)
    about = _READ_ME.read_text(encoding="utf-8")
    files |= {
        "columns.csv": described(numbers).to_csv(index=False),
        "settings.json": settings.to_json(),
        "script.py": code + "\n",
        "script.ipynb": notebook(below, script=code),
        "references.bib": bibliography,
        "README.txt": about.format(caption=below, link=link, table=table_option),
    }
    return layout.zipped(files)
