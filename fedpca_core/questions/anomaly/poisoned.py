"""A few malicious clients: what they do to detection, and which server rule heals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core.anomaly import poisoning
from fedpca_core.anomaly.evaluation import area, score
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task, source
from fedpca_core.questions.anomaly.trained import LEARNING, Topic
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import OwnData, stacked
from fedpca_core.study.parts import names

#: What the server may do about it: names on screen.
RULES = names("poisoned-rules")
#: Rounds in which they lie, and of the whole run.
FIRST, LAST, ROUNDS = 101, 180, 400
#: Rounds between two points of the curves.
EVERY = 5
_RECORDS = 3000


@dataclass(frozen=True, eq=False)
class Courses:
    """The poisoned run under every rule of the server."""

    facts: TaskFacts
    #: The attack type they hide.
    hidden: str
    malicious: int
    #: rule, round, auc (of the hidden type against normal records), dual_sum (``||sum_i Y_i||_F``,
    #: simulation only).
    poisoning: pd.DataFrame

    def stages(self) -> dict[str, tuple[float, float, float]]:
        """By rule, the AUC when they begin to lie, the smallest while they do, that at the end."""
        areas = {
            str(rule): course.set_index("round")["auc"]
            for rule, course in self.poisoning.groupby("rule", sort=False)
        }
        return {
            rule: (auc.loc[: FIRST - 1].iloc[-1], auc.loc[FIRST:LAST].min(), auc.iloc[-1])
            for rule, auc in areas.items()
        }


class AttackTypes(Topic[tuple[str, ...]]):
    """The types of attack among the tested records, which the page offers to hide."""

    key = "attack-types"
    title = "Types of attack"
    opened_by = ("view", "poisoning")
    reads = TASK
    runs = 0

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[tuple[str, ...]]:
        yield Step(0.0, "Reading the records")
        return tuple(source(settings, data).attack_types)

    def tables(self, result: tuple[str, ...], settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"types": pd.DataFrame({"type": result})}


class Poisoned(Topic[Courses]):
    """The configured method with liars, under four rules of the server."""

    key = "poisoned"
    title = "Poisoning"
    opened_by = ("view", "poisoning")
    reads = TASK | LEARNING | NOISE | {"hidden", "malicious"}

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Courses]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        require(
            on.source.labelled,
            "Hiding a type of attack needs to know which records are attacks, but "
            f"{on.problem.name} has no column of labels; choose one under “Label column”, or other "
            "traffic.",
        )
        hidden = hidden_type(settings, on)
        facts, courses = TaskFacts.of(on), list[pd.DataFrame]()

        def found() -> Courses:
            return Courses(facts, hidden, settings.malicious, stacked(courses))

        for (rule, name), share in in_turn(RULES.items()):
            yield Step(share[0], f"Server rule: {name.lower()}", found() if courses else None)
            courses.append((yield from part(poison(settings, on, hidden, rule, ROUNDS), *share)))
        return found()


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
) -> Part[pd.DataFrame]:
    """Run the configured method with malicious clients that want one attack type to pass unseen.

    ``rule``: Of the server: "nothing", the mean; "reset", all duals are once the liars have left;
        "printed", that average throughout; "polar", the mean of orthonormalised uploads.

    Returns the rows of `Courses.poisoning`.

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
    points = []
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
        points.append((rule, float(entry.index), auc, np.linalg.norm(current.sum(axis=0))))
    return pd.DataFrame(points, columns=["rule", "round", "auc", "dual_sum"])


def _sample(on: DetectionTask, chosen: np.ndarray) -> Array:
    """At most a few thousand records, evenly spaced, so that a curve costs little."""
    rows = np.flatnonzero(chosen)
    if len(rows) > _RECORDS:
        rows = rows[np.linspace(0, len(rows) - 1, _RECORDS).astype(int)]
    return on.records[rows]
