"""A view as bytes: a JSON header, then the arrays, little endian and aligned to eight bytes.

Layout: 4 bytes header length (uint32), the header, zeros up to a multiple of 8, the blocks. In the
header an array is ``{"block": [offset, count, type]}`` with the offset counted from the first
block and the type one of f4, f8, u1. Equal arrays are stored once, which also tells the browser
that two panels draw the same numbers.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dashboard.player.stage import Lecture, PlayedRun, Side, Stage, plain
from dashboard.shell import palette
from fedpca_core.algorithms.method import Look
from fedpca_core.errors import require
from fedpca_core.study.panels import Baseline, Curve, Heat, Images, Panel, floats, is_text

ALIGNMENT = 8
Block = dict[str, list[Any]]


class _Blocks:
    def __init__(self) -> None:
        self.joined, self._known = bytearray(), dict[tuple[str, bytes], Block]()

    def _store(self, array: NDArray[Any], kind: str) -> Block:
        raw = array.tobytes()
        if (known := self._known.get((kind, raw))) is None:
            known = self._known[kind, raw] = {"block": [len(self.joined), array.size, kind]}
            self.joined += raw + b"\0" * (-len(raw) % ALIGNMENT)
        return known

    def floats(self, values: ArrayLike) -> Block:
        """Store numbers as float32 where that loses nothing the eye could see, else float64."""
        wide = np.ascontiguousarray(values, dtype="<f8")
        finite = wide[np.isfinite(wide) & (wide != 0.0)]
        limits = np.finfo(np.float32)
        fits = finite.size == 0 or (
            np.abs(finite).min() >= limits.tiny and np.abs(finite).max() <= limits.max
        )
        return self._store(wide.astype("<f4"), "f4") if fits else self._store(wide, "f8")

    def bytes_(self, values: NDArray[np.uint8]) -> Block:
        return self._store(np.ascontiguousarray(values), "u1")


def _colours(style: Look) -> dict[str, str]:
    return {"light": style.light, "dark": style.dark}


def styles(curves: Sequence[Curve]) -> list[Look]:
    """Choose every curve's style: as asked, as its name says, or the next one nobody uses."""
    named = [curve.colour or ("guide" if curve.guide else curve.name) for curve in curves]
    chosen = [
        palette.style(name) if curve.colour or palette.knows(name) else None
        for curve, name in zip(curves, named, strict=True)
    ]
    taken = {style.light for style in chosen if style is not None}
    free = [style for style in palette.FALLBACKS if style.light not in taken]
    left = cycle(free or palette.FALLBACKS)
    return [style or next(left) for style in chosen]


def _curve(curve: Curve, style: Look, blocks: _Blocks) -> dict[str, Any]:
    y = floats(curve.y, "y")
    return plain(curve, "name guide marker simulation_only labels whiskers") | {
        "x": [str(x) for x in curve.x] if is_text(curve.x) else blocks.floats(floats(curve.x, "x")),
        "y": blocks.floats(y),
        "frames": y.shape[0] if y.ndim == 2 else 0,
        "lower": None if curve.lower is None else blocks.floats(floats(curve.lower, "lower")),
        "upper": None if curve.upper is None else blocks.floats(floats(curve.upper, "upper")),
        "colour": _colours(style),
        "dash": curve.dash or ("dash" if curve.guide else style.dash),
        "symbol": style.marker,
    }


def baseline_style(baseline: Baseline) -> Look:
    role = "simulation" if baseline.simulation_only else "guide"
    return palette.style(baseline.colour or role)


def _each_round(fits: bool, said: str, rounds: int, otherwise: str = "", most: str = "") -> None:
    """Raises InvalidInput: there is not one of what is ``said`` for every round."""
    asked = f"give {most}{rounds + 1}, the start included{otherwise}"
    require(fits, f"{said} for {rounds} rounds; {asked}.")


