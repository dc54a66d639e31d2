"""The controls of a pooled PCA problem, on every page that has one."""

from __future__ import annotations

from typing import TypeVar

from dashboard.shell import own_table
from dashboard.shell.controls import Controls, itself
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import IMAGES, ConvergeSettings

C = TypeVar("C", bound=ConvergeSettings)


def problem_controls(controls: Controls[C]) -> None:
    """Draw the parameters of the problem, only those that matter for the chosen kind."""
    kind = controls.parameter("problem", shapes=itself)
    if kind == "table":
        own_table.upload(controls)
        named = bool(controls.values.get("client_column"))
        controls.draw("clients", "heterogeneity", disabled=named)
    elif kind in IMAGES:
        controls.draw("clients", "records_per_client", "resolution", "split", "heterogeneity")
    else:
        controls.parameter("decay" if kind == "decay_geometric" else "condition")
        controls.draw("features", "clients", "samples", "split", "heterogeneity")
    controls.parameter("components")


def own_data(settings: ConvergeSettings) -> OwnData | None:
    """The visitor's own file, where the settings ask for it."""
    return own_table.current() if settings.problem == "table" else None
