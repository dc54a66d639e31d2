"""How many records a client may hold, and how much noise it takes, until records stay secret.

A row of a map is a kind of data. Every complete reading of plain products ends in the same matrix,
so the map of records forms it directly; the map of noise reads it off noisy messages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from fedpca_core import attacks
from fedpca_core.algorithms import SSI
from fedpca_core.arrays import Array
from fedpca_core.attacks.lattice.records import Records, record_stages
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.images import images
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.table import from_table, heart_table
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step
from fedpca_core.study import Cost, Measured, OwnData, Sweep
from fedpca_core.study.pca_settings import AttackSettings

#: Clients that share the data, and how many of them are attacked.
CLIENTS, ATTACKED = 10, 2
#: Work for one client: a few seconds.
WORK = 2e9
#: Reductions that find all directions and still miss the grid, after which a client is left: the
#: records' own rounding is in the way then, and other reductions of the same rows do not lower it.
MISSED = 3
#: Records of a client whose messages are noisy, and columns of a message.
NOISY_RECORDS, COLUMNS = 10, 10
#: What stood in the way: nothing, and the three things that can.
RECOVERED, *OBSTACLES = range(4)
RANK, SEVERAL, PRECISION = OBSTACLES


def _images(source: str, side: int, count: int, seed: int) -> Problem:
    return images(source, CLIENTS, max_samples=CLIENTS * count, seed=seed, resolution=side)


def _heart(count: int, seed: int) -> Problem:
    rows = heart_table().sample(n=CLIENTS * count, random_state=seed)
    return from_table(rows, clients=CLIENTS, scaling="centre", seed=seed)


#: Rows of the maps, the quickest first: data with so many records a client, from a seed.
ROWS: Mapping[str, Callable[[int, int], Problem]] = {
    "Digits, 4 × 4": partial(_images, "digits", 4),
    "Digits, 8 × 8": partial(_images, "digits", 8),
    "Heart, 25 columns": _heart,
    "Garments, 28 × 28": partial(_images, "fashion_mnist", 28),
    "Garments, 14 × 14": partial(_images, "fashion_mnist", 14),
    "Faces, 32 × 32": partial(_images, "olivetti", 32),
    "Faces, 16 × 16": partial(_images, "olivetti", 16),
}
#: Coarse to fine.
RECORDS = (4.0, 40.0, 15.0, 25.0, 10.0, 20.0, 12.0, 30.0)
NOISE = (0.0, 1e-2, 1e-5, 1e-6, 1e-4, 1e-3)


class AtRisk(Sweep[AttackSettings]):
    """Share of clients whose records are certified, by records a client and kind of data."""

    key = "at_risk"
    title = "What is at risk"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("records_per_client", RECORDS)
    opened_by = ("at_risk", True)
    most = Cost(megabytes=150, seconds=60)
    reads = frozenset({"seed"})
    seconds = 600.0

    def records(self, settings: AttackSettings) -> int:
        """Of every client."""
        return int(settings.records_per_client)

    def read(self, block: Array, settings: AttackSettings) -> Factor:
        """S_i as the server comes by it: here the matrix itself, as its own factor."""
        left, sizes, _ = np.linalg.svd(block / np.sqrt(block.shape[1]), full_matrices=False)
        kept = sizes > 1e-7 * sizes[0]
        error = float(np.finfo(float).eps * sizes[0])
        return Factor(left[:, kept] * sizes[kept], block.shape[1], error)

    def at(self, settings: AttackSettings, value: Value, seed: int) -> AttackSettings:
        return super().at(replace(settings, upload_noise=0.0), value, seed)

    def measure(self, settings: AttackSettings, seed: int, data: OwnData | None) -> Part[Measured]:
        count = self.records(settings)
        measured: dict[str, dict[str, float]] = {}
        for position, (name, made) in enumerate(ROWS.items()):
            begin = Step[None](position / len(ROWS), name)
            yield Step(begin.fraction, name, dict(measured) or None)
            try:
                problem = made(count, settings.seed)
            except (InvalidInput, ValueError):  # not on this machine, or not so many
                continue
            public = problem.announced
            assert public is not None and problem.blocks is not None
            ends = []
            for block in problem.blocks[:ATTACKED]:
                factor = self.read(block, settings)
                known = public.grid, public.mean, public.records_total
                missed = 0
                for found in record_stages(factor, *known, bounds=public.bounds, budget=WORK):
                    missed += bool(found.attempts) and found.attempts[-1].directions is not None
                    if missed == MISSED:
                        break
                    yield begin
                ends.append(obstacle(factor, found, exact=settings.upload_noise == 0))
            measured[name] = {
                "recovered": float(np.mean([end == RECOVERED for end in ends])),
                "obstacle": float(max(ends)),
            }
        return measured


class NoiseAtRisk(AtRisk):
    """The same by noise on uploads, for ten records a client read off SSI's messages."""

    key = "noise_at_risk"
    title = "What noise stops it"
    along = ("upload_noise", NOISE)

    def records(self, settings: AttackSettings) -> int:
        return NOISY_RECORDS

    def read(self, block: Array, settings: AttackSettings) -> Factor:
        run = simulate(
            from_blocks([block, block[:, ::-1] * 0.5]),
            SSI(min(COLUMNS, len(block) - 1)),
            rounds=2,
            seed=settings.seed,
            channel=Channel(upload_noise=settings.upload_noise),
        )
        return attacks.low_rank(run.transcript, 0, noise=settings.upload_noise)


def obstacle(factor: Factor, found: Records, *, exact: bool) -> int:
    """What stood in the way, from the attack's own account; ``exact`` matrices keep their rank."""
    if found.certified:
        return RECOVERED
    if exact and factor.rank < factor.samples:
        return RANK
    if found.attempts and found.attempts[-1].final:
        return SEVERAL
    return PRECISION