def _panel(panel: Panel, rounds: int, blocks: _Blocks) -> dict[str, Any]:
    follows = panel.follows and panel.kind in ("lines", "area")
    for curve in panel.curves:
        y, who = floats(curve.y, "y"), f"Panel {panel.key!r}, curve {curve.name!r}"
        if y.ndim == 2:
            _each_round(len(y) == rounds + 1, f"{who}: {len(y)} rows of y", rounds)
        elif follows and not curve.guide:
            said, instead = f"{who}: {y.size} points", ", or set follows=False"
            _each_round(y.size <= rounds + 1, said, rounds, instead, most="at most ")
    axes = f"{panel.x_title}|{panel.y_title}|{panel.kind}|{panel.log_x}|{panel.log_y}"
    same = "kind key title x_title y_title log_x log_y x_range y_range description stack integer_x"
    return plain(panel, f"{same} height compact") | {
        "axesId": panel.axes_id or axes,
        "follows": follows,
        # One mark for the chart where every curve would have one.
        "simulationOnly": panel.simulation_only
        or all(curve.simulation_only for curve in panel.curves),
        "marks": [{"label": mark.label, "value": float(mark.value)} for mark in panel.marks],
        "curves": [
            _curve(curve, style, blocks)
            for curve, style in zip(panel.curves, styles(panel.curves), strict=True)
        ],
        "baselines": [
            plain(line, "label simulation_only")
            | {"value": float(line.value), "colour": _colours(baseline_style(line))}
            for line in panel.baselines
        ],
    }


def extent(heat: Heat) -> tuple[float, float]:
    values = floats(heat.values, "values")
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if heat.palette == "diverging":
        high = max(abs(low), abs(high))
        low = -high
    low = low if heat.low is None else heat.low
    high = high if heat.high is None else heat.high
    if not low < high:
        low, high = low - 0.5, low + 0.5
    return low, high


def _heat(heat: Heat, rounds: int, blocks: _Blocks) -> dict[str, Any]:
    values = floats(heat.values, "values")
    many = len(values) if values.ndim == 3 else 0
    said = f"Heat map {heat.key!r}: {many} matrices"
    _each_round(many in (0, rounds + 1), said, rounds)
    low, high = extent(heat)
    same = "key title x_title y_title description height palette show_values simulation_only"
    return plain(heat, same) | {
        "kind": "heat",
        "axesId": heat.axes_id or f"{heat.x_title}|{heat.y_title}|{values.shape[-2:]}",
        "values": blocks.floats(values),
        "frames": many,
        "rowLabels": [str(label) for label in heat.row_labels],
        "columnLabels": [str(label) for label in heat.column_labels],
        "low": low,
        "high": high,
        "follows": False,
        "compact": False,
        "marks": [],
        "curves": [],
        "baselines": [],
    }


def _frames(frames: NDArray[np.uint8], blocks: _Blocks) -> dict[str, Any]:
    count, rows, columns = frames.shape
    return {"frames": blocks.bytes_(frames), "count": count, "rows": rows, "columns": columns}


def _images(images: Images, rounds: int, blocks: _Blocks) -> dict[str, Any]:
    frames = np.asarray(images.frames)
    for of, what, alone, otherwise in (
        (frames, "frames", (1,), ", or a single one that stays"),
        (images.captions, "captions", (0, 1), ", or one for all, or none"),
    ):
        said = f"Images {images.title!r}: {len(of)} {what}"
        _each_round(len(of) in (*alone, rounds + 1), said, rounds, otherwise)
    same = "title palette captions simulation_only size show_scale description"
    ends = {"low": float(images.low), "high": float(images.high)}
    return plain(images, same) | _frames(frames, blocks) | ends


def _side(side: Side, blocks: _Blocks) -> dict[str, Any]:
    return plain(side, "title kind help protection stamp note since attack off") | {
        "message": _frames(side.message, blocks),
        "components": _frames(side.components, blocks),
        "places": blocks.bytes_(side.places),
        "colour": _colours(palette.style(side.colour)),
    }


