"""Autoencoders trained with federated averaging (FedAvg): FedAE and FedBiGAN, each in two depths.

Every participant starts from the broadcast weights, makes local epochs of Adam on its own normal
records, and uploads its weights; the server averages them. All participants are trained at once by
batched products in float32. A model of weights has no subspace, so this loop is its own, but its
messages go through the same channel and are counted there.

The halves of a BiGAN learn by misleading a discriminator, which tells records with their codes from
what the generator makes of drawn codes; the encoder and the generator learn to be mistaken for each
other. PyTorch takes the derivatives: an extra that nothing else needs, imported where training
begins.
"""

import time
from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Plan
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.simulate import setting_of
from fedpca_core.streams import Streams

#: Hidden layers: encoder 32, code 16, decoder 32; the deeper one has a further layer on each side.
FEDAE = (32, 16, 32)
FEDAE_2 = (32, 24, 16, 24, 32)
#: Inputs are clipped to so many standard deviations: one extreme counter would own the loss.
CLIP = 10.0
#: Adam's step.
RATE = 1e-3
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # Adam's usual constants

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Network:
    """An autoencoder as federated averaging sees it: a vector of weights that a client improves."""

    features: int
    #: Widths of the hidden layers, the code in the middle.
    hidden: tuple[int, ...] = FEDAE
    rate: float = RATE
    clip: float = CLIP
    #: Whether a step is ``rate`` times the slope of the mean loss, not Adam's.
    plain: bool = False

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
        """Weights (clients, parameters) after Adam on rows (clients, steps, batch), mean loss."""
        clients, steps, _ = rows.shape
        flat = np.repeat(start.astype(np.float32)[None], clients, axis=0)
        first, second = np.zeros_like(flat), np.zeros_like(flat)
        total = 0.0
        for step in range(1, steps + 1):
            losses, slope = gradient(self.stacks[0], flat, records[rows[:, step - 1]])
            total += float(losses.mean())
            if self.plain:
                flat -= np.float32(self.rate) * slope
                continue
            first += (1 - _FIRST) * (slope - first)
            second += (1 - _SECOND) * (slope**2 - second)
            rate = self.rate * np.sqrt(1 - _SECOND**step) / (1 - _FIRST**step)
            flat -= np.float32(rate) * first / (np.sqrt(second) + _SMALL)
        return flat.astype(float), total / steps

    def reconstruct(self, weights: Floats, records: Floats) -> Floats:
        """What records come out as, for weights (1, parameters)."""
        return forward(split(self.stacks[0], weights), records[None])[-1][0]


@dataclass(frozen=True, eq=False)
class Autoencoder:
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
    return sum((a + 1) * b for a, b in pairwise(layers))


def training(
    problem: Problem,
    network: Network,
    *,
    rounds: int = 40,
    participation: float = 0.1,
    local_epochs: int = 1,
    batch: int = 64,
    seed: int = 0,
) -> Generator[float, None, Autoencoder]:
    """Train with FedAvg; yields the share that is done after every round, returns the model.

    Wire, each participant and round: all weights down and up (float32). In a round a client draws,
    ``local_epochs`` times, as many of its records as it has, with replacement, in batches.

    Raises InvalidInput: the problem kept no records; impossible numbers.
    """
    require(rounds >= 1, f"Training needs at least 1 round, not {rounds}.")
    require(local_epochs >= 1, f"Training needs at least 1 local epoch, not {local_epochs}.")
    if problem.blocks is None:
        raise InvalidInput(
            "An autoencoder needs the clients' records, but this problem keeps only their "
            "covariances; choose a problem with records."
        )
    streams = Streams(seed)
    setting = setting_of(problem, participation)
    mailbox = Mailbox(Channel(dtype="float32"), setting, streams, reuse_uploads=False)
    records = np.concatenate([block.T for block in problem.blocks]).astype(np.float32)
    np.clip(records, -network.clip, network.clip, out=records)
    begins = np.concatenate([[0], np.cumsum(setting.samples)[:-1]])
    steps = local_epochs * max(1, round(float(setting.samples.mean()) / batch))
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
            (setting.clients, steps, batch), dtype=np.float32
        )[present]
        held = setting.samples[present][:, None, None]
        rows = np.minimum((draws * held).astype(np.int64), held - 1)
        rows += begins[present][:, None, None]
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
    most = model.network.clip
    for begin in range(0, len(records), rows):
        part = np.clip(records[begin : begin + rows], -most, most).astype(np.float32)
        result.append(((model.network.reconstruct(weights, part) - part) ** 2).mean(axis=1))
    return np.concatenate(result).astype(float)


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
    activations, (*hidden, (last, end)) = [batch], matrices
    for matrix, offset in hidden:
        activations.append((activations[-1] @ matrix + offset).clip(0))
    return [*activations, activations[-1] @ last + end]


