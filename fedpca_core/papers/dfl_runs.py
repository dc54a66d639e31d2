"""The theory of deterministic federated learning: its statements and its figure, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from fedpca_core.arrays import Array
from fedpca_core.consensus import bounds, operators, verdicts
from fedpca_core.consensus.methods import InexactUzawa
from fedpca_core.consensus.problems import ConsensusProblem, RandomProblem, scalar_pair
from fedpca_core.papers.experiment import Cell, Check, Experiment, Number, Size, square, worst
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Part, Step

#: Constants and penalties of Figure 1.
LOW, HIGH = 0.5, 5.0
FOLLOWED = np.concatenate([np.linspace(0.0, 1.0, 41), np.linspace(1.25, 20.0, 76)])


def _series(claim: Any) -> str:
    return f"{claim.theorem}{'' if claim.printed else ', corrected'}: {claim.setting}"


class StatementsAgainstCases(Experiment):
    """Every claimed factor against exact worst cases of an adversarial and a random family."""

    key, title, source = "dfl-statements", "Statements against exact worst cases", "dfl"
    sizes = ("live",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        fixed: dict[str, Any] = {
            "conditions": list(verdicts.CONDITIONS),
            "claims": [_series(claim) for claim in verdicts.CLAIMS],
        }
        return [Cell("", "", seed, {**fixed, "family_seed": seed}) for seed in range(seeds)]

    def described(self, size: Size) -> str:
        return "Two to four clients, condition numbers 1.5 to 1000; no size is the paper's"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Checking the statements")
        return [
            Number(_series(row), measure, float(getattr(row, measure)))
            for row in verdicts.verdicts(seed=cell.seed).itertuples()
            for measure in ("worst", "violated", "cases", "vacuous")
        ]


class FigureOne(Experiment):
    """The factor of Theorem 1 against the penalty, its square, and the exact worst case."""

    key, title, source = "dfl-figure-1", "Figure 1: the factor against the penalty", "dfl"
    x_title, y_title = "penalty r", "factor of a round"
    sizes = ("live",)

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [Cell("", "", 0, {"low": LOW, "high": HIGH, "penalties": FOLLOWED.tolist()})]

    def described(self, size: Size) -> str:
        return f"λ = {LOW:g}, L = {HIGH:g}, r from 0 to {FOLLOWED[-1]:g}"

    def live(self) -> TheorySettings:
        return TheorySettings()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, "Following the factor")
        factors = [bounds.theorem_1(LOW, HIGH, float(r)) for r in FOLLOWED]
        methods = [bounds.uzawa_exact(LOW, HIGH, float(r)) for r in FOLLOWED]
        exact = [float(n) for n in operators.one_step_norms(scalar_pair(LOW, HIGH), methods)]
        least = int(np.argmin(factors))
        curves = {
            "ρ_GS": factors,
            "ρ_GS squared": [factor**2 for factor in factors],
            "measured, two scalar clients": exact,
        }
        found = {"gain": factors[0] / factors[least], "minimum": factors[least]}
        return Number.each("ρ_GS", found | {"least_penalty": float(FOLLOWED[least])}) + [
            Number(name, "factor", float(value), float(r))
            for name, values in curves.items()
            for r, value in zip(FOLLOWED, values, strict=True)
        ]


# ------------------------------------------------------------------ statements, by arithmetic
#: Condition numbers L/λ with λ = 1, and penalties, over which the largest value is taken.
CONDITIONS = (4.0, 10.0, 100.0, 1000.0)
PENALTIES = (0.0, 0.1, 1.0, 10.0, 100.0)


def remark_9(generator: np.random.Generator) -> float:
    """Largest factor of Algorithm 1's multipliers over (n-1)/n, n near √κ, clients all alike."""
    found = []
    for kappa in CONDITIONS:
        steps = bounds.best_local_steps(1.0, kappa)
        a, _ = bounds.coefficients(np.linspace(1.0, kappa, 801), bounds.scaffnew(kappa, steps))
        found.append(float(np.abs(a).max()) * steps / (steps - 1))
    return max(found)


def lemma_11_conclusion(generator: np.random.Generator) -> float:
    """Largest |ω(Y - Kz)|/Φ over the 2 that Theorem 3 needs; Y are exact local solves.

    On two scalar clients, where the claim says something. With M the resolvent,
    ω (Y - K z) = ω E_Z - M (ω E_H + r ω E_Z), and E_H, ω E_Z lie along (1, -1) and (1, 1).
    """
    found = []
    apart, alike = np.array([1.0, -1.0]) / np.sqrt(2), np.array([1.0, 1.0]) / np.sqrt(2)
    for kappa, r in product(CONDITIONS, PENALTIES):
        if bounds.theorem_1(1.0, kappa, r) < 1:
            resolvent = 1.0 / (np.array([1.0, kappa]) + r)
            step = bounds.dual_step_1(1.0, kappa, r)
            moved = np.stack([-step * resolvent * apart, alike - r * resolvent * alike])
            found.append(float(np.linalg.norm(moved, 2)))
    return max(found) / 2.0


