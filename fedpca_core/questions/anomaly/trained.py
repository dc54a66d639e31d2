"""The detectors of one experiment, trained once for all studies that ask for them."""

from __future__ import annotations

import math
from dataclasses import replace

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.anomaly import autoencoder, detectors
from fedpca_core.anomaly.detectors import Detector
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, noisy_task, resolve, task
from fedpca_core.questions.anomaly.topic import LEARNING, told
from fedpca_core.remembered import Remembered
from fedpca_core.steps import Part, Step
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import content_key

#: The configured method's aim and its baseline: never is it shown without them.
ESSENTIALS = ("federated", "centralised", "norm")
#: What else there is to compare with, and what is being done meanwhile.
RIVALS = {
    "random": "Judging a random subspace",
    "fedae": "Training the federated autoencoder",
    "fedae-2": "Training the deeper autoencoder",
}
#: What noise at the source does not reach: an autoencoder learns from the records themselves, and
#: the aim is what they say without clipping and noise.
UNCOVERED = ("fedae", "fedae-2")
_EXACT = ("centralised", *UNCOVERED)
#: Settings that a detector depends on besides the data.
_READS = {
    "federated": LEARNING,
    "centralised": frozenset({"components"}),
    "norm": frozenset[str](),
    "random": frozenset({"components", "seed"}),
    "fedae": frozenset({"participation", "seed"}),
    "fedae-2": frozenset({"participation", "seed"}),
}
#: Rounds between two reports of a run.
_EVERY = 10
_DETECTORS: Remembered[Detector] = Remembered(16)


def detector(name: str, settings: AnomalySettings, data: OwnData | None = None) -> Part[Detector]:
    """One of the detectors, by key; trained now if it is not remembered.

    With the settings' noise at the source where that reaches it.
    """
    chosen = replace(settings, problem=resolve(settings.problem))
    file = data if settings.problem == "own" else None
    made: list[Detector] = []
    noisy = name not in _EXACT and math.isfinite(settings.epsilon)
    fields = TASK | _READS[name] | (NOISE if noisy else frozenset())
    key = name, noisy, *content_key(chosen, fields, file)
    if key not in _DETECTORS:
        on = noisy_task(settings, data) if noisy else task(settings, data)
        made.append((yield from _trained(name, settings, on)))
    return _DETECTORS.get(key, lambda: made[0])


def _trained(name: str, settings: AnomalySettings, on: DetectionTask) -> Part[Detector]:
    k, seed, participation = settings.components, settings.seed, settings.participation
    if name == "federated":
        trace = yield from run(settings, settings.algorithm(), on.problem, Channel(dtype="float32"))
        return detectors.from_run(on, trace)
    if name in ("fedae", "fedae-2"):
        hidden = autoencoder.FEDAE if name == "fedae" else autoencoder.FEDAE_2
        training = detectors.autoencoder_detector(
            on, hidden=hidden, participation=participation, seed=seed
        )
        return (yield from told(training, RIVALS[name]))
    if name == "centralised":
        return detectors.centralised(on, k)
    return detectors.random_subspace(on, k, seed) if name == "random" else detectors.norm_only(on)


def run(
    settings: AnomalySettings,
    algorithm: ConsensusADMM,
    problem: Problem,
    channel: Channel,
    *,
    rounds: int | None = None,
    record: str = "estimates",
    text: str = "",
) -> Part[Trace]:
    """A run of an algorithm with the settings' rounds, sampling and seed, reported as it goes."""
    planned = settings.rounds if rounds is None else rounds
    simulation = Simulation(
        problem,
        algorithm,
        rounds=planned,
        participation=settings.participation,
        seed=settings.seed,
        channel=replace(channel, record=record),
    )
    for entry in simulation:
        if entry.index % _EVERY == 0:
            yield Step(entry.index / planned, text or f"Running {algorithm.title}")
    return simulation.trace()
