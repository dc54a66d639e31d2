"""Draw the thumbnails of the front page from the results themselves: ``make thumbnails``.

Every page's door and every experiment gets a small picture of what its own run found, made of the
study's tables, written to dashboard/static/thumbnails as SVG. They are drawn again when a result
changes, never by hand.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dashboard.shell import palette
from fedpca_core.questions.catalogue import KINDS, PRESETS, STUDIES
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.here import missing
from fedpca_core.study.parts import names
from fedpca_core.study.pca_settings import AttackSettings

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "dashboard" / "static" / "thumbnails"
WIDTH, HEIGHT, EDGE = 240, 96, 6


@dataclass(frozen=True)
class Drawn:
    """What of a study is drawn: its table, what a curve is, x and y, and which are in powers.

    What is below the floor is drawn there.
    """

    study: str
    table: str
    series: str
    x: str
    y: str
    powers: str = ""
    floor: float = -np.inf


CURVES: dict[str, Drawn] = {
    "converge": Drawn("convergence", "curves", "method", "round", "relative_error", "y"),
    "attack": Drawn("reconstruction", "errors", "method", "round", "reconstruction_error", "y"),
    "records": Drawn("records", "rounds", "method", "round", "directions_held"),
    "joined": Drawn("differencing", "rounds", "method", "round", "sine", "y"),
    "replay": Drawn("replay", "fit", "start", "evaluation", "residual", "y"),
    "privacy": Drawn("price_of_epsilon", "sweep", "series", "epsilon", "result", "xy"),
    "personalise": Drawn("personalised", "curves", "method", "round", "fresh_ratio"),
    "which": Drawn("frontier", "points", "method", "bytes_client", "sin_theta", "xy", 1e-4),
    "anomaly": Drawn(
        "detection", "curves", "detector", "false_positive_rate", "true_positive_rate"
    ),
}
#: Below this a curve shows rounding only.
ROUNDING = 1e-16


def wanted() -> Iterator[tuple[str, Settings]]:
    """Names and settings: the pages as they open, then the experiments of the front page."""
    for page in names("doors"):
        if page != "papers":
            yield page, KINDS[page]()
    yield "papers", PRESETS["table-1"].settings
    for preset in PRESETS.values():
        if preset.settings.kind in ("converge", "attack") and preset.name != "default":
            yield preset.name, preset.settings


def chosen(settings: Settings) -> Drawn:
    """What shows the point of these settings."""
    if not isinstance(settings, AttackSettings):
        return CURVES[settings.kind]
    if settings.replay:
        return CURVES["replay"]
    if settings.differencing:
        return CURVES["joined"]
    return CURVES["attack" if settings.problem.startswith("decay") else "records"]


def drawing(settings: Settings) -> str:
    """The thumbnail of a run, as SVG."""
    what = chosen(settings)
    study = STUDIES[what.study]
    rows = study.tables(outcome(study.run(settings)), settings)[what.table]
    if what.series not in rows:
        rows = rows.assign(**{what.series: "SSI"})
    for other in ("measure", "start"):
        if other in rows and other != what.series:
            rows = rows[rows[other] == rows[other].iloc[0]]
    rows = rows[[what.series, what.x, what.y]].replace([np.inf, -np.inf], np.nan).dropna()
    rows = rows.set_axis(["series", "x", "y"], axis=1).reset_index(drop=True)
    return svg(rows.assign(y=rows["y"].clip(lower=what.floor)), what.powers)


def svg(rows: pd.DataFrame, powers: str) -> str:
    """Curves in the colours that their methods have everywhere; a card has no room for axes."""
    across, up = (_share(np.asarray(rows[axis], float), axis in powers) for axis in ("x", "y"))
    lines, rules, dark = [], [], []
    for number, (name, part) in enumerate(rows.groupby("series", sort=False)):
        at = np.asarray(part.index)
        if len(at) > 60:
            at = at[np.unique(np.linspace(0, len(at) - 1, 60).astype(int))]
        points = " ".join(
            f"{EDGE + (WIDTH - 2 * EDGE) * across[i]:.1f},"
            f"{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * up[i]:.1f}"
            for i in at
        )
        style = palette.style(str(name) if palette.knows(str(name)) else f"series {number}")
        rules.append(f".c{number}{{stroke:{style.light}}}")
        dark.append(f".c{number}{{stroke:{style.dark}}}")
        lines.append(f'<polyline class="c{number}" points="{points}"/>')
    look = "fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round"
    look = f"polyline{{{look}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{look}'
        f"{''.join(rules)}@media (prefers-color-scheme:dark){{{''.join(dark)}}}</style>"
        f"{''.join(lines)}</svg>\n"
    )


def _share(values: np.ndarray, powers: bool) -> np.ndarray:
    if powers:
        values = np.log10(np.maximum(values, ROUNDING))
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def main(names: list[str]) -> int:
    """Draw all, or those that are named; returns the exit status."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, settings in wanted():
        if absent := missing(settings):
            print(f"{name} stays as it is: {absent}", file=sys.stderr)
        elif not names or name in names:
            (FOLDER / f"{name}.svg").write_text(drawing(settings), encoding="utf-8")
            print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
