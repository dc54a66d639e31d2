"""Drawing Converge: every missing method is named, and no curve hides another."""

from __future__ import annotations

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.steps import outcome
from fedpca_core.study.parts import refusals
from fedpca_core.study.pca_settings import COMPARED, ConvergeSettings


def test_with_all_methods_the_one_that_fails_is_named():
    settings = ConvergeSettings(methods=tuple(COMPARED), rounds=50, starts=1)
    found = outcome(Convergence().run(settings))
    (said,) = refusals(found.refusals)
    assert METHODS["variable_splitting_free"].title in said and "diverged" in said


def test_of_two_methods_that_coincide_the_one_on_top_is_dashed():
    order = list(COMPARED)
    assert order.index("fedpe") < order.index("fedpg")
    assert (METHODS["fedpe"].look.dash, METHODS["fedpg"].look.dash) == ("solid", "longdashdot")
