"""What the uploads of personalised PCA reveal: the private frame, then the data behind it.

The server knows every common frame V it sent, the steps and the prior variance, so each upload
gives ``h_i`` exactly. Writing ``V^T U_i = M + W`` (symmetric and skew) and ``C = (I - V V^T) U_i``,

    -variance h_i = V (W M + M W)/2 + C M,

as many numbers as a frame has degrees of freedom: one upload determines U_i up to finitely many
branches, of which that with all angles to V below 45 degrees is the natural one. Two consecutive
frames give the client's own gradient and, after a few rounds, S_i up to a multiple of the identity.
Of a sum none of this can be read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_sylvester
from scipy.optimize import root

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import Solved, mirrored
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import polar, symmetric_part, tangent
from fedpca_core.problems.personal_model import data_scale
from fedpca_core.protocol.transcript import Transcript

#: A recovered frame explains its message when its columns are this close to orthonormal.
EXACT = 1e-9
#: Second moments of more features than this have too many unknowns for one dense solve.
LARGEST = 40
_DIFFERENCE = 1e-6


@dataclass(frozen=True)
class FrameOfRound:
    """A frame recovered from one upload."""

    round: int
    #: (features, components) float64, orthonormal.
    frame: Array
    #: Largest departure from orthonormality before rounding to a frame: 0 up to round-off when the
    #: message is explained exactly.
    residual: float

    @property
    def exact(self) -> bool:
        return self.residual < EXACT


def track(
    transcript: Transcript, algorithm: PersonalizedPCA, client: int = 0
) -> Iterator[FrameOfRound]:
    """Follow U_i through all uploads, solving one after the other, each from the answer before.

    With a common start the first frame is the first broadcast, whose natural branch is followed.
    """
    known: Array | None = None
    for number, (centre, sent) in _messages(transcript, algorithm, client).items():
        if known is None and algorithm.start_from == "common":
            known = centre
            yield FrameOfRound(number - 1, centre, 0.0)
        best = _solve(number, centre, sent, guess=known)
        if known is not None and not best.exact:
            cold = _solve(number, centre, sent, guess=None)
            best = min(best, cold, key=lambda item: item.residual)
        known = best.frame
        yield best


def second_moment(
    transcript: Transcript,
    algorithm: PersonalizedPCA,
    client: int = 0,
    tracked: Sequence[FrameOfRound] | None = None,
    noisy: bool = False,
) -> Solved:
    """Recover S_i from the frames of consecutive rounds.

    Each round gives ``(I - U U^T) S U``: linear equations that fix S, on the directions covered,
    up to a multiple of the identity. Fewer records than directions make S singular there, which
    fixes the multiple and, by least rank, the part that was not covered; otherwise the trace
    expected by the public model fixes it.

    ``tracked``: The answers of `track` where they are known already.
    ``noisy``: Whether clients put noise on their matrices (public): then none is singular, and the
        multiple of the identity is a guess.

    Raises InvalidInput: no two consecutive frames could be recovered; steps chosen from private
    data; too many features for a dense solve.
    """
    features = transcript.features
    require(
        features <= LARGEST,
        f"Solving for S_i of {features} features takes too long; use at most {LARGEST}.",
    )
    known = list(track(transcript, algorithm, client)) if tracked is None else tracked
    equations = _equations(transcript, algorithm, client, known)
    require(
        len(equations) > 0,
        "No two consecutive bases of this client could be recovered, so there is no equation in "
        "S_i; the attack needs a common start, or more rounds.",
    )
    upper = np.triu_indices(features)
    blocks = []
    for at, _ in equations:
        outside = np.eye(features) - at @ at.T
        # vec((I - UU^T) S U) row by row, as a function of the upper triangle of S.
        full = np.einsum("ai,bj->abij", outside, at.T).reshape(-1, features, features)
        full = full + full.swapaxes(1, 2)
        full[:, np.arange(features), np.arange(features)] /= 2
        blocks.append(full[:, upper[0], upper[1]])
    system, right = np.vstack(blocks), np.concatenate([answer.ravel() for _, answer in equations])
    solution, _, _, pivots = np.linalg.lstsq(system, right, rcond=1e-10)
    off = float(np.linalg.norm(system @ solution - right))
    misfit = off / float(np.linalg.norm(right))
    held = pivots[pivots > 1e-10 * pivots[0]]
    error = off / np.sqrt(max(len(right) - len(held), 1)) * float(np.sqrt((held**-2.0).mean()))
    moment = mirrored(solution, features, upper)
    left, sizes, _ = np.linalg.svd(np.hstack([at for at, _ in equations]), full_matrices=False)
    covered = left[:, sizes > 1e-7 * sizes[0]]
    expected = algorithm.components + features * algorithm.noise_variance
    rank = features if noisy else int(transcript.samples[client])
    matrix = _completed(moment, covered, rank, expected)
    return Solved(matrix, misfit, error)


def _equations(
    transcript: Transcript, algorithm: PersonalizedPCA, client: int, tracked: Sequence[FrameOfRound]
) -> list[tuple[Array, Array]]:
    """Pairs of a recovered frame U and ``(I - U U^T) S U``."""
    if algorithm.step is None:
        raise InvalidInput(
            "The client's step was chosen from the data, so it is not in the public configuration; "
            "pass the parameters with the step written out (PersonalizedPCA.prepared)."
        )
    variance = algorithm.variance(transcript.features)
    samples = transcript.samples[client : client + 1]
    scale = data_scale(samples, algorithm.noise_variance, algorithm.gradient)[0]
    messages = _messages(transcript, algorithm, client)
    found = []
    for before, after in pairwise(tracked):
        if not (before.exact and after.exact):
            continue
        at, centre = before.frame, messages[after.round][0]
        # The retraction inverted: the tangent gradient that leads from one frame to the next.
        turn = at.T @ after.frame
        stretch = np.asarray(solve_sylvester(turn, turn.T, 2 * np.eye(len(turn))), dtype=float)
        slope = (at - after.frame @ symmetric_part(stretch)) / algorithm.step
        found.append((at, -(slope - tangent(at, tangent(centre, at)) / variance) / scale))
    return found


def _completed(moment: Array, covered: Array, samples: int, expected_trace: float) -> Array:
    """Fix the multiple of the identity, and the directions that no frame covered."""
    inside = covered.T @ moment @ covered
    size, features = inside.shape[0], len(moment)
    if samples >= size:
        return moment + np.eye(features) * (expected_trace - float(np.trace(moment))) / features
    values, vectors = np.linalg.eigh(inside)
    values = values - values[0]
    across = moment @ covered - covered @ inside  # rows outside the covered directions
    kept = np.arange(size) >= size - samples  # S_i has no more rank than records
    kept &= values > 1e-12 * values[-1]
    root_inverse = vectors[:, kept] / np.sqrt(values[kept])
    factor = covered @ (vectors[:, kept] * np.sqrt(values[kept])) + across @ root_inverse
    return np.asarray(factor @ factor.T, dtype=float)


# ---------------------------------------------------------------------- solving
def _messages(
    transcript: Transcript, algorithm: PersonalizedPCA, client: int
) -> dict[int, tuple[Array, Array]]:
    """By round: the broadcast V and ``-variance h_i`` read off the client's upload."""
    variance = algorithm.variance(transcript.features)
    step = algorithm.centre_step or algorithm.pace * variance
    result: dict[int, tuple[Array, Array]] = {}
    for exchange, row in transcript.seen(client):
        assert exchange.uploads is not None
        if "moved_centre" not in exchange.uploads:
            raise InvalidInput(
                "This attack reads uploads of personalised PCA, but round "
                f"{exchange.round} carried {sorted(exchange.uploads)}; "
                "choose an attack made for this method."
            )
        centre = exchange.downlink["centre"]
        moved = exchange.uploads["moved_centre"][row]
        result[exchange.round] = centre, tangent(centre, (moved - centre) * (variance / step))
    require(len(result) > 0, f"Client {client} took part in no round, so nothing is known of it.")
    return result