def gradient(layers: tuple[int, ...], flat: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """Mean squared error of every batch, (clients, records, features); gradient as ``flat``."""
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


@dataclass(frozen=True)
class BiGAN(Network):
    """Encoder, generator and discriminator, averaged together."""

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Their widths; the discriminator's hidden layers are the encoder's."""
        half = len(self.hidden) // 2
        before, code, after = self.hidden[:half], self.hidden[half], self.hidden[half + 1 :]
        return (
            (self.features, *before, code),
            (code, *after, self.features),
            (self.features + code, *before, 1),
        )

    def descend(
        self, start: Array, records: Floats, rows: NDArray[np.int64], draws: np.random.Generator
    ) -> tuple[Array, float]:
        """As an autoencoder's, all three parts at once; the loss is the discriminator's.

        Raises InvalidInput: PyTorch is not installed.
        """
        try:
            import torch
        except ImportError:
            raise InvalidInput(
                "FedBiGAN is trained with PyTorch, which is not installed; in the folder of the "
                "program, pip install '.[networks]' adds it."
            ) from None
        flat = torch.from_numpy(start.astype(np.float32)).repeat(len(rows), 1)
        sizes = [parameters(stack) for stack in self.stacks]
        parts = [part.clone().requires_grad_() for part in flat.split(sizes, dim=1)]
        kind = torch.optim.SGD if self.plain else torch.optim.Adam
        rate = self.rate / 2 if self.plain else self.rate  # the loss below is twice the mean
        optimisers = [kind(group, rate) for group in (parts[2:], parts[:2])]

        def through(part: int, batch: Any) -> Any:
            return forward(split(self.stacks[part], parts[part]), batch)[-1]

        total = 0.0
        for step in range(rows.shape[1]):
            real = torch.from_numpy(records[rows[:, step]])
            shape = (*real.shape[:2], self.stacks[1][0])
            code = torch.from_numpy(draws.standard_normal(shape, dtype=np.float32))
            seen = through(2, torch.cat([real, through(0, real)], dim=2))
            made = through(2, torch.cat([through(1, code), code], dim=2))
            losses = [
                torch.nn.functional.softplus(torch.cat([-sign * seen, sign * made], dim=1))
                for sign in (1, -1)
            ]
            for optimiser, loss in zip(optimisers, losses, strict=True):
                optimiser.zero_grad()
                own = optimiser.param_groups[0]["params"]
                # Summed over clients, who do not reach each other's weights.
                (2 * loss.mean(dim=(1, 2)).sum()).backward(inputs=own, retain_graph=True)
            for optimiser in optimisers:
                optimiser.step()
            total += float(losses[0].detach().mean())
        return torch.cat(parts, dim=1).detach().numpy().astype(float), total / rows.shape[1]

    def reconstruct(self, weights: Floats, records: Floats) -> Floats:
        """What the generator makes of the records' codes."""
        ends = np.cumsum([parameters(stack) for stack in self.stacks])[:2]
        batch = records[None]
        for stack, part in zip(self.stacks[:2], np.split(weights, ends, axis=1)[:2], strict=True):
            batch = forward(split(stack, part), batch)[-1]
        return batch[0]
