"""From an answer to a deployment: the estimator, Flower's settings and commands, the leak check."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import pandas as pd

from fedpca_core import algorithms
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.costs import ProblemSize
from fedpca_core.questions.which.recommendation import PROTOCOL
from fedpca_core.questions.which.runs import SHARED
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings

S = TypeVar("S", bound=Settings)

#: What a table and its client column are called where there is none yet.
TABLE, SITE = "records.csv", "site"


@dataclass(frozen=True)
class Use:
    """One configuration as it is deployed."""

    #: With the budget and the sums of the configuration.
    settings: FrontierSettings
    method: str
    rounds: int
    #: Whether clients share the noise behind secure sums.
    shared: bool
    #: table, site: The file of records, and its column that names the clients; empty: they are
    #: dealt.
    table: str
    site: str
    #: clients, records: How many clients there are, and records of the one that has fewest.
    clients: int
    records: int
    #: The columns that a run names.
    columns: tuple[str, ...]

    @classmethod
    def of(cls, row: pd.Series, settings: FrontierSettings, data: OwnData | None = None) -> Use:
        """A row of an advice."""
        sums, noise = bool(row["sums"]), bool(row["noise"])
        deployed = replace(
            settings,
            epsilon=settings.needed_epsilon if noise else math.inf,
            secure_aggregation=sums,
            candidates=(row["method"],),
        )
        made = str(row["method"]), int(row["rounds"]), sums and noise
        if data is None or settings.problem != "table":
            size = ProblemSize.of(settings)
            numbered = range(1, size.features + 1)
            named = settings.columns or tuple(f"x{number}" for number in numbered)
            fewest = round(size.records / size.clients)
            return cls(deployed, *made, TABLE, SITE, settings.clients, fewest, named)
        site, numbers = settings.client_column, data.table.select_dtypes("number")
        named = settings.columns or tuple(str(name) for name in numbers if name != site)
        dealt = [len(data.table) // settings.clients] * settings.clients
        counts = data.table[site].value_counts() if site else pd.Series(dealt)
        return cls(deployed, *made, data.name, site, len(counts), int(counts.min()), named)

    def files(self) -> dict[str, str]:
        """Everything by file name."""
        found = {"settings.json": self.flower().to_json(), "check.json": self.check().to_json()}
        if self.method in COMPARED:
            found |= {"fit.py": self.estimator(), "fit.ipynb": self.notebook()}
        return found | {"README.md": self.read_me()}

    # ------------------------------------------------------------------ the estimator
    def estimator(self) -> str:
        """A script that fits `FederatedPCA` on the table and says what its messages give away."""
        return "\n".join([*self._lines(), "print(model.leaks().to_string())", ""])

    def notebook(self) -> str:
        """The same as a notebook (nbformat 4.5)."""
        title = f"# {METHODS[self.method].title} on {self.table}"
        cells = [title, "\n".join(self._lines()), "model.leaks()"]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        made: list[dict[str, Any]] = [
            {"cell_type": "markdown", "id": "what", "metadata": {}, "source": cells[0]}
        ]
        for name, source in zip(("fit", "leaks"), cells[1:], strict=True):
            code: dict[str, Any] = {"cell_type": "code", "id": name, "metadata": {}}
            made.append(code | {"source": source, "execution_count": None, "outputs": []})
        book = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4}
        return json.dumps(book | {"nbformat_minor": 5}, ensure_ascii=False, indent=1)

    def _lines(self) -> list[str]:
        c = self.settings
        arguments = {"method": self._method(), "rounds": str(self.rounds)}
        if not self.site:
            arguments["sites"] = str(c.clients)
        if c.participation < 1:
            arguments["participation"] = repr(c.participation)
        if c.secure_aggregation:
            arguments["secure_aggregation"] = "True"
        if not math.isinf(c.epsilon):
            arguments |= {"epsilon": repr(c.epsilon), "delta": repr(c.delta)}
            arguments |= {"clip": repr(c.clip_norm), "mean_share": repr(c.mean_share)}
        arguments["random_state"] = str(c.seed)
        named = "".join(f"    {name}={value},\n" for name, value in arguments.items())
        read = "read_csv" if self.table.lower().endswith(("csv", "tsv", "txt")) else "read_parquet"
        lines = [
            "import pandas as pd",
            "",
            "import fedpca_core as fp",
            "",
            f"table = pd.{read}({self.table!r})  # one record a row",
        ]
        if self.site:
            lines.append(f"site = table.pop({self.site!r})  # whose record it is")
        if c.columns:
            lines.append(f"table = table[{list(c.columns)!r}]")
        groups = ", groups=site" if self.site else ""
        return [
            *lines,
            *self._prepared(),
            f"model = fp.FederatedPCA(\n    {c.components},\n{named})",
            f"model.fit(X{groups})",
            "print(model.components_, model.explained_variance_ratio_)",
            *(["print(model.guarantee_.sentence())"] if not math.isinf(c.epsilon) else []),
        ]

    def _prepared(self) -> list[str]:
        """Numbers without gaps, as the page reads them; under an ε no row is dropped for what is
        in it."""
        if not math.isinf(self.settings.epsilon):
            return [
                "# The columns count as public; an empty cell is 0, since a row that is dropped",
                "# says something of its record.",
                'X = table.select_dtypes("number").fillna(0.0)',
            ]
        numbers = 'X = table.select_dtypes("number")'
        if self.settings.missing == "fill":
            return [numbers, "X = X.fillna(X.median())"]
        if self.settings.missing == "columns":
            return [f"{numbers}.dropna(axis=1)"]
        return [f"{numbers}.dropna()", *(["site = site[X.index]"] if self.site else [])]

    def _method(self) -> str:
        """Its key, or with parameters of its own the algorithm itself."""
        made: Any = METHODS[self.method].make(self.settings)
        usual: Any = METHODS[self.method].make(
            ConvergeSettings(components=self.settings.components)
        )
        if made == usual:
            return repr(self.method)
        bare = type(made)(self.settings.components)
        changed = {
            one.name: getattr(made, one.name)
            for one in fields(made)
            if getattr(made, one.name) != getattr(bare, one.name)
        }
        plain = all(isinstance(value, int | float | str | bool) for value in changed.values())
        name = type(made).__name__
        if not plain or not hasattr(algorithms, name):
            return repr(self.method)
        given = "".join(f", {key}={value!r}" for key, value in changed.items())
        return f"fp.{name}({self.settings.components}{given})"

    # ------------------------------------------------------------------ Flower
    def flower(self) -> ConvergeSettings:
        """The settings file that a run on Flower reads."""
        there = self._sized(self.settings.carried(ConvergeSettings))
        return replace(there, methods=(self.method,)) if self.method in COMPARED else there

    def commands(self) -> str:
        """Three commands: the server, a client's node, and the start of the run."""
        c = self.settings
        private = not math.isinf(c.epsilon)
        run = {
            "settings": "settings.json",
            "method": f"{self.method}_centred" if self._constant else self.method,
            "clients": self.clients,
            "rounds": self.rounds,
            "out": "trace.npz",
        }
        limit = f" epsilon={c.epsilon!r} delta={c.delta!r}" * private
        if private:
            run["columns"] = ",".join([*self.columns, *["one"] * self._constant])
        if self._covered:
            limit += f" sharers={SHARED.honest(self.clients)}"
            run["colluding"] = SHARED.colluding

        def started(connection: str, **more: str) -> str:
            told = " ".join(f"{key}={json.dumps(value)}" for key, value in (run | more).items())
            return f"flwr run engines/flower {connection} --run-config {shlex.quote(told)}"

        return "\n".join(
            [
                "# first a simulation: made-up records, a file for each client in a folder",
                started("local", data="clients"),
                "# the server; docs/flower.md has its certificates",
                "flower-superlink --ssl-ca-certfile ca.crt --ssl-certfile server.pem \\",
                "  --ssl-keyfile server.key --enable-supernode-auth",
                "# every client, with its own number, records and key",
                "flower-supernode --superlink federation.example.org:8000 \\",
                "  --root-certificates ca.crt --auth-supernode-private-key node \\",
                f'  --node-config \'client=0 data="{TABLE}" memory="memory"{limit}\'',
                "# the run",
                started("lab"),
            ]
        )

    @property
    def _covered(self) -> bool:
        """Whether clients share their noise on a network too: everybody is in every sum there."""
        return self.shared and METHODS[self.method].algorithm.waits

    @property
    def _constant(self) -> bool:
        """Whether a column of one constant says the mean, which is in no message of its own."""
        return self.method == PROTOCOL and self._covered and self._centred

    @property
    def _centred(self) -> bool:
        """Whether the records are taken about their mean."""
        return not self.settings.problem.startswith("decay") and self.settings.scaling != "none"

    def refused(self) -> str:
        """What of this a network does not do, or the estimator; empty where all is done."""
        said = []
        if self.shared and not self._covered:
            said.append(
                f"On a network sums of {METHODS[self.method].title} go on without a client that "
                "falls silent, so every client adds its noise in full; the errors there are those "
                "without secure sums."
            )
        if self._constant:
            said.append(
                "On a network the mean is no release of its own: every file ends with a column "
                "“one” of a constant about as large as the others are, and answers are centred by "
                "what the noisy matrix says of it."
            )
        if self.method not in COMPARED:
            said.append(
                f"The estimator does not run {METHODS[self.method].title}: it takes what “How "
                "fast?” compares."
            )
        return " ".join(said)

    # ------------------------------------------------------------------ the leak check
    def check(self) -> CheckSettings:
        """The deployment file of the leak check."""
        c = self.settings
        return replace(
            self._sized(c.carried(CheckSettings)),
            method=self.method,
            rounds=self.rounds,
            centring="pooled" if self._centred else "none",
            values="real" if c.problem.startswith("decay") else "grid",
        )

    def _sized(self, told: S) -> S:
        """Settings with the sizes of the deployment, as near as they take them."""
        sizes = {"clients": self.clients, "samples": self.records, "features": len(self.columns)}
        near = {name: told.parameters()[name].nearest(size) for name, size in sizes.items()}
        return replace(told, **{name: size for name, size in near.items() if size is not None})

    def read_me(self) -> str:
        """What the files are, and what to type."""
        fit = [
            "    python fit.py",
            "",
            "fits the estimator; fit.ipynb is the same as a notebook.",
            "",
        ]
        lines = [
            f"# {METHODS[self.method].title}",
            "",
            *(fit if self.method in COMPARED else []),
            "    python -m fedpca_core check check.json",
            "",
            "says what the deployment gives away. On Flower:",
            "",
            *(f"    {line}" for line in self.commands().splitlines()),
            "",
            self.refused(),
        ]
        return "\n".join(lines).rstrip() + "\n"
