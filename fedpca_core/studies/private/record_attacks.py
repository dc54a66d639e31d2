"""What noise leaves to an attacker: reconstruction against epsilon, and row membership.

Both run the real algorithm and hand its transcript to the attacks; the truth is used only to score
them (simulation only).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.arrays import Array
from fedpca_core.attacks import (
    empirical_auc,
    membership_score,
    membership_separation,
    permitted_auc,
    ridge,
    symmetric,
    theoretical_auc,
)
from fedpca_core.errors import InvalidInput, require
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.privacy.audit import Audit, gaussian_audit, plain_audit, ranking_audit
from fedpca_core.privacy.calibration import Calibration
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.records import treat
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams

Progress = Callable[[float, str], bool]

#: Sizes of S_i - S, relative to S_i, that a server may have in mind when it sets the ridge.
_PRIOR_SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6)


def distinct_clients(
    features: int = 40, samples: int = 500, clients: int = 20, components: int = 4, seed: int = 0
) -> Problem:
    """Clients that differ: common strong directions and private ones, records of norm 1.

    In Model I every S_i is within a few per cent of S, so a small reconstruction error proves
    nothing; here the public guess S misses a client by about a half.
    """
    streams = Streams(seed)
    common = uniform_frame(streams.generator("data"), features, components)
    grams = np.zeros((clients, features, features))
    for client in range(clients):
        generator = streams.generator("data", client + 1)
        own = uniform_frame(generator, features, components)
        records = (
            common @ generator.standard_normal((components, samples))
            + own @ generator.standard_normal((components, samples))
            + 0.3 * generator.standard_normal((features, samples))
        )
        records = treat(records, "normalised")
        grams[client] = records @ records.T / samples
    return Problem(
        name="distinct clients",
        client_data=ClientData.from_grams(grams, np.full(clients, samples)),
        note=f"{components} common and {components} private directions a client; "
        "records normalised at norm 1.",
        record_norm=1.0,
    )


# ---------------------------------------------------------------------- reconstruction
def reconstruction_error(
    problem: Problem, run: FedPower, *, client: int = 1, seed: int = 0
) -> float:
    """Relative Frobenius error of the best reconstruction of S_i the server can make.

    Without noise: symmetric with the stated trace. With noise: ridge around the public answer S,
    its strength tuned with the truth in hand (no guess at all among the strengths), so that no
    server using ridge does better. Both are upper hands for the attacker.
    """
    transcript = simulate(problem, run, rounds=run.rounds, seed=seed).transcript
    # An upload after the last communication carries frames, not answers to a probe.
    transcript = transcript.until(len(run.times))
    truth = problem.client_data.dense()[client]
    size = float(np.linalg.norm(truth))
    if run.noise == 0:
        found = symmetric(transcript, client, trace=float(np.trace(truth)))
        return float(np.linalg.norm(found - truth)) / size
    public = problem.covariance
    errors = [float(np.linalg.norm(public - truth))]
    noise = run.noise * problem.client_data.samples.mean() / problem.client_data.samples[client]
    for share in _PRIOR_SHARES:
        # lambda = nu^2/tau^2 for entries of S_i - S of size tau.
        tau = share * size / problem.features
        found = ridge(transcript, client, prior=public, strength=float((noise / tau) ** 2))
        errors.append(float(np.linalg.norm(found - truth)))
    return min(errors) / size


def public_guesses(problem: Problem, client: int = 1) -> dict[str, float]:
    """Errors of guesses that need no message of the client: S itself, and the even matrix."""
    truth = problem.client_data.dense()[client]
    even = np.eye(problem.features) * np.trace(truth) / problem.features
    size = float(np.linalg.norm(truth))
    return {
        "public answer S": float(np.linalg.norm(problem.covariance - truth)) / size,
        "even guess I/d": float(np.linalg.norm(even - truth)) / size,
    }


def reconstruction_curve(
    problem: Problem,
    run: FedPower,
    *,
    calibration: str,
    epsilons: tuple[float, ...],
    delta: float,
    client: int = 1,
    seeds: tuple[int, ...] = (0, 1, 2),
    progress: Progress = lambda fraction, text: True,
) -> Array:
    """Median reconstruction error at each budget, (budgets,); NaN where it was stopped."""
    errors = np.full(len(epsilons), np.nan)
    samples = float(problem.client_data.samples.mean())
    for index, epsilon in enumerate(epsilons):
        if not progress(index / len(epsilons), f"Reconstruction at ε = {epsilon:g}"):
            break
        noise = Calibration(calibration, epsilon, delta, run.products, run.width).noise(samples)
        noisy = replace(run, noise=float(noise))
        errors[index] = np.median(
            [reconstruction_error(problem, noisy, client=client, seed=seed) for seed in seeds]
        )
    return errors


# ---------------------------------------------------------------------- membership
@dataclass(frozen=True)
class Membership:
    """Scores of the best membership test over many runs.

    Attributes
    ----------
    first, second : (runs,) float64
        Log-likelihood ratios when the record is there and when it was replaced.
    separation : float
        Mean distance mu of the two hypotheses in these runs.
    ceiling : float
        The largest mu of Gaussian noise with the stated (epsilon, delta).
    epsilon, delta : float
        The budget.
    """

    first: Array
    second: Array
    separation: float
    ceiling: float
    epsilon: float
    delta: float

    @property
    def auc(self) -> float:
        """Measured area under the curve."""
        return empirical_auc(self.first, self.second)

    @property
    def expected_auc(self) -> float:
        """``Phi(mu/sqrt(2))`` at the runs' own mu."""
        return theoretical_auc(self.separation)

    @property
    def auc_ceiling(self) -> float:
        """``Phi(mu/sqrt(2))`` at the permitted mu: what Gaussian noise of this budget permits."""
        return theoretical_auc(self.ceiling)

    @property
    def auc_permitted(self) -> float:
        """What (epsilon, delta) alone permits; other noise of the same budget may go so far."""
        return permitted_auc(self.epsilon, self.delta)

    def audits(self, confidence: float = 0.95) -> tuple[Audit, Audit, Audit]:
        """Lower bounds on epsilon from these runs: plain, Gaussian, and by ranking."""
        plain, gaussian = (
            audit(self.first, self.second, self.delta, confidence=confidence)
            for audit in (plain_audit, gaussian_audit)
        )
        ranking = ranking_audit(self.first, self.second, self.delta, confidence=confidence)
        return plain, gaussian, ranking

    def roc(self) -> tuple[Array, Array]:
        """False and true positive rates of every threshold, from (0, 0) to (1, 1)."""
        thresholds = np.sort(np.concatenate([self.first, self.second]))[::-1]
        true = (self.first[None] >= thresholds[:, None]).mean(axis=1)
        false = (self.second[None] >= thresholds[:, None]).mean(axis=1)
        return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])


