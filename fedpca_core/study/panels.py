"""What can be shown: curves in panels, heat maps, and rows of replayed images.

All are plain frozen values, which know of no screen: a page draws them, an archive prints them, a
poster plays them. They are checked when they are made, so that whoever writes a figure learns of a
wrong length at the line that made it, in a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedpca_core.errors import require
from fedpca_core.settings import said_in

Kind = Literal["lines", "area", "bars", "scatter"]
ImagePalette = Literal["diverging", "sequential", "grey"]
Range = tuple[float, float]

#: Below this a curve shows rounding only.
ROUNDING = 1e-16


def floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return ``values`` as float64; None becomes NaN (a gap)."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        require(False, f"{what} must be numbers (None or NaN for a gap); something else was given.")
        raise


def is_text(values: object) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "UO" and values.size > 0 and isinstance(values.flat[0], str)
    return isinstance(values, Sequence) and len(values) > 0 and isinstance(values[0], str)


def _fits(who: str, *rules: tuple[object, str]) -> None:
    """Refuse what breaks a rule, by the first that it breaks."""
    for holds, wrong in rules:
        require(bool(holds), f"{who}: {wrong}")


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve; index k along it is round k when its panel follows the rounds."""

    #: What the legend and the read-out call it. Curves with the same name in several panels are
    #: shown and hidden together.
    name: str
    #: x, y: Equal lengths. ``x`` may be rounds, bytes, seconds or products, or texts for bars. NaN
    #: or None leaves a gap; a curve may be shorter than the run. ``y`` may be two-dimensional
    #: (rounds + 1, points): then round k shows the k-th row (a spectrum per round, say).
    x: Any
    y: Any
    #: A name known to `dashboard.shell.palette.style`; by default the colour of the algorithm
    #: called ``name``, or the next free one.
    colour: str | None = None
    #: A Plotly dash; by default the one that belongs to the colour ("dash" for a guide).
    dash: str | None = None
    #: lower, upper: A band around the curve; both or none, as long as ``y``.
    lower: Any = None
    upper: Any = None
    #: A thin dashed line for orientation (a proved rate, a bound): no dot, no read-out.
    guide: bool = False
    #: Draw a marker at every point (and always in scatter panels).
    marker: bool = False
    #: Marked as needing the clients' private data: nobody could draw it in a real deployment.
    simulation_only: bool = False
    #: A hover text for every point (which client, which sample); lines are parted by ``\n``.
    labels: Sequence[str] = ()
    #: Draw ``lower`` and ``upper`` as whiskers at every point instead of a band.
    whiskers: bool = False

    def __post_init__(self) -> None:
        who = f"Curve {self.name!r}"
        x = np.empty(len(self.x)) if is_text(self.x) else floats(self.x, f"{who}: the x values")
        y = floats(self.y, f"{who}: the y values")
        sides = [side for side in (self.lower, self.upper) if side is not None]
        bands = [floats(side, f"{who}: the band") for side in sides]
        points = y.shape[-1] if y.ndim else 1
        _fits(
            who,
            (y.ndim in (1, 2), "give one value per point, or (rounds + 1, points) for each round."),
            (x.ndim == 1, f"x has {x.ndim} dimensions; give one value per point."),
            (x.size == points, f"x has {x.size} points and y has {points}; give as many of both."),
            (len(bands) != 1, "only one side of the band was given; give both lower and upper."),
            (
                all(band.shape == y.shape and y.ndim == 1 for band in bands),
                "a band needs one value per point of a one-dimensional y.",
            ),
            (
                len(self.labels) in (0, points),
                f"{len(self.labels)} labels for {points} points; give one each, or none.",
            ),
        )


def plot(
    table: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    names: Mapping[str, str] | None = None,
    colours: Mapping[str, str] | None = None,
    truths: Collection[str] = (),
    least: float = -np.inf,
    spread: bool = True,
    **look: Any,
) -> tuple[Curve, ...]:
    """A tidy table as curves: one for each value of a column, in the order in which they come.

    ``x``, ``y``, ``by``: Columns. Where several rows share a value of ``x``, the curve is their
        median and its band spans all of them.
    ``names``, ``colours``: What the values of ``by`` are called and how they are coloured; with
        ``names`` those that it lacks are left out.
    ``truths``: Values of ``by`` that nobody could draw in a deployment (`Curve.simulation_only`).
    ``least``: Smaller values are drawn there, for a logarithmic axis.
    ``**look``: Further fields of every `Curve`.
    """
    curves = []
    for value in dict.fromkeys(table[by]) if names is None else names:
        rows = table[table[by] == value].groupby(x, sort=True)[y].agg(["median", "min", "max"])
        if rows.empty:
            continue
        middle, low, high = (np.maximum(rows[name].to_numpy(float), least) for name in rows)
        more = look | ({"lower": low, "upper": high} if spread else {})
        if value in truths:
            more["simulation_only"] = True
        colour = None if colours is None else colours.get(value)
        title = value if names is None else names[value]
        at = rows.index.to_numpy(dtype=float)
        curves.append(Curve(title, at, middle, colour=colour, **more))
    return tuple(curves)


