"""What the curves of Converge and Attack measure, with their formulas."""

from __future__ import annotations

from dashboard.shell.parts import lay_out
from fedpca_core.study.parts import About


def measures() -> None:
    """Fold: the four measures and what is minimised."""
    lay_out([About.of("measures")])


def rates() -> None:
    """Fold: the predicted runs."""
    lay_out([About.of("rates")])


def reconstruction() -> None:
    """Fold: the linear attack and its completion."""
    lay_out([About.of("reconstruction")])
