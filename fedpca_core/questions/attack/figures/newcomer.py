"""What two runs tell of the record that joined between them."""

from typing import Any

import numpy as np

from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.questions.attack.differencing import NewcomersRead, OneMoreRecord
from fedpca_core.settings import short
from fedpca_core.study import pictures
from fedpca_core.study.panels import Curve, Images, Panel, plot
from fedpca_core.study.parts import Chart, Note, Parts, refusals, words
from fedpca_core.study.pca_settings import AttackSettings

#: Angles below this are rounding.
_SMALLEST = 1e-12


def joined_record(joined: NewcomersRead, settings: AttackSettings) -> Parts:
    """The record beside what the server reads, how near it is, and how sure the server can be."""
    for refusal in refusals(joined.refusals):
        yield Note(refusal)
    if not joined.found:
        return
    yield sentence(joined)
    rounds_read = OneMoreRecord().tables(joined, settings)["rounds"]
    panels = [
        Panel.of(key, plot(rounds_read, "round", what, "method", least=least, spread=False))
        for key, what, least in (
            ("newcomer_angle", "sine", _SMALLEST),
            ("newcomer_purity", "purity", 0.0),
        )
    ]
    if joined.pictures is None:
        panels.insert(0, _record_panel(joined))
    rounds = max(len(read.sines) for read in joined.found.values()) - 1
    yield Chart("newcomer_view", panels, rows(joined, rounds), rounds=rounds)


def sentence(joined: NewcomersRead) -> str:
    """What came of it, method by method, and whose record it is."""
    parts: list[str] = []
    for method, read in joined.found.items():
        name, best = METHODS[method].title, read.best
        told = "newcomer-read" if read.sure else "newcomer-unsure"
        parts.append(words(told, name=name, best=best, read=read, share=read.purity[best]))
    if joined.guarantee is not None:
        parts.append(
            f"Each run has noise of its own; together they guarantee ε = "
            f"{short(joined.guarantee.epsilon, 3)} at δ = {short(joined.guarantee.delta)} for "
            f"{joined.guarantee.unit}."
        )
    elif joined.from_sums:
        parts.append("It saw sums only: they hide whose record this is, not the record.")
    elif masked := [m for m in joined.found if replayable(m) and not joined.found[m].sure]:
        parts.append(
            f"{METHODS[masked[0]].title} withstands this linear reading; whether its masking holds "
            "is for the replay above to say, run by run."
        )
    return " ".join(parts)


def rows(joined: NewcomersRead, rounds: int) -> list[list[Images]]:
    """The record beside what was read from each method, where records are pictures."""
    if joined.pictures is None:
        return []
    row = pictures.row(
        joined.pictures,
        truth="The record that joined",
        caption="nobody should see it",
        titles={method: f"Read from {METHODS[method].title}" for method in joined.found},
        captions={
            method: [f"sine of the angle {short(sine, 2)}" for sine in read.sines]
            for method, read in joined.found.items()
        },
    )
    return [pictures.lasting(row, rounds)]


def _record_panel(joined: NewcomersRead) -> Panel:
    tall = 1.5 * float(np.abs(joined.record).max())  # wrong guesses may be larger than the page
    names: Any = list(joined.features) or np.arange(1, len(joined.record) + 1)
    look: dict[str, Any] = {"colour": "simulation", "simulation_only": True}
    curves = [Curve("the record that joined", names, joined.record, **look)]
    curves += [
        Curve(METHODS[method].title, names, read.records, colour=method, marker=True)
        for method, read in joined.found.items()
    ]
    return Panel.of("newcomer_record", curves, y_range=(-tall, tall))
