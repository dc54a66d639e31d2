"""Which of the statements hold, recomputed from exact worst cases."""

from __future__ import annotations

from dataclasses import asdict
from typing import ClassVar

import pandas as pd

from fedpca_core.consensus import verdicts
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study


class Statements(Study[TheorySettings, pd.DataFrame]):
    """Every statement against an adversarial and a random family of clients.

    Columns of the result: theorem, setting, claim, verdict, cases, vacuous, violated, worst,
    printed; see `fedpca_core.consensus.verdicts.Verdict`.
    """

    key: ClassVar[str] = "theory-verdicts"
    title: ClassVar[str] = "Statements and verdicts"
    settings: ClassVar[type[TheorySettings]] = TheorySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset({"family_seed"})

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        yield Step(0.0, "Checking the statements")
        rows = verdicts.verdicts(seed=settings.family_seed)
        return pd.DataFrame([{**asdict(row), "verdict": row.verdict} for row in rows])

    def tables(self, result: pd.DataFrame, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        return {"statements": result}
