"""A view on paper: every panel, heat map and row of pictures as SVG, PNG and PDF, and as numbers.

Matplotlib draws from the same values as the browser, so nothing but Python is needed: no browser,
no fonts of the system, no network. Figures are on white, in the colours of light paper, with the
legend inside and the settings below.
"""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player.encode import baseline_style, extent, styles
from fedpca_core.algorithms.method import Look
from fedpca_core.study.panels import Curve, Heat, Images, Panel, floats, is_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure, SubFigure

FORMATS = ("csv", "svg", "png", "pdf")
DOTS_PER_INCH = 200
_WIDTH = 7.2
#: Matplotlib's fonts and formulas are shared by all of a process.
_ONE_AT_A_TIME = threading.Lock()
_MARKERS = {
    "circle": "o", "diamond": "D", "square": "s", "triangle-up": "^", "triangle-down": "v",
    "x": "X", "cross": "P", "star": "*", "hexagon": "h",
}  # fmt: skip
_DASHES: Mapping[str, Any] = {
    "solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (4, 1.5, 1, 1.5)),
    "longdash": (0, (7, 2)), "longdashdot": (0, (7, 1.5, 1, 1.5)),
}  # fmt: skip
_SIMULATION = " ◇"


def printed(
    key: str,
    panels: Sequence[Panel | Heat],
    images: Sequence[Sequence[Images]],
    caption: str,
    kinds: Sequence[str] = FORMATS,
    only: int | None = None,
) -> dict[str, bytes]:
    """The figures of a view as they stand in its last round: files of these kinds by their names.

    Rows of pictures are called after the view's ``key``. The ``caption`` goes below every figure.
    Each takes its time: ``only`` is the place of the one that is asked for.
    """
    some: list[tuple[str, Panel | Heat | Sequence[Images]]] = [(one.key, one) for one in panels]
    some += [(f"{key}-pictures-{at + 1}", row) for at, row in enumerate(images) if row]
    files: dict[str, bytes] = {}
    with _ONE_AT_A_TIME:
        for name, one in some if only is None else [some[only]]:
            if isinstance(one, Panel):
                height, draw, table = 4.4, partial(_panel, one), numbers(one)
            elif isinstance(one, Heat):
                height, draw, table = 5.0, partial(_heat, one), heat_numbers(one)
            else:
                height, draw = 1.4 + _WIDTH / max(len(one), 2), partial(_gallery, one)
                table = pd.concat(map(image_numbers, one))
            files |= _files(name, _sheet(caption, height, draw), table, kinds)
    return files


def numbers(panel: Panel) -> pd.DataFrame:
    """The curves of a panel as a tidy table: one point a row, quantities with their units."""
    rows = []
    for curve in panel.curves:
        y = floats(curve.y, "y")
        for shown, values in enumerate(y) if y.ndim == 2 else [(None, y)]:
            row = {
                "curve": curve.name,
                "round": shown,
                "x": list(curve.x),
                "y": values,
                "lower": np.nan if curve.lower is None else floats(curve.lower, "lower"),
                "upper": np.nan if curve.upper is None else floats(curve.upper, "upper"),
                "simulation_only": curve.simulation_only or panel.simulation_only,
            }
            rows.append(pd.DataFrame(row))
    table = pd.concat(rows).dropna(axis=1, how="all")
    return table.assign(x_quantity=panel.x_title, y_quantity=panel.y_title)


def heat_numbers(heat: Heat) -> pd.DataFrame:
    """The last matrix of a heat map as a tidy table: one entry a row."""
    named = pd.MultiIndex.from_product([heat.row_labels, heat.column_labels])
    table = named.to_frame(index=False, name=["row", "column"])
    return table.assign(value=_last(heat.values).ravel(), quantity=heat.title)


def image_numbers(images: Images) -> pd.DataFrame:
    """The last frame of a picture as a tidy table, in the values that its bytes stand for."""
    values = _frame(images)
    rows, columns = np.indices(values.shape)
    named = {"row": rows.ravel() + 1, "column": columns.ravel() + 1, "value": values.ravel()}
    return pd.DataFrame({"picture": images.title, **named})


