"""Pictures of a study as images of the player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.player import Images, to_uint8
from fedpca_core.studies.pictures import Pictures


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