# ------------------------------------------------------------------ losses that are not quadratic
@dataclass(frozen=True, eq=False)
class Losses(ConsensusProblem):
    """Clients' losses ``x'Ax/2 + soft sum(log cosh x) - b'x``, strongly convex and smooth."""

    #: (clients, features, features).
    hessians: Array
    #: (clients, features).
    linear: Array
    #: Largest second derivative of what is not quadratic.
    soft: float
    strong_convexity: float
    smoothness: float

    @classmethod
    def drawn(cls, generator: np.random.Generator, soft: float | None = None) -> Losses:
        """Two to four clients with three features."""
        clients, features = int(generator.integers(2, 5)), 3
        turns = np.linalg.qr(generator.standard_normal((clients, features, features)))[0]
        values = np.exp(generator.uniform(-2.0, 2.0, (clients, 1, features)))
        soft = float(generator.uniform(0.0, 3.0)) if soft is None else soft
        linear = 3.0 * generator.standard_normal((clients, features))
        hessians = (turns * values) @ turns.swapaxes(1, 2)
        spectrum = np.linalg.eigvalsh(hessians)
        low, high = float(spectrum.min()), float(spectrum.max()) + soft
        return cls(hessians, linear, soft, low, high)

    @property
    def clients(self) -> int:
        return len(self.linear)

    @property
    def features(self) -> int:
        return self.linear.shape[1]

    def gradient(self, points: Array) -> Array:
        curved = np.einsum("cij,cj->ci", self.hessians, points)
        return curved + self.soft * np.tanh(points) - self.linear

    def hessian(self, points: Array) -> Array:
        bent = self.soft / np.cosh(points) ** 2
        return self.hessians + bent[:, :, None] * np.eye(self.features)


@dataclass(frozen=True)
class ConsensusRound:
    """A round of Algorithm 2: points, average (repeated) and multipliers, as errors before, after.

    ``meant`` is what the exact local solve would have given.
    """

    losses: Losses
    penalty: float
    step: float
    average: Array
    multipliers: Array
    new_points: Array
    new_average: Array
    new_multipliers: Array
    meant: Array

    @property
    def before(self) -> float:
        """‖E^H‖² + ω²‖E^Z‖²."""
        return square(self.multipliers) + self.step**2 * square(self.average)

    @property
    def after(self) -> float:
        """The same a round later."""
        return square(self.new_multipliers) + self.step**2 * square(self.new_average)


def averaged(points: Array) -> Array:
    """P_Z: every client's mean for every client."""
    return np.tile(points.mean(axis=0), (len(points), 1))


def apart(left: Array, right: Array) -> float:
    """How far two sides are apart, relative to the larger one or to 1."""
    return float(np.abs(left - right).max() / max(1.0, np.abs(left).max(), np.abs(right).max()))


def rounds(
    generator: np.random.Generator,
    steps: int = 0,
    alternating: bool = False,
    off: float = 0.0,
    soft: float | None = None,
    count: int = 8,
) -> Iterator[ConsensusRound]:
    """Rounds from a random start with exact local solves, or so many gradient steps from Kz.

    ``alternating``: Whether ω is the penalty, and not the paper's best.
    ``off``: Moves each exact solve by this share of the error, in a random direction.
    """
    losses = Losses.drawn(generator, soft)
    low, high = losses.strong_convexity, losses.smoothness
    penalty = float(generator.uniform(0.05, 4.0))
    omega = penalty if alternating else bounds.dual_step_1(low, high, penalty)
    best, best_multipliers = np.tile(losses.solution, (losses.clients, 1)), losses.multipliers
    average = averaged(generator.standard_normal(best.shape))
    multipliers = generator.standard_normal(best.shape)
    multipliers -= averaged(multipliers)
    for _ in range(count):
        right = multipliers + penalty * average
        meant = points = losses.solve(penalty, right, average)
        if steps:
            step = bounds.step_3(low, high, penalty)
            points = losses.descend(average, right, penalty, step, steps)
        if off:
            way = generator.standard_normal(points.shape)
            size = square(best_multipliers - multipliers) + omega**2 * square(best - average)
            points = points + off * np.sqrt(size / square(way)) / omega * way
        new_average = averaged(points)
        new_multipliers = multipliers + omega * (new_average - points)
        yield ConsensusRound(
            losses, penalty, omega,
            best - average, best_multipliers - multipliers,
            best - points, best - new_average, best_multipliers - new_multipliers,
            best - meant,
        )  # fmt: skip
        average, multipliers = new_average, new_multipliers


