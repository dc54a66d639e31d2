"""A run's file to look at before there is one of one's own."""

import io
from dataclasses import replace

from fedpca_core.algorithms.ssi import SSI
from fedpca_core.problems.images import images
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.trace.settings import OpenedSettings
from fedpca_core.study.own_data import OwnData

CLIENTS, RECORDS, COMPONENTS, ROUNDS = 5, 20, 10, 8

#: How the example is read: grey levels are multiples of a step that nobody stated.
EXAMPLE = OpenedSettings(grid="guess")


def example() -> OwnData:
    """What five clients with 20 digits of 64 pixels each leave after eight rounds of SSI."""
    problem = images("digits", CLIENTS, max_samples=CLIENTS * RECORDS, centre=False)
    trace = simulate(problem, SSI(COMPONENTS), rounds=ROUNDS)
    file = io.BytesIO()
    save_trace(replace(trace, states=None), file)  # as a deployment: nobody has clients' states
    return OwnData("example.npz", file.getvalue())