def worst_pair(problem: Problem, client: int = 1, clip_norm: float = 1.0) -> tuple[Array, Array]:
    """Two neighbouring S_i that are easiest to tell apart, (features, features) each.

    One record of the client lies along the first leading direction, or along the second: orthogonal
    records inside the space that the run converges to attain the sensitivity.
    """
    samples = int(problem.client_data.samples[client])
    require(samples >= 2, "A client of one record has no other record to hide among.")
    target = problem.target(2)
    rest = problem.client_data.dense()[client] * (samples - 1) / samples
    first, second = (clip_norm**2 * np.outer(u, u) / samples for u in target.T)
    return rest + first, rest + second


def membership(
    problem: Problem,
    run: FedPower | Noisy,
    *,
    epsilon: float,
    delta: float,
    runs: int = 200,
    client: int = 1,
    clip_norm: float = 1.0,
    seed: int = 0,
    progress: Progress = lambda fraction, text: True,
) -> Membership:
    """Test for one record in ``runs`` runs with it and as many with its neighbour.

    Parameters
    ----------
    run : FedPower or Noisy
        A method with noise on every product: FedPower at p = 1, SSI, block Krylov.

    Raises
    ------
    InvalidInput
        Hidden local products (their answers are not seen), or no noise.
    """
    period = run.period if isinstance(run, FedPower) else 1
    require(
        period == 1,
        f"The likelihood of the messages is known exactly at p = 1 only, not at p = {period}: "
        "hidden products are not seen. Choose p = 1.",
    )
    if run.noise == 0:
        raise InvalidInput(
            "Without noise one look at the answers decides membership; switch the noise on."
        )
    pair = worst_pair(problem, client, clip_norm)
    sizes = problem.client_data.samples
    noise = run.noise * float(sizes.mean()) / float(sizes[client])
    scores: list[list[float]] = [[], []]
    separations: list[float] = []
    for index in range(runs):
        if index % 10 == 0 and not progress(index / runs, "Testing for one record"):
            break
        for truth, found in enumerate(scores):
            trace = _run_with(problem, run, client, pair[truth], seed + 2 * index + truth)
            found.append(membership_score(trace.transcript, *pair, noise, client))
        separations.append(membership_separation(trace.transcript, *pair, noise, client))
    require(len(separations) > 0, "The test was stopped before its first run; run it again.")
    return Membership(
        np.array(scores[0]),
        np.array(scores[1]),
        float(np.sqrt(np.mean(np.square(separations)))),
        float(mu_of(epsilon, delta)),
        epsilon,
        delta,
    )


def _run_with(
    problem: Problem, run: FedPower | Noisy, client: int, matrix: Array, seed: int
) -> Trace:
    grams = problem.client_data.dense().copy()
    grams[client] = matrix
    client_data = ClientData.from_grams(
        grams, problem.client_data.samples, problem.client_data.weights
    )
    neighbour = replace(problem, client_data=client_data)
    rounds = run.rounds if isinstance(run, FedPower) else run.products
    return simulate(neighbour, run, rounds=rounds, seed=seed)
