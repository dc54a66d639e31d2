"""The bridge to PCA: shift-and-invert, whose inner solves are problems of this page."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar

import pandas as pd

from fedpca_core.consensus.shift_invert import Exhibit, clients_matrices, exhibit
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS
from fedpca_core.study.study import Study, stacked

__all__ = ["ACCURACY", "Bridge", "Exhibit", "arrivals"]

#: The squared sine at which a method has arrived.
ACCURACY = 1e-10
#: Size of the exhibit: features, samples of a client, relative gap, and rounds at most.
FEATURES, SAMPLES, GAP, ROUNDS = 20, 5000, 0.05, 400


class Bridge(Study[TheorySettings, Exhibit]):
    """Shift-and-invert beside its rivals, on clients as different as the settings say."""

    key: ClassVar[str] = "theory-bridge"
    title: ClassVar[str] = "An engine for PCA?"
    settings: ClassVar[type[TheorySettings]] = TheorySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset(
        {"problem", "clients", "heterogeneity", "seed", *TABLE_FIELDS}
    )

    def identity(self, settings: TheorySettings, data: OwnData | None = None) -> Hashable:
        """What clients minimise elsewhere on the page is not read, unless they are a visitor's."""
        own = settings.problem == "table"
        return super().identity(settings if own else replace(settings, problem="pair"), data)

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Exhibit]:
        yield Step(0.0, "Drawing the clients")
        if settings.problem == "table":
            matrices = settings.table(data).client_data.dense()
        else:
            matrices = clients_matrices(
                clients=settings.clients,
                features=FEATURES,
                heterogeneity=settings.heterogeneity,
                samples=SAMPLES,
                gap=GAP,
                seed=settings.seed,
            )
        yield Step(0.5, "Running the methods")
        return exhibit(matrices, rounds=ROUNDS, accuracy=ACCURACY)

    def tables(self, result: Exhibit, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        curves = stacked(
            {"method": name, "round": course.rounds, "squared_sine": course.sines}
            for name, course in result.courses.items()
        )
        arrived = arrivals(result)
        summary = pd.DataFrame(
            {
                "method": list(result.courses),
                "rounds_to_1e-10": [arrived.get(name) for name in result.courses],
                "diverged": [course.diverged for course in result.courses.values()],
            }
        )
        return {"summary": summary, "curves": curves}


def arrivals(found: Exhibit) -> dict[str, int]:
    """Rounds to `ACCURACY` of the methods that get there, quickest first."""
    there = {
        name: int(course.rounds[-1])
        for name, course in found.courses.items()
        if not course.diverged and course.sines[-1] <= ACCURACY
    }
    return dict(sorted(there.items(), key=lambda pair: pair[1]))
