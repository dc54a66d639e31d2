"""The leak check: what a deployment gives away, by a rule, by a run at its size, or by both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput, require
from fedpca_core.studies.check.rules import Expected, expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.trial import TARGETS, Got, Trial, runnable, tried
from fedpca_core.studies.frontier.leakage import NAMES
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Run, Step, Study

#: Sets of stand-in records that are tried, and how many where the first do not clearly agree.
TRIES, MORE_TRIES = 3, 9
#: What may be done about a leak, and the settings that do it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    "As it is": {},
    "Secure sums": {"secure_aggregation": True},
    "Secure sums, everybody in every round": {"secure_aggregation": True, "participation": 1.0},
    "Noise of 3 % on uploads (masking)": {"upload_noise": 0.03},
    "Private source, ε = 10": {"epsilon": 10.0},
    "Private source, ε = 1": {"epsilon": 1.0},
}


@dataclass(frozen=True)
class Verdict:
    """What becomes of one target.

    Attributes
    ----------
    target : str
        Key of `TARGETS`.
    answer : str
        "open"; "partly", where an attack gets something and never the better half; "depends" on
        the data; or "closed" to the attacks tried.
    attack : str
        In words.
    figure : float
        Of the worst run, as of `Got`; NaN without one.
    evidence : str
        "rule", "run", "both", or "caution" where a rule does not decide and nothing was run.
    why : str
        The rule's sentence.
    """

    target: str
    answer: str
    attack: str
    figure: float
    evidence: str
    why: str

    @property
    def open(self) -> bool:
        """Whether an attack gets it, in part or on some data at least."""
        return self.answer != "closed"


@dataclass(frozen=True, eq=False)
class Checked:
    """The answer.

    Attributes
    ----------
    verdicts : tuple of Verdict
    ran : bool
        Whether the deployment was run at its size.
    defences : pandas.DataFrame
        Columns defence, a column for each target (what is open), sine, bytes_client, refusal.
    """

    verdicts: tuple[Verdict, ...]
    ran: bool
    defences: pd.DataFrame

    @property
    def open(self) -> list[Verdict]:
        """What an attack gets."""
        return [one for one in self.verdicts if one.open]


_ANSWERS = {True: "open", False: "closed", None: "depends"}
#: Names of attacks that only this check has.
_ATTACKS = {**NAMES, "lattice": "lattice reduction", "score": "membership score",
            "two runs": "comparison of two runs"}  # fmt: skip


def judged(settings: CheckSettings, trials: list[Trial]) -> tuple[Verdict, ...]:
    """Rule and runs put together: an answer is given where all of them agree.

    A few runs have to agree clearly; of many it is enough that none is on the other side.
    """
    verdicts = []
    for target, rule in expected(settings).items():
        got = [trial.got[target] for trial in trials]
        verdicts.append(_verdict(target, rule, got))
    return tuple(verdicts)


def _verdict(target: str, rule: Expected, got: list[Got]) -> Verdict:
    if not got:
        evidence = "caution" if rule.open is None else "rule"
        return Verdict(target, _ANSWERS[rule.open], "", np.nan, evidence, rule.why)
    clearly = {one.open for one in got if one.clear} | ({rule.open} - {None})
    sides = {one.open for one in got} | ({rule.open} - {None})
    answer = _ANSWERS[None]
    if len(clearly) == 1 and all(one.clear for one in got):
        answer = _ANSWERS[clearly.pop()]
    elif len(sides) == 1 and len(got) >= MORE_TRIES:
        answer = "open" if sides.pop() else "partly"
    worst = min(got, key=lambda one: one.place)
    attack = _ATTACKS.get(worst.attack, worst.attack)
    evidence = "run" if rule.open is None else "both"
    return Verdict(target, answer, attack, worst.figure, evidence, rule.why)


def attacked(settings: CheckSettings) -> Iterator[list[Trial]]:
    """Runs on stand-ins, all so far after each; more of them while the answer depends on the data.

    Where an attack searches for seconds, the first few have to do.
    """
    trials: list[Trial] = []
    slow = {"replay", "stationary"} & set(METHODS[settings.method].attacks)
    for number in range(TRIES if slow else MORE_TRIES):
        if number == TRIES and all(one.answer != "depends" for one in judged(settings, trials)):
            return
        trials.append(tried(settings, settings.seed + 7919 * number))
        yield trials


class LeakCheck(Study[CheckSettings, Checked]):
    """Say which attack applies to a deployment, what it gets, and what stops it."""

    key: ClassVar[str] = "leak_check"
    title: ClassVar[str] = "Leak check"
    settings: ClassVar[type[CheckSettings]] = CheckSettings
    most: ClassVar[Cost] = Cost(megabytes=500, seconds=120)
    seconds: ClassVar[float] = 180.0

    def run(self, settings: CheckSettings, data: OwnData | None = None) -> Run[Checked]:
        c = settings
        require(
            c.components < c.features,
            f"{c.components} components of {c.features} features leave nothing to find; choose "
            f"fewer components, at most {c.features - 1}.",
        )
        if not runnable(c):
            return Checked(judged(c, []), False, pd.DataFrame())
        trials: list[Trial] = []
        yield Step(0.0, "Attacking a stand-in")
        for trials in attacked(c):
            yield Step(0.3 * len(trials) / MORE_TRIES, f"Attacked {len(trials)} stand-ins")
        verdicts = judged(c, trials)
        rows: list[dict[str, object]] = []
        seen: list[CheckSettings] = []
        for number, (name, changes) in enumerate(DEFENCES.items(), 1):
            chosen = replace(c, **changes)
            if chosen not in seen:
                rows.append({"defence": name, **_defended(chosen, trials if chosen == c else [])})
                seen.append(chosen)
            share = 0.3 + 0.7 * number / len(DEFENCES)
            yield Step(share, name, Checked(verdicts, True, pd.DataFrame(rows)))
        return Checked(verdicts, True, pd.DataFrame(rows))

    def tables(self, result: Checked, settings: CheckSettings) -> dict[str, pd.DataFrame]:
        verdicts = pd.DataFrame(
            [
                {
                    "target": TARGETS[one.target],
                    "answer": one.answer,
                    "attack": one.attack,
                    "figure": one.figure,
                    "evidence": one.evidence,
                    "why": one.why,
                }
                for one in result.verdicts
            ]
        )
        tables = {"verdicts": verdicts}
        return {**tables, "defences": result.defences} if len(result.defences) else tables


def _defended(settings: CheckSettings, trials: list[Trial]) -> dict[str, object]:
    """What is left open with a defence, and what it costs."""
    try:
        found = trials[0] if trials else tried(settings, settings.seed)
    except InvalidInput as refusal:
        return {"refusal": str(refusal)}
    return {
        **{target: got.open for target, got in found.got.items()},
        "sine": found.sine,
        "bytes_client": found.bytes_client,
        "refusal": "",
    }
