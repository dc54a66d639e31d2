"""What every dial does over its range, to the answer and to what leaks, with all else as it is."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from fedpca_core.errors import InvalidInput
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import degrees
from fedpca_core.settings import Parameter
from fedpca_core.steps import Run, Step, part
from fedpca_core.study import Cost, OwnData, Study

#: The dials that have a range.
DIALS = ("clients", "heterogeneity", "penalty_factor", "epsilon", "participation")
#: Points of every curve: those of the first look, and all.
COARSE, FINE = 4, 7


class DialCurves(Study[SceneSettings, pd.DataFrame]):
    """The errors after the last round at some values of every dial, for every method on show.

    A row a dial, a value and a method: ``place`` is where the value is on the dial, from 0 to 1;
    ``answer`` and ``attack`` are degrees, as in the picture (both simulation only).
    """

    key = "dials"
    title = "What every dial does"

    def cost(self, settings: SceneSettings, data: OwnData | None = None) -> Cost:
        return LivePicture().cost(_plain(settings), data).times(FINE * len(DIALS))

    def run(self, settings: SceneSettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        settings = _plain(settings)
        points = list(_points(settings))
        rows: list[tuple[Any, ...]] = []
        known: dict[SceneSettings, tuple[float, float]] = {}
        for done, (name, place, value) in enumerate(points):
            turned = replace(settings, **{name: value})
            for method in settings.compared:
                side = turned.side(method).run_key()
                yield Step(done / len(points), settings.parameters()[name].label)
                try:
                    if side not in known:
                        scene = yield from part(LivePicture().piece(side, data), 0.0, 0.0)
                        known[side] = degrees(scene.sines[-1]), degrees(scene.held_error[-1])
                except InvalidInput:  # what cannot be there leaves a gap
                    continue
                rows.append((name, value, place, method, *known[side]))
            if name != points[min(done + 1, len(points) - 1)][0]:  # one dial is done
                yield Step(done / len(points), "More points", _table(rows))
        return _table(rows)


class NextSteps(LivePicture):
    """The picture one step on from here on every dial: pieces kept for whoever turns one."""

    key = "next_steps"
    title = "One step on every dial"
    look: ClassVar[Mapping[str, Any]] = {}

    def cost(self, settings: SceneSettings, data: OwnData | None = None) -> Cost:
        return super().cost(settings, data).times(2 * len(DIALS))

    def pieces(self, settings: SceneSettings) -> Sequence[SceneSettings]:
        described, idle = settings.parameters(), settings.idle()
        dials = {name: len(_values(described[name])) - 1 for name in DIALS if name not in idle}
        turned = [moved(settings, name, by / n) for name, n in dials.items() for by in (1, -1)]
        sides = (super(NextSteps, self).pieces(one) for one in turned if one is not None)
        return tuple(dict.fromkeys(chain.from_iterable(sides)))

    def piece_identity(self, settings: SceneSettings, which: Any, data: OwnData | None) -> Hashable:
        return LivePicture().piece_identity(settings, which, data)

    def gathered(self, settings: SceneSettings, found: Sequence[Any]) -> None:
        return None


def moved(settings: SceneSettings, name: str, by: float) -> SceneSettings | None:
    """The settings with a dial moved by a share of its range; None where it ends before."""
    dial = settings.parameters()[name]
    place = _place(dial, getattr(settings, name)) + by
    if not -1e-9 < place < 1.0 + 1e-9:
        return None
    return replace(settings, **{name: at(dial, place)[1]})


def onward(settings: SceneSettings, name: str, before: Any) -> SceneSettings | None:
    """The settings once a dial that was turned from ``before`` is turned as far again."""
    if name not in DIALS:
        return None
    dial = settings.parameters()[name]
    return moved(settings, name, _place(dial, getattr(settings, name)) - _place(dial, before))


def _plain(settings: SceneSettings) -> SceneSettings:
    """The settings of which curves are drawn: what takes long is left out of them."""
    return replace(settings, unmask=False, price=False)


def _points(settings: SceneSettings) -> Iterator[tuple[str, float, Any]]:
    """Dial, place and value: the first look of all dials, as they are set included, comes first."""
    idle, described = settings.idle(), settings.parameters()
    dials = [name for name in DIALS if name not in idle]
    first = np.linspace(0.0, 1.0, COARSE)
    rest = [place for place in np.linspace(0.0, 1.0, FINE) if not np.isclose(first, place).any()]
    for places in (first, rest):
        for name in dials:
            for place in places:
                yield name, *at(described[name], float(place))
            if places is first:
                yield name, *at(described[name], _place(described[name], getattr(settings, name)))


def _values(dial: Parameter) -> Sequence[float]:
    """What a dial can be turned to, in order."""
    if dial.grid:
        return dial.grid
    assert dial.low is not None and dial.high is not None and dial.step is not None
    steps = np.arange(round((dial.high - dial.low) / dial.step) + 1)
    return cast(list[float], np.round(dial.low + steps * dial.step, 9).tolist())


def _place(dial: Parameter, value: float) -> float:
    """Where a value is between the ends of a dial."""
    values = _values(dial)
    return float(np.interp(value, values, np.linspace(0.0, 1.0, len(values))))


def at(dial: Parameter, place: float) -> tuple[float, Any]:
    """The place nearest to one between the ends of a dial at which it has a value, and that."""
    values = _values(dial)
    number = round(place * (len(values) - 1))
    return number / (len(values) - 1), dial.check(values[number])


def by_dial(table: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    return {
        str(dial): {str(method): own for method, own in rows.groupby("method", sort=False)}
        for dial, rows in table.groupby("dial")
    }


def _table(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    columns = ["dial", "value", "place", "method", "answer", "attack"]
    found = pd.DataFrame(rows, columns=columns).drop_duplicates(["dial", "method", "place"])
    return found.sort_values(["dial", "method", "place"], ignore_index=True)
