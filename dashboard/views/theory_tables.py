"""Tables of the Theory page, and its bridge to PCA."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dashboard.player import Curve, Panel
from fedpca_core.consensus.shift_invert import Exhibit
from fedpca_core.consensus.verdicts import Verdict
from fedpca_core.studies.theory import Study


def verdict_table(rows: Sequence[Verdict]) -> pd.DataFrame:
    """The table of verdicts as texts for the page."""
    marks = {
        "holds": "✓ holds",
        "false as printed": "✗ false as printed",
        "corrected: holds": "✓ holds, corrected here",
        "corrected: fails": "✗ correction fails",
    }
    return pd.DataFrame(
        {
            "Statement": [row.theorem for row in rows],
            "Verdict": [marks[row.verdict] for row in rows],
            "Setting": [row.setting for row in rows],
            "Claimed factor": [row.claim for row in rows],
            "Violated": [f"{row.violated}/{row.cases}" for row in rows],
            "Worst": [f"{row.worst:.4g}" for row in rows],
            "Silent": [row.vacuous for row in rows],
        }
    )


def work_table(study: Study) -> pd.DataFrame:
    """Rounds, local gradients and bytes to an accuracy of 1e-8, method by method."""
    rows = []
    for name, trace in study.rivals.items():
        rounds = trace.rounds_to(1e-8)
        steps = trace.method.gradients_per_round
        rows.append(
            {
                "Method": name,
                "Rounds to 1e-8": "not reached" if rounds is None else f"{rounds}",
                "Local gradients per client": "–"
                if rounds is None
                else ("exact solves" if steps is None else f"{rounds * steps:,}"),
                "Kilobytes sent up": "–"
                if rounds is None
                else f"{trace.bytes_up[rounds] / 1e3:,.1f}",
                "Distance at the end": f"{float(trace.distances[-1]):.1e}",
            }
        )
    return pd.DataFrame(rows)


def bridge_panel(found: Exhibit) -> Panel:
    """Shift-and-invert and its rivals on the same clients."""
    colours = ("SSI", "BlockKrylov", "OneShot", "FAPS", "FedPG")
    curves = [
        Curve(name, course.rounds, course.sines, colour=colour)
        for (name, course), colour in zip(found.courses.items(), colours, strict=True)
        if len(course.rounds) > 1
    ]
    return Panel(
        key="theory-bridge",
        title="",
        x_title="communication round",
        y_title="squared sine to the leading eigenvector",
        curves=tuple(curves),
        follows=False,
        integer_x=True,
        description="Convergence to the leading eigenvector of the power method, Lanczos, and "
        "shift-and-invert with three inner solvers.",
        height=360,
    )


def bridge_sentence(found: Exhibit) -> str:
    """Who wins, and whether the theory applies."""
    state = (
        "Every client's term is convex here, so the factors above apply to the inner solves."
        if found.convex
        else f"The worst client's largest eigenvalue is {found.excess:.2f} times that of the mean, "
        "beyond the shift: its term is not convex and **no factor above applies**."
    )
    arrived = {
        name: int(course.rounds[-1])
        for name, course in found.courses.items()
        if not course.diverged and course.sines[-1] <= 1e-10
    }
    order = ", ".join(f"{name} {count}" for name, count in sorted(arrived.items(), key=_second))
    gone = [name for name, course in found.courses.items() if course.diverged]
    text = f"{state} Rounds to 1e-10: {order}."
    return f"{text} **Diverged: {', '.join(gone)}.**" if gone else text


def _second(pair: tuple[str, int]) -> int:
    return pair[1]
