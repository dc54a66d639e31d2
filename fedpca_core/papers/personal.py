"""PerPCA's Figures 1(a)-(d) and 2(a)-(b): the settings of each, and the values to expect.

The paper does not print its values. ``expected`` holds what these settings gave at paper size
(heterogeneity read as a standard deviation, means over 5 to 20 data sets, 0.001 to 0.003 between
data sets), so that a live run can be compared and a changed program is noticed.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.study.preset import Preset

FILE = Path(__file__).parent / "perpca_figures.toml"
#: Variants of personalised PCA in `PrintedFigure.expected`, by prior and data gradient.
VARIANTS: Mapping[tuple[str, str], str] = {
    ("matched", "exact"): "personalized",
    ("matched", "printed"): "printed",
    ("calibrated", "exact"): "calibrated",
}


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
    #: One error for each value; for "round" the plateau.
    expected: Mapping[str, tuple[float, ...]]

    def variant(self, settings: PersonaliseSettings) -> tuple[float, ...] | None:
        """What personalised PCA is expected to reach with this prior and gradient."""
        return self.expected.get(VARIANTS.get((settings.prior, settings.gradient), ""))

    def describes(self, settings: PersonaliseSettings, free: str) -> bool:
        """Whether the settings are this figure's but for ``free`` and for what sets its size."""
        fixed = {
            *("features", "components", "samples", "heterogeneity", "noise_variance", "reading"),
            *("problem", "epsilon"),
        }
        return all(
            getattr(settings, name) == getattr(self.settings, name) for name in fixed - {free}
        )


def _read() -> Iterator[PrintedFigure]:
    """What `perpca_figures.toml` says."""
    for name, one in tomllib.loads(FILE.read_text(encoding="utf-8")).items():
        yield PrintedFigure(
            name=name,
            title=one["title"],
            point=" ".join(one["point"].split()),
            settings=PersonaliseSettings(**one["settings"]),
            axis=one["axis"],
            values=tuple(one["values"]),
            expected={method: tuple(errors) for method, errors in one["expected"].items()},
        )


FIGURES: Mapping[str, PrintedFigure] = {figure.name: figure for figure in _read()}

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


def plateau(settings: PersonaliseSettings) -> tuple[str, float] | None:
    """A figure over rounds that these settings are, and where it is expected to end."""
    for figure in FIGURES.values():
        expected = figure.variant(settings)
        alike = all(
            getattr(figure.settings, name) == getattr(settings, name)
            for name in ("error_on", "clients")
        )
        if (
            figure.axis == "round"
            and alike
            and expected is not None
            and settings.heterogeneity in figure.values
            and figure.describes(settings, free="heterogeneity")
        ):
            return figure.name, expected[figure.values.index(settings.heterogeneity)]
    return None


def expected_curve(settings: PersonaliseSettings) -> tuple[PrintedFigure, tuple[float, ...]] | None:
    """A figure along the varied axis that these settings are, and what it is expected to show."""
    for figure in FIGURES.values():
        expected = figure.variant(settings)
        along = figure.axis == settings.sweep and figure.describes(settings, free=figure.axis)
        if along and expected is not None:
            return figure, expected
    return None
