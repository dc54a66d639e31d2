"""The experiments of FAPS, and some that it does not show, as presets.

Each preset makes one point at a size that answers at once and, where the paper has it, at the
paper's own. Live sizes keep the number of samples per client rather than its ratio to the features,
on which the number of useful inner steps depends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fedpca_core.errors import require, require_known
from fedpca_core.papers.entries import Entry, paper
from fedpca_core.papers.experiment import Size
from fedpca_core.problems import Problem, decay_spectrum, images, samples_per_client
from fedpca_core.settings import Value, said_in
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.preset import Preset, listed

#: Values by the name of a field of `ConvergeSettings`.
Fields = Mapping[str, Any]

#: The paper's table by preset: its entries are what the paper prints for it.
PRINTED: Mapping[str, str] = {
    "table-1": "table-1",
    "vary-features": "table-2/n",
    "vary-samples": "table-2/m",
    "vary-components": "table-2/p",
    "vary-decay": "table-2/xi",
    "images": "table-3",
    "uneven": "table-4",
}

_ROUNDS = {
    one.method: one.printed for one in paper("faps").entries if one.id.startswith("table-1/")
    and one.column == "Iteration"
}  # fmt: skip


@dataclass(frozen=True)
class FapsPreset(Preset):
    settings: ConvergeSettings
    #: Field that it varies, empty if none, and its values; the settings have one of them.
    varied: str = ""
    values: tuple[Value, ...] = ()
    #: Fields at the paper's size, which may exceed the sliders; empty where the paper has no such
    #: experiment. ``samples`` is the mean over clients, as everywhere.
    paper: Fields = field(default_factory=dict)
    #: What varies there.
    paper_values: tuple[Value, ...] = ()
    #: Whether its many large runs are counted and not timed at the paper's size, where a sum over
    #: clients that is known beforehand is not worked out: time is judged on Table 1.
    counted: bool = False
    #: Rounds to go on for at most: the paper's limit, or as many as a rate takes to be seen.
    longest: int = 3000

    def configuration(self, value: Value | None = None) -> ConvergeSettings:
        """The settings, with the varied field at ``value``.

        Raises InvalidInput: a value for a preset that varies nothing.
        """
        return replace(self.settings, **self._varied(value))

    @property
    def published(self) -> tuple[Entry, ...]:
        """The numbers that the paper prints for it, but its seconds."""
        place = f"{PRINTED.get(self.name)}/"
        entries = (one for one in paper("faps").entries if one.id.startswith(place))
        return tuple(one for one in entries if one.measure != "seconds")

    def fields(self, size: Size, value: Value | None = None) -> Fields:
        """Everything that the data depend on.

        Raises InvalidInput: the paper has no such experiment, or a value where nothing varies.
        """
        if size == "paper":
            require(
                len(self.paper) > 0,
                f"“{self.title}” is not an experiment of the paper; it has a live size only.",
            )
            return {**self.paper, **self._varied(value)}
        settings = self.configuration(value)
        spectra = {"decay_geometric": "decay", "decay_arithmetic": "condition"}
        names = ["problem", "clients", "components"]
        if settings.problem in spectra:
            names += ["features", "samples", "sizes", spectra[settings.problem]]
        return {name: getattr(settings, name) for name in names}

    def paper_problem(self, value: Value | None = None, leading: int | None = None) -> Problem:
        """The problem at the paper's size: up to 4 GiB of data and a minute to generate.

        With ``leading``, so many leading features of synthetic data alone.

        Raises InvalidInput: the paper has no such experiment, or image data are not there.
        """
        wanted = self.fields("paper", value)
        if wanted["problem"] not in ("decay_geometric", "decay_arithmetic"):
            return images(wanted["problem"], wanted["clients"])
        geometric = wanted["problem"] == "decay_geometric"
        total = wanted["clients"] * wanted["samples"]
        return decay_spectrum(
            wanted["features"],
            samples_per_client(wanted.get("sizes", "even"), wanted["clients"], total),
            decay=wanted["decay"] if geometric else None,
            condition=None if geometric else wanted["condition"],
            leading=leading,
        )

    def _varied(self, value: Value | None) -> Fields:
        if value is None:
            return {}
        require(
            self.varied != "",
            f"“{self.title}” varies nothing, so the value {value} has no place; leave it out.",
        )
        return {self.varied: value}


def _read() -> Iterator[FapsPreset]:
    file = said_in("papers/faps_presets")
    for name, one in listed(file["presets"], None, **_ROUNDS):
        kind = AttackSettings if one.pop("attack", False) else ConvergeSettings
        sizes = [{"like": "", **one.pop(size, {})} for size in ("live", "paper")]
        live, printed = ({**file["shared"].get(own.pop("like"), {}), **own} for own in sizes)
        yield FapsPreset(name, settings=kind(**live), paper=printed, **one)


PRESETS: tuple[FapsPreset, ...] = tuple(_read())


def preset(name: str) -> FapsPreset:
    """Raises InvalidInput: there is no preset called ``name``."""
    known = {entry.name: entry for entry in PRESETS}
    require_known("preset", name, known)
    return known[name]
