"""Statements of the paper on FAPS, checked with its dense formulas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import orthonormalise, remove_span
from fedpca_core.metrics.faps_theorem import asked, constant
from fedpca_core.papers.experiment import Check, frame, square, worst

#: Features, components and clients of a draw.
FEATURES, COMPONENTS, CLIENTS = 8, 2, 3
#: c₁ and c₁' of condition (13), which exact local solves meet with room to spare.
ENOUGH, BESIDE = 0.25, 1.0
#: Rounds whose masked uploads the server sees, and starts of its search at most.
ROUNDS, STARTS = 12, 60
#: Squared misfit that counts as explained.
EXPLAINED = 1e-20


def matrices(generator: np.random.Generator) -> Array:
    """Clients' A Aᵀ, drawn anew."""
    blocks = generator.standard_normal((CLIENTS, FEATURES, 2 * FEATURES))
    return np.einsum("cij,ckj->cik", blocks, blocks)


def multiplier(matrix: Array, x: Array) -> Array:
    """(8): -P S P⊥ - P⊥ S P."""
    inside = x @ x.T
    outside = np.eye(len(matrix)) - inside
    return -(inside @ matrix @ outside + outside @ matrix @ inside)


def leading(matrix: Array) -> Array:
    return np.linalg.eigh(matrix)[1][:, -COMPONENTS:]


def distance(x: Array, z: Array) -> float:
    """d_p squared: ‖XXᵀ - ZZᵀ‖_F²."""
    return square(x @ x.T - z @ z.T)


# ------------------------------------------------------------------ Section 2
def unmet(mats: Array, z: Array, multipliers: Array) -> float:
    """What is left of (7) with these multipliers, the best Γ and Θ, all clients at Z."""
    outside = np.eye(FEATURES) - z @ z.T
    left = outside @ multipliers.sum(axis=0) @ z
    rest = [outside @ (m + own) @ z for m, own in zip(mats, multipliers, strict=True)]
    return float(max(np.abs(left).max(), *(np.abs(one).max() for one in rest)))


@worst
def proposition_3(generator: np.random.Generator) -> float:
    """What is left of (7) at a stationary point, over the least that is left elsewhere.

    Elsewhere all multipliers count: rows P⊥ΛᵢZ are free, must sum to 0 and equal -P⊥SᵢZ each.
    """
    mats = matrices(generator)
    chosen = generator.choice(FEATURES, COMPONENTS, replace=False)
    z = np.linalg.eigh(mats.sum(axis=0))[1][:, chosen]
    at = unmet(mats, z, np.stack([multiplier(m, z) for m in mats]))
    z = frame(generator, FEATURES, COMPONENTS)
    violation = (np.eye(FEATURES) - z @ z.T) @ mats.sum(axis=0) @ z
    elsewhere = float(np.abs(violation).max()) / (CLIENTS + 1)
    return at / elsewhere


@worst
def remark_4(generator: np.random.Generator) -> float:
    """What is left of (7) with the other form, relative; 1 unless its rank is above 2p."""
    mats = matrices(generator)
    z = leading(mats.sum(axis=0))
    outside = np.eye(FEATURES) - z @ z.T
    other = np.stack([-(m @ outside + outside @ m) for m in mats])
    ranks = np.linalg.matrix_rank(other)
    return unmet(mats, z, other) / np.abs(mats).max() if ranks.min() > 2 * COMPONENTS else 1.0


# ------------------------------------------------------------------ Appendix B
@dataclass(frozen=True)
class Iteration:
    """An iteration under Assumption 6 with exact local solves."""

    mats: Array
    penalty: float
    x: Array
    z: Array
    new_x: Array
    new_z: Array

    def lagrangian(self, x: Array, z: Array, of: Array) -> float:
        """(9), with the multipliers of the frames ``of``."""
        return sum(
            -float(np.trace(one.T @ m @ one)) / 2
            - float((multiplier(m, own) * (one @ one.T - z @ z.T)).sum()) / 2
            + self.penalty / 4 * distance(one, z)
            for m, one, own in zip(self.mats, x, of, strict=True)
        )

    @property
    def fell(self) -> tuple[float, float, float]:
        """How far it falls by local solves, by multipliers, and by the server's step."""
        before, solved, told, after = (
            self.lagrangian(*frames)
            for frames in (
                (self.x, self.z, self.x),
                (self.new_x, self.z, self.x),
                (self.new_x, self.z, self.new_x),
                (self.new_x, self.new_z, self.new_x),
            )
        )
        return before - solved, solved - told, told - after

    @property
    def step(self) -> float:
        """Fall by the server's step over ‖G‖²; infinite where G is 0."""
        outside = np.eye(FEATURES) - self.z @ self.z.T
        g = square(outside @ aimed(self.mats, self.new_x, self.penalty) @ self.z)
        return self.fell[2] / g if g > TINY else np.inf