def over_rounds(value: Callable[[ConsensusRound], float], alternating: bool = False) -> Check:
    """Take the largest value of a round over runs with exact local solves."""
    return worst(lambda generator: max(map(value, rounds(generator, alternating=alternating))))


# ------------------------------------------------------------------ Section 2
@worst
def lemma_3(generator: np.random.Generator) -> float:
    """Largest contraction of a gradient step over the claimed one, for both steps."""
    losses = Losses.drawn(generator)
    low, high = losses.strong_convexity, losses.smoothness
    one, other = (4.0 * generator.standard_normal(losses.linear.shape) for _ in range(2))
    ratios = []
    for step, claimed in (
        (float(generator.uniform(0.01, 1.0)) / high, None),
        (2.0 / (low + high), (high - low) / (high + low)),
    ):
        moved = one - step * losses.gradient(one) - other + step * losses.gradient(other)
        factor = 1.0 - step * low if claimed is None else claimed
        ratios.append(np.sqrt(square(moved) / square(one - other)) / factor)
    return float(max(ratios))


def lemma_5(generator: np.random.Generator, count: int) -> float:
    """Largest sum of multipliers beside their size, over rounds."""
    every = [one.losses.multipliers - one.new_multipliers for one in rounds(generator, count=count)]
    return float(np.abs(np.sum(every, axis=1)).max() / np.abs(every).max())


@over_rounds
def lemma_7(one: ConsensusRound) -> float:
    """How far (40) and both sides of (41) are apart."""
    size = np.sqrt(square(one.new_average) * square(one.new_multipliers)) + 1e-300
    product = float((one.new_average * one.new_multipliers).sum()) / size
    left = float((one.new_points * one.new_multipliers).sum())
    change = one.new_multipliers - one.multipliers
    right = float((change * one.new_multipliers).sum()) / one.step
    return max(abs(product), abs(left + right) / max(1.0, abs(left)))


def identity_9(soft: float | None, generator: np.random.Generator) -> float:
    """How far both sides of Lemma 9 are apart, with inexact solves."""
    found = []
    for one in rounds(generator, steps=int(generator.integers(1, 6)), soft=soft):
        right = square(one.multipliers - one.step * one.new_points)
        found.append(abs(one.after - right) / max(1.0, right))
    return max(found)


# ------------------------------------------------------------------ Section 3
@over_rounds
def points(one: ConsensusRound) -> float:
    """Theorem 1: squared error of the points over its bound."""
    return square(one.new_points) * (one.penalty + one.losses.strong_convexity) ** 2 / one.before


@worst
def theorem_2(generator: np.random.Generator) -> float:
    """Factor over ρ + δ, with local solves that are off by exactly δ."""
    off = float(generator.uniform(0.01, 0.5))
    found = []
    for one in rounds(generator, off=off):
        rate = bounds.theorem_1(one.losses.strong_convexity, one.losses.smoothness, one.penalty)
        found.append(np.sqrt(one.after / one.before) / (rate + off))
    return max(found)


@worst
def lemma_10(generator: np.random.Generator) -> float:
    """Distance to the exact local solve over its bound."""
    steps, found = int(generator.integers(1, 8)), []
    for one in rounds(generator, steps=steps):
        low, high = one.losses.strong_convexity, one.losses.smoothness
        factor = ((high - low) / (2 * one.penalty + high + low)) ** (2 * steps)
        distance = square(one.meant - one.new_points)
        found.append(distance / (factor * square(one.meant - one.average)))
    return max(found)


def radii(
    generator: np.random.Generator,
    kappas: Sequence[float],
    methods: Callable[[float], list[InexactUzawa]],
) -> Iterator[tuple[float, float]]:
    """Condition numbers, and asymptotic factors on two scalar clients and random quadratics."""
    for kappa in kappas:
        random = [
            RandomProblem(
                clients=3, features=3, strong_convexity=1.0, smoothness=kappa, seed=int(seed)
            ).quadratics()
            for seed in generator.integers(0, 2**31, 3)
        ]
        for problem in (scalar_pair(1.0, kappa), *random):
            yield from (
                (kappa, float(r)) for r in operators.spectral_radii(problem, methods(kappa))
            )


