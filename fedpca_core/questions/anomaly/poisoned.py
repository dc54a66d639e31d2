"""A few malicious clients: what they do to detection, and which server rule heals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.anomaly import poisoning
from fedpca_core.anomaly.evaluation import area
from fedpca_core.anomaly.scores import score
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, labelled, source
from fedpca_core.questions.anomaly.trained import LEARNING, Topic
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import names
from fedpca_core.study.study import stacked

#: What the server may do about it: names on screen.
RULES = names("poisoned-rules")
#: Rounds in which they lie, and of the whole run.
FIRST, LAST, ROUNDS = 101, 180, 400
#: Rounds between two points of the curves.
EVERY = 5
_RECORDS = 3000


@dataclass(frozen=True, eq=False)
class Course:
    """Detection of the hidden attack type over a poisoned run."""

    #: (points,) float64.
    rounds: Array
    #: (points,) float64: AUC of the hidden attack type against normal records.
    auc: Array
    #: (points,) float64: ``||sum_i Y_i||_F`` (simulation only).
    dual_sum: Array

    @property
    def before(self) -> float:
        """AUC when they begin to lie."""
        return float(self.auc[self.rounds < FIRST][-1])

    @property
    def worst(self) -> float:
        """The smallest AUC while they lie."""
        return float(self.auc[(self.rounds >= FIRST) & (self.rounds <= LAST)].min())

    @property
    def after(self) -> float:
        """AUC at the end."""
        return float(self.auc[-1])


@dataclass(frozen=True, eq=False)
class Courses:
    """The poisoned run under every rule of the server."""

    facts: TaskFacts
    #: The attack type they hide.
    hidden: str
    malicious: int
    rules: Mapping[str, Course]


class AttackTypes(Topic[tuple[str, ...]]):
    """The types of attack among the tested records, which the page offers to hide."""

    key: ClassVar[str] = "attack-types"
    title: ClassVar[str] = "Types of attack"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "poisoning")
    reads: ClassVar[frozenset[str]] = TASK
    runs: ClassVar[int] = 0

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[tuple[str, ...]]:
        yield Step(0.0, "Reading the records")
        return tuple(source(settings, data).attack_types)

    def tables(self, result: tuple[str, ...], settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"types": pd.DataFrame({"type": result})}


class Poisoned(Topic[Courses]):
    """The configured method with liars, under four rules of the server."""

    key: ClassVar[str] = "poisoned"
    title: ClassVar[str] = "Poisoning"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "poisoning")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE | {"hidden", "malicious"}

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Courses]:
        yield Step(0.0, "Reading the records")
        on = labelled(settings, data, "Hiding a type of attack")
        hidden = hidden_type(settings, on)
        facts, rules = TaskFacts.of(on), dict[str, Course]()
        for (rule, name), share in in_turn(RULES.items()):
            partial = Courses(facts, hidden, settings.malicious, dict(rules)) if rules else None
            yield Step(share[0], f"Server rule: {name.lower()}", partial)
            rules[rule] = yield from part(poison(settings, on, hidden, rule, ROUNDS), *share)
        return Courses(facts, hidden, settings.malicious, rules)

    def tables(self, result: Courses, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        parts = (
            {"rule": rule, "round": c.rounds, "auc": c.auc, "dual_sum": c.dual_sum}
            for rule, c in result.rules.items()
        )
        return {"poisoning": stacked(parts)}


def preferred(types: Sequence[str]) -> str:
    """The attack type that is hidden unless another is chosen: a scan where there is one."""
    return next((name for name in types if name.startswith("scan")), types[0])


def hidden_type(settings: AnomalySettings, on: DetectionTask) -> str:
    """The attack type that the settings hide.

    Raises InvalidInput: there is none of that name.
    """
    types = on.source.attack_types
    hidden = settings.hidden or preferred(types)
    require(
        hidden in types,
        f"There is no attack type “{hidden}” in {on.problem.name}; "
        f"choose one of {', '.join(types)}.",
    )
    return hidden


def poison(
    settings: AnomalySettings, on: DetectionTask, hidden: str, rule: str, rounds: int
) -> Part[Course]:
    """Run the configured method with malicious clients that want one attack type to pass unseen.

    ``rule``, {"nothing", "reset", "printed", "polar"}: The server's rule: the mean; all duals reset
        once the liars have left; the printed average throughout; the mean of orthonormalised
        uploads throughout.

    Raises InvalidInput: nobody honest.
    """
    clients, malicious = on.problem.clients, settings.malicious
    require(
        malicious < clients,
        f"{malicious} malicious clients leave nobody honest among {clients}; choose fewer.",
    )
    honest = replace(
        settings.algorithm(),
        average=rule if rule in ("printed", "polar") else "mean",
        dual_reset=LAST + 1 if rule == "reset" else 0,
    )
    normal, attack = (_sample(on, on.types == name) for name in ("normal", hidden))
    direction = poisoning.hiding_direction(attack, on.problem.target(settings.components))
    algorithm = poisoning.PoisonedData(honest, tuple(range(malicious)), direction, FIRST, LAST)
    labels = np.repeat([False, True], [len(normal), len(attack)])
    points: list[tuple[float, ...]] = []
    for entry in stream(
        on.problem,
        algorithm,
        rounds=rounds,
        participation=settings.participation,
        seed=settings.seed,
        channel=Channel(record="estimates"),
    ):
        if entry.index % EVERY and entry.index != rounds:
            continue
        yield Step(entry.index / rounds, f"Server rule: {RULES[rule].lower()}")
        scores = [score(records, entry.estimate) for records in (normal, attack)]
        auc = area(labels, np.concatenate(scores))
        # Clients not drawn since the reset still hold an old Y_i, which they will never use.
        duals, was_reset = entry.state["dual"], entry.state["reset"] > 0
        current = duals[was_reset] if was_reset.any() else duals
        points.append((entry.index, auc, float(np.linalg.norm(current.sum(axis=0)))))
    return Course(*np.array(points).T)


def _sample(on: DetectionTask, chosen: np.ndarray) -> Array:
    """At most a few thousand records, evenly spaced, so that a curve costs little."""
    rows = np.flatnonzero(chosen)
    if len(rows) > _RECORDS:
        rows = rows[np.linspace(0, len(rows) - 1, _RECORDS).astype(int)]
    return on.records[rows]
