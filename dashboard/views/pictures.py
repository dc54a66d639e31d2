"""Pictures of a study as images of the player."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dashboard.player import Images, to_uint8
from fedpca_core.arrays import AnyArray
from fedpca_core.study.pictures import Pictures


def row(
    pictures: Pictures,
    *,
    truth: str,
    caption: str,
    titles: Mapping[str, str],
    captions: Mapping[str, Sequence[str]],
) -> list[Images]:
    """The true picture beside those made of each source.

    Parameters
    ----------
    truth, caption : str
        Title and caption of the true picture.
    titles, captions : mapping of source to a title, and to a caption for each round
    """
    record = pictures.kind == "record"
    look: dict[str, Any] = {
        "low": -pictures.top,
        "high": pictures.top,
        "palette": "diverging" if pictures.kind == "covariance" else "grey",
        "show_scale": pictures.kind == "covariance",
    } | ({"size": 200} if record else {})
    shows = {
        "covariance": "heat map of the attacked client's second-moment matrix",
        "eigen-images": "leading eigen-images of the attacked client's covariance",
        "record": "one record of the attacked client",
    }[pictures.kind]
    images = [
        Images(
            title=truth,
            frames=to_uint8(pictures.truth[None], -pictures.top, pictures.top),
            captions=[caption],
            simulation_only=True,
            description=f"{truth}: {shows}.",
            **look,
        )
    ]
    return images + [
        Images(
            title=titles[source],
            frames=to_uint8(frames, -pictures.top, pictures.top),
            captions=captions.get(source, ()),
            description=f"{titles[source]}: {shows}.",
            **look,
        )
        for source, frames in pictures.found.items()
    ]


def lasting(row: Sequence[Images], rounds: int) -> list[Images]:
    """The same pictures for a whole run: those of a method that ends early keep their last."""

    def extended(shown: Images) -> Images:
        missing = rounds + 1 - len(shown.frames)
        if len(shown.frames) == 1 or missing <= 0:
            return shown
        frames = np.concatenate([shown.frames, np.repeat(shown.frames[-1:], missing, axis=0)])
        several = len(shown.captions) > 1
        captions = [*shown.captions, *[shown.captions[-1]] * missing] if several else shown.captions
        return replace(shown, frames=frames, captions=captions)

    return [extended(shown) for shown in row]


def mosaic(pictures: AnyArray, columns: int | None = None) -> AnyArray:
    """Pictures (count, rows, columns) side by side, a line of grey between them."""
    count, rows, width = pictures.shape
    wide = columns or _columns(count, 1.5 * rows / width)
    high = math.ceil(count / wide)
    sheet = np.full((high * (rows + 1) - 1, wide * (width + 1) - 1), 0.5)
    for number, picture in enumerate(pictures):
        top, left = (number // wide) * (rows + 1), (number % wide) * (width + 1)
        sheet[top : top + rows, left : left + width] = picture
    return sheet


def _columns(count: int, shape: float) -> int:
    """Pictures in a row: as near to the wanted shape as full rows allow."""
    wanted = max(1.0, math.sqrt(shape * count))
    return min(range(1, count + 1), key=lambda wide: (-count % wide) + 2 * abs(wide - wanted))