@dataclass(frozen=True)
class Baseline:
    """A labelled horizontal line: the target, the noise floor, what guessing would reach."""

    label: str
    value: float
    simulation_only: bool = False
    colour: str | None = None


@dataclass(frozen=True)
class Mark:
    """A labelled vertical line: what happens, or is expected, at this place of the x axis."""

    label: str
    value: float


@dataclass(frozen=True, eq=False)
class Panel:
    #: Unique within one view; the browser finds the plot again by it.
    key: str
    title: str
    x_title: str
    y_title: str
    #: At least one; names differ.
    curves: tuple[Curve, ...]
    baselines: tuple[Baseline, ...] = ()
    log_x: bool = False
    log_y: bool = True
    #: x_range, y_range: (low, high), optional: Where the axes start, in data units (also on log
    #: axes); default: fitted to the data.
    x_range: Range | None = None
    y_range: Range | None = None
    #: One or two sentences for those who cannot see the chart.
    description: str = ""
    #: A reader's zoom is kept while this text is unchanged; by default it is made of the titles and
    #: scales of the axes, so a new unit or a log switch starts afresh.
    axes_id: str | None = None
    #: {"lines", "area", "bars", "scatter"}: "area" stacks the curves; "bars" draws them side by
    #: side (or stacked with ``stack``).
    kind: Kind = "lines"
    #: Whether the current round is shown on the curves (a cursor, dots, the read-out). False for a
    #: chart without rounds, such as a ROC curve. Bars and scatter panels never show a cursor;
    #: two-dimensional ``y`` follows the round in any case.
    follows: bool = True
    #: Stack bars instead of grouping them.
    stack: bool = False
    #: Label x at whole numbers only.
    integer_x: bool = False
    #: CSS pixels of the plot.
    height: int = 340
    #: Marks the whole chart: everything in it needs the clients' private data.
    simulation_only: bool = False
    #: A small chart beside pictures: no titles at the axes, no legend of its own, tools on demand,
    #: and the height that its place gives it.
    compact: bool = False
    #: Vertical lines.
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, name: str, curves: Sequence[Curve], **more: Any) -> Panel:
        """The panel that `panels.toml` describes, with what depends on the result.

        Its key is the name, unless another page has a panel of that key.
        """
        return cls(curves=tuple(curves), **{"key": name} | said_in("panels")[name] | more)

    def __post_init__(self) -> None:
        names = [curve.name for curve in self.curves]
        twice = sorted({name for name in names if names.count(name) > 1})
        _fits(
            who := f"Panel {self.key!r}",
            (self.key, "a panel needs a key; give it a short name."),
            (
                self.kind in get_args(Kind),
                f"the kind {self.kind!r} is unknown; use {', '.join(get_args(Kind))}.",
            ),
            (names, "there is no curve in it; give at least one."),
            (
                not twice,
                f"the curve name {', '.join(map(repr, twice))} is used twice; give every curve a "
                "name of its own.",
            ),
        )
        for axis, log, ends in (("x", self.log_x, self.x_range), ("y", self.log_y, self.y_range)):
            if ends is not None:
                whole, positive = np.isfinite(ends).all() and ends[0] != ends[1], min(ends) > 0
                said = f"the {axis} range {ends}"
                log_says = "cannot be drawn on a log axis; give positive ends or a linear axis."
                _fits(
                    who,
                    (whole, f"{said} is empty; give two finite ends."),
                    (not log or positive, f"{said} {log_says}"),
                )
        for line in self.baselines:
            there = np.isfinite(line.value) and (not self.log_y or line.value > 0)
            why = "which has no place on its axis; leave it out, or use a linear axis."
            _fits(who, (there, f"the baseline {line.label!r} is at {line.value}, {why}"))


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix with labelled rows and columns (who trusts whom, an angle per pair of clients).

    ``values`` is (rows, columns), or (rounds + 1, rows, columns) to follow the round; ``low`` and
    ``high`` are the ends of the colours (default: the data's; symmetric when diverging).
    ``show_values`` prints the numbers into the cells of a map that stays; an empty cell is NaN.
    ``simulation_only`` marks what needs private data.
    """

    key: str
    title: str
    values: Any
    row_labels: Sequence[str]
    column_labels: Sequence[str]
    x_title: str = ""
    y_title: str = ""
    palette: Literal["diverging", "sequential"] = "sequential"
    low: float | None = None
    high: float | None = None
    description: str = ""
    axes_id: str | None = None
    show_values: bool = False
    height: int = 340
    simulation_only: bool = False

    @classmethod
    def of(
        cls, name: str, values: Any, rows: Sequence[str], columns: Sequence[str], **more: Any
    ) -> Heat:
        """The map that `panels.toml` describes, with what depends on the result; see `Panel.of`."""
        described = {"key": name} | said_in("panels")[name] | more
        return cls(values=values, row_labels=rows, column_labels=columns, **described)

    def __post_init__(self) -> None:
        who = f"Heat map {self.key!r}"
        values = floats(self.values, f"{who}: the values")
        labels = len(self.row_labels), len(self.column_labels)
        _fits(
            who,
            (self.key, "a heat map needs a key; give it a short name."),
            (
                values.ndim in (2, 3) and values.size > 0,
                f"the values have the shape {values.shape}; give (rows, columns) or "
                "(rounds + 1, rows, columns).",
            ),
            (
                values.shape[-2:] == labels,
                f"the matrix is {' by '.join(map(str, values.shape[-2:]))}, but there are "
                f"{labels[0]} row labels and {labels[1]} column labels.",
            ),
            (
                values.ndim == 2 or not self.show_values,
                "numbers in the cells cannot follow the round; show them in a map that stays.",
            ),
            (
                self.low is None or self.high is None or self.low < self.high,
                f"low is {self.low} and high is {self.high}; low must be below high.",
            ),
        )


@dataclass(frozen=True, eq=False)
class Images:
    """One replayed (or still) picture: a matrix per round, as bytes."""

    title: str
    #: (rounds + 1, rows, columns), or (1, rows, columns) for a picture that stays; see `to_uint8`.
    frames: NDArray[np.uint8]
    #: low, high: The values that 0 and 255 stand for: the ends of the colour bar.
    low: float = 0.0
    high: float = 1.0
    palette: ImagePalette = "sequential"
    #: One per frame, one for all, or none.
    captions: Sequence[str] = ()
    #: Marked as needing private data (the true matrix beside the reconstructed one).
    simulation_only: bool = False
    #: Largest width in CSS pixels.
    size: int = 320
    #: Whether to draw the colour bar (a photograph needs none).
    show_scale: bool = True
    #: What the picture shows, for those who cannot see it.
    description: str = ""

    def __post_init__(self) -> None:
        frames = np.asarray(self.frames)
        _fits(
            f"Images {self.title!r}",
            (
                frames.dtype == np.uint8,
                f"the frames are {frames.dtype}; convert them with to_uint8(frames, low, high).",
            ),
            (
                frames.ndim == 3 and frames.size > 0,
                f"the frames have the shape {frames.shape}; give (rounds + 1, rows, columns) or "
                "(1, rows, columns).",
            ),
            (
                np.isfinite([self.low, self.high]).all() and self.low < self.high,
                f"low is {self.low} and high is {self.high}; low must be below high.",
            ),
            (
                self.palette in get_args(ImagePalette),
                f"the palette {self.palette!r} is none of {', '.join(get_args(ImagePalette))}.",
            ),
        )


def to_uint8(frames: ArrayLike, low: float, high: float) -> NDArray[np.uint8]:
    """Map values to bytes: ``low`` and below to 0, ``high`` and above to 255, linear between.

    ``frames``, array_like: Any shape; infinite values go to the ends of the scale.

    Raises InvalidInput: ``low`` is not below ``high``, one is not finite, or a value is NaN.
    """
    require(
        bool(np.isfinite([low, high]).all()) and low < high,
        f"The colour scale runs from {low} to {high}; give two finite ends, low below high.",
    )
    values = np.asarray(frames, dtype=np.float64)
    holes = int(np.isnan(values).sum())
    require(
        holes == 0,
        f"{holes} of {values.size} image values are not a number, so they have no colour; "
        "replace them (the run may have diverged) before showing the images.",
    )
    scaled = (np.clip(values, low, high) - low) * (255.0 / (high - low))
    return np.rint(scaled).astype(np.uint8)