def gaps(x: Array, z: Array) -> Array:
    """Squared distances of all clients to Z."""
    return np.array([distance(one, z) for one in x])


def aimed(mats: Array, x: Array, penalty: float) -> Array:
    """The sum of the uploads, whose product with Z the server orthonormalises."""
    return np.asarray(
        sum(penalty * one @ one.T - multiplier(m, one) for m, one in zip(mats, x, strict=True))
    )


def iterations(generator: np.random.Generator, count: int = 12) -> Iterator[Iteration]:
    """A run with penalties of Assumption 6, from clients' frames as far apart as (22) allows."""
    mats = matrices(generator)
    omega = asked(CLIENTS, COMPONENTS, ENOUGH, BESIDE, 1.0)
    penalty = 1.001 * omega * float(np.trace(mats.sum(axis=0)))
    z = frame(generator, FEATURES, COMPONENTS)
    x = np.stack([_within(generator, z, 1.0 / CLIENTS) for _ in range(CLIENTS)])
    for _ in range(count):
        near = penalty * z @ z.T
        pairs = zip(mats, x, strict=True)
        new_x = np.stack([leading(m + multiplier(m, one) + near) for m, one in pairs])
        new_z = np.linalg.qr(aimed(mats, new_x, penalty) @ z)[0]
        yield Iteration(mats, penalty, x, z, new_x, new_z)
        x, z = new_x, new_z


def _within(generator: np.random.Generator, z: Array, most: float) -> Array:
    """A frame at up to this squared distance of Z."""
    way, share = generator.standard_normal(z.shape), 1.0
    while distance(x := np.linalg.qr(z + share * way)[0], z) > most:
        share *= 0.9
    return x


#: Statements that are inequalities of one iteration.
INEQUALITIES = (
    "lemma-10", "lemma-11", "lemma-13", "lemma-15",
    "corollary-16", "corollary-17", "proposition-19",
)  # fmt: skip


def ratios(one: Iteration) -> dict[str, float]:
    """Left sides of `INEQUALITIES` over the right ones; ρ is 1, since all penalties are equal."""
    before, solved, after = gaps(one.x, one.z), gaps(one.new_x, one.z), gaps(one.new_x, one.new_z)
    descent = ENOUGH * (1.0 - 1.0 / (2 * CLIENTS))  # c₁ σ̲²
    own, root = np.trace(one.mats, axis1=1, axis2=2), np.sqrt(COMPONENTS)
    total = np.trace(one.mats.sum(axis=0))
    spread = (1 + np.sqrt(2 * CLIENTS)) / CLIENTS * np.linalg.norm(one.mats, 2, axis=(1, 2))
    local = []  # the fall of every client's h
    for m, x, new in zip(one.mats, one.x, one.new_x, strict=True):
        h = m + multiplier(m, x) + one.penalty * one.z @ one.z.T
        local.append(float(np.trace(new.T @ h @ new) - np.trace(x.T @ h @ x)) / 2)
    solves, multipliers, _ = one.fell
    claimed = descent * one.penalty / 4 * before
    return {
        "lemma-10": max(claimed / np.maximum(local, TINY)),
        "lemma-11": max(solved / ((1 - descent) * before + 12 / one.penalty * root * own)),
        "lemma-13": max(after) / (solved.sum() + 8 * root * total / one.penalty),
        "lemma-15": CLIENTS * max(after),
        "corollary-16": descent * one.penalty / 4 * before.sum() / max(solves, TINY),
        "corollary-17": -multipliers / max(spread @ before, TINY),
        "proposition-19": (claimed - spread * before).sum() / max(sum(one.fell), TINY),
    }