# ------------------------------------------------------------------ sheets and files
def _sheet(caption: str, height: float, draw: Callable[[SubFigure], None]) -> Figure:
    from matplotlib.figure import Figure

    lines = textwrap.wrap(caption, 118)
    below = 0.14 * len(lines) + 0.1
    figure = Figure(figsize=(_WIDTH, height + below), layout="constrained", facecolor="white")
    parts: Any = figure.subfigures(2, 1, height_ratios=[height, below])
    top, bottom = parts
    draw(top)
    bottom.text(0.01, 1.0, "\n".join(lines), fontsize=6.5, color="#444444", va="top")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, not for every format anew
    return figure


def _files(
    name: str, figure: Figure, table: pd.DataFrame, kinds: Sequence[str]
) -> dict[str, bytes]:
    from matplotlib import rc_context

    files: dict[str, bytes] = {}
    # Text stays text, and equal settings make equal files.
    with rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": name}):
        for kind in kinds:
            out = io.BytesIO()
            if kind == "csv":
                table.to_csv(out, index=False)
            else:
                dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
                figure.savefig(out, format=kind, dpi=DOTS_PER_INCH, metadata=dated)
            files[f"{name}.{kind}"] = out.getvalue()
    return files


# ------------------------------------------------------------------ charts
def _panel(panel: Panel, place: SubFigure) -> None:
    axes = place.subplots()
    axes.set(**{f"{axis}scale": "log" for axis in "xy" if getattr(panel, f"log_{axis}")})
    curves = list(zip(panel.curves, styles(panel.curves), strict=True))
    if panel.kind == "bars":
        _bars(axes, panel, curves)
    elif panel.kind == "area":
        axes.stackplot(
            np.asarray(panel.curves[0].x, dtype=float),
            [_last(curve.y, 1) for curve in panel.curves],
            labels=[_named(curve, panel) for curve in panel.curves],
            colors=[style.light for _, style in curves],
            alpha=0.6,
        )
    else:
        for curve, style in curves:
            _curve(axes, panel, curve, style)
    for at, line in enumerate(panel.baselines):
        axes.axhline(
            line.value,
            color=baseline_style(line).light,
            linewidth=1.1,
            linestyle=list(_DASHES.values())[1 + at % 5],
            label=line.label + (_SIMULATION if line.simulation_only else ""),
        )
    axes.set(xlim=panel.x_range, ylim=panel.y_range)
    if panel.integer_x and not panel.log_x:
        axes.locator_params(axis="x", integer=True)
    marked = any(c.simulation_only for c in panel.curves) or panel.simulation_only
    remark = "  (◇ simulation only)" if marked else ""
    axes.set_title((panel.title or panel.y_title) + remark, loc="left", fontsize=10)
    axes.set(xlabel=panel.x_title, ylabel=textwrap.fill(panel.y_title, 30))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        place.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _curve(axes: Axes, panel: Panel, curve: Curve, style: Look) -> None:
    x = list(curve.x) if is_text(curve.x) else floats(curve.x, "x")
    dots = panel.kind == "scatter"
    line: Any = "none" if dots else _DASHES[curve.dash or ("dash" if curve.guide else style.dash)]
    axes.plot(
        x,
        _last(curve.y, 1),
        color=style.light,
        linestyle=line,
        linewidth=1.0 if curve.guide else 1.7,
        marker=_MARKERS[style.marker] if dots or curve.marker else None,
        markersize=5 if dots else 3.5,
        label=_named(curve, panel),
    )
    if curve.lower is not None:
        band = floats(curve.lower, "lower"), floats(curve.upper, "upper")
        axes.fill_between(x, *band, color=style.light, alpha=0.16, linewidth=0)