def _solve(round_: int, centre: Array, sent: Array, guess: Array | None) -> FrameOfRound:
    components = centre.shape[1]
    skew = centre.T @ sent
    outer = sent - centre @ skew
    inner = outer.T @ outer
    upper = rows, columns = np.triu_indices(components)

    def parts(aligned: Array) -> tuple[Array, Array]:
        """Skew part from W M + M W = 2 K, and the inverse of M."""
        values, vectors = np.linalg.eigh(aligned)
        values = np.where(np.abs(values) < 1e-12, 1e-12, values)
        sums = values[..., :, None] + values[..., None, :]
        sums = np.where(np.abs(sums) < 1e-12, 1e-12, sums)
        back = vectors.mT
        turned = back @ (2 * skew) @ vectors / sums
        return vectors @ turned @ back, (vectors / values[..., None, :]) @ back

    def misfit(entries: Array) -> Array:
        aligned = mirrored(entries, components, upper)
        turn, inverse = parts(aligned)
        whole = aligned + turn
        gram = whole.mT @ whole + inverse @ inner @ inverse
        return np.asarray((gram - np.eye(components))[..., rows, columns], dtype=float)

    def slopes(entries: Array) -> Array:
        # All differences in one batch: far cheaper than one evaluation for each unknown.
        shifts = _DIFFERENCE * np.eye(len(entries))
        ahead, behind = misfit(entries + shifts), misfit(entries - shifts)
        return np.asarray((ahead - behind).T / (2 * _DIFFERENCE), dtype=float)

    if guess is None:
        # Without the skew part, cos^2 = (1 + sqrt(1 - 4 g))/2 on the branch below 45 degrees.
        values, vectors = np.linalg.eigh(inner)
        squares = 0.5 * (1 + np.sqrt(np.clip(1 - 4 * values, 0, None)))
        start = (vectors * np.sqrt(squares)) @ vectors.T
    else:
        start = symmetric_part(centre.T @ guess)
    answer = root(misfit, start[rows, columns], jac=slopes, method="hybr", options={"xtol": 1e-15})
    aligned = mirrored(answer.x, components, upper)
    turn, inverse = parts(aligned)
    raw = centre @ (aligned + turn) + outer @ inverse
    residual = float(np.abs(raw.T @ raw - np.eye(components)).max())
    return FrameOfRound(round_, polar(raw), residual)