def encode(
    *,
    key: str,
    rounds: int,
    panels: Sequence[Panel | Heat] = (),
    images: Sequence[Sequence[Images]] = (),
    round_label: str = "round",
    start: int | None = None,
    playback: bool = True,
    stage: Stage | None = None,
    sentences: Sequence[str] = (),
    autoplay: bool = False,
    run: PlayedRun | None = None,
    choosable: bool = False,
    lecture: Lecture | None = None,
) -> bytes:
    """Return the whole view as the bytes the browser decodes: rows of images, panels below them.

    ``key``: Unique on the page; keeps the view's identity over reruns.
    ``rounds``: K; frames and curves have K + 1 entries, the first is the start.
    ``round_label``: What a step is called ("round", "iteration").
    ``start``: The round shown first; default the last. Later runs keep the reader's round, cut to
        the new length; as long as nobody has moved, the default keeps showing the last.
    ``playback``: False leaves out the transport, the cursor and the read-out.
    ``stage``: Above everything else; the view becomes one scene that fits on a screen, with the
        pictures beside the charts and without the read-out.
    ``sentences``: What has happened, for each round with the start; none for no line.
    ``autoplay``: Play once when the view opens, or when it has got more than a start, unless the
        reader prefers less motion.
    ``run``: With it the curves of the run before stay as a ghost, and a run can be pinned.
    ``choosable``: Whether a click on a curve is told to the server.

    Raises InvalidInput: lengths do not fit the number of rounds, a key is used twice, or there is
    nothing to show.
    """
    require(rounds >= 0, f"The view {key!r} has {rounds} rounds; give 0 or more.")
    require(
        start is None or 0 <= start <= rounds,
        f"The view {key!r} starts at {round_label} {start} of {rounds}; "
        f"give a number from 0 to {rounds}.",
    )
    require(
        len(panels) > 0 or any(len(row) > 0 for row in images),
        f"The view {key!r} has neither a panel nor an image; give at least one.",
    )
    said = f"The view {key!r} has {len(sentences)} sentences"
    _each_round(len(sentences) in (0, rounds + 1), said, rounds, ", or none")
    keys = Counter(panel.key for panel in panels)
    twice = sorted(name for name, times in keys.items() if times > 1)
    require(
        not twice,
        f"The view {key!r}: the panel key {', '.join(map(repr, twice))} is used twice; "
        "give every panel a key of its own.",
    )
    made: Mapping[type, Callable[..., dict[str, Any]]] = {Panel: _panel, Heat: _heat}
    blocks = _Blocks()
    header: dict[str, Any] = {
        "key": key,
        "rounds": rounds,
        "roundLabel": round_label,
        "start": start,
        "playback": playback,
        "choosable": choosable,
        "panels": [made[type(panel)](panel, rounds, blocks) for panel in panels],
        "images": [[_images(one, rounds, blocks) for one in row] for row in images],
        "stage": None
        if stage is None
        else stage.described(rounds)
        | {
            "thumbnails": blocks.bytes_(stage.thumbnails),
            "sides": [_side(side, blocks) for side in stage.sides],
            "owners": None if stage.owners is None else blocks.bytes_(stage.owners),
        },
        "sentences": list(sentences),
        "autoplay": autoplay,
        "lecture": asdict(lecture or Lecture()),
        "run": None if run is None else asdict(run),
        "simulationColour": _colours(palette.style("simulation")),
    }
    body = bytes(blocks.joined)
    shown = json.dumps(header, sort_keys=True).encode() + body
    header["digest"] = hashlib.blake2b(shown, digest_size=6).hexdigest()
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    return len(text).to_bytes(4, "little") + text + b"\0" * (-(4 + len(text)) % ALIGNMENT) + body


def header(view: bytes) -> dict[str, Any]:
    return json.loads(view[4 : 4 + int.from_bytes(view[:4], "little")])
