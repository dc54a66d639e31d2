"""FedAE and FedAE-2: an autoencoder trained with federated averaging (FedAvg).

Every participant starts from the broadcast weights, makes local epochs of Adam on its own normal
records, and uploads its weights; the server averages them. All participants are trained at once by
batched products in float32. A model of weights has no subspace, so this loop is its own, but its
messages go through the same channel and are counted there.
"""

import time
from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Plan, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.streams import Streams

#: Hidden layers: encoder 32, code 16, decoder 32; the deeper one has a further layer on each side.
FEDAE = (32, 16, 32)
FEDAE_2 = (32, 24, 16, 24, 32)
#: Inputs are clipped to so many standard deviations: one extreme counter would own the loss.
CLIP = 10.0
#: Adam's step.
RATE = 1e-3
_BATCH = 64
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # Adam's usual constants

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Network:
    """An autoencoder as federated averaging sees it: a vector of weights that a client improves."""

    features: int
    #: Widths of the hidden layers, the code in the middle.
    hidden: tuple[int, ...] = FEDAE
    rate: float = RATE

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Widths from input to output, of each part."""
        return ((self.features, *self.hidden, self.features),)

    @property
    def parameters(self) -> int:
        """Numbers in one upload."""
        return sum(map(parameters, self.stacks))

    def descend(
        self, start: Array, records: Floats, rows: NDArray[np.int64], draws: np.random.Generator
    ) -> tuple[Array, float]:
        """Adam from ``start`` on the given rows (clients, steps, batch); its moments start at 0.

        Returns (clients, parameters) weights, and the mean loss.
        """
        clients, steps, _ = rows.shape
        flat = np.repeat(start.astype(np.float32)[None], clients, axis=0)
        first, second = np.zeros_like(flat), np.zeros_like(flat)
        total = 0.0
        for step in range(1, steps + 1):
            losses, slope = gradient(self.stacks[0], flat, records[rows[:, step - 1]])
            first += (1 - _FIRST) * (slope - first)
            second += (1 - _SECOND) * (slope**2 - second)
            rate = self.rate * np.sqrt(1 - _SECOND**step) / (1 - _FIRST**step)
            flat -= np.float32(rate) * first / (np.sqrt(second) + _SMALL)
            total += float(losses.mean())
        return flat.astype(float), total / steps

    def reconstruct(self, weights: Floats, records: Floats) -> Floats:
        """What records come out as, for weights (1, parameters)."""
        return forward(split(self.stacks[0], weights), records[None])[-1][0]


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A trained model."""

    network: Network
    #: (parameters,) float64: All matrices and offsets, flattened in order.
    weights: Array
    #: bytes_up, bytes_down: Over all clients and rounds, float32.
    bytes_up: int
    bytes_down: int
    seconds: float
    #: (rounds,) float64: Mean training loss of the participants' last epoch.
    losses: Array


def parameters(layers: tuple[int, ...]) -> int:
    """Number of weights and offsets of a stack of layers."""
    return sum((a + 1) * b for a, b in pairwise(layers))


