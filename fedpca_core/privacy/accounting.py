"""Which methods can be accounted, how, and the sentence for those that cannot.

A method is accounted when all it learns from a client are products ``S_i Q + N`` with orthonormal
Q: each is a Gaussian release whose sensitivity is bounded whatever Q is, so adaptive composition
applies; averaging, rotating, orthonormalising and sampling on the server are post-processing.
"""

from dataclasses import replace
from typing import TypeVar, cast

import numpy as np

from fedpca_core import guarantee
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.guarantee import Guarantee, Refusal
from fedpca_core.privacy.calibration import exact_sensitivity, true_epsilon
from fedpca_core.problems.perturbation import Trust
from fedpca_core.problems.records import NORM_ROUNDING, check_clip_norm
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.trace import Trace

#: Methods whose noise on products is counted.
Accounted = TypeVar("Accounted", FedPower, Noisy)


def account(
    algorithm: Algorithm,
    setting: Setting,
    *,
    delta: float,
    clip_norm: float = 1.0,
    client: int = 0,
    trust: Trust | None = None,
) -> Guarantee | Refusal:
    """What a run of ``algorithm`` guarantees a client, before it starts, or why nothing.

    ``setting``: Public facts of the run, with the bound on the records' norms that the clients
        enforce and what their noise at the source guarantees.
    ``delta``: Failure probability, total over the run.
    ``clip_norm``: Norm that every record was clipped to.
    ``client``: Sizes may differ; noise is in proportion to sensitivity, so epsilon does not.
    ``trust``: Who the clients of a run with shared noise rely on; by default nobody colludes or
        drops out.
    """
    if setting.guarantee is not None:
        return setting.guarantee  # whatever follows the one release is post-processing
    algorithm.check_protected(client)
    if not (algorithm.adds_noise or algorithm.one_product):
        return refusal(algorithm.unwrapped)
    if algorithm.noise > 0 and (reason := unbounded(setting, clip_norm)) is not None:
        return Refusal(reason)
    noise, samples = algorithm.noise_of(setting.samples)[client], int(setting.samples[client])
    once, towards = algorithm.one_release, guarantee.CHECKED
    columns, releases = 2 if once else algorithm.components, algorithm.rounds or 1
    subset = f"{setting.participants_per_round} {guarantee.DRAWN.format('without')}"
    sampling = guarantee.FULL if setting.participation == 1 else subset
    if algorithm.plans_products:
        power = cast(FedPower, algorithm)
        columns, releases, drawn = power.width, power.products, power.drawn(setting)
        sampling = guarantee.FULL if drawn is None else f"{drawn} {guarantee.DRAWN.format('with')}"
    size = float(exact_sensitivity(columns, samples, clip_norm))
    if algorithm.shares_noise:
        trust = Trust(0) if trust is None else trust
        towards = trust.sentence(setting.clients)
        # Of the weighted sum: its sensitivity, and the noise in it of the h quietest clients.
        shares = np.sort(setting.weights * algorithm.noise_of(setting.samples))
        noise = float(np.linalg.norm(shares[: trust.honest(setting.clients)]))
        size *= float(setting.weights[client])
    counted = guarantee.REMEMBERED if algorithm.remembers else guarantee.TOGETHER
    known = (f"all records of client {other}" for other in algorithm.public_clients)
    return Guarantee(
        delta,
        releases,
        size,
        noise,
        clip_norm,
        composition=1.0 if once else float(releases),
        sampling=sampling,
        released=counted if once else guarantee.EACH_IN_FULL,
        towards=towards,
        public=(guarantee.SIZES, *setting.public, *known),
    ).after(setting.paid_mean)


def within(
    algorithm: Accounted,
    setting: Setting,
    epsilon: float,
    delta: float,
    *,
    clip_norm: float = 1.0,
    trust: Trust | None = None,
) -> Accounted:
    """The same algorithm with the least noise that keeps every client within (epsilon, delta)."""
    mean = setting.paid_mean
    left = float(mu_of(epsilon, delta)) ** 2 - (0.0 if mean is None else mean.mu**2)
    require(left > 0, "The noisy mean has spent the whole budget; pay less for it.")
    worst = 0.0
    for client in algorithm.protected(setting.clients).tolist():
        accounted = account(
            replace(algorithm, noise=1.0),
            replace(setting, paid_mean=None),
            delta=delta,
            clip_norm=clip_norm,
            client=client,
            trust=trust,
        )
        worst = max(worst, accounted.stated().mu)
    # mu is in inverse proportion to the noise.
    return replace(algorithm, noise=worst / float(np.sqrt(left)))


