"""How many records a client may hold until its matrix no longer gives them away, measured.

A row of the map is a kind of image at a size. Every complete reading of plain products ends in the
same matrix, so it is formed directly here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.attacks.records import record_stages
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.images import images
from fedpca_core.settings import Value
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.study import Part, Step
from fedpca_core.studies.sweep import Measured, Sweep

#: Name of a row: the images and the pixels along a side.
ROWS: Mapping[str, tuple[str, int]] = {
    "Digits, 4 × 4": ("digits", 4),
    "Digits, 8 × 8": ("digits", 8),
    "Olivetti faces, 16 × 16": ("olivetti", 16),
    "Olivetti faces, 32 × 32": ("olivetti", 32),
}
RECORDS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0)
#: Clients that share the images, and how many of them are attacked.
CLIENTS, ATTACKED = 10, 2
#: Work for one client: some ten seconds.
WORK = 4e9


class AtRisk(Sweep[AttackSettings]):
    """Share of clients whose records are certified, by records a client and kind of image."""

    key: ClassVar[str] = "at_risk"
    title: ClassVar[str] = "What is at risk"
    settings: ClassVar[type[AttackSettings]] = AttackSettings
    most: ClassVar[Cost] = Cost(megabytes=150, seconds=60)
    reads: ClassVar[frozenset[str]] = frozenset({"seed"})
    seconds: ClassVar[float] = 600.0

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.at_risk

    def parameter(self, settings: AttackSettings) -> str:
        return "records_per_client"

    def values(self, settings: AttackSettings) -> Sequence[Value]:
        return RECORDS

    def measure(self, settings: AttackSettings, data: OwnData | None) -> Part[Measured]:
        count = int(settings.records_per_client)
        measured: dict[str, dict[str, float]] = {}
        for position, (name, (source, side)) in enumerate(ROWS.items()):
            begin = position / len(ROWS)
            yield Step(begin, f"{name}, {count} records a client")
            try:
                problem = images(
                    source,
                    max_samples=CLIENTS * count,
                    clients=CLIENTS,
                    seed=settings.seed,
                    resolution=side,
                    download=False,
                )
            except InvalidInput:  # images that are not on this machine
                continue
            public = problem.announced
            assert public is not None and problem.blocks is not None
            hits = []
            for block in problem.blocks[:ATTACKED]:
                certified = False
                for stage in record_stages(
                    _matrix(block), public.grid, public.mean, public.records_total, budget=WORK
                ):
                    certified = stage.certified
                    yield Step(begin, f"{name}, {count} records a client")
                hits.append(certified)
            rank = float(
                np.mean([np.linalg.matrix_rank(block) for block in problem.blocks[:ATTACKED]])
            )
            measured[name] = {"recovered": float(np.mean(hits)), "rank": rank}
        return measured


def _matrix(block: Array) -> Factor:
    """S_i as its own factor, without an n × n matrix."""
    left, sizes, _ = np.linalg.svd(block / np.sqrt(block.shape[1]), full_matrices=False)
    kept = sizes > 1e-7 * sizes[0]
    error = float(np.finfo(float).eps * sizes[0])
    return Factor(left[:, kept] * sizes[kept], block.shape[1], error)
