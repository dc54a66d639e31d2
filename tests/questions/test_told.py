"""A page draws a result as it grows: on a busy machine it sees every one of its states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedpca_core.questions.catalogue import STUDIES
from fedpca_core.questions.told import TOLD
from fedpca_core.questions.trace.opened import example
from fedpca_core.steps import outcome

#: Of the one that takes minutes otherwise.
SMALL = {"defences": {"features": 10, "components": 2, "samples": 40, "rounds": 10, "budget": 100}}
#: What lacks a part is among the first states; more would take minutes.
STATES = 3


@pytest.mark.parametrize("key", sorted({*TOLD} - {"first_look"}))  # that is of a table of one's own
def test_what_a_study_publishes_on_its_way_is_drawn(key):
    study = STUDIES[key]
    settings = study.settings(**SMALL.get(key, {}))
    if study.opened_by:
        settings = replace(settings, **dict([study.opened_by]))
    data = example() if key == "opened" else None
    drawn = []

    def watch(step):
        if step.result is not None and not any(step.result is one for one in drawn):
            drawn.append(step.result)
            list(TOLD[key](step.result, settings))
        return len(drawn) < STATES

    found = outcome(study.run(settings, data), watch)
    assert found is not None and list(TOLD[key](found, settings))
