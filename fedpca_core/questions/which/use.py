"""From a point or an answer to where it goes on: other pages, the estimator, Flower, the check."""

from __future__ import annotations

import json
import math
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pandas as pd

from fedpca_core import algorithms
from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED, METHODS, replayable
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.costs import ProblemSize
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.which.recommendation import CONFIGURATION, PROTOCOL, Advice, share
from fedpca_core.questions.which.runs import SHARED, smaller
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings, said_in
from fedpca_core.study.files import notebook
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import names, words
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

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
    #: Rounds and variance lost of the page's run from the first seed; None where it has none.
    first: tuple[int, float] | None = None
    #: Why the page has other figures than the script, as far as data and sizes go.
    others: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        row: pd.Series,
        settings: FrontierSettings,
        data: OwnData | None = None,
        advice: Advice | None = None,
    ) -> Use:
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
            named = settings.columns or tuple(f"x{k + 1}" for k in range(size.features))
            sizes = settings.clients, round(size.records / size.clients)
            return cls(deployed, *made, TABLE, SITE, *sizes, named, others=("drawn",))
        site, numbers = settings.client_column, data.table.select_dtypes("number")
        named = settings.columns or tuple(str(name) for name in numbers if name != site)
        dealt = [len(data.table) // settings.clients] * settings.clients
        counts = data.table[site].value_counts() if site else pd.Series(dealt)
        use = cls(deployed, *made, data.name, site, len(counts), int(counts.min()), named)
        if advice is None:
            return use
        runs, paths = advice.runs, advice.paths
        same = (runs[CONFIGURATION] == row[CONFIGURATION]).all(axis=1)
        own = runs["run"][same & (runs["seed"] == settings.seed)]
        way = paths[paths["run"].isin(own) & paths["round"].between(1, row["rounds"])].tail(1)
        first = next(zip(way["round"].astype(int), way["unexplained"], strict=True), None)
        fewer = smaller(settings, data, advice.facts.clients)
        return replace(use, first=first, others=("fewer",) if fewer else ())

    def files(self) -> dict[str, str]:
        found = {"settings.json": self.flower().to_json(), "check.json": self.check().to_json()}
        if self.method in COMPARED:
            found |= {"fit.py": self.estimator(), "fit.ipynb": self.notebook()}
        return found | {"README.md": self.read_me()}

    # ------------------------------------------------------------------ the estimator
    def estimator(self) -> str:
        """A script that fits `FederatedPCA` on the table and says what its messages give away."""
        return f"{self._script()}print(model.leaks().to_string())\n"

    def notebook(self) -> str:
        """The same as a notebook."""
        title = f"# {METHODS[self.method].title} on {self.table}"
        return notebook(title, fit=self._script().rstrip("\n"), leaks="model.leaks()")

    def _script(self) -> str:
        c = self.settings
        rounds, lost = self.first or (self.rounds, math.nan)
        private = not math.isinf(c.epsilon)
        arguments: dict[str, object] = {"method": self._method(), "rounds": rounds}
        if c.participation < 1:
            arguments["participation"] = c.participation
        if c.secure_aggregation:
            arguments["secure_aggregation"] = True
        if private:
            arguments |= {"epsilon": c.epsilon, "delta": c.delta}
            arguments |= {"clip": c.clip_norm, "mean_share": c.mean_share}
        arguments["random_state"] = c.seed
        scaling = "centre" if "drawn" in self.others else c.scaling
        said = [names("use-others")[why] for why in self._other_figures()]
        if not said and not math.isnan(lost):
            said = [words("use-same", seed=c.seed, lost=share(lost), rounds=rounds)]
        return _text(
            "fit",
            table=self.table,
            reading=_lines("    {}={},", self._reading(scaling)),
            centred=_text("centred") * (scaling == "centre"),
            components=c.components,
            arguments=_lines("    {}={},", arguments),
            guarantee=_text("guarantee") * private,
            remark="".join(f"# {line}\n" for text in said for line in textwrap.wrap(text, 86)),
        )

    def _reading(self, scaling: str) -> dict[str, str]:
        """How the table is read, as code; under an ε its columns count as public."""
        c, private = self.settings, not math.isinf(self.settings.epsilon)
        dealt = {"clients": c.clients, "heterogeneity": c.heterogeneity, "split": c.sizes}
        read: dict[str, object] = {"client_column": self.site} if self.site else {**dealt}
        read |= {"scaling": scaling, "missing": c.missing, "seed": c.seed}
        if private:
            del read["missing"]  # an empty cell is 0: a row that is dropped says something
            read["public_schema"] = True
        given = {name: repr(value) for name, value in read.items()}
        if c.columns:
            return {"columns": repr(list(c.columns)), **given}
        every = f"[name for name in table if name != {self.site!r}]"
        return {"columns": every, **given} if private else given

    def _other_figures(self) -> list[str]:
        """Why the script's figures are not those of the page; by the words that say so."""
        c, usual = self.settings, ConvergeSettings()
        absent = c.absent if c.participation < 1 else usual.absent
        wire = (c.dtype, c.upload_noise, absent) != (usual.dtype, usual.upload_noise, usual.absent)
        bare = self._method() == repr(self.method) and self._changed()
        why = {"uncentred": c.scaling == "none", "wire": wire, "parameters": bare}
        return [*self.others, *(name for name, holds in why.items() if holds)]

    def _method(self) -> str:
        """Its key, or with parameters of its own the algorithm itself."""
        made: Any = METHODS[self.method].make(self.settings)
        if not self._changed():
            return repr(self.method)
        bare = type(made)(self.settings.components)
        changed = {name: one for name, one in vars(made).items() if one != getattr(bare, name)}
        plain = all(isinstance(value, int | float | str | bool) for value in changed.values())
        name = type(made).__name__
        if not plain or not hasattr(algorithms, name):
            return repr(self.method)
        given = "".join(f", {key}={value!r}" for key, value in changed.items())
        return f"fp.{name}({self.settings.components}{given})"

    def _changed(self) -> bool:
        """Whether the method has parameters that are not its usual ones."""
        usual = ConvergeSettings(components=self.settings.components)
        make = METHODS[self.method].make
        return make(self.settings) != make(usual)

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

        simulation, lab = started("local", data="clients"), started("lab")
        return _text("commands", simulation=simulation, table=TABLE, limit=limit, lab=lab)

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
        return not self.settings.problem.startswith("decay") and self.settings.scaling != "none"

    def refused(self) -> str:
        """What of this a network does not do, or the estimator; empty where all is done."""
        why = {
            "in-full": self.shared and not self._covered,
            "constant": self._constant,
            "estimator": self.method not in COMPARED,
        }
        said, title = names("use-refused"), METHODS[self.method].title
        return " ".join(said[name].format(title=title) for name, holds in why.items() if holds)

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
        text = _text(
            "read_me",
            title=METHODS[self.method].title,
            fit=_text("read_me_fit") * (self.method in COMPARED),
            commands=textwrap.indent(self.commands(), "    "),
            refused=self.refused(),
        )
        return text.rstrip() + "\n"


def _text(name: str, **filled: Any) -> str:
    """What `use.toml` has under a name, with these values in its gaps."""
    return str(said_in("use")[name]).format(**filled)


def _lines(how: str, named: Mapping[str, object]) -> str:
    return "".join(f"{how.format(*pair)}\n" for pair in named.items())


# ---------------------------------------------------------------------- pages that look closer
def point(settings: FrontierSettings, method: str, value: float) -> FrontierSettings:
    """The settings of one point: the method alone, at a value of what varies, from all seeds."""
    alone = replace(settings.alone(method), seeds=settings.seeds)
    if settings.vary == "none" or math.isnan(value):
        return alone
    return replace(alone, **{settings.vary: value})  # type: ignore[arg-type]


def destinations(alone: FrontierSettings) -> dict[str, Settings]:
    """Where the same state can be seen, by the name of the page.

    FedPower runs on the Privacy page only, on that page's own data.
    """
    (method,) = alone.candidates
    found: dict[str, Settings] = {}
    if method in COMPARED:
        found["converge"] = replace(alone.carried(ConvergeSettings), methods=(method,))
    if method in ATTACKABLE:
        found["attack"] = replace(
            alone.carried(AttackSettings),
            attacked=(method,),
            attack="pooled" if alone.secure_aggregation else "symmetric",
            replay=replayable(method) and not alone.secure_aggregation,
        )
    own_noise = METHODS[method].plans_products
    if not math.isinf(alone.epsilon) or own_noise:
        there = replace(alone.carried(PrivacySettings), method=method)
        found["privacy"] = there if own_noise else replace(there, view="ways")
    return found
