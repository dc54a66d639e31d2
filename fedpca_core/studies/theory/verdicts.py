"""Which of the statements hold, recomputed from exact worst cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

import pandas as pd

from fedpca_core.consensus import verdicts
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Run, Step, Study
from fedpca_core.studies.theory.settings import TheorySettings


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The table of statements.

    Attributes
    ----------
    table : pandas.DataFrame
        Columns theorem, setting, claim, verdict, cases, vacuous, violated, worst, printed; see
        `fedpca_core.consensus.verdicts.Verdict`.
    """

    table: pd.DataFrame


class Statements(Study[TheorySettings, Verdicts]):
    """Every statement against an adversarial and a random family of clients."""

    key: ClassVar[str] = "theory-verdicts"
    title: ClassVar[str] = "Statements and verdicts"
    settings: ClassVar[type[TheorySettings]] = TheorySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset({"family_seed"})

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Verdicts]:
        yield Step(0.0, "Checking the statements")
        rows = verdicts.verdicts(seed=settings.family_seed)
        return Verdicts(pd.DataFrame([{**asdict(row), "verdict": row.verdict} for row in rows]))

    def tables(self, result: Verdicts, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        return {"statements": result.table}
