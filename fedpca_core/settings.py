"""Parameters: what a setting is called, which values it takes, the sentence for any other value.

A configuration is a frozen dataclass whose fields are parameters. The same description validates a
configuration file, reads a link, renders the widget and writes its tooltip, so the core and the
page cannot disagree about a range or an error.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast
from urllib.parse import urlencode

from fedpca_core.errors import InvalidInput, encodable, require

#: Choices that a sentence lists, and their characters in all.
MOST_NAMED, LONGEST_NAMED = 16, 600
#: How links, files and sliders write an infinite value.
INFINITY = "∞"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Value = int | float | bool | str | tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """Description of one setting. A text without choices is free (the name of a column, say)."""

    default: Value
    #: Name in links; short and unique within a configuration.
    key: str
    #: Name on screen, in the vocabulary of this project.
    label: str
    #: Tooltip: meaning, and the symbol each paper uses.
    help: str = ""
    #: low, high, step: Range of a number on a slider.
    low: float | None = None
    high: float | None = None
    step: float | None = None
    #: The values of a number on an uneven (usually logarithmic) scale, instead of a range; they may
    #: end in infinity, which links and files write as "∞".
    grid: tuple[float, ...] = ()
    #: Keys and screen names of a choice; a tuple default makes it a multiple choice.
    choices: Mapping[str, str] = field(default_factory=dict)
    #: What single numbers are called on screen and in links (1 MB, everybody); files keep the
    #: number, and links may.
    names: Mapping[float, str] = field(default_factory=dict)
    #: True when the setting changes how a run is shown, not the run itself.
    view: bool = False
    #: True when the value follows the visitor from page to page.
    travels: bool = False

    def narrowed(self, **changes: Any) -> Parameter:
        """The same parameter with another default, a smaller range, other words of help.

        Raises ValueError: a wider range, or another name: a parameter means the same on every page.
        """
        renamed = {"key", "label", "travels"} & set(changes)
        if renamed:
            raise ValueError(f"{self.label} may be narrowed, not renamed ({', '.join(renamed)}).")
        if "grid" in changes or "choices" in changes:
            changes = {"low": None, "high": None, "step": None} | changes
        narrower = replace(self, **changes)
        for value in narrower._ends():
            self._check_one(value)
        narrower.check(narrower.default)
        return narrower

    def among(self, values: Mapping[str, Any] | Sequence[Any]) -> Parameter:
        """The same parameter with the values that `values.toml` gives it.

        Names on screen by key are choices; numbers by name, or alone, are those of a scale; keys
        alone are some of the choices that it has.
        """
        more: dict[str, Any]
        if not isinstance(values, Mapping):
            named = {key: self.choices[key] for key in values if self.choices}
            more = {"choices": named} if named else {"grid": tuple(values)}
        elif isinstance(next(iter(values.values())), str):
            more = {"choices": values}
        else:
            names = {number: name for name, number in values.items() if name != INFINITY}
            more = {"grid": tuple(values.values()), "names": names}
        return self.narrowed(**more) if any(self._ends()) else replace(self, **more)

    def _ends(self) -> Iterable[Any]:
        if self.choices:
            return self.choices
        return self.grid or [end for end in (self.low, self.high) if end is not None]

    def nearest(self, value: Any) -> Value | None:
        """The allowed value nearest to one that another page took; None where nothing is near."""
        with suppress(InvalidInput):
            return self.check(value)
        ends = list(self._ends())
        if self.choices or not ends or isinstance(value, str | bool | tuple | list):
            return None
        best = min(max(float(value), float(ends[0])), float(ends[-1]))
        if self.grid:
            best = min(self.grid, key=lambda entry: (abs(entry - best), entry))
        return self._number(best)

    def fitting(self, asked: Any) -> Value:
        """Instead of a value that cannot be: the nearest number, the choices, or the default."""
        if self.many and isinstance(asked, Sequence) and not isinstance(asked, str):
            found = [self._found(one) for one in asked]
            return tuple(one for one in found if one is not None) or self.default
        try:
            number = float(asked)
        except (TypeError, ValueError, OverflowError):
            return self.default
        near = None if math.isnan(number) else self.nearest(number)
        return self.default if near is None else near

    def texts(self, value: Value) -> str:
        """A value, or several, as a sentence names it."""
        parts = value if isinstance(value, tuple) else (value,)
        return ", ".join(self.text(part) for part in parts) or "none"

    def some(self) -> tuple[Value, ...]:
        """Allowed values far apart; all of them where they are choices, none of a free text."""
        if isinstance(self.default, bool):
            return (False, True)
        ends = list(self._ends())
        return tuple(self.check(end) for end in (ends if self.choices else ends[:1] + ends[-1:]))

    @property
    def free(self) -> bool:
        """Whether any text will do."""
        return not self.choices and (
            isinstance(self.default, str) or (self.many and self.default == ())
        )

    @property
    def many(self) -> bool:
        return isinstance(self.default, tuple)

    def text(self, value: Value) -> str:
        """A single value as a link and the screen show it."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return self.choices.get(value, value)
        if not isinstance(value, tuple) and value in self.names:
            return self.names[value]
        if isinstance(value, float):
            # A link holds every digit: its reader gets the very run.
            said = short(value)
            return said if math.isinf(value) or float(said) == value else repr(value)
        return str(value)

    def allowed(self) -> str:
        if self.free:
            return "a text of at most 200 Unicode characters"
        if self.choices:
            names = list(self.choices.values())
            named = names[:MOST_NAMED]
            while len(", ".join(named)) > LONGEST_NAMED:
                named.pop()
            rest = f" and {len(names) - len(named)} more" if len(named) < len(names) else ""
            return "one of " + ", ".join(named) + rest
        if isinstance(self.default, bool):
            return "true or false"
        if self.grid:
            names = [self.text(self._number(number)) for number in self.grid]
            if len(names) > 2 * MOST_NAMED:
                names[3:-1] = ["…"]
            return "one of " + ", ".join(names)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"

    def check(self, value: Any) -> Value:
        """Return ``value`` in the parameter's type, or raise the sentence that names the remedy."""
        if self.many and isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(self._check_one(part) for part in value)
        return self._check_one(value, fits=not self.many)

    def _check_one(self, value: Any, fits: bool = True) -> Any:
        found = self._found(value) if fits else None
        if found is None:
            quoted = f"“{said(value)}”" if isinstance(value, str) else said(value)
            raise InvalidInput(f"{self.label} cannot be {quoted}: it must be {self.allowed()}.")
        return found

    def _found(self, value: Any) -> Any:
        """A single value in the parameter's type; None where it does not fit."""
        is_text = isinstance(value, str)
        if self.free:
            return value if is_text and len(value) <= 200 and encodable(value) == value else None
        if self.choices:
            if not is_text or value in self.choices:
                return value if is_text else None
            by_name = {name.casefold(): key for key, name in self.choices.items()}
            return (by_name | {key.casefold(): key for key in self.choices}).get(value.casefold())
        if isinstance(self.default, bool):
            if is_text:
                return {"true": True, "false": False}.get(value.casefold())
            return value if isinstance(value, bool) else None
        if isinstance(value, bool) or (is_text and len(value) > 40):
            return None
        if is_text:
            value = {name: number for number, name in self.names.items()}.get(value, value)
        with suppress(TypeError, ValueError, OverflowError):
            return self._in_range(math.inf if value == INFINITY else float(value))
        return None

    def _in_range(self, number: float) -> int | float | None:
        """A number of the range or the grid, whole where the parameter is."""
        if isinstance(self.default, int) and math.isfinite(number) and number != int(number):
            return None
        if self.grid:
            for entry in self.grid:
                if entry == number or abs(entry - number) <= 1e-9 * abs(entry) < math.inf:
                    return self._number(entry)
            return None
        assert self.low is not None and self.high is not None
        return self._number(number) if self.low <= number <= self.high else None

    def _number(self, number: float) -> int | float:
        return int(number) if isinstance(self.default, int) else float(number)


