"""One noisy answer a round, and the client's own check of what it is asked.

Sensitivity rests on the probe, not on the server: the change of ``S_i Q`` when a record is replaced
is bounded for orthonormal Q, and that of many answers together by the same number where all probes
are orthogonal to each other: together they are one product with [Q_1 ... Q_T]. A client that checks
both needs to trust nobody.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import orthonormalise, remove_span
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.linear_answers import GuardedData

#: Departure that is left as it is: rounding of the sensitivity itself.
_ROUNDING = 1e-12
#: Length of a new direction below which rounding may turn it into an old one.
_NEW = 1e-7
#: Departure that the client mends (a larger one is refused), by the precision of the message.
_TOLERANCE = {np.float64: 1e-8, np.float32: 1e-6}
_REFUSAL = (
    "This method {asked}, which the noise does not cover, so no ε can be stated; choose SSI, block "
    "Krylov or FedPower, or noise at the source, which covers every method."
)


def checked_probe(frames: Array, answered: Array | None = None) -> Array:
    """The probe a client answers: as received where it is sound, mended where rounding broke it.

    Mending makes the probe orthonormal, and orthogonal to the answered ones, to float64 precision,
    so that no tolerance enters the sensitivity: messages in float32 cost nothing.

    ``frames``, (features, columns) or (present, features, columns); ``answered``, (present,
    features, width): what each client has answered before, orthonormal or zero columns.
    """
    departure = _largest(frames.mT @ frames - np.eye(frames.shape[-1]))
    overlap = 0.0 if answered is None else _largest(answered.mT @ frames)
    if max(departure, overlap) <= _ROUNDING:
        return frames
    sent_as = np.float32 if np.array_equal(frames, frames.astype(np.float32)) else np.float64
    allowed = _TOLERANCE[sent_as]
    if departure > allowed:
        raise InvalidInput(
            "A client refuses a product with a frame not orthonormal "
            f"(departure {departure:.2g}, allowed {allowed:g}), which the noise does not cover; "
            "the server must orthonormalise what it sends."
        )
    if overlap > allowed:
        raise InvalidInput(
            "A client refuses a probe that overlaps one it has answered "
            f"(by {overlap:.2g}, allowed {allowed:g}), which the noise does not cover: it was "
            "calibrated to orthogonal probes. Ask for new directions, or count every product in "
            "full."
        )
    mended = frames
    if answered is not None:
        mended = remove_span(remove_span(mended, answered), answered)
    return orthonormalise(mended)


def new_part(frames: Array, answered: Array) -> tuple[Array, Array, Array]:
    """A checked probe taken apart: what the client has answered before, and what it has not.

    ``Q = P C + U D`` with P the answered directions and U orthonormal and orthogonal to them; new
    directions too short to be told from rounding are left out, as columns of zeros.

    Returns C (present, width, columns), U (present, features, columns) and D (present, columns,
    columns); the arguments are those of `checked_probe`.
    """
    known = answered.mT @ frames
    rest = remove_span(frames - answered @ known, answered)
    directions, lengths, turn = np.linalg.svd(rest, full_matrices=False)
    new = lengths > _NEW
    return known, directions * new[:, None, :], (lengths * new)[:, :, None] * turn


def _largest(matrix: Array) -> float:
    return float(np.abs(matrix).max(initial=0.0))


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