def equation_67(generator: np.random.Generator) -> float:
    """Largest asymptotic factor with the least number of local steps that (67) allows."""

    def methods(kappa: float) -> list[InexactUzawa]:
        found = []
        for r in (0.01, *PENALTIES):
            k = (r + kappa) / (r + 1.0)
            steps = int(np.floor(np.log(k + 1) / np.log((k + 1) / (k - 1)))) + 1
            found.append(bounds.uzawa_steps(1.0, kappa, r, steps))
        return found

    return max(factor for _, factor in radii(generator, (1.5, *CONDITIONS), methods))


@worst
def equation_103(generator: np.random.Generator) -> float:
    """How far (103) is off: squared norm of a modified sweep, and 1 - 1/(1 + c0) by (104)."""
    losses, r = Losses.drawn(generator, 0.0), float(np.exp(generator.uniform(-2.0, 2.0)))
    clients, features, _ = losses.hessians.shape
    top, same = clients * features, np.tile(np.eye(features), (clients, 1))
    whole = np.zeros((top + features, top + features))
    whole[:top, :top] = block_diag(*losses.hessians) + r * np.eye(top)
    whole[top:, top:], whole[top:, :top] = r * clients * np.eye(features), -r * same.T
    whole[:top, top:] = -r * same
    lower = whole * (np.arange(top + features)[:, None] >= top)  # its rows of the average
    lower[:, top:] = 0.0
    upper, diagonal = lower.T, whole - lower - lower.T
    own = float(generator.uniform(0.25, 1.5)) * np.linalg.inv(diagonal)  # R
    root = np.linalg.cholesky(whole).T
    sweep = np.eye(len(whole)) - np.linalg.solve(np.linalg.inv(own) + lower, whole)
    rest = own.T @ (diagonal + upper - np.linalg.inv(own)) @ np.linalg.inv(root)
    most = np.linalg.norm(rest.T @ np.linalg.solve(own.T + own - own.T @ diagonal @ own, rest), 2)
    rate = np.linalg.norm(root @ sweep @ np.linalg.inv(root), 2) ** 2
    return float(abs(rate - 1.0 + 1.0 / (1.0 + most)))


def converges(generator: np.random.Generator) -> float:
    """Largest asymptotic factor of Algorithm 1, n from 1 to 100."""
    steps, kappas = (1, 2, 5, 10, 30, 100), (1.5, *CONDITIONS)
    found = radii(generator, kappas, lambda kappa: [bounds.scaffnew(kappa, n) for n in steps])
    return max(factor for _, factor in found)


def square_root(generator: np.random.Generator) -> float:
    """Least of (1 - factor) √κ of Algorithm 1 with n = √κ: what is gained a round, of order 1."""
    kappas = (4.0, 16.0, 100.0, 400.0, 2500.0, 10000.0)
    found = radii(generator, kappas, lambda kappa: [bounds.scaffnew(kappa, round(kappa**0.5))])
    return min((1.0 - factor) * kappa**0.5 for kappa, factor in found)


# ------------------------------------------------------------------ Section 6
@partial(over_rounds, alternating=True)
def lemma_14(one: ConsensusRound) -> float:
    """How far the sides of the identities of Lemmas 13 and 14 are apart."""
    best, multipliers = one.losses.solution, one.losses.multipliers
    gradient, inside = one.losses.gradient(best - one.new_points), averaged(one.new_points)
    change = one.penalty * (one.new_average - one.average)
    return max(
        apart(gradient - change, multipliers - one.new_multipliers),
        apart(one.multipliers - one.new_multipliers, one.penalty * (one.new_points - inside)),
        apart(one.new_average, inside),
    )


@partial(over_rounds, alternating=True)
def alternating_points(one: ConsensusRound) -> float:
    """Theorem 11: squared error of the points over its bound."""
    return 2 * one.losses.strong_convexity * square(one.new_points) * one.penalty / one.before


CHECKS: Mapping[str, Check] = {
    "remark-9": remark_9,
    "lemma-11": lemma_11_conclusion,
    "converges": converges,
    "lemma-3": lemma_3,
    "lemma-4": partial(lemma_5, count=10),
    "lemma-5": partial(lemma_5, count=300),
    "lemma-7": lemma_7,
    "lemma-9": worst(partial(identity_9, None)),
    "theorem-1/points": points,
    "theorem-2": theorem_2,
    "lemma-10": lemma_10,
    "equation-67": equation_67,
    "equation-103": equation_103,
    "theorem-5": worst(partial(identity_9, 0.0)),
    "remark-9/sqrt": square_root,
    "lemma-14": lemma_14,
    "theorem-11/points": alternating_points,
}
