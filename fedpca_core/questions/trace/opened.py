"""Reading a run's file without anybody's private data: what it cost, and what its server holds."""

import io
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import AnyArray, Array
from fedpca_core.attacks.attack import Belief, Deployment, Effort
from fedpca_core.attacks.registry import ATTACKS, searching
from fedpca_core.errors import InvalidInput, check_client
from fedpca_core.findings import TARGETS, Finding, frame, in_short
from fedpca_core.guarantee import Guarantee, meanings
from fedpca_core.linalg.stiefel import largest_sine, orthonormalise
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.images import images
from fedpca_core.protocol.described import describe
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import load_trace, save_trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.settings import Settings, choice, number, switch
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, OwnData, Study
from fedpca_core.study.own_data import NoFile
from fedpca_core.study.pca_settings import narrowed
from fedpca_core.study.pictures import shrunk
from fedpca_core.study.world import shared
from fedpca_core.trial import Trial, trial

#: Seconds, by the attacks' own account: to read the other clients, and to search for all unasked.
OTHERS, UNASKED = 60.0, 15.0
#: Steps of the records' grid by key; None where the server knows none.
GRIDS: dict[str, float | None] = {"real": None, "guess": None, "1": 1.0, "0.1": 0.1, "0.01": 0.01}


@dataclass(frozen=True)
class OpenedSettings(Settings):
    """What a reader of a run's file may choose; the run itself is in the file."""

    kind: ClassVar[str] = "trace"

    client: int = shared("client")
    grid: str = choice("real", "Values of the records")
    unmask: bool = narrowed("unmask", False, view=False)
    stated_trace: float = number(0.0, "Trace of the matrix, if known", 0.0, 1e12, 0.1, key="trace")
    budget: int = narrowed("budget", 500)
    remedy: bool = switch(False, "Try what would have stopped it", view=True)


@lru_cache(maxsize=4)
def at_a_glance(content: bytes) -> tuple[int, float]:
    """How many clients the run in a file has, and what searching for all their matrices takes.

    Raises InvalidInput: not the file of a run.
    """
    trace = load_trace(io.BytesIO(content))
    public, every = _deployment(trace, OpenedSettings()), range(trace.transcript.clients)
    prices = (ATTACKS[key].seconds(public, one) for one in every for key in searching(public, one))
    return len(every), sum(prices)


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
    #: A deployment of this size; None where the leak check has none of the kind.
    alike: CheckSettings | None
    #: Of the client's matrix (or the sum) and its records, and what else the messages tell.
    findings: tuple[Finding, ...]
    #: A row a client that was read the same way, as many as `OTHERS` allows: what is known of it.
    clients: pd.DataFrame
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

    key = "opened"
    title = "A run from its file"
    seconds = 600.0

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
        effort = Effort(settings.budget, unmask=settings.unmask)
        path = replace(effort, path=True)
        tried = trial(view, deployment, settings.client, effort=path, thorough=False)
        found: Trial = yield from part(tried, 0.1, 0.5)
        clients = yield from part(_everybody(view, deployment, found, effort), 0.5, 1.0)
        states = found.shown
        states += [states[-1]] * (trace.rounds + 1 - len(states))
        personal = trace.estimates.ndim == 4
        bases = orthonormalise(trace.estimates[:, settings.client] if personal else trace.estimates)
        records = None
        if (values := found.ended.values) is not None:
            # Without a mean nothing tells a record from its negative; counts have positive sums.
            records = pd.DataFrame((values * np.where(values.sum(axis=0) < 0, -1.0, 1.0)).T)
        return Opened(
            facts=_facts(trace, found),
            guarantee=trace.setting.guarantee,
            most_samples=int(view.samples.max()),
            rounds=_rounds(trace, states, bases),
            components=_components(bases[-1]),
            note=" ".join(found.refused.values()),
            alike=_alike(trace, settings),
            findings=found.findings,
            clients=clients,
            matrices=np.stack([shrunk(one.matrix[None])[0] for one in states]),
            records=records,
            certified=found.ended.round,
        )

    def tables(self, result: Opened, settings: OpenedSettings) -> dict[str, pd.DataFrame]:
        facts = pd.DataFrame({"fact": result.facts.keys(), "value": result.facts.values()})
        own = super().tables(result, settings)
        return {"findings": frame(result.findings), "facts": facts, **own}


