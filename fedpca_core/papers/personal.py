"""PerPCA's Figures 1(a)-(d) and 2(a)-(b): the settings of each, and the values to expect.

The paper does not print its values. ``expected`` holds what these settings gave at paper size
(heterogeneity read as a standard deviation, means over 5 to 20 data sets, 0.001 to 0.003 between
data sets), so that a live run can be compared and a changed program is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.study.preset import Preset

#: Variants of personalised PCA in `Figure.expected`, by prior and data gradient.
VARIANTS: Mapping[tuple[str, str], str] = {
    ("matched", "exact"): "personalized",
    ("matched", "printed"): "printed",
    ("calibrated", "exact"): "calibrated",
}


@dataclass(frozen=True)
class Figure:
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


_SMALL = PersonaliseSettings(samples=20, rounds=200)
_LARGE = PersonaliseSettings(
    features=100, components=20, clients=20, heterogeneity=0.1, rounds=50, vary="samples"
)

FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure(
            "1(a)",
            "error against rounds",
            "Training alone is worst, one shared model arrives first, personalised PCA is slowest "
            "and best.",
            PersonaliseSettings(clients=200),
            "round",
            (0.2,),
            {
                "personalized": (1.351,),
                "printed": (1.325,),
                "calibrated": (1.325,),
                "local_training": (1.505,),
                "global_averaging": (1.371,),
            },
        ),
        Figure(
            "1(b)",
            "who differs",
            "Personalised PCA follows the shared model where clients are alike and training alone "
            "where they are not.",
            _SMALL,
            "heterogeneity",
            (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0),
            {
                "local_training": (
                    1.421, 1.421, 1.421, 1.421, 1.421, 1.420, 1.421, 1.421, 1.421, 1.421,
                ),
                "global_averaging": (
                    1.021, 1.050, 1.155, 1.268, 1.366, 1.445, 1.508, 1.602, 1.643, 1.628,
                ),
                "personalized": (
                    1.021, 1.048, 1.136, 1.232, 1.328, 1.378, 1.400, 1.417, 1.421, 1.421,
                ),
                "printed": (
                    1.021, 1.048, 1.136, 1.217, 1.284, 1.345, 1.385, 1.416, 1.422, 1.421,
                ),
                "calibrated": (
                    1.021, 1.048, 1.135, 1.216, 1.282, 1.335, 1.374, 1.430, 1.449, 1.437,
                ),
            },
        ),
        Figure(
            "1(c)",
            "samples",
            "One shared model stalls; training alone overtakes it with many samples; personalised "
            "PCA is below both.",
            _LARGE,
            "samples",
            (5, 10, 20, 40, 80, 160, 320),
            {
                "local_training": (1.376, 1.358, 1.320, 1.282, 1.231, 1.165, 1.091),
                "global_averaging": (1.284, 1.246, 1.222, 1.210, 1.203, 1.200, 1.198),
                "personalized": (1.282, 1.243, 1.218, 1.201, 1.173, 1.127, 1.077),
                "calibrated": (1.280, 1.238, 1.205, 1.178, 1.148, 1.112, 1.072),
            },
        ),
        Figure(
            "1(d)",
            "clients",
            "More clients help everybody who shares; training alone cannot gain from them.",
            PersonaliseSettings(
                features=100, components=20, clients=20, heterogeneity=0.1, rounds=50,
                vary="clients",
            ),
            "clients",
            (5, 10, 20, 50, 100, 200, 400),
            {
                "local_training": (1.358,) * 7,
                "global_averaging": (1.348, 1.337, 1.318, 1.285, 1.244, 1.223, 1.211),
                "personalized": (1.343, 1.330, 1.312, 1.281, 1.241, 1.220, 1.208),
            },
        ),
        Figure(
            "2(a)",
            "training error",
            "The more clients differ, the better each fits its own training records.",
            PersonaliseSettings(samples=20, rounds=200, measure="training"),
            "round",
            (0.1, 0.2, 0.4),
            {"personalized": (0.799, 0.456, 0.350)},
        ),
        Figure(
            "2(b)",
            "fresh error",
            "The more clients differ, the worse each does on fresh records.",
            PersonaliseSettings(samples=20, rounds=200, heterogeneity=0.4),
            "round",
            (0.1, 0.2, 0.4),
            {"personalized": (1.148, 1.343, 1.424)},
        ),
    )
}  # fmt: skip

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
            for name in ("measure", "clients")
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


def expected_curve(settings: PersonaliseSettings) -> tuple[Figure, tuple[float, ...]] | None:
    """A figure along the varied axis that these settings are, and what it is expected to show."""
    for figure in FIGURES.values():
        expected = figure.variant(settings)
        along = figure.axis == settings.vary and figure.describes(settings, free=figure.axis)
        if along and expected is not None:
            return figure, expected
    return None