def unbounded(setting: Setting, clip_norm: float) -> str | None:
    """Why noise protects nothing on these records, as a sentence; None where it does.

    Sensitivity rests on a norm that the clients enforce on each record by itself.
    """
    check_clip_norm(clip_norm)
    if setting.own_moments:
        return (
            "The records were centred or scaled by moments of their own, so one record moves all "
            "others and noise gives no ε; leave them as they are, or pay for a noisy mean."
        )
    if setting.record_norm is None:
        return (
            "Nothing bounds the norms of the records, so one of them may change an answer by any "
            "amount and noise gives no ε; clip or normalise the records first."
        )
    if setting.record_norm > clip_norm * (1 + NORM_ROUNDING):
        return (
            f"Records may have norm {setting.record_norm:.4g}, above the clip norm {clip_norm:g}, "
            "so the stated noise protects nothing and gives no ε; clip or normalise the records "
            "first."
        )
    return None


def refusal(method: Algorithm, title: str = "") -> Refusal:
    """Why noise on the uploads of a method gives no epsilon, and what does."""
    why = next((e.refusal for e in METHODS.values() if e.algorithm is type(method)), "")
    why = why or "it does more with a client's data than products that carry noise"
    remedies = ", ".join(entry.title for entry in METHODS.values() if entry.accounts)
    return Refusal(
        f"Noise on the uploads of {title or method.title} gives no ε: {why}. Choose {remedies}, or "
        "noise at the source, which covers every method."
    )


def noisy(
    method: Algorithm, noise: float, products: int, *, summed: bool = False, remembers: bool = False
) -> Noisy:
    """The method with accounted noise on each of its products.

    Where its probes are orthogonal to each other the clients are told to insist on that, and the
    whole run then costs what one product costs. ``summed``, ``remembers``: As of `Noisy`.
    """
    if not method.one_product:
        raise InvalidInput(refusal(method).reason)
    return Noisy(
        method,
        noise,
        products,
        orthogonal=not remembers and mutually_orthogonal(method, products),
        summed=summed,
        remembers=remembers,
    )


def mutually_orthogonal(method: Algorithm, products: int) -> bool:
    """Whether all probes of the run are orthogonal to each other (block Krylov before a restart).

    Only a hint which way of counting suits a method: the credit rests on `Noisy.orthogonal`, with
    which each client refuses a probe that overlaps an earlier one. Then
    ``sum_j ||(S - S') Q_j||_F^2 = ||(S - S') [Q_1 ... Q_T]||_F^2 <= 2 C^4/m_i^2`` for every pair
    of neighbours and every outcome. Budgets of Gaussian releases add in squares even where each
    depends on all answers before (Smith and Thakurta, "Fully Adaptive Composition for Gaussian
    Differential Privacy", arXiv:2210.17520), so the whole run costs what a single product costs
    (our addition; the tests audit it by the likelihood ratios of many runs). The probe made just
    before a restart is still orthogonal to all, later ones to the kept Ritz vectors only.
    """
    return products <= method.orthogonal_probes


def releases_made(trace: Trace) -> IntArray:
    """Products each client released in a finished run, (clients,).

    A round in which a machine does not upload releases nothing about it, and the broadcast
    overwrites its state: its true cost is the sum of the gaps of the rounds it uploaded in
    (corrected here; not in the paper). Which rounds these are depends on the server's draws
    alone, never on the data.
    """
    made = np.zeros(trace.setting.clients, dtype=np.int64)
    for exchange in trace.transcript.exchanges:
        made[exchange.participants] += exchange.local_steps
    return made


def spent(trace: Trace, algorithm: FedPower, *, delta: float, clip_norm: float = 1.0) -> Array:
    """Epsilon each client has really spent in a finished run, (clients,); ∞ of public records.

    A noisy mean that was paid for before the run is in it, also for clients that were never drawn.
    """
    setting = trace.setting
    return true_epsilon(
        algorithm.noise_of(setting.samples),
        delta,
        releases_made(trace),
        algorithm.width,
        setting.samples,
        clip_norm,
        before=0.0 if setting.paid_mean is None else setting.paid_mean.mu,
    )