def _over(name: str) -> Check:
    """Largest value of a ratio over a run."""
    return worst(lambda generator: max(ratios(one)[name] for one in iterations(generator)))


#: Sides of inequalities that are smaller count as this: rounding of numbers of order 10⁴.
TINY = 1e-9


def corollary_18(generator: np.random.Generator) -> float:
    """Least fall by the server's step over ‖G‖²/(dβ): c₂ in units of its scale."""
    runs = (iterations(generator) for _ in range(10))
    return min(one.step * CLIENTS * one.penalty for run in runs for one in run)


def theorem_8(generator: np.random.Generator) -> float:
    """Largest N times the least violation² + mean gap, over the C of the proof, N up to 40.

    c₂ is the least that the run has, and the bound below of 𝓛 its last value.
    """
    run = list(iterations(generator, 40))
    first, last, mats = run[0], run[-1], run[0].mats
    c_2 = min(found for one in run if (found := one.step) > 0)
    fall = first.lagrangian(first.x, first.z, first.x)
    fall -= last.lagrangian(last.new_x, last.new_z, last.new_x)
    penalties, largest = np.full(CLIENTS, first.penalty), np.linalg.norm(mats, 2, axis=(1, 2))
    most = constant(CLIENTS, penalties, largest, ENOUGH, c_2, fall)
    values = []
    for one in run:
        violation = (np.eye(FEATURES) - one.z @ one.z.T) @ mats.sum(axis=0) @ one.z  # P⊥ A Aᵀ Z
        values.append(square(violation) + gaps(one.x, one.z).mean())
    return max((n + 1) * min(values[: n + 1]) / most for n in range(len(run)))


# ------------------------------------------------------------------ other methods behind its mask
def masked_product(matrix: Array, z: Array, penalty: float) -> Array:
    """One step of subspace iteration behind FAPS's mask: (20) with X = orth(S Z)."""
    x = orthonormalise(matrix @ z)
    weight = -remove_span(matrix @ x, x)
    return np.asarray(x @ (penalty * x.T @ z - weight.T @ z) - weight @ (x.T @ z))


def masked_power(generator: np.random.Generator) -> float:
    """Relative error of client 0's matrix, which a server fits to twelve masked uploads.

    It knows Z and what a client does; matrix and penalty it searches, from random starts.
    """
    mats = matrices(generator) / (2 * FEATURES)
    penalties = 0.15 * np.linalg.norm(mats, 2, axis=(1, 2))
    z, seen = frame(generator, FEATURES, COMPONENTS), []
    for _ in range(ROUNDS):
        sent = [masked_product(m, z, own) for m, own in zip(mats, penalties, strict=True)]
        seen.append((z, sent[0]))
        z = orthonormalise(np.sum(sent, axis=0))
    low = np.tril_indices(FEATURES)

    def matrix(guess: Array) -> Array:
        half = np.zeros((FEATURES, FEATURES))
        half[low] = guess[:-1]
        return half + np.tril(half, -1).T

    def misfit(guess: Array) -> Array:
        there = matrix(guess)
        return np.ravel([masked_product(there, z, guess[-1]) - upload for z, upload in seen])

    best = np.inf, np.zeros(0)
    for _ in range(STARTS):
        draw = generator.standard_normal((FEATURES, 2 * FEATURES))
        start = np.append((draw @ draw.T / (2 * FEATURES))[low], 1.0)
        found = least_squares(misfit, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=150)
        best = min(best, (found.cost, found.x), key=lambda one: one[0])
        if best[0] < EXPLAINED:
            break
    return float(np.linalg.norm(matrix(best[1]) - mats[0]) / np.linalg.norm(mats[0]))


CHECKS: Mapping[str, Check] = {
    "proposition-3": proposition_3,
    "remark-4": remark_4,
    **{name: _over(name) for name in INEQUALITIES},
    "corollary-18": corollary_18,
    "theorem-8": theorem_8,
    "masked-power": masked_power,
}
