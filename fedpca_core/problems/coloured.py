"""From white shares to clients with a spectrum each, and the choice of how they turn."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.problems.client_data import second_moment
from fedpca_core.problems.rotation import Rotations, balance
from fedpca_core.problems.white import WhiteShares
from fedpca_core.remembered import Remembered

#: clients x features^3 up to which draws of the rotations are compared by measurement, and up to
#: which they are compared at many positions of the parameter.
_MEASURABLE = 5e7
_TINY = 2e5

#: Choices made, so that a move of the parameter costs no measurement.
_chosen: Remembered[Rotations] = Remembered(64)


def coloured(
    white: WhiteShares, maps: Iterable[Array], weights: Array, target: Array | None
) -> WhiteShares:
    """Second moments and blocks of ``M T_i W_i``.

    ``white``: Overwritten unless it is remembered for later.
    ``maps``, iterable of (features, features) or (features,) float64: T_i for each client; a vector
        stands for a diagonal matrix.
    ``weights``, (clients,) float64.
    ``target``, (features,) float64, or None: Square roots of the spectrum that M restores; None
        when the pool is exact without.
    """
    result = WhiteShares(white.samples, white.blocks, white.moments)
    if white.remembered:
        result.blocks = None if white.blocks is None else list(white.blocks)
        result.moments = None if white.moments is None else white.moments.copy()
    for client, own in enumerate(maps):
        _apply(own, result, client)
    if target is not None:
        mend = balance(_pooled(result, weights), target)
        for client in range(len(weights)):
            _apply(mend, result, client)
    return result


def _apply(left: Array, shares: WhiteShares, client: int) -> None:
    """Multiply one client's data from the left by a matrix, or by a diagonal given as a vector."""
    if shares.moments is not None:
        held = shares.moments[client]
        moved = left[:, None] * held * left if left.ndim == 1 else left @ held @ left.T
        shares.moments[client] = 0.5 * (moved + moved.T)
    if shares.blocks is not None:
        block = shares.blocks[client]
        shares.blocks[client] = left[:, None] * block if left.ndim == 1 else left @ block


def _pooled(shares: WhiteShares, weights: Array) -> Array:
    if shares.moments is not None:
        return np.tensordot(weights, shares.moments, axes=1)
    assert shares.blocks is not None
    features = shares.blocks[0].shape[0]
    total = np.zeros((features, features))
    for weight, block in zip(weights, shares.blocks, strict=True):
        total += weight * second_moment(block)
    return total


def chosen_turns(
    white: WhiteShares, roots: Array, weights: Array, seed: int, heterogeneity: float
) -> Rotations:
    """The draw and sense of rotation in which clients drift apart from the first moment on.

    Random shares of few records differ already, and a small rotation may happen to undo that:
    the parameter would first go down. Turning the other way then goes up, so both senses are
    measured; very small problems may need another draw as well. Large ones average such accidents
    out and take the first draw. The choice does not depend on ``heterogeneity``, except that 0
    needs none.
    """
    clients = len(white.samples)
    turns = Rotations(roots, clients, seed)
    cost = clients * len(roots) ** 3
    if heterogeneity == 0 or turns.turning < 2 or cost > _MEASURABLE:
        return turns
    key = (white.samples, roots.tobytes(), weights.tobytes(), seed)
    return _chosen.get(key, lambda: _least_drop(white, turns, weights, cost <= _TINY))


def _least_drop(white: WhiteShares, turns: Rotations, weights: Array, tiny: bool) -> Rotations:
    moments = white.moments
    if moments is None:
        assert white.blocks is not None
        moments = np.stack([second_moment(block) for block in white.blocks])
    measured = WhiteShares(white.samples, None, moments, remembered=True)
    positions = np.linspace(0.0, 1.0, 21) if tiny else np.array([0, 0.05, 0.1, 0.2, 0.4, 0.7, 1])
    best, smallest = turns, np.inf
    for attempt in range(32 if tiny else 4):
        for sign in (1, -1):
            candidate = replace(turns, attempt=attempt, sign=sign)
            drop = _largest_drop(measured, candidate, weights, positions, smallest)
            if drop < smallest:
                best, smallest = candidate, drop
            if smallest <= 1e-12:
                return best
    return best


def _largest_drop(
    white: WhiteShares, turns: Rotations, weights: Array, positions: Array, enough: float
) -> float:
    """How far the measured heterogeneity falls below an earlier value on the way."""
    centre = np.diag(turns.roots**2)
    highest = drop = 0.0
    for position in positions:
        moments = coloured(white, turns.maps(float(position)), weights, turns.roots).moments
        assert moments is not None
        eta = float(np.abs(np.linalg.eigvalsh(moments - centre)).max())
        highest = max(highest, eta)
        drop = max(drop, highest - eta)
        if drop >= enough:
            break
    return drop
