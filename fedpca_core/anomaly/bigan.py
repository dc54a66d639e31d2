"""FedBiGAN and FedBiGAN-2: an autoencoder whose halves learn by misleading a discriminator.

The discriminator tells records with their codes from what the generator makes of drawn codes; the
encoder and the generator learn to be mistaken for each other. PyTorch takes the derivatives: an
extra that nothing else needs, imported where training begins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpca_core.anomaly.autoencoder import Floats, Network, forward, parameters, split
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput


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
        """As an autoencoder's; all three take a step of Adam on every batch.

        Returns (clients, parameters) weights, and the discriminator's mean loss.

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
        optimisers = [torch.optim.Adam(group, self.rate) for group in (parts[2:], parts[:2])]

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
