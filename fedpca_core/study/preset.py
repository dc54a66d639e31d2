"""A preset: settings with a name, and the one point they make."""

from dataclasses import dataclass

from fedpca_core.settings import Settings


@dataclass(frozen=True)
class Preset:
    """One entry of the list of presets."""

    #: Short name for links and the command line; unique among all presets.
    name: str
    #: title, point: What it is called, and the one thing it shows.
    title: str
    point: str
    #: Of the page on which it opens.
    settings: Settings