def training(
    problem: Problem,
    network: Network,
    *,
    rounds: int = 40,
    participation: float = 0.1,
    local_epochs: int = 1,
    seed: int = 0,
) -> Generator[float, None, Autoencoder]:
    """Train with FedAvg; yields the share that is done after every round, returns the model.

    Wire, each participant and round: all weights down and up (float32).

    ``local_epochs``: Passes over a client's own records in a round, in batches of 64.

    Raises InvalidInput: the problem kept no records; impossible numbers.
    """
    require(rounds >= 1, f"Training needs at least 1 round, not {rounds}.")
    require(local_epochs >= 1, f"Training needs at least 1 local epoch, not {local_epochs}.")
    require(
        problem.blocks is not None,
        "An autoencoder needs the clients' records, but this problem keeps only their "
        "covariances; choose a problem with records.",
    )
    assert problem.blocks is not None
    streams = Streams(seed)
    setting = Setting(
        features=problem.features,
        clients=problem.clients,
        samples=problem.client_data.samples,
        weights=problem.client_data.weights,
        participation=participation,
    )
    mailbox = Mailbox(Channel(dtype="float32"), setting, streams, reuse_uploads=False)
    records = np.concatenate([block.T for block in problem.blocks]).astype(np.float32)
    np.clip(records, -CLIP, CLIP, out=records)
    begins = np.concatenate([[0], np.cumsum(setting.samples)[:-1]])
    steps = local_epochs * max(1, round(float(setting.samples.mean()) / _BATCH))
    weights = _initial(network.stacks, streams.generator("start"))
    losses = []
    began = time.perf_counter()
    for round_ in range(1, rounds + 1):
        present = setting.participants(round_, streams)
        plan = Plan(
            round=round_,
            participants=present,
            weights=setting.weights[present] / setting.weights[present].sum(),
            downlink={"weights": weights},
            local_steps=steps,
        )
        received = mailbox.down(plan.downlink, len(present))["weights"]
        # Drawn for all clients and indexed, so participation never shifts the stream.
        draws = streams.generator("batches", round_).random(
            (setting.clients, steps, _BATCH), dtype=np.float32
        )[present]
        local = (draws * setting.samples[present][:, None, None]).astype(np.int64)
        local = np.minimum(local, setting.samples[present][:, None, None] - 1)
        rows = begins[present][:, None, None] + local
        stepped, loss = network.descend(received, records, rows, streams.generator("codes", round_))
        losses.append(loss)
        weights = mailbox.up({"weights": stepped}, plan).mean("weights")
        yield round_ / rounds
    return Autoencoder(
        network=network,
        weights=weights,
        bytes_up=mailbox.bytes_up,
        bytes_down=mailbox.bytes_down,
        seconds=time.perf_counter() - began,
        losses=np.array(losses),
    )


def score(model: Autoencoder, records: Array, rows: int = 8192) -> Array:
    """Mean squared reconstruction error of every (clipped) record, (records,)."""
    weights, result = model.weights.astype(np.float32)[None], []
    for begin in range(0, len(records), rows):
        part = np.clip(records[begin : begin + rows], -CLIP, CLIP).astype(np.float32)
        result.append(((model.network.reconstruct(weights, part) - part) ** 2).mean(axis=1))
    return np.concatenate(result).astype(float)


# ---------------------------------------------------------------------- the network
def _initial(stacks: tuple[tuple[int, ...], ...], generator: np.random.Generator) -> Array:
    parts = []
    for fan_in, fan_out in (pair for stack in stacks for pair in pairwise(stack)):
        bound = np.sqrt(6.0 / (fan_in + fan_out))  # Glorot and Bengio
        parts += [generator.uniform(-bound, bound, fan_in * fan_out), np.zeros(fan_out)]
    return np.concatenate(parts)


def split(layers: tuple[int, ...], flat: Any) -> list[tuple[Any, Any]]:
    """Views (clients, in, out) and (clients, 1, out) into flat weights (clients, parameters)."""
    result, at = [], 0
    for fan_in, fan_out in pairwise(layers):
        matrix = flat[:, at : at + fan_in * fan_out].reshape(len(flat), fan_in, fan_out)
        at += fan_in * fan_out
        result.append((matrix, flat[:, None, at : at + fan_out]))
        at += fan_out
    return result


def forward(matrices: list[tuple[Any, Any]], batch: Any) -> list[Any]:
    """Activations of every layer, the input first; ReLU between layers, none at the output."""
    activations = [batch]
    for index, (matrix, offset) in enumerate(matrices):
        value = activations[-1] @ matrix + offset
        if index < len(matrices) - 1:
            value = value.clip(0)
        activations.append(value)
    return activations


def gradient(layers: tuple[int, ...], flat: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """Mean squared error of every client's batch and its gradient by backpropagation.

    ``flat``, (clients, parameters).
    ``batch``, (clients, records, features).

    Returns (clients,) losses, (clients, parameters) gradients.
    """
    matrices = split(layers, flat)
    activations = forward(matrices, batch)
    difference = activations[-1] - batch
    losses = (difference**2).mean(axis=(1, 2))
    slope = difference * (2.0 / (batch.shape[1] * batch.shape[2]))
    result = np.empty_like(flat)
    slots = split(layers, result)
    for index in range(len(matrices) - 1, -1, -1):
        matrix, offset = slots[index]
        matrix[...] = activations[index].swapaxes(1, 2) @ slope
        offset[...] = slope.sum(axis=1, keepdims=True)
        if index:
            slope = (slope @ matrices[index][0].swapaxes(1, 2)) * (activations[index] > 0)
    return losses, result
