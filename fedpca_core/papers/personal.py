"""PerPCA's Figures 1(a)-(d) and 2(a)-(b): the settings of each.

The paper does not print their values; what ours are at its size is stored with the experiments.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.study.preset import Preset, listed

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


_FILE = tomllib.loads(FILE.read_text(encoding="utf-8"))
FIGURES: Mapping[str, PrintedFigure] = {
    name: PrintedFigure(name, **one) for name, one in listed(_FILE["figures"], PersonaliseSettings)
}

PRESETS = (
    *(
        Preset(
            f"perpca-{figure.name.replace('(', '').replace(')', '')}",
            f"Figure {figure.name}: {figure.title}",
            figure.point,
            figure.settings,
        )
        for figure in FIGURES.values()
    ),
    *(Preset(name, **one) for name, one in listed(_FILE["presets"], PersonaliseSettings)),
)
