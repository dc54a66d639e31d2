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
from fedpca_core.settings import plural
from fedpca_core.shares import NARROW, SURE, counted
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pieces import InPieces
from fedpca_core.trial import findings, without_run

#: Draws of stand-in records that are attacked: at least, and where they do not agree. Fewer where
#: an attack searches.
DRAWS, FEWER = (20, 80), (12, 48)
AS_IT_IS = "As it is"
#: What may be done about a leak, and the settings that do it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    AS_IT_IS: {},
    "Secure sums": {"secure_aggregation": True},
    "Secure sums, everybody in every round": {"secure_aggregation": True, "participation": 1.0},
    "Private source, ε = 10": {"epsilon": 10.0},
    "Private source, ε = 1": {"epsilon": 1.0},
    "Noise of 3% on uploads (masking)": {"upload_noise": 0.03},
}


@dataclass(frozen=True, eq=False)
class Checked:
    """The answer."""

    settings: CheckSettings
    findings: tuple[Finding, ...]
    #: Stand-ins on which it was run at its size; 0 where it is too large.
    draws: int
    #: Columns defence, a column for each target (its status), draws, sine, bytes_client, refusal.
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


class LeakCheck(InPieces[CheckSettings, Checked]):
    """Say which attack applies to a deployment, what it gets and, a piece each, what stops it."""

    key: ClassVar[str] = "leak_check"
    title: ClassVar[str] = "Leak check"
    unit: ClassVar[str] = "deployments"
    most: ClassVar[Cost] = Cost(megabytes=500, seconds=120)
    seconds: ClassVar[float] = 180.0

    def pieces(self, settings: CheckSettings) -> Sequence[str]:
        every: dict[CheckSettings, str] = {}
        for name, changes in DEFENCES.items():
            every.setdefault(replace(settings, **changes), name)
        return list(every.values()) if runnable(settings) else ()

    def piece(self, settings: CheckSettings, data: OwnData | None) -> Run[Checked]:
        components, most = settings.components, settings.features - 1
        require(
            components <= most,
            f"{components} components of {most + 1} features leave nothing to find; choose fewer "
            f"components, at most {most}.",
        )
        yield Step(0.0, "Counting")
        found = without_run(stated(settings), targets(settings))
        return Checked(settings, tuple(found), 0, pd.DataFrame())

    def run_piece(self, settings: CheckSettings, which: str, data: OwnData | None) -> Run[Checked]:
        chosen = replace(settings, **DEFENCES[which])
        made: list[Attacked] = []
        for made in attempts(chosen) if which == AS_IT_IS else ():
            some = Checked(settings, _found(made), len(made), pd.DataFrame())
            told = f"attacked {plural(len(made), 'stand-in')}"
            yield Step(len(made) / draws(chosen)[1], told, some if len(made) > 1 else None)
        row = {"defence": which, **_defended(chosen, made)}
        return Checked(settings, _found(made) if made else (), len(made), pd.DataFrame([row]))

    def gathered(self, settings: CheckSettings, found: Sequence[Checked]) -> Checked:
        rows = [row for one in found for row in one.defences.to_dict("records")]
        return replace(found[0], defences=pd.DataFrame(rows))

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
        "draws": len(made),
        "sine": float(np.median([one.sine for one in made])),
        "bytes_client": made[0].bytes_client,
        "refusal": "",
    }
