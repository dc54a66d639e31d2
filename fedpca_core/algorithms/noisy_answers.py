"""What a method sees of the data where every product carries noise: one noisy answer a round."""

import numpy as np

from fedpca_core.algorithms.checked_probes import checked_probe, new_part
from fedpca_core.arrays import Array
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.linear_answers import GuardedData

_REFUSAL = (
    "This method {asked}, which the noise does not cover, so no ε can be stated; choose SSI, block "
    "Krylov or FedPower, or noise at the source, which covers every method."
)


class NoisyAnswers(GuardedData):
    """Public sizes and one noisy product a round; everything else is refused.

    ``noise``, (present,): nu_i. ``generator``: Draws this round's noise; None before the first one.
    ``columns``: Most columns of a probe, on which the sensitivity rests.
    ``answered``, (present, features, columns) or None: Probes that each client has answered
        before, zero columns for those to come; None where probes may overlap.
    ``said``: What was answered to them, where a client answers from memory.
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
        super().__init__(data, _REFUSAL)
        self._noise, self._generator = noise, generator
        self._answered, self._columns, self._said = answered, columns, said
        self.probes: Array | None = None
        self.answer: Array | None = None

    def apply(self, frames: Array, active: Array | None = None) -> Array:
        """Noisy products ``S_i Q + N_i``, (clients, features, columns); once a round.

        Raises InvalidInput: what would release more than was accounted: a second product, frames
        without orthonormal columns, clients left out, or an overlap where the noise is calibrated
        to none.
        """
        if self._generator is None or active is not None:
            self.refuse("asks for a product outside the one of its round")
        if frames.shape[-1] > self._columns:
            self.refuse(f"asks for a probe of {frames.shape[-1]} columns")
        if self._said is None:
            return self._answered_anew(checked_probe(frames, self._answered), self._generator)
        assert self._answered is not None
        known, new, length = new_part(checked_probe(frames), self._answered)
        # Noise on a column of zeros would be new noise on an old answer.
        asked = (new != 0).any(axis=1, keepdims=True)
        self.answer = self._answered_anew(new, self._generator) * asked
        answer: Array = self._said @ known + self.answer @ length
        return answer

    def _answered_anew(self, frames: Array, generator: np.random.Generator) -> Array:
        products = self._data.apply(frames)
        # Drawn for all clients and indexed, so that participation never shifts the stream.
        draws = generator.standard_normal((len(self.samples), *products.shape[1:]))
        self._generator = None
        self.probes = np.broadcast_to(frames, products.shape)
        self.answer = products + self._noise[:, None, None] * draws[self.members]
        return self.answer