def _everybody(
    view: Transcript, deployment: Deployment, first: Trial, effort: Effort
) -> Part[pd.DataFrame]:
    found, ran = {first.client: first}, (*first.beliefs, *first.taken, *first.refused)
    each = sum(ATTACKS[key].seconds(deployment, first.client) for key in ran)
    # A sum is of all clients.
    many = 0 if view.secure_aggregation else int(OTHERS / max(each, 1e-3))
    others = [one for one in range(view.clients) if one != first.client][:many]
    for client, share in in_turn(others):
        with suppress(InvalidInput):  # whose records are public is no target
            tried = trial(view, deployment, client, effort=effort, thorough=False)
            found[client] = yield from part(tried, *share)
    return pd.DataFrame(
        {"client": client, **{TARGETS[one.target]: in_short(one) for one in found[client].findings}}
        for client in sorted(found)
    )


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
        trace=settings.stated_trace or None,
    )


def _alike(trace: Trace, settings: OpenedSettings) -> CheckSettings | None:
    titles = {method.title: key for key, method in METHODS.items()}
    noise = trace.setting.guarantee
    with suppress(InvalidInput):  # more of something, or another method, than the check takes
        found = CheckSettings(
            method=titles.get(trace.algorithm.title, ""),
            clients=trace.transcript.clients,
            samples=int(np.median(trace.transcript.samples)),
            features=trace.transcript.features,
            components=trace.algorithm.components,
            rounds=max(trace.rounds, 1),
            participation=trace.setting.participation,
            values="real" if settings.grid == "real" else "grid",
            secure_aggregation=trace.transcript.secure_aggregation,
            dtype=trace.transcript.dtype,
        )
        return found if noise is None else replace(found, epsilon=noise.epsilon, delta=noise.delta)
    return None


def _facts(trace: Trace, found: Trial) -> dict[str, str]:
    view, setting = trace.transcript, trace.setting
    parameters = (f"{k} = {v}" for k, v in describe(trace.algorithm)["parameters"].items())
    least, most = int(view.samples.min()), int(view.samples.max())
    return {
        "Method": trace.algorithm.title,
        "Parameters": ", ".join(parameters),
        "Clients": str(view.clients),
        "Features": str(view.features),
        "Records a client": str(least) if least == most else f"{least:,} to {most:,}",
        "Rounds": str(trace.rounds),
        "Participation": f"{setting.participation:g}",
        "Seed": str(trace.seed),
        "The server sees": "sums only" if view.secure_aggregation else "every client's upload",
        "Numbers on the wire": view.dtype,
        "Attacks that were run": _titles((*found.beliefs, *found.taken)),
        "Attacks that fit and were not": _titles(found.waiting),
    }


def _titles(attacks: Iterable[str]) -> str:
    return ", ".join(ATTACKS[key].title for key in attacks) or "none"


def _rounds(trace: Trace, states: Sequence[Belief], bases: Array) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "round": np.arange(trace.rounds + 1),
            "participants": [0, *(len(one.participants) for one in trace.transcript.exchanges)],
            "bytes_up": trace.bytes_up,
            "bytes_down": trace.bytes_down,
            "local_products": trace.local_products,
            "seconds": trace.seconds,
            "moved_sine": [math.nan, *(float(largest_sine(b, a)) for a, b in pairwise(bases))],
            "sine_to_last": largest_sine(bases, bases[-1]),
            "directions_held": [one.read for one in states],
            "whole": [one.whole is not None for one in states],
        }
    )


def _components(last: Array) -> pd.DataFrame:
    table = pd.DataFrame(last, columns=[f"component_{k + 1}" for k in range(last.shape[1])])
    return table.rename_axis("feature").reset_index()


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
