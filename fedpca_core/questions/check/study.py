"""The leak check: what a deployment gives away, by a count, by runs at its size, or by both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.attacks.registry import searching
from fedpca_core.errors import InvalidInput, require
from fedpca_core.findings import Finding, Target, frame
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.trial import Attacked, attacked, runnable, stated
from fedpca_core.shares import NARROW, SURE, counted
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study
from fedpca_core.trial import findings, without_run

#: Draws of stand-in records that are attacked: at least, and where they do not agree. Fewer where
#: an attack searches.
DRAWS, FEWER = (20, 80), (12, 48)
#: What may be done about a leak, and the settings that do it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    "As it is": {},
    "Secure sums": {"secure_aggregation": True},
    "Secure sums, everybody in every round": {"secure_aggregation": True, "participation": 1.0},
    "Noise of 3% on uploads (masking)": {"upload_noise": 0.03},
    "Private source, ε = 10": {"epsilon": 10.0},
    "Private source, ε = 1": {"epsilon": 1.0},
}


@dataclass(frozen=True, eq=False)
class Checked:
    """The answer."""

    findings: tuple[Finding, ...]
    #: Stand-ins on which it was run at its size; 0 where it is too large.
    draws: int
    #: Columns defence, a column for each target (its status), sine, bytes_client, refusal.
    defences: pd.DataFrame
    sure: ClassVar[float] = SURE

    @property
    def others(self) -> int:
        """How many of as many further draws may differ where all that were seen agree."""
        return round(self.draws * counted([0.0] * self.draws).high)


def targets(settings: CheckSettings) -> list[Target]:
    """What is asked about: newcomers only where the run is repeated."""
    left_out = set() if settings.repeats else {Target.NEWCOMER}
    return [target for target in Target if target not in {*left_out, Target.SUM}]


def draws(settings: CheckSettings) -> tuple[int, int]:
    """Draws that are attacked: at least, and where they do not agree."""
    return FEWER if searching(stated(settings)) else DRAWS


def attempts(settings: CheckSettings) -> Iterator[list[Attacked]]:
    """Attacks on stand-ins, all so far after each, until every share is known well enough."""
    made: list[Attacked] = []
    least, most = draws(settings)
    for number in range(most):
        made.append(attacked(settings, settings.seed + 7919 * number))
        yield made
        if len(made) >= least:
            shares = [one.share for one in findings([one.trial for one in made])]
            if all(one.width <= NARROW for one in shares if one is not None):
                return


class LeakCheck(Study[CheckSettings, Checked]):
    """Say which attack applies to a deployment, what it gets, and what stops it."""

    key: ClassVar[str] = "leak_check"
    title: ClassVar[str] = "Leak check"
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
            counted = without_run(stated(c), targets(c))
            return Checked(tuple(counted), 0, pd.DataFrame())
        made: list[Attacked] = []
        yield Step(0.0, "Attacking a stand-in")
        for made in attempts(c):
            done = len(made)
            some = Checked(_found(made), done, pd.DataFrame()) if done > 1 else None
            yield Step(0.5 * done / draws(c)[1], f"Attacked {done} stand-ins", some)
        said = _found(made)
        rows: list[dict[str, object]] = []
        seen: list[CheckSettings] = []
        for number, (name, changes) in enumerate(DEFENCES.items(), 1):
            chosen = replace(c, **changes)
            if chosen not in seen:
                tries = made if chosen == c else []
                rows.append({"defence": name, **_defended(chosen, tries)})
                seen.append(chosen)
            share = 0.5 + 0.5 * number / len(DEFENCES)
            yield Step(share, name, Checked(said, len(made), pd.DataFrame(rows)))
        return Checked(said, len(made), pd.DataFrame(rows))

    def tables(self, result: Checked, settings: CheckSettings) -> dict[str, pd.DataFrame]:
        tables = {"findings": frame(result.findings)}
        return {**tables, "defences": result.defences} if len(result.defences) else tables


def _found(made: Sequence[Attacked]) -> tuple[Finding, ...]:
    return findings([one.trial for one in made])


def _defended(settings: CheckSettings, made: list[Attacked]) -> dict[str, object]:
    """What becomes of every target with a defence, and what it costs; from a few draws."""
    try:
        for number in range(len(made), draws(settings)[0] // 2):
            made = [*made, attacked(settings, settings.seed + 7919 * number)]
    except InvalidInput as refusal:
        return {"refusal": str(refusal)}
    return {
        **{one.target.name.lower(): str(one.status) for one in _found(made)},
        "sine": float(np.median([one.sine for one in made])),
        "bytes_client": made[0].bytes_client,
        "refusal": "",
    }
