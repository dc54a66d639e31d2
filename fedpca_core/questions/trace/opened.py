"""Reading a run's file without anybody's private data: what it cost, and what its server holds."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import AnyArray, Array
from fedpca_core.attacks.attack import Effort
from fedpca_core.attacks.belief import Belief
from fedpca_core.attacks.deployment import Deployment
from fedpca_core.errors import check_client
from fedpca_core.findings import Finding, frame
from fedpca_core.guarantee import Guarantee, meanings
from fedpca_core.linalg.stiefel import largest_sine, orthonormalise
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.protocol.described import describe
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import load_trace
from fedpca_core.questions.trace.settings import GRIDS, OpenedSettings
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import NoFile, OwnData
from fedpca_core.study.pictures import shrunk
from fedpca_core.study.study import Study
from fedpca_core.trial import Trial, trial


@lru_cache(maxsize=4)
def clients_of(content: bytes) -> int:
    """How many clients the run in a file has.

    Raises InvalidInput: not the file of a run.
    """
    return load_trace(io.BytesIO(content)).transcript.clients


@dataclass(frozen=True, eq=False)
class Opened:
    """What a run's file says."""

    #: Method, parameters and public sizes.
    facts: dict[str, str]
    guarantee: Guarantee | None
    #: Records of the largest client.
    most_samples: int
    #: A row a round, the start first: bytes and products so far, who took part, how far the answer
    #: moved, how many directions of the client the server holds.
    rounds: pd.DataFrame
    #: The answer, a row a feature.
    components: pd.DataFrame
    #: What stood in its way; empty where nothing did.
    note: str
    #: Of the client's matrix (or the sum) and its records, and what else the messages tell.
    findings: tuple[Finding, ...]
    #: (rounds + 1, rows, rows) float32: The server's matrix of the client, neighbouring features
    #: averaged where there are many.
    matrices: AnyArray
    #: The client's records, a row each, where they are certified; each up to its sign, of which the
    #: one with a positive sum is given.
    records: pd.DataFrame | None
    #: The round after which they are.
    certified: int | None

    def meanings(self) -> dict[str, Guarantee]:
        """What the guarantee says of other units; nothing where there is none."""
        return {} if self.guarantee is None else meanings(self.guarantee, self.most_samples)


class OpenedRun(Study[OpenedSettings, Opened]):
    """A run's file, read by everything that needs no private data."""

    key: ClassVar[str] = "opened"
    title: ClassVar[str] = "A run from its file"
    seconds: ClassVar[float] = 600.0

    def cost(self, settings: OpenedSettings, data: OwnData | None = None) -> Cost:
        return Cost(200 + 40 * (len(data.content) / 2**20 if data else 0), 60)

    def run(self, settings: OpenedSettings, data: OwnData | None = None) -> Run[Opened]:
        if data is None:
            raise NoFile("There is no run to open; choose the file that one has written (.npz).")
        yield Step(0.0, "Reading the file")
        trace = load_trace(io.BytesIO(data.content))
        view = trace.transcript
        check_client(settings.client, view.clients)
        deployment = _deployment(trace, settings)
        tried = trial(
            view,
            deployment,
            settings.client,
            effort=Effort(settings.budget, path=True, unmask=settings.unmask),
            thorough=False,
        )
        found: Trial = yield from part(tried, 0.1, 1.0)
        states = found.shown
        states += [states[-1]] * (trace.rounds + 1 - len(states))
        taken = found.certified
        records = None
        if taken is not None and taken.found is not None and taken.found.values is not None:
            # Without a mean nothing tells a record from its negative; counts have positive sums.
            values = taken.found.values
            records = pd.DataFrame((values * np.where(values.sum(axis=0) < 0, -1.0, 1.0)).T)
        return Opened(
            facts=_facts(trace),
            guarantee=trace.setting.guarantee,
            most_samples=int(view.samples.max()),
            rounds=_rounds(trace, states, settings.client),
            components=_components(trace, settings.client),
            note=" ".join(found.refused.values()),
            findings=found.findings,
            matrices=np.stack([shrunk(one.matrix[None])[0] for one in states]),
            records=records,
            certified=None if taken is None else taken.round,
        )

    def tables(self, result: Opened, settings: OpenedSettings) -> dict[str, pd.DataFrame]:
        facts = pd.DataFrame({"fact": result.facts.keys(), "value": result.facts.values()})
        own = super().tables(result, settings)
        return {"findings": frame(result.findings), "facts": facts, **own}


def _deployment(trace: Trace, settings: OpenedSettings) -> Deployment:
    """What is public of a run, from its file and from what its reader says of the records."""
    view, setting = trace.transcript, trace.setting
    step = GRIDS[settings.grid]
    grid = PublicFacts(np.full(view.features, step or 1.0), None, 1)
    return Deployment(
        features=view.features,
        clients=view.clients,
        components=trace.algorithm.components,
        rounds=trace.rounds,
        samples=view.samples,
        algorithm=trace.algorithm,
        participation=setting.participation,
        sums=view.secure_aggregation,
        dtype=view.dtype,
        guarantee=setting.guarantee,
        records=None if settings.grid == "real" else grid,
        grid_known=step is not None,
        mean_paid=setting.paid_mean is not None,
        trace=settings.stated_trace or float(view.features),
    )


def _facts(trace: Trace) -> dict[str, str]:
    view, setting = trace.transcript, trace.setting
    parameters = describe(trace.algorithm)["parameters"]
    least, most = int(view.samples.min()), int(view.samples.max())
    return {
        "Method": trace.algorithm.title,
        "Parameters": ", ".join(f"{name} = {value}" for name, value in parameters.items()),
        "Clients": str(view.clients),
        "Features": str(view.features),
        "Records a client": str(least) if least == most else f"{least:,} to {most:,}",
        "Rounds": str(trace.rounds),
        "Participation": f"{setting.participation:g}",
        "Seed": str(trace.seed),
        "The server sees": "sums only" if view.secure_aggregation else "every client's upload",
        "Numbers on the wire": view.dtype,
    }


def _of_client(estimates: Array, client: int) -> Array:
    """(rounds + 1, features, components): personal models are read at the client."""
    return orthonormalise(estimates[:, client] if estimates.ndim == 4 else estimates)


def _rounds(trace: Trace, states: Sequence[Belief], client: int) -> pd.DataFrame:
    bases = _of_client(trace.estimates, client)
    moved = [math.nan, *(float(largest_sine(b, a)) for a, b in pairwise(bases))]
    return pd.DataFrame(
        {
            "round": np.arange(trace.rounds + 1),
            "participants": [0, *(len(one.participants) for one in trace.transcript.exchanges)],
            "bytes_up": trace.bytes_up,
            "bytes_down": trace.bytes_down,
            "local_products": trace.local_products,
            "seconds": trace.seconds,
            "moved_sine": moved,
            "sine_to_last": largest_sine(bases, bases[-1]),
            "directions_held": [one.read for one in states],
            "whole": [one.whole is not None for one in states],
        }
    )


def _components(trace: Trace, client: int) -> pd.DataFrame:
    last = _of_client(trace.estimates[-1:], client)[0]
    names = [f"component_{number}" for number in range(1, last.shape[1] + 1)]
    table = pd.DataFrame(last, columns=names)
    table.insert(0, "feature", np.arange(len(last)))
    return table
