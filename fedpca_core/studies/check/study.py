"""The leak check: what a deployment gives away, by a rule, by a run at its size, or by both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput, require
from fedpca_core.studies.check.rules import Expected, expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.shares import NEARLY, Share, averaged, counted
from fedpca_core.studies.check.trial import LIMITS, TARGETS, Got, Trial, runnable, tried
from fedpca_core.studies.frontier.leakage import NAMES
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Run, Step, Study

#: Draws of stand-in records that are attacked: at least, and where they do not agree. Fewer where
#: an attack searches.
DRAWS: Mapping[str, tuple[int, int]] = {"": (20, 80), "stationary": (12, 48), "replay": (12, 48)}
#: As narrow an interval is worth no further draws.
NARROW = 0.42
#: What may be done about a leak, and the settings that do it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    "As it is": {},
    "Secure sums": {"secure_aggregation": True},
    "Secure sums, everybody in every round": {"secure_aggregation": True, "participation": 1.0},
    "Noise of 3% on uploads (masking)": {"upload_noise": 0.03},
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
        "open" in nearly every draw; "split", open in the stated share of them; "partly", where an
        attack gets something and hardly ever the better half; "closed" to the attacks tried; or
        "depends", where counting does not decide and nothing was run.
    attack : str
        In words, of the draw that gave most away.
    figure, least, most : float
        Median over the draws, as of `Got`, and the span of them; NaN without a run.
    evidence : str
        "rule", "run", "both" where they agree, or "caution" where a rule does not decide and
        nothing was run.
    why : str
        The rule's sentence.
    got : Share or None
        Of draws in which an attack gets it; of membership, how often a member is ranked above a
        stranger. None without a run.
    something : Share or None
        Of draws in which an attack gets something, where it hardly ever gets the better half.
    """

    target: str
    answer: str
    attack: str
    figure: float
    least: float
    most: float
    evidence: str
    why: str
    got: Share | None = None
    something: Share | None = None

    @property
    def stated(self) -> dict[str, Share]:
        """What the answer says of any other draws, by the name of the event."""
        both = {"got": self.got, "something": self.something}
        return {name: share for name, share in both.items() if share is not None}

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
    draws : int
        Stand-ins on which it was run at its size; 0 where it is too large.
    defences : pandas.DataFrame
        Columns defence, a column for each target (its answer), sine, bytes_client, refusal.
    """

    verdicts: tuple[Verdict, ...]
    draws: int
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
    """Every target by its runs, or by its rule where there are none."""
    verdicts = []
    for target, rule in expected(settings).items():
        got = [trial.got[target] for trial in trials]
        verdicts.append(_verdict(target, rule, got))
    return tuple(verdicts)


def values(of: str, event: str, got: Sequence[Got]) -> list[float]:
    """What each draw adds to a share: of pairs, or of draws with this event."""
    if of == "pairs":
        return [one.figure for one in got]
    return [float(one.open if event == "got" else one.place < 1.0) for one in got]


def _verdict(target: str, rule: Expected, got: list[Got]) -> Verdict:
    if not got:
        evidence = "caution" if rule.open is None else "rule"
        nan = math.nan
        return Verdict(target, _ANSWERS[rule.open], "", nan, nan, nan, evidence, rule.why)
    something = None
    if target == "membership":
        gets = averaged(values("pairs", "got", got))
        yes, no = LIMITS[target]
        answer = "open" if gets.seen >= (yes + no) / 2 else "partly" if gets.seen > no else "closed"
    else:
        gets = counted(values("draws", "got", got))
        if not gets.settled:
            answer = "split"
        elif gets.seen > 0.5:
            answer = "open"
        else:
            something = counted(values("draws", "something", got))
            answer = "partly" if something.seen > 1 - NEARLY else "closed"
    figures = [one.figure for one in got]
    worst = min(got, key=lambda one: one.place)
    attack = _ATTACKS.get(worst.attack, worst.attack)
    agree = rule.open is not None and answer != "split" and rule.open == (answer == "open")
    evidence = "both" if agree else "run"
    known = [one for one in figures if not math.isnan(one)] or [math.nan]
    figure, least, most = float(np.median(known)), min(known), max(known)
    return Verdict(target, answer, attack, figure, least, most, evidence, rule.why, gets, something)


def draws(settings: CheckSettings) -> tuple[int, int]:
    """Draws that are attacked: at least, and where they do not agree."""
    slow = {"replay", "stationary"} & set(METHODS[settings.method].attacks)
    return DRAWS["" if settings.secure_aggregation else min(slow, default="")]


def attacked(settings: CheckSettings) -> Iterator[list[Trial]]:
    """Attacks on stand-ins, all so far after each, until every share is known well enough."""
    trials: list[Trial] = []
    least, most = draws(settings)
    for number in range(most):
        trials.append(tried(settings, settings.seed + 7919 * number))
        yield trials
        if len(trials) >= least:
            said = [one for v in judged(settings, trials) for one in v.stated.values()]
            if all(one.width <= NARROW for one in said):
                return


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
            return Checked(judged(c, []), 0, pd.DataFrame())
        trials: list[Trial] = []
        yield Step(0.0, "Attacking a stand-in")
        for trials in attacked(c):
            done = len(trials)
            some = Checked(judged(c, trials), done, pd.DataFrame()) if done > 1 else None
            yield Step(0.5 * done / draws(c)[1], f"Attacked {done} stand-ins", some)
        verdicts = judged(c, trials)
        rows: list[dict[str, object]] = []
        seen: list[CheckSettings] = []
        for number, (name, changes) in enumerate(DEFENCES.items(), 1):
            chosen = replace(c, **changes)
            if chosen not in seen:
                tries = trials if chosen == c else []
                rows.append({"defence": name, **_defended(chosen, tries)})
                seen.append(chosen)
            share = 0.5 + 0.5 * number / len(DEFENCES)
            yield Step(share, name, Checked(verdicts, len(trials), pd.DataFrame(rows)))
        return Checked(verdicts, len(trials), pd.DataFrame(rows))

    def tables(self, result: Checked, settings: CheckSettings) -> dict[str, pd.DataFrame]:
        verdicts = pd.DataFrame(
            [
                {
                    "target": TARGETS[one.target],
                    "answer": one.answer,
                    "attack": one.attack,
                    "figure": one.figure,
                    "least": one.least,
                    "most": one.most,
                    **{
                        f"{name}_{end}": getattr(one.stated.get(name), end, math.nan)
                        for name in ("got", "something")
                        for end in ("seen", "low", "high")
                    },
                    "evidence": one.evidence,
                    "why": one.why,
                }
                for one in result.verdicts
            ]
        )
        tables = {"verdicts": verdicts}
        return {**tables, "defences": result.defences} if len(result.defences) else tables


def _defended(settings: CheckSettings, trials: list[Trial]) -> dict[str, object]:
    """What becomes of every target with a defence, and what it costs; from a few draws."""
    try:
        for number in range(len(trials), draws(settings)[0] // 2):
            trials = [*trials, tried(settings, settings.seed + 7919 * number)]
    except InvalidInput as refusal:
        return {"refusal": str(refusal)}
    return {
        **{verdict.target: verdict.answer for verdict in judged(settings, trials)},
        "sine": float(np.median([one.sine for one in trials])),
        "bytes_client": trials[0].bytes_client,
        "refusal": "",
    }
