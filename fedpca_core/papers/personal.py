"""PerPCA's Figures 1(a)-(d) and 2(a)-(b): the settings of each.

The paper does not print their values; what ours are at its size is stored with the experiments.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.study.preset import Preset

FILE = Path(__file__).parent / "perpca_figures.toml"


@dataclass(frozen=True)
class PrintedFigure:
    """One figure of the paper."""

    #: As in "1(a)".
    name: str
    title: str
    point: str
    #: At a size that answers at once; clients, rounds and pace are smaller than the paper's.
    settings: PersonaliseSettings
    #: The field along the horizontal axis, or "round".
    axis: str
    #: Its values at paper size; for "round" the heterogeneities that are shown.
    values: tuple[float, ...]


FIGURES: Mapping[str, PrintedFigure] = {
    name: PrintedFigure(
        name,
        one["title"],
        " ".join(one["point"].split()),
        PersonaliseSettings(**one["settings"]),
        one["axis"],
        tuple(one["values"]),
    )
    for name, one in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
}

PRESETS: tuple[Preset, ...] = (
    *(
        Preset(
            f"perpca-{figure.name.replace('(', '').replace(')', '')}",
            f"Figure {figure.name}: {figure.title}",
            figure.point,
            figure.settings,
        )
        for figure in FIGURES.values()
    ),
    Preset(
        "perpca-literal",
        "Too heterogeneous",
        "Read literally, as a variance, the paper's number leaves nothing to gain: training alone "
        "is as good as personalised PCA.",
        PersonaliseSettings(reading="literal"),
    ),
    Preset(
        "perpca-alone",
        "Many samples",
        "With enough records of one's own, collaborating adds little.",
        PersonaliseSettings(samples=320, heterogeneity=0.3, rounds=100),
    ),
)
