"""FedPower's schedule, local products, and the rotation of these onto a reference machine's."""

from collections import deque
from collections.abc import Iterator
from itertools import accumulate, chain, repeat, takewhile

import numpy as np

from fedpca_core.algorithms.checked_probes import checked_probe
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise, procrustes
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan
from fedpca_core.streams import Streams


def synchronisation_times(products: int, period: int, decay: bool) -> tuple[int, ...]:
    """After which of T local products, counted from 1, the machines upload (FedPower, section 3).

    Gaps are p, p, p, ... (``period``), or with ``decay`` p, p-1, ..., 2, 1, 1, ...; T itself need
    not be among them.
    """
    require(products >= 1, f"A run makes at least 1 local product, not {products}.")
    require(
        1 <= period <= products,
        f"The first upload after {period} local products does not fit a run of {products}; "
        f"choose a period between 1 and {products}.",
    )
    gaps = chain(range(period, 1, -1), repeat(1)) if decay else repeat(period)
    return tuple(takewhile(lambda time: time <= products, accumulate(gaps)))


def local_path(
    data: ClientData, start: Array, time: int, plan: Plan, noise: Array, streams: Streams
) -> Iterator[tuple[Array, Array, Array]]:
    """The local products of one round: (frame that entered, noisy product, noise) of each.

    ``data`` and ``noise`` (standard deviations, one each) hold the plan's participants
    only. The noise of product t is the same for every schedule and every draw of machines.
    """
    frames = start
    everyone = len(data.samples)
    for step in range(plan.local_steps):
        products = data.apply(frames)
        added: Array = np.zeros(products.shape)
        if noise.any():
            # Drawn for all machines and indexed, so that sampling never shifts the stream.
            generator = streams.generator("noise", time + step + 1)
            draws = generator.standard_normal((everyone, *products.shape[1:]))
            added = noise[:, None, None] * draws[data.members]
            products = products + added
        yield frames, products, added
        if step + 1 < plan.local_steps:
            frames = orthonormalise(products)


def end_of_path(
    data: ClientData, frame: Array, plan: Plan, spread: Array, streams: Streams
) -> tuple[Array, Array]:
    """Frames that alignment reads (they entered the last product, or are the output), and it."""
    path = local_path(data, frame, int(plan.extra["time"]), plan, spread, streams)
    frames, products, _ = deque(path, 1).pop()
    return orthonormalise(products) if plan.extra["output"] else frames, products


def onto_public(upload: Array, basis: Array, frame: Array, plan: Plan, streams: Streams) -> Array:
    """What each machine uploads where the reference's records are public (FedPower, Remark 1).

    Everybody, the server too, has these records beforehand (``plan.extra["known"]``): they are no
    message of the run. Each machine computes the reference's path from them and from the
    broadcast, without noise, and rotates its own upload onto it. The result is a function of its
    noisy products and of public facts, so that ε is what it was; nobody uploads a frame, and the
    server needs sums alone. At a gap of two, without noise, the rotation does not hide that
    ``S_i^2 Z = U U^T Z``, with U an upload on its own. The reference uploads when drawn as before,
    but without noise: no ε and no finding is about it, and anybody can take it out of a sum.

    ``basis``: The machines' own frames (`end_of_path`). ``frame``: The broadcast, as it arrived.
    """
    onto, _ = end_of_path(plan.extra["known"], frame, plan, np.zeros(1), streams)
    return upload @ procrustes(basis, onto)


def within_budget(frame: Array, made: Array, width: int, products: int) -> Array:
    """The broadcast, where the noise, calibrated to so many columns and products, covers it.

    ``made``, (present,): Products of each machine by the end of this round.

    Raises InvalidInput: more of either, or columns that are not orthonormal: all would release more
    than was accounted, so no machine answers, whatever the server is.
    """
    require(
        bool((made <= products).all()),
        f"The noise was calibrated to {products} products and a machine is asked for "
        f"{int(made.max(initial=0))}; it refuses, because its budget is spent.",
    )
    require(
        frame.shape[-1] <= width,
        f"The noise was calibrated to {width} columns and a machine is sent {frame.shape[-1]}; "
        "it refuses.",
    )
    return checked_probe(frame)


def check_columns(components: int, columns: int, features: int) -> None:
    """Refuse an iterate that cannot hold what is sought, or that is everything."""
    require(
        components <= columns < features,
        f"An iterate of {columns} columns cannot hold {components} components of {features} "
        f"features; choose between {components} and {features - 1} columns.",
    )


def check_machines(draws: int | None, reference: int, clients: int) -> None:
    """Refuse a reference that is not there, and draws of more machines than there are."""
    require(
        draws is None or 1 <= draws <= clients,
        f"{draws} machines cannot be drawn from {clients}; choose K between 1 and {clients}, or "
        "leave it out for full participation.",
    )
    require(
        0 <= reference < clients,
        f"There is no machine {reference} among {clients} to be the reference; choose one from 0 "
        f"to {clients - 1}.",
    )


def align(frames: Array, participants: IntArray, reference: int = 0) -> Array:
    """Rotations of the uploaded frames onto the reference machine's, (present, r, r)."""
    return procrustes(frames, frames[int(np.searchsorted(participants, reference))])
