"""A panel of FedPower's Figures 3 and 4, curve by curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from fedpca_core.papers.fedpower import MODELS, algorithm, figure
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions.privacy.repeated import Repeated, repeat, run_seeds
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

#: Curves by label.
Curves = Mapping[str, Repeated]


def size_of(settings: PrivacySettings) -> str:
    """The size at which a figure is shown: "paper" or "live"."""
    return "paper" if settings.paper_size else "live"


class PaperFigure(Study[PrivacySettings, Curves]):
    """The curves of a panel: starts and noise draws on one data set.

    The paper does not say how many data sets it used.
    """

    key: ClassVar[str] = "fedpower_figure"
    title: ClassVar[str] = "The paper's figures"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "figures")
    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=120)
    reads: ClassVar[frozenset[str]] = frozenset({"figure", "paper_size", "repetitions", "seed"})
    seconds: ClassVar[float] = 300.0

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Curves]:
        entry = figure(settings.figure)
        model = MODELS[entry.model]
        size = model.sizes[size_of(settings)]
        yield Step(0.0, "Drawing the data")
        problem = model.draw(size, settings.seed)
        seeds = run_seeds(settings.seed, settings.repetitions)
        wire = Channel(record="estimates")
        curves: dict[str, Repeated] = {}
        for index, variant in enumerate(entry.variants, start=1):
            run = algorithm(entry, variant, size.samples)
            steps = repeat(problem, run, run.rounds, wire, seeds, variant.label)
            share = index / (1 + len(entry.variants)), (index + 1) / (1 + len(entry.variants))
            curves[variant.label] = yield from part(steps, *share)
            yield Step(share[1], variant.label, dict(curves))
        return curves

    def tables(self, result: Curves, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        tables = [run.table("curve", label) for label, run in result.items()]
        return {
            "plateaus": pd.concat([table.iloc[[-1]] for table in tables], ignore_index=True),
            "curves": pd.concat(tables, ignore_index=True),
        }
