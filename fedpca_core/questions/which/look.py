"""The first look at a table of one's own: its spectrum, its records, the features that count."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.questions import costs
from fedpca_core.questions.which.runs import problem_of, sized
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import Run, Step
from fedpca_core.streams import Streams
from fedpca_core.study import Cost, OwnData, Study, stacked
from fedpca_core.study.build import NOISE_FIELDS, PROBLEM_FIELDS, before_noise

#: Components of the spectrum, features of a component, clients, and records of each that are shown.
COMPONENTS, FEATURES, CLIENTS, RECORDS = 20, 8, 8, 100


@dataclass(frozen=True, eq=False)
class TableLook:
    """What everybody who does PCA looks at first.

    ``spectrum``: Columns component, variance, share (simulation only), and noisy: the eigenvalues
        of what the clients release together under the ε, NaN without one.
    ``noise``: Largest eigenvalue of the noise in that; NaN without.
    ``scores``: Columns client, first, second: records on the first two components (simulation
        only).
    ``loadings``: Columns feature, first, second, those first that weigh most.
    ``refusal``: Why there is nothing under the ε; empty where there is.
    """

    spectrum: pd.DataFrame
    noise: float
    scores: pd.DataFrame
    loadings: pd.DataFrame
    refusal: str


class FirstLook(Study[FrontierSettings, TableLook]):
    """Spectrum, scores and loadings of a visitor's table."""

    key = "first_look"
    title = "A first look at your table"
    opened_by = ("problem", "table")
    reads = frozenset(
        {*PROBLEM_FIELDS, *NOISE_FIELDS, "needed_epsilon", "components"} - {"epsilon"}
    )

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        return costs.prepare(costs.ProblemSize.of(settings, data)) + Cost(seconds=1.0)

    def run(self, settings: FrontierSettings, data: OwnData | None = None) -> Run[TableLook]:
        yield Step(0.0, "Reading the records")
        asked = replace(settings, epsilon=settings.needed_epsilon, shared_noise=False)
        refusal = ""
        try:
            problem = problem_of(asked, data)
        except InvalidInput as sentence:
            if math.isinf(settings.needed_epsilon):
                raise
            refusal = str(sentence)
            problem = before_noise(*sized(replace(settings, epsilon=math.inf), data))
        yield Step(0.7, "Its components")
        truth = problem.unperturbed
        noisy, noise, values = np.full(truth.features, np.nan), math.nan, truth.eigenvalues
        if problem.source is not None:
            noisy = np.linalg.eigvalsh(problem.pooled)[::-1]
            noise = np.linalg.eigvalsh(problem.pooled - problem.source.clipped.mean())[-1]
        numbers, shares = np.arange(1, truth.features + 1), values / values.sum()
        columns = {"component": numbers, "variance": values, "share": shares, "noisy": noisy}
        spectrum = pd.DataFrame(columns).head(COMPONENTS)
        axes = truth.target(2)
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
        axes = axes * np.where(largest < 0, -1.0, 1.0)  # its largest loading is positive
        shown = _scores(truth, axes, settings.seed)
        return TableLook(spectrum, float(noise), shown, _loadings(truth, axes), refusal)


def _scores(problem: Problem, axes: Array, seed: int) -> pd.DataFrame:
    """Some records of the largest clients on two components."""
    draw, blocks, parts = Streams(seed).generator("first look"), problem.blocks, []
    assert blocks is not None  # of a table they are kept
    for client in np.sort(np.argsort(-problem.client_data.samples, kind="stable")[:CLIENTS]):
        block = blocks[client]
        chosen = np.sort(draw.permutation(block.shape[1])[:RECORDS])
        first, second = axes.T @ block[:, chosen]
        name = problem.client_names[client] if problem.client_names else f"Client {client + 1}"
        parts.append({"client": name, "first": first, "second": second})
    return stacked(parts)


def _loadings(problem: Problem, axes: Array) -> pd.DataFrame:
    """The features that weigh most in either of two components."""
    names = problem.feature_names or tuple(f"feature {k + 1}" for k in range(problem.features))
    order = np.argsort(-np.abs(axes).max(axis=1), kind="stable")[:FEATURES]
    first, second = axes[order].T
    return pd.DataFrame({"feature": [names[k] for k in order], "first": first, "second": second})
