"""A preset: settings with a name, and the one point they make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedpca_core.settings import Settings


@dataclass(frozen=True)
class Preset:
    #: Short name for links and the command line; unique among all presets.
    name: str
    #: title, point: What it is called, and the one thing it shows.
    title: str
    point: str
    #: Of the page on which it opens.
    settings: Settings


def listed(
    file: Mapping[str, dict[str, Any]], kind: type[Settings] | None = None, **filled: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fields of each preset of a file by its name, lists as tuples, gaps of its point filled.

    ``kind``: Of its settings, of which it gives those that are not at their defaults.
    """
    for name, one in file.items():
        found = {key: tuple(it) if isinstance(it, list) else it for key, it in one.items()}
        found["point"] = " ".join(one["point"].split()).format(**filled)
        yield name, found if kind is None else found | {"settings": kind(**one["settings"])}