def _bars(axes: Axes, panel: Panel, curves: list[tuple[Curve, Look]]) -> None:
    labels = [str(x) for x in curves[0][0].x]
    places, base = np.arange(len(labels)), np.zeros(len(labels))
    width = 0.8 if panel.stack else 0.8 / len(curves)
    for at, (curve, style) in enumerate(curves):
        values = np.nan_to_num(_last(curve.y, 1))
        shift = 0.0 if panel.stack else width * (at - (len(curves) - 1) / 2)
        look: dict[str, Any] = {"color": style.light, "label": _named(curve, panel)}
        look |= {"bottom": base if panel.stack else None, "edgecolor": "white"}
        axes.bar(places + shift, values, width, **look)
        base = base + values
    tight = sum(map(len, labels)) > 60
    axes.set_xticks(
        places, labels, rotation=40 if tight else 0, ha="right" if tight else "center", fontsize=8
    )


def _heat(heat: Heat, place: SubFigure) -> None:
    axes = place.subplots()
    values, (low, high) = _last(heat.values), extent(heat)
    shown = axes.imshow(
        values, cmap=_colours(heat.palette), vmin=low, vmax=high, aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    axes.set_title(heat.title, loc="left", fontsize=10)
    axes.set(xlabel=heat.x_title, ylabel=heat.y_title)
    for axis, labels in ((axes.xaxis, heat.column_labels), (axes.yaxis, heat.row_labels)):
        step = -(-len(labels) // 25)
        axis.set_ticks(range(0, len(labels), step), list(labels)[::step], fontsize=7)
    if heat.show_values:
        for row, column in np.argwhere(np.isfinite(values)):
            value = values[row, column]
            red, green, blue, _ = shown.cmap(shown.norm(value))
            colour = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour)
    axes.figure.colorbar(shown, ax=axes)


def _gallery(row: Sequence[Images], place: SubFigure) -> None:
    for axes, one in zip(np.atleast_1d(place.subplots(1, len(row))), row, strict=True):
        shown = axes.imshow(
            _frame(one),
            cmap=_colours(one.palette), vmin=one.low, vmax=one.high, interpolation="nearest",
        )  # fmt: skip
        title = one.title + _SIMULATION * one.simulation_only
        axes.set_title(textwrap.fill(title, 96 // len(row)), loc="left", fontsize=8)
        below = one.captions[-1] if one.captions else ""
        axes.set_xlabel(textwrap.fill(below, 120 // len(row)), fontsize=6.5, loc="left")
        axes.set(xticks=[], yticks=[])
        if one.show_scale:
            bar = place.colorbar(shown, ax=axes, orientation="horizontal", shrink=0.9)
            bar.ax.tick_params(labelsize=6)


# ------------------------------------------------------------------ small things
def _named(curve: Curve, panel: Panel) -> str:
    return curve.name + (_SIMULATION if curve.simulation_only and not panel.simulation_only else "")


def _last(values: Any, dimensions: int = 2) -> np.ndarray:
    found = floats(values, "values")
    return found[-1] if found.ndim > dimensions else found


def _frame(images: Images) -> np.ndarray:
    return images.low + (images.high - images.low) * (images.frames[-1] / 255.0)


def _colours(name: str) -> Colormap | str:
    from matplotlib.colors import LinearSegmentedColormap

    if name == "grey":
        return "gray"
    stops: list[str] = st.get_option(f"theme.light.chart{name.capitalize()}Colors")
    return LinearSegmentedColormap.from_list(name, stops)


# ------------------------------------------------------------------ kept as they are drawn
#: Prints a view: the caption in, and which kinds and figures; files out, by name.
Printer = Callable[..., Mapping[str, bytes]]

_STATE = "_figures"


def forget() -> None:
    """Start a page anew: nothing is drawn yet."""
    st.session_state[_STATE] = {}


def kept() -> dict[str, Printer]:
    """How to print each view, by its key; filled further while the page is drawn."""
    return st.session_state.setdefault(_STATE, {})


def picture(printer: Printer, caption: str, at: int) -> bytes:
    """One figure of a view as PNG, by its place."""
    return next(iter(printer(caption, kinds=("png",), only=at).values()))
