"""Five small clients, their files, and a run of them over a grid in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

from fedpca_core.arrays import IntArray
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.protocol.algorithm import Algorithm, Plan, Setting, Wrapper
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams
from fedpca_flower.job import FedJob
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid

SAMPLES = (9, 40, 15, 60, 5)
CLIENTS, FEATURES = len(SAMPLES), 12
Lost = Callable[[Message], str]


def blocks() -> list[Any]:
    """Clients that differ, three of them with fewer or hardly more records than features."""
    generator = np.random.default_rng(5)
    shared = generator.standard_normal((FEATURES, FEATURES)) * 1.3 ** -np.arange(FEATURES)
    return [
        (shared + 0.3 * generator.standard_normal(shared.shape))
        @ generator.standard_normal((FEATURES, count))
        for count in SAMPLES
    ]


def written(folder: Path) -> Problem:
    """The problem in one process, and its clients' files in a folder."""
    made = blocks()
    for client, block in enumerate(made):
        np.save(folder / f"client-{client}.npy", block.T)
    return from_blocks(made)


@dataclass(frozen=True)
class Script(Wrapper):
    """A method in one process of which some clients are missing in some rounds."""

    missing: dict[int, set[int]] = field(default_factory=dict)

    @property
    def reuses_uploads(self) -> bool:  # type: ignore[override]
        return self.method.reuses_uploads

    def plan(self, server: Any, round_: int, setting: Setting, streams: Streams) -> Plan:
        gone = self.missing.get(round_, set())
        if not gone:
            return super().plan(server, round_, setting, streams)
        plan = super().plan(server, round_, setting, streams)
        there = [one for one in plan.participants.tolist() if one not in gone]
        arrived = Arrived(**vars(setting), arrived=tuple(there))
        again = super().plan(server, round_, arrived, streams)
        if again.participants.tolist() == there:
            return again
        return plan.keep(np.isin(plan.participants, there))


@dataclass(frozen=True)
class Arrived(Setting):
    """A setting in which the participants are given."""

    arrived: tuple[int, ...] = ()

    def participants(self, round_: int, streams: Streams) -> IntArray:
        return np.array(self.arrived, dtype=np.int64)


def in_process(
    problem: Problem,
    algorithm: Algorithm,
    missing: dict[int, set[int]] | None = None,
    **options: Any,
) -> Trace:
    """The run in one process; absent clients are handled as on a network."""
    simulation = Simulation(problem, Script(algorithm, missing or {}), **options)
    absent = options.get("absent", "memory")
    simulation.mailbox.reuse = algorithm.reuses_uploads and absent == "memory"
    for _ in simulation:
        pass
    return simulation.trace()


def grid(folder: Path, lost: Lost = lambda message: "", **run_config: Any) -> LocalGrid:
    """Nodes as Flower's simulation makes them."""
    nodes = [{"partition-id": i, "num-partitions": CLIENTS} for i in range(CLIENTS)]
    return LocalGrid(nodes, {"data": str(folder), "reveal": True, **run_config}, lost)


def over_a_grid(
    folder: Path, algorithm: Algorithm, lost: Lost = lambda message: "", **options: Any
) -> Trace:
    """The run over a grid."""
    patience: dict[str, Any] = {} if "timeout" in options else {"timeout": 0.01, "patience": 2.0}
    return run(grid(folder, lost), FedJob(algorithm, CLIENTS, **patience, **options))