def said(value: object, most: int = 40) -> str:
    """A stranger's value in a sentence: no more of it than a glance takes in."""
    if isinstance(value, list | tuple | dict):
        empty = "" if value else "n empty"
        return f"a{empty} {'group of settings' if isinstance(value, dict) else 'list'}"
    if isinstance(value, int) and abs(value) > 10**most:
        return f"a number of more than {most} digits"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def read_json(text: str) -> Any:
    """What a file of JSON holds; refused where it is broken, too deep or has too long a number."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{error.msg} in line {error.lineno}"
    except RecursionError:
        where = "it is nested too deeply"
    except ValueError:
        where = "it holds a number of too many digits"
    raise InvalidInput(
        f"This is not a configuration file: {where}; use a file saved by this program."
    ) from None


def because(*rules: tuple[object, str, str | Iterable[str]]) -> dict[str, str]:
    """Why fields are idle, by the first rule that holds: a condition, a sentence, the fields."""
    found: dict[str, str] = {}
    for holds, why, names in rules:
        if holds:
            for name in [names] if isinstance(names, str) else names:
                found.setdefault(name, why)
    return found


def short(number: float, digits: int = 6) -> str:
    """A number as short as it can be said: 0.15, 1e-7, ∞; at most so many digits."""
    if number == math.inf:
        return INFINITY
    mantissa, exponent, power = f"{number:.{digits}g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


def rough(number: float) -> str:
    """A number in three digits, without an exponent where a reader counts: 7,570, 0.031, ∞."""
    return f"{float(f'{number:.3g}'):,.0f}" if 1000 <= abs(number) < 1e9 else short(number, 3)


def plural(number: float, noun: str) -> str:
    """A counted noun, given in the singular: 1 round, 0 rounds, 1,797 records."""
    return f"{number:,.10g} {noun}{'' if number == 1 else 's'}"


def size(count: float) -> str:
    """Bytes in words."""
    for unit, large in (("MB", 1e6), ("kB", 1e3)):
        if count >= large:
            return f"{count / large:.3g} {unit}"
    return f"{count:.0f} bytes"


def powers(text: str) -> str:
    """A text with powers of ten as a hand writes them: 3.4×10⁻⁵ for 3.4e-5, 10⁻⁶ for 1e-6."""

    def one(found: re.Match[str]) -> str:
        mantissa, power = found[1], "10" + str(int(found[2])).translate(RAISED)
        return power if mantissa == "1" else f"{mantissa}×{power}"

    return re.sub(r"(?<![\w.])(\d(?:\.\d+)?)e(-?\d+)(?!\w)", one, text)


def declared(described: Parameter, default: Value | None = None, **narrower: Any) -> Any:
    """Field with this parameter, or with a narrower one (`Parameter.narrowed`)."""
    if default is not None:
        narrower["default"] = default
    described = described.narrowed(**narrower) if narrower else described
    return field(default=described.default, metadata={"parameter": described})


def _declared(
    default: Value, label: str, choices: Mapping[str, str] | None = None, **more: Any
) -> Any:
    more = {"key": "", "choices": choices or {}} | more
    return declared(Parameter(default, label=label, **more))


def number(
    default: float, label: str, low: float, high: float, step: float = 1, **more: Any
) -> Any:
    """Field that takes a number of a range; whole ones where the default is whole."""
    return _declared(default, label, low=low, high=high, step=step, **more)


#: Field that is on or off; of an uneven scale of numbers, its ``grid``; of any text, or several; of
#: one key of some ``choices``, or several where the default is a tuple.
switch = scale = text = choice = _declared


@cache
def said_in(file: str) -> Mapping[str, dict[str, Any]]:
    """What a file of words or values of the program says, by name or kind: `help`, `panels`, ..."""
    return tomllib.loads(files("fedpca_core").joinpath(f"{file}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class LinkRead:
    """A configuration read from somewhere that may hold nonsense, and what was wrong with it.

    ``notes`` say what is used instead where only the view is at stake, or a name means nothing.
    ``refused`` are the fields whose value asks for another run than any there is, by name: the
    sentence, and the nearest value that fits; nobody may compute anything from the configuration
    while there are any. ``faults`` are the sentences of all of these.
    """

    configuration: Any
    notes: tuple[str, ...] = ()
    refused: Mapping[str, tuple[str, Value]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """Base of all configurations: frozen, versioned, JSON, seed included.

    Subclasses set `kind` and declare fields with `choice`, `scale`, `number`, `switch` and `text`;
    `help.toml` says what they mean to a visitor, `values.toml` mostly what they may be. One object
    is the link, the key of the cache, the file and the download.
    """

    kind: ClassVar[str] = ""
    #: Settings classes of one family share what a visitor set on any of their pages.
    family: ClassVar[str] = ""
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        for name, description in self.parameters().items():
            value, default = getattr(self, name), description.default
            if value != default or type(value) is not type(default):  # defaults are checked before
                object.__setattr__(self, name, description.check(value))

    @classmethod
    @cache
    def parameters(cls) -> Mapping[str, Parameter]:
        """Field names and their parameters, in order.

        A link names a field by its name without underscores unless its declaration says otherwise.
        Words of help, and values, are those that `help.toml` and `values.toml` have of the nearest
        ancestor, or came with the parameter; a word as values names a parameter that has the same.
        """
        kinds = [getattr(one, "kind", "") for one in cls.__mro__]
        words, may_be = (
            ChainMap(*(said_in(file).get(kind, {}) for kind in kinds))
            for file in ("help", "values")
        )
        found: dict[str, Parameter] = {}
        for entry in fields(cls):
            name, described = entry.name, cast(Parameter, entry.metadata["parameter"])
            if name in may_be:
                values = may_be[name]
                described = described.among(may_be[values] if isinstance(values, str) else values)
            key, meaning = described.key or name.replace("_", ""), words.get(name, described.help)
            found[name] = replace(described, key=key, help=" ".join(meaning.split()))
        return MappingProxyType(found)

    # ------------------------------------------------------------------ out
    def as_dict(self) -> dict[str, Any]:
        """All fields; a text for infinity, which JSON has not."""
        values = {name: getattr(self, name) for name in self.parameters()}
        return {name: INFINITY if value == math.inf else value for name, value in values.items()}

    def some(self, *names: str) -> dict[str, Any]:
        """Fields by name, for what calls them the same."""
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "version": self.version} | self.as_dict(), indent=2)

    def changed(self) -> dict[str, Value]:
        described, values = self.parameters(), vars(self)
        return {name: values[name] for name in described if values[name] != described[name].default}

    def query(self, *, complete: bool = False) -> dict[str, str | list[str]]:
        """The link's parameters: changed fields under their short keys.

        With ``complete`` all, for links between pages: there, what is left out is filled in with
        what the visitor set elsewhere.
        """
        parameters = self.parameters()
        result: dict[str, str | list[str]] = {}
        for name in parameters if complete else self.changed():
            one, value = parameters[name], getattr(self, name)
            # An empty choice is a choice too, and not the default.
            texts = [one.text(part) for part in value] or [""] if one.many else one.text(value)
            result[one.key] = texts
        return result

    def query_string(self) -> str:
        return urlencode(self.query(), doseq=True)

    def carried(self, other: type[S]) -> S:
        """Settings of another page that agree with these wherever both have the parameter."""
        return cast(S, _carried(self, other))  # type: ignore[arg-type]  # a class can be hashed

    def idle(self) -> Mapping[str, str]:
        """Fields that make no difference beside the others, which a page disables, and why.

        Every other field that a page offers changes the run.
        """
        return {}

    def run_key(self) -> Self:
        """The run with what is only shown, and what is `idle`, at its default: the cache key."""
        return cast(Self, _run_key(self))

    # ------------------------------------------------------------------ in
    @classmethod
    def from_json(cls, text: str) -> LinkRead:
        """Read a configuration file; what is wrong with single fields is said in the reading.

        Raises InvalidInput: not JSON, or a file for something else.
        """
        content = read_json(text)
        require(
            isinstance(content, dict),
            "This is not a configuration file: it holds no settings; "
            "use a file saved by this program.",
        )
        kind = content.pop("kind", cls.kind)
        require(
            kind == cls.kind,
            f"This configuration is of kind “{said(kind)}”, not “{cls.kind}”; "
            "open it where it was saved.",
        )
        version = content.pop("version", cls.version)
        require(
            type(version) is int and 0 < version <= cls.version,
            f"This configuration has version {said(version)}, and whole numbers from 1 to "
            f"{cls.version} are read here; update the program.",
        )
        return cls._read(content, {name: name for name in cls.parameters()})

    @classmethod
    def from_file(cls, text: str) -> Self:
        """Read a configuration file strictly: the first thing that does not fit is refused."""
        reading = cls.from_json(text)
        if reading.faults:
            raise InvalidInput(reading.faults[0])
        return cast(Self, reading.configuration)

    @classmethod
    def from_query(
        cls, parameters: Mapping[str, Sequence[str]], also_known: Iterable[str] = ()
    ) -> LinkRead:
        """Read a link's parameters, lists of texts; those ``also_known`` are the page's own."""
        described = cls.parameters()
        names = {description.key: name for name, description in described.items()}
        content: dict[str, Any] = {}
        for key, texts in parameters.items():
            if key in also_known:
                continue
            meant = described.get(names.get(key, ""))
            many = meant is not None and meant.many
            content[key] = [text for text in texts if text] if many else texts[-1]
        return cls._read(content, names)

    @classmethod
    def _filled(cls, values: dict[str, Any]) -> dict[str, Any]:
        """What was read, and what goes without saying beside it; here nothing does."""
        return values

    @classmethod
    def _read(cls, content: Mapping[str, Any], names: Mapping[str, str]) -> LinkRead:
        parameters = cls.parameters()
        values: dict[str, Any] = {}
        refused: dict[str, tuple[str, Value]] = {}
        known = {names[key]: value for key, value in content.items() if key in names}
        unknown = [
            f"There is no setting called “{said(key)}”" for key in content if key not in names
        ]
        notes = [f"{each}; it was left out." for each in unknown]
        faults = [f"{each}; correct or remove it." for each in unknown]
        for name, value in cls._filled(known).items():
            description = parameters[name]
            try:
                values[name] = description.check(value)
            except InvalidInput as refusal:
                faults.append(f"“{name}”: {refusal}")
                if description.view:
                    used = description.texts(description.default)
                    notes.append(f"{refusal} {used} is used instead.")
                else:
                    refused[name] = str(refusal), description.fitting(value)
        return LinkRead(cls(**values), tuple(notes), refused, tuple(faults))


# Pages ask for the same ones in every run, and many visitors for those of one link.
@lru_cache(maxsize=1000)
def _run_key(settings: Settings) -> Settings:
    described = settings.parameters()
    unused = [name for name, parameter in described.items() if parameter.view]
    defaults = {name: described[name].default for name in (*unused, *settings.idle())}
    return replace(settings, **defaults)


@lru_cache(maxsize=1000)
def _carried(settings: Settings, other: type[Settings]) -> Settings:
    shared = other.parameters().keys() & settings.parameters().keys()
    near = {name: other.parameters()[name].nearest(getattr(settings, name)) for name in shared}
    return other(**{name: value for name, value in near.items() if value is not None})
