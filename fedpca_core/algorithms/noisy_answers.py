"""What a method sees of the data where every product carries noise: one noisy answer a round."""

from typing import NoReturn, cast

import numpy as np

from fedpca_core.algorithms.checked_probes import checked_probe, new_part
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.client_data import ClientData


class NoisyAnswers:
    """Public sizes and one noisy product a round; everything else is refused.

    ``data``: The participants.
    ``noise``, (present,) float64: nu_i.
    ``generator``: Draws the noise of this round; None before the first one.
    ``columns``: Most columns of a probe; the sensitivity of one column is smaller than that of
        several.
    ``answered``, (present, features, columns) float64 or None: Probes that each client has answered
        before, zero columns for those to come; None where probes may overlap.
    ``said``, (present, features, columns) float64 or None: What was answered to them, where a
        client answers from memory what it was asked before.
    """

    def __init__(
        self,
        data: ClientData,
        noise: Array,
        generator: np.random.Generator | None,
        answered: Array | None = None,
        columns: int = 0,
        said: Array | None = None,
    ) -> None:
        self._said = said
        self._client_data, self._noise, self._generator = data, noise, generator
        self._answered, self._columns = answered, columns
        self.probes: Array | None = None
        self.answer: Array | None = None
        self.features: int = data.features
        self.clients: int = data.clients
        self.samples: IntArray = data.samples
        self.weights: Array = data.weights
        self.members: IntArray = data.members

    def as_data(self) -> ClientData:
        """This guard in the place of the data."""
        return cast(ClientData, self)

    def apply(self, frames: Array, active: Array | None = None) -> Array:
        """Noisy products ``S_i Q + N_i``, (clients, features, columns); once a round.

        Raises InvalidInput: a second product in the round, frames without orthonormal columns,
        clients left out, or a probe that overlaps an earlier one where the noise is calibrated to
        orthogonal ones: all would release more than was accounted.
        """
        if self._generator is None or active is not None:
            raise InvalidInput(_REFUSAL.format(asked="a product outside the one of its round"))
        if frames.shape[-1] > self._columns:
            raise InvalidInput(_REFUSAL.format(asked=f"a probe of {frames.shape[-1]} columns"))
        if self._said is None:
            return self._answered_anew(checked_probe(frames, self._answered))
        assert self._answered is not None
        known, new, length = new_part(checked_probe(frames), self._answered)
        # Noise on a column of zeros would be new noise on an old answer.
        asked = (new != 0).any(axis=1, keepdims=True)
        fresh = self._answered_anew(new) * asked
        self.answer = fresh
        answer: Array = self._said @ known + fresh @ length
        return answer

    def _answered_anew(self, frames: Array) -> Array:
        assert self._generator is not None
        products = self._client_data.apply(frames)
        # Drawn for all clients and indexed, so that participation never shifts the stream.
        draws = self._generator.standard_normal((len(self.samples), *products.shape[1:]))
        self._generator = None
        self.probes = np.broadcast_to(frames, products.shape)
        self.answer = products + self._noise[:, None, None] * draws[self.members]
        return self.answer

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(_REFUSAL.format(asked=f"“{name}” of the data"))


_REFUSAL = (
    "This method asks for {asked}, which the noise does not cover, so no ε can be stated; "
    "choose SSI, block Krylov or FedPower, or noise at the source, which covers every method."
)
