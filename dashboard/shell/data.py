"""The problem controls that Converge and Attack share, and the problems they lead to."""

from __future__ import annotations

from typing import TypeVar

import streamlit as st

from dashboard.shell import own_table
from dashboard.shell.controls import Controls
from fedpca_core.problems import Problem
from fedpca_core.problems.problem import check_components
from fedpca_core.studies.laboratory import IMAGES, build_problem
from fedpca_core.studies.pca import Configuration

C = TypeVar("C", bound=Configuration)

#: Everything that a problem depends on; other settings do not invalidate a cached problem.
_PROBLEM_FIELDS = (
    "problem",
    "features",
    "clients",
    "samples",
    "split",
    "decay",
    "condition",
    "heterogeneity",
    "seed",
)


def problem_controls(controls: Controls[C]) -> None:
    """Draw the parameters of the problem, only those that matter for the chosen kind."""
    kind = controls.parameter("problem")
    if kind == "table":
        own_table.upload()
        controls.draw("clients", disabled=own_table.has_clients())
        controls.parameter("heterogeneity", disabled=own_table.has_clients())
    elif kind in IMAGES:
        controls.draw("clients", "split", "heterogeneity")
    else:
        controls.parameter("decay" if kind == "decay_geometric" else "condition")
        controls.draw("features", "clients", "samples", "split", "heterogeneity")
    controls.parameter("components")


def current_problem(configuration: Configuration) -> Problem:
    """The configuration's problem, cached by the settings it depends on.

    Raises
    ------
    InvalidInput
        Sizes that do not fit, or data that are not there.
    """
    if configuration.problem == "table":
        problem = own_table.problem(
            clients=configuration.clients,
            heterogeneity=configuration.heterogeneity,
            seed=configuration.seed,
        )
    else:
        chosen = {name: getattr(configuration, name) for name in _PROBLEM_FIELDS}
        problem = _problem(Configuration(**chosen))
    check_components(configuration.components, problem.features)
    return problem


@st.cache_resource(max_entries=8, show_spinner=False)
def _problem(configuration: Configuration) -> Problem:
    problem = build_problem(configuration)
    # What every reader needs, formed while the problem is made rather than at the first slider.
    _ = problem.eigenvalues, problem.heterogeneity
    return problem
