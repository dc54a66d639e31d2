"""The detectors of one experiment, trained once for all studies, judged at every threshold."""

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.anomaly import detectors, evaluation
from fedpca_core.anomaly.autoencoder import FEDAE, FEDAE_2, Network
from fedpca_core.anomaly.detectors import Detector
from fedpca_core.anomaly.evaluation import Curves, Evaluation
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, key_of, noisy_task, task
from fedpca_core.remembered import Remembered
from fedpca_core.steps import Part, Step, changed
from fedpca_core.study import Cost, OwnData, Study

R = TypeVar("R")
T = TypeVar("T")

#: Fields that the configured method depends on, besides its data.
LEARNING = frozenset(
    {
        *("method", "components", "rounds", "participation", "penalty_factor", "local_steps"),
        *("step_factor", "projection", "average", "local_start", "sampling", "initial", "seed"),
    }
)


class Topic(Study[AnomalySettings, R]):
    """A study that the page shows while its topic is open.

    ``runs``: As many as it takes of the configured method, for its cost.
    ``recorded``: Whether one of them keeps every message or state.
    """

    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE
    runs: ClassVar[int] = 3
    recorded: ClassVar[bool] = False

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=self.runs, recorded=self.recorded)


def told(fractions: Generator[float, None, T], text: str) -> Part[T]:
    """Work that yields the share it has done, as a part of a study."""
    return changed(fractions, lambda fraction: Step(fraction, text))


#: The training quantiles that may be chosen.
SHARES = AnomalySettings.parameters()["share"].grid
#: A training quantile, or "oracle": the level that suits the labels best.
Level = float | str
#: Shares of false alarms that somebody could live with.
FEW = (0.001, 0.01)


@dataclass(frozen=True, eq=False)
class JudgedDetector:
    """A detector without its scores."""

    #: mapping of level to the score above which the alarm is raised.
    thresholds: Mapping[Level, float]
    #: mapping of level to the share of tested records that raise it.
    alarms: Mapping[Level, float]
    #: mapping of level to counts and rates; empty without labels.
    evaluations: Mapping[Level, Evaluation]
    #: None without labels.
    curves: Curves | None
    #: mapping of a share of false alarms to the share of attacks caught with no more.
    caught_at: Mapping[float, float]

    def few(self) -> dict[str, float]:
        """The same by the column of a table."""
        return {f"tpr_{100 * at:g}": caught for at, caught in self.caught_at.items()}


def judge(on: DetectionTask, found: Detector) -> JudgedDetector:
    """Everything about a detector at any threshold."""
    scores, attack = found.scores, on.attack
    thresholds: dict[Level, float] = {
        share: evaluation.quantile(found.training_scores, share) for share in SHARES
    }
    if on.source.labelled:
        thresholds["oracle"] = evaluation.best_for_labels(attack, scores)
    alarms = {level: float((scores > value).mean()) for level, value in thresholds.items()}
    if not on.source.labelled:
        return JudgedDetector(thresholds, alarms, {}, None, {})
    areas = evaluation.area_pair(attack, scores)
    rates = {at: evaluation.evaluate(attack, scores, it, areas) for at, it in thresholds.items()}
    few = {share: evaluation.caught_at(attack, scores, share) for share in FEW}
    return JudgedDetector(thresholds, alarms, rates, evaluation.curves(attack, scores), few)


def level(settings: AnomalySettings, labelled: bool = True) -> Level:
    """The level that the settings choose; without labels there is no oracle."""
    return "oracle" if settings.rule == "oracle" and labelled else settings.share


#: The configured method's aim and its baseline: never is it shown without them.
ESSENTIALS = ("federated", "centralised", "norm")
#: What else there is to compare with, and what is being done meanwhile.
RIVALS = {
    "random": "Judging a random subspace",
    "fedae": "Training the federated autoencoder",
    "fedae-2": "Training the deeper autoencoder",
}
_NETWORKS = {"fedae": ("FedAE", FEDAE), "fedae-2": ("FedAE-2", FEDAE_2)}
#: What noise at the source does not reach: an autoencoder learns from the records themselves, and
#: the aim is what they say without clipping and noise.
UNCOVERED = tuple(_NETWORKS)
_EXACT = ("centralised", *UNCOVERED)
#: Settings that a detector depends on besides the data.
_READS = {
    "federated": LEARNING,
    "centralised": frozenset({"components"}),
    "norm": frozenset[str](),
    "random": frozenset({"components", "seed"}),
    **dict.fromkeys(_NETWORKS, frozenset({"participation", "seed"})),
}
#: Rounds between two reports of a run.
_EVERY = 10
_DETECTORS: Remembered[Detector] = Remembered(16)


def detector(name: str, settings: AnomalySettings, data: OwnData | None = None) -> Part[Detector]:
    """One of the detectors, by key; trained now if it is not remembered.

    With the settings' noise at the source where that reaches it.
    """
    made: list[Detector] = []
    noisy = name not in _EXACT and math.isfinite(settings.epsilon)
    fields = TASK | _READS[name] | (NOISE if noisy else frozenset())
    key = name, noisy, *key_of(settings, data, fields)
    if key not in _DETECTORS:
        on = noisy_task(settings, data) if noisy else task(settings, data)
        made.append((yield from _trained(name, settings, on)))
    return _DETECTORS.get(key, lambda: made[0])


def _trained(name: str, settings: AnomalySettings, on: DetectionTask) -> Part[Detector]:
    k, seed, participation = settings.components, settings.seed, settings.participation
    if name == "federated":
        trace = yield from run(settings, settings.algorithm(), on.problem, Channel(dtype="float32"))
        return detectors.from_run(on, trace)
    if name in _NETWORKS:
        title, hidden = _NETWORKS[name]
        training = detectors.autoencoder_detector(
            on, title, Network(on.problem.features, hidden), participation=participation, seed=seed
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
