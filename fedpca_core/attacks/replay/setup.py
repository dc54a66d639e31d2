"""What a server knows before a replay attack: coordinates, leaks, guides and starting guesses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import is_single_precision, scaled_identity
from fedpca_core.attacks.replay.client import Candidate, Entries, FapsReplay, Message, complement
from fedpca_core.attacks.replay.least_squares import Extra, guides, shrinkage
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams

#: Relative residual below which exact messages count as explained. False minima seen in practice
#: lie at 1e-5 and above.
EXPLAINED = 1e-9
#: With float32 messages: so many units of their rounding.
EXPLAINED_UNITS = 8.0
#: Multiples of it lie evenly between whole numbers, however many there are.
_EVENLY = (5**0.5 - 1) / 2
#: Directions below this share of a message are rounding.
_ROUNDING = 1e-12


class Setup:
    """A replay ready to be searched; see `Replaying` for the parameters."""

    def __init__(
        self,
        transcript: Transcript,
        algorithm: FAPS,
        client: int,
        trace: float | None,
        *,
        seeded: bool,
        noise: float,
    ) -> None:
        answered = zip(transcript.seen(client), transcript.pairs(client), strict=True)
        messages = [Message(exchange.round, *pair) for (exchange, _), pair in answered]
        single = is_single_precision(messages[0].frame)
        leaking = seeded and not algorithm.private_start
        # Rounding or noise in round 1 would be frozen into S, so there the leak is only a start.
        exact = leaking and not single and noise == 0
        features = transcript.features
        #: (features, dimensions) float64: Orthonormal; original coordinates = basis @ the guesses'.
        self.basis = np.eye(features)
        #: asked, reach: The matrix is zero outside so many leading coordinates. A guess begins
        #: between the two: few records have little in the frames, which are the coordinates before.
        self.asked, self.reach = 0, features
        #: What round 1 gives away, in coordinates that begin with the first broadcast: beta_i, and
        #: S_i between that broadcast and the rest, (features - components, components) float64.
        self.leak: tuple[float, Array] | None = None
        if leaking:
            # Unit vectors for the first broadcast: QR returns it up to signs, which are put back.
            first = messages[0].frame
            self.basis = np.concatenate([first, complement(first)], axis=1)
            frames, uploads = zip(*((each.frame, each.upload) for each in messages), strict=True)
            if exact and (read := read_span(frames, uploads)) is not None:
                self.basis, asked, self.reach = read
                # What S_i has in later frames nothing tells, so there a guess has all directions.
                self.asked = asked if asked == first.shape[1] else 0
            turn = self.basis.T
            messages = [Message(one.round, turn @ one.frame, turn @ one.upload) for one in messages]
            # Y_1 = beta_i Z + (I - Z Z^T) S_i Z, where Z is the first unit vectors now.
            p, upload = first.shape[1], messages[0].upload
            self.leak = float(np.trace(upload[:p])) / p, upload[p:]
        self.model = model = FapsReplay(
            algorithm,
            transcript,
            client,
            messages,
            Entries.of(self.reach, algorithm.components if exact else 0),
            fit_penalty=not exact if leaking else algorithm.private_penalty,
            fit_frame=algorithm.private_start,
        )
        norm = None if self.leak is None else self.leak[0] / algorithm.penalty_factor
        least = norm if trace is None and norm is not None and norm > 0 else trace
        if least is None:
            raise InvalidInput(
                "A replay starts from a public guess, cI, and nothing in these messages tells its "
                "size; state the trace of S_i."
            )
        # Without a statement: from the norm to as many times the norm as there are features.
        ratio = features if trace is None else 1
        #: Least and most trace of the random starts.
        self.traces = least, ratio * least
        #: public, prior: The public guess in the coordinates of the data, and in the guesses'.
        self.public = scaled_identity(features, least * float(np.sqrt(ratio)))
        self.prior = np.zeros((self.basis.shape[1],) * 2)
        inside = slice(self.asked, self.reach)
        outside = self.basis[:, inside]
        self.prior[inside, inside] = outside.T @ self.public @ outside
        if self.asked > 0:
            size = max(np.trace(self.prior), np.finfo(float).tiny)
            self.prior *= np.trace(self.public) / size
        explained = EXPLAINED_UNITS * float(np.finfo(np.float32).eps) if single else EXPLAINED
        #: Relative residual that counts as explained.
        self.tolerance = explained + 1.1 * noise
        told = None if algorithm.private_penalty or not exact else norm
        #: first, every: Extra equations of the first fit, and of all fits.
        self.first: Sequence[Extra] = [partial(guides, told, trace)] if seeded else []
        self.every: Sequence[Extra] = []
        if noise:
            # The noise variance over the prior's size per entry.
            recorded, spread = model.target(len(messages)), float(np.vdot(self.prior, self.prior))
            variance = noise**2 * float(recorded @ recorded) / len(recorded)
            entry = max(spread / self.prior.size, np.finfo(float).tiny)
            self.every = [partial(shrinkage, self.prior, variance / entry)]

    @property
    def rounds(self) -> int:
        return len(self.model.messages)

    def stages(self) -> list[int]:
        """Rounds to fit one after the other: few, enough to determine S, twice these, all."""
        # Of a round's upload, Z^T Y is symmetric: p (p - 1)/2 entries say nothing new.
        model, p = self.model, self.model.components
        enough = int(np.ceil(model.size / (model.features * p - p * (p - 1) / 2))) + 1
        # A hidden start takes up most of what two rounds say.
        few = 3 if model.fit_frame else 2
        return sorted({min(count, self.rounds) for count in (few, enough, 2 * enough, self.rounds)})

    def guess(self, start: int, seed: int) -> Candidate:
        """Starting point: the prior first, then random covariances, their traces all over."""
        features = len(self.prior)
        generator = Streams(seed).generator("replay", start)
        matrix = self.prior
        if start > 0:
            factor = generator.standard_normal((features, features + features // 2))
            factor[: self.asked] = factor[self.reach :] = 0.0
            matrix = factor @ factor.T
            least, most = self.traces
            matrix *= least * (most / least) ** (_EVENLY * start % 1.0) / np.trace(matrix)
        penalty, frame = None, None
        if self.leak is not None:
            penalty, block = self.leak
            matrix = with_block(matrix, block, self.asked)
        elif self.model.fit_penalty:
            penalty = self.model.algorithm.penalty_factor * float(np.linalg.norm(matrix, 2))
        if self.model.fit_frame:
            frame = uniform_frame(generator, features, self.model.components)
        return Candidate(matrix, penalty, frame)


def with_block(matrix: Array, block: Array, asked: int) -> Array:
    """The matrix with the leaked block in place.

    Where the matrix begins at zero in the first ``asked`` coordinates, the least that the block
    asks for is put in the span of the first broadcast: no eigenvalue is negative then.
    """
    components = block.shape[1]
    result = matrix.copy()
    if asked > 0:
        outside = block[asked - components :]
        least = outside.T @ np.linalg.pinv(matrix[asked:, asked:], hermitian=True) @ outside
        result[:components, :components] = least
    result[components:, :components] = block
    result[:components, components:] = block.T
    return result


def read_span(frames: Sequence[Array], uploads: Sequence[Array]) -> tuple[Array, int, int] | None:
    """Orthonormal basis of all that a client's rounds take place in, and where S_i lives in it.

    Whatever a FAPS client computes is made of the frames that it received and of products with S_i.
    Once as many columns were answered as S_i has rank, ``span(Z_1..Z_K, Y_1..Y_K)`` holds the range
    of S_i; with few records that is a small part of all features, and the rest of S_i is zero. The
    next message tells whether it is so: its answer must lie in that span and the new frame.

    ``frames``, ``uploads``: Exact but for rounding, round by round; the client starts from the
    first.

    Returns the basis (features, dimensions); how many of its leading columns span frames, the first
    one first; and how many hold the range of S_i, its directions outside these frames last. None
    where S_i may have as many dimensions as there are features.
    """
    features = len(frames[0])
    asked = held = frames[0]
    for k in range(len(frames) - 1):
        asked = _extended(asked, frames[k])
        held = _extended(asked, np.concatenate(uploads[: k + 1], axis=1))
        ahead = _extended(held, frames[k + 1])
        if ahead.shape[1] >= features:
            return None
        if _extended(ahead, uploads[k + 1]).shape == ahead.shape:
            basis = _extended(held, np.concatenate(frames[k + 1 :], axis=1))
            return basis, asked.shape[1], held.shape[1]
    return None


def _extended(basis: Array, columns: Array) -> Array:
    """The basis and, orthonormal to it, what else the columns span."""
    outside = columns
    for _ in range(2):
        outside = outside - basis @ (basis.T @ outside)
    directions, sizes, _ = np.linalg.svd(outside, full_matrices=False)
    new = directions[:, sizes > _ROUNDING * np.linalg.norm(columns)]
    return np.concatenate([basis, new], axis=1)
