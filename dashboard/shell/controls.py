"""Widgets drawn from the parameters of a configuration, each bound to the link.

A page creates `Controls` for its settings class before any widget, draws the parameters it wants,
and asks for the settings. What a link holds is checked before Streamlit silently drops bad values:
what asks for another run than there is, is refused, and what only shows it otherwise is replaced.
Values travel between pages that share settings (from Converge to Attack, say) through the session.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast
from urllib.parse import parse_qs, urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from dashboard.shell import layout, streamlit_internals
from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Parameter, Settings

S = TypeVar("S", bound=Settings)

#: Parameters that belong to Streamlit or to the page, not to a configuration.
_RESERVED = ("embed", "embed_options")
#: The parameter of a link between pages that holds all settings in one; see `packed`.
_PACKED = "settings"


@lru_cache(maxsize=1000)  # a page with many doors asks for the same in every run
def packed(settings: Settings | None) -> Mapping[str, str]:
    """The parameters of a link from page to page that opens it with exactly these settings.

    With none it opens with what travels between pages. Streamlit strips from such a link whatever
    belongs to a widget of the page that is left, so all settings, defaults too, travel in a
    parameter that belongs to none; `Controls` unpacks it.
    """
    query = {} if settings is None else settings.query(complete=True)
    return {_PACKED: urlencode(query, doseq=True)}


class Controls(Generic[S]):
    """The parameters of one page, which has ``settings`` as its configuration class.

    A page draws each of them in one container, whatever is chosen, and what stands there for some
    choices only in a container of its own: where a widget moves, the browser drops the former
    place last, and with it whose parameter of the address it was.

    ``also_known``: Link parameters that the page reads itself.
    ``runs``: The fragments, by key, that hang on the parameters, where the page has such: a change
        runs them again and nothing else, which costs the server and the browser a part of what a
        whole page does. They ask for `settings` themselves, and the page calls `whole` at its end.
    ``most``: Lower upper ends of sliders than the parameters' own, by field.
    """

    def __init__(
        self,
        settings: type[S],
        also_known: Sequence[str] = (),
        runs: Sequence[str] = (),
        most: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.settings_class = settings
        self.runs = tuple(runs)
        self._also_known = tuple(also_known)
        self.parameters: Mapping[str, Parameter] = settings.parameters()
        self.values: dict[str, Any] = {}
        family = settings.family or settings.kind
        self._family: dict[str, Any] = st.session_state.setdefault(f"_parameters_{family}", {})
        #: What travels between all pages: clients, heterogeneity, ε, ...
        self._world: dict[str, Any] = st.session_state.setdefault("_parameters_of_the_world", {})
        before = st.session_state.get("_page_of_dials")
        if before != settings.kind:
            self._arrive()
        #: From run to run: notes, upper ends, the last settings, and whether all was drawn.
        self._kept: dict[str, Any] = st.session_state.setdefault(f"_page_{settings.kind}", {})
        self._most = dict(most)
        self._apart: set[str] = set()
        self._made: tuple[dict[str, Any], S] = {}, settings()
        self._unpack()
        if before not in (None, settings.kind):
            # Back comes with an empty address, from which bound widgets would take their defaults;
            # in the next run they have the values that travel.
            st.rerun()
        parameters = {name: st.query_params.get_all(name) for name in st.query_params}
        reading = settings.from_query(parameters, (*_RESERVED, *also_known))
        if reading.notes:
            self._kept["notes"] = reading.notes
        self._spell_out(parameters)
        #: What the link says, before any widget, in the first run of a session; None later.
        self.opening: S | None = reading.configuration if before is None else None
        self._linked: S = reading.configuration
        self._refused = {**reading.refused, **self._beyond()}
        self._before_drawing = self._expected()
        #: Why parameters make no difference beside the others, by field.
        self.idle = self._idle()
        self._kept["whole"] = False

    def _arrive(self) -> None:
        """Start from this page's defaults and what the family remembers, not from stale widgets.

        Streamlit keeps the value of a bound widget over a page switch under its bare key, but only
        once something was touched, and whatever the key means on the page it came from. What the
        visitor set is in the family's memory; everything else opens as the page has it.
        """
        # Asked once: Streamlit's answer for a key that is absent is an exception.
        held = set(st.session_state) - set(st.query_params)
        for key in held & {"_turned", *(one.key for one in self.parameters.values())}:
            st.session_state.pop(key)
        st.session_state["_page_of_dials"] = self.settings_class.kind

    def _unpack(self) -> None:
        given = st.query_params.get(_PACKED)
        if given is None:
            return
        del st.query_params[_PACKED]
        if given:
            brought = parse_qs(given, keep_blank_values=True)
            reading = self.settings_class.from_query(brought)
            if reading.notes:
                self._kept["notes"] = reading.notes
            self.open(reading.configuration)
            for name in reading.refused:  # refused when the address is read
                key = self.parameters[name].key
                st.session_state.pop(key, None)
                st.query_params[key] = brought[key]
        # In a run that began by the way of "back" the address alone would count.
        st.rerun()

    def open(self, settings: S) -> None:
        """Set every parameter before any widget is drawn, and spell them out in the link."""
        for name, parameter in self.parameters.items():
            self._memory(name)[name] = value = getattr(settings, name)
            self._set(parameter, value)

    def _memory(self, name: str) -> dict[str, Any]:
        return self._world if self.parameters[name].travels else self._family

    def _spell_out(self, parameters: Mapping[str, list[str]]) -> None:
        """Rewrite valid values that Streamlit would not recognise (100.0 for 100, ssi for SSI).

        Streamlit reads the link when a run starts and strips what it does not know, so the
        rewritten link needs a run of its own.
        """
        rewritten: dict[str, list[str]] = {}
        for parameter in self.parameters.values():
            texts = parameters.get(parameter.key)
            if texts is None or parameter.key in st.session_state:
                continue
            try:
                value: Any = parameter.check(texts if parameter.many else texts[-1])
            except InvalidInput:  # noted above
                # Streamlit's own widget would end the page over it.
                if parameter.view and _endless(texts):
                    rewritten[parameter.key] = [parameter.text(parameter.default)]
                continue
            spelled = _spelled(parameter, value)
            if spelled != texts and value != parameter.default:
                rewritten[parameter.key] = spelled
        if rewritten:
            with suppress(StreamlitAPIException):  # bound to a widget by now: Streamlit writes it
                st.query_params.update(rewritten)
                st.rerun()

    # ------------------------------------------------------------------ notes
    @property
    def notes(self) -> tuple[str, ...]:
        """What was wrong with the link that led here; kept until dismissed."""
        return cast(tuple[str, ...], self._kept.get("notes", ()))

    def heading(self, title: str, lead: str = "") -> None:
        """Begin the page, and say what was wrong with the link, with a button to dismiss it.

        Where it asks for a run that there is none of, the page ends here, with a button to the
        nearest that there is: an answer to it would be one to another question.
        """
        layout.heading(title, lead)
        place = st.container()  # always there, so that dismissing moves nothing below
        if self._refused:
            self._refuse(place)
            st.stop()
        if not self.notes:
            return
        with place.container(border=True, key=f"link_notes_{self.settings_class.kind}"):
            st.markdown("**Something does not fit here.**")
            for note in self.notes:
                st.markdown(f"- {plain(note)}")
            st.button("Dismiss", key=f"dismiss_{self.settings_class.kind}", on_click=self._dismiss)

    def _refuse(self, place: DeltaGenerator) -> None:
        near = {name: value for name, (_, value) in self._refused.items()}
        said = [f"{self.parameters[n].label}: {self.parameters[n].texts(near[n])}" for n in near]
        with place.container(border=True, key=f"link_refused_{self.settings_class.kind}"):
            st.markdown("**The link asks for something that this page cannot do.**")
            for sentence, _ in self._refused.values():
                st.markdown(f"- {plain(sentence)}")
            st.caption("Nothing was computed.")
            st.button(
                f"Use {'; '.join(said)}",
                key=f"link_fits_{self.settings_class.kind}",
                icon=":material/arrow_forward:",
                on_click=self._use,
                args=(near,),
            )

    def _use(self, near: Mapping[str, Any]) -> None:
        for name, value in near.items():
            parameter = self.parameters[name]
            st.query_params[parameter.key] = _spelled(parameter, value)
        st.rerun()  # Streamlit reads the link where a run begins

    def _beyond(self) -> dict[str, tuple[str, Any]]:
        found: dict[str, tuple[str, Any]] = {}
        for name, high in {**self._most, **self._kept.get("ends", {})}.items():
            parameter, asked = self.parameters[name], getattr(self._linked, name)
            if self._is_linked(parameter) and asked > high:
                best = _at_most(parameter, high)
                much = f"{parameter.label} of {parameter.text(asked)} is too much for this page"
                found[name] = f"{much}, which goes up to {parameter.text(best)}.", best
        return found

    @staticmethod
    def _is_linked(parameter: Parameter) -> bool:
        return parameter.key not in st.session_state and parameter.key in st.query_params

    def _dismiss(self) -> None:
        self._kept.pop("notes", None)
        # Streamlit strips bad values of its own widgets; names that nobody knows are ours to strip.
        ours = (parameter.key for parameter in self.parameters.values())
        for name in set(st.query_params) - {*ours, *_RESERVED, *self._also_known}:
            del st.query_params[name]

    # ------------------------------------------------------------------ widgets
    def draw(self, *names: str, **options: Any) -> None:
        for name in names:
            self.parameter(name, **options)

    def parameter(
        self,
        name: str,
        *,
        only: Sequence[str] | None = None,
        high: float | None = None,
        as_buttons: bool = False,
        options: Sequence[str] | None = None,
        empty: str = "",
        shapes: Callable[[Any], object] | None = None,
    ) -> Any:
        """Draw one parameter and return its value.

        One that makes no difference beside the others (`Settings.idle`) is disabled, and its help
        begins with the reason.

        ``only``: Restrict a choice to these keys, in their order.
        ``high``: A lower upper end of a slider, where it depends on other widgets.
        ``as_buttons``: Draw a single choice as a row of buttons rather than a list.
        ``options``: Offer these for a free text (the columns of a table); others are forgotten.
            ``empty`` is what the empty text is called among them.
        ``shapes``: What of the value other widgets hang on: the whole page runs again where that
            changes, for a page that has ``runs``.
        """
        parameter = self.parameters[name]
        high = self._most.get(name) if high is None else high
        self._recall(name, parameter)
        self._fit(name, parameter, high)
        why = self.idle.get(name, "")
        common: dict[str, Any] = {
            "label": parameter.label,
            "key": parameter.key,
            "bind": "query-params",
            "help": f"{why} {parameter.help}".strip() or None,
            "disabled": bool(why),
        }
        if self.runs:
            self._apart.add(name)
            # A run that ends while the widget is drawn leaves it with this value.
            self.values.setdefault(name, self._before_drawing.get(name, parameter.default))
            common |= {"on_change": self._run_apart, "args": (name, shapes)}
        if options is None:
            value = _widget(parameter, common, only, high, as_buttons)
        else:
            value = _offered(common, parameter.many, options, empty)
        self._keep(name, value)
        return value

    def _keep(self, name: str, value: Any) -> None:
        self.values[name] = value
        parameter, memory = self.parameters[name], self._memory(name)
        if value != parameter.default:
            memory[name] = value
        elif name in memory and parameter.nearest(memory[name]) is not None:
            del memory[name]  # set back to the default; what only other pages take stays there

    def _run_apart(self, name: str, shapes: Callable[[Any], object] | None) -> None:
        """Run again what hangs on every parameter; the page where more hangs on this one."""
        before, now = self.values[name], self._now(name)
        st.session_state["_turned"] = name, before
        self._keep(name, now)
        if shapes is not None and shapes(before) != shapes(now):
            return
        if self._idle() != self.idle:
            return
        # A page whose run was cut short has to be run from its beginning.
        if self._kept["whole"]:
            with suppress(StreamlitAPIException):  # a fragment that is not there
                st.rerun(list(self.runs))

    @property
    def turned(self) -> tuple[str, Any] | None:
        """Which parameter was turned last on a page that has ``runs``, and what it was before."""
        return st.session_state.get("_turned")

    def _now(self, name: str) -> Any:
        """The value of a drawn parameter as its widget has it, also where only a fragment runs."""
        parameter = self.parameters[name]
        return _value(parameter, st.session_state.get(parameter.key, self.values[name]))

    def on(self, *names: str) -> bool:
        """Whether one of the parameters is not at its default, before it is drawn."""
        defaults = {name: self.parameters[name].default for name in names}
        return any(self._before_drawing.get(name, was) != was for name, was in defaults.items())

    def _idle(self) -> Mapping[str, str]:
        """`Settings.idle` of what the widgets say, or will say where they are not drawn yet."""
        drawn = {name: self._now(name) for name in self._apart}
        with suppress(InvalidInput):
            return self.settings_class(**{**self._before_drawing, **drawn}).idle()
        return self._linked.idle()

    def _expected(self) -> dict[str, Any]:
        """What the widgets, the link and the other pages say of the parameters, before drawing."""
        values: dict[str, Any] = {}
        held, linked = set(st.session_state), set(st.query_params)
        for name, parameter in self.parameters.items():
            memory = self._memory(name)
            if parameter.key in held:
                values[name] = _value(parameter, st.session_state[parameter.key])
            elif parameter.key in linked or name not in memory:
                values[name] = getattr(self._linked, name)
            elif (carried := parameter.nearest(memory[name])) is not None:
                values[name] = carried
        return values

    def whole(self) -> None:
        """Tell at its end that the page, or the fragment with the widgets, has been drawn."""
        self._kept["whole"] = True

    def _recall(self, name: str, parameter: Parameter) -> None:
        """Bring a value set on another page, unless the link or this page says otherwise.

        Where this page takes fewer values, the nearest is used, and said.
        """
        memory = self._memory(name)
        key = parameter.key
        if name not in memory or key in st.session_state or key in st.query_params:
            return
        value = parameter.nearest(memory[name])
        if value is None:
            return  # another page's problem or method: this one opens with its own
        if value != memory[name] and not isinstance(value, tuple):
            asked = f"{parameter.label} of {parameter.text(memory[name])}"
            self._say(f"{asked} is not for this page; {parameter.text(value)} is used.")
        self._set(parameter, value)

    def _say(self, note: str) -> None:
        if note not in self.notes:
            self._kept["notes"] = (*self.notes, note)

    def _set(self, parameter: Parameter, value: Any) -> None:
        """Give a widget that is not drawn yet its value, and the link its parameter.

        Streamlit writes the parameter itself only after the visitor has touched something, and not
        where another upper end makes a slider a new one.
        """
        st.session_state[parameter.key] = list(value) if parameter.many else value
        self._address(parameter, value)

    @staticmethod
    def _address(parameter: Parameter, value: Any) -> None:
        """Let the address say a value, or nothing of it where it goes without saying."""
        texts = [] if value == parameter.default else _spelled(parameter, value)
        if texts == st.query_params.get_all(parameter.key):
            return
        streamlit_internals.unbind(parameter.key)
        with suppress(StreamlitAPIException):  # bound still: then Streamlit writes it
            if texts:
                st.query_params[parameter.key] = texts
            else:
                del st.query_params[parameter.key]

    def _fit(self, name: str, parameter: Parameter, high: float | None) -> None:
        """Lower a value that another page allows to what this page does, and say so.

        What the link itself asks for is refused.
        """
        if high is None:
            return
        value = st.session_state.get(parameter.key, parameter.default)
        linked = self._is_linked(parameter)
        if linked:
            value = getattr(self._linked, name)
        if not isinstance(value, int | float) or value <= high:
            return
        if linked:
            self._kept["ends"] = {name: high}
            st.rerun()
        best = _at_most(parameter, high)
        self._set(parameter, best)
        asked = f"{parameter.label} of {parameter.text(value)}"
        self._say(f"{asked} is too much for this page; {best:g} is used.")

    # ------------------------------------------------------------------ result
    def settings(self) -> S:
        """The configuration of the drawn parameters; the others keep their defaults."""
        for name in self._apart:
            self._keep(name, self._now(name))
        if self._made[0] != self.values:
            self._made = dict(self.values), self.settings_class(**self.values)
        self._kept["last"] = self._made[1], tuple(self.values)
        return self._made[1]

    def foreseen(self) -> S | None:
        """What `settings` will be, before any widget is drawn, where the page has run before.

        Right unless a widget comes, goes or refuses its value in this run.
        """
        if "last" not in self._kept:
            return None
        last, drawn = self._kept["last"]
        now = {name: value for name, value in self._before_drawing.items() if name in drawn}
        with suppress(InvalidInput):
            return cast(S, replace(last, **now))
        return None

    def changer(
        self, settings: S | Callable[[], S] | None = None, **changes: Any
    ) -> Callable[[], None]:
        """A callback that runs the page with ``settings``, or with what it says they are then, or
        with those of the page, but for some ``changes``.

        A fragment alone, in which the button may stand, would leave the other widgets as the
        browser has them, which sends them back with the next one that is turned.
        """

        def change() -> None:
            asked = settings() if callable(settings) else settings or self.settings()
            self.open(replace(asked, **changes))
            st.rerun()

        return change


def _value(parameter: Parameter, value: Any) -> Any:
    """The value of a widget as settings have it: several choices in their own order."""
    if not parameter.many:
        return value
    return tuple(key for key in parameter.choices or value if key in value)


def _spelled(parameter: Parameter, value: Any) -> list[str]:
    return [parameter.text(part) for part in (value if parameter.many else [value])]


def _at_most(parameter: Parameter, high: float) -> Any:
    best = max((number for number in parameter.grid if number <= high), default=high)
    return type(parameter.default)(best)  # type: ignore[arg-type]


def itself(value: Any) -> Any:
    """The whole value: for a parameter on which other widgets hang, see `Controls.parameter`."""
    return value


def _endless(texts: Sequence[str]) -> bool:
    """Whether one of the texts is a number that no whole number stands for: inf, nan, 1e400."""
    for text in texts:
        with suppress(ValueError):
            if not math.isfinite(float(text)):
                return True
    return False


def plain(text: str) -> str:
    """A text as Markdown that shows it letter by letter: no links, no pictures, no formulas."""
    return re.sub(r"([\\`*_{}\[\]()<>#+\-!|$~:])", r"\\\1", text)


def _offered(common: dict[str, Any], many: bool, options: Sequence[str], empty: str) -> Any:
    if many:
        return tuple(st.multiselect(options=list(options), **common))
    named: Any = {"options": list(options), "format_func": lambda text: text or empty}
    chosen = st.selectbox(**named, **common)
    return chosen if chosen in options else ""


def _widget(
    parameter: Parameter,
    common: dict[str, Any],
    only: Sequence[str] | None,
    high: float | None,
    as_buttons: bool,
) -> Any:
    default: Any = parameter.default
    if parameter.choices:
        options = list(parameter.choices if only is None else dict.fromkeys(only))
        common |= {"options": options, "format_func": parameter.text}
        if parameter.many:
            there = [key for key in default if key in options]
            chosen = st.pills(default=there, selection_mode="multi", **common)
            return tuple(key for key in options if key in chosen)
        if as_buttons:
            return st.segmented_control(default=default, required=True, **common)
        return st.selectbox(index=options.index(default) if default in options else 0, **common)
    if parameter.free:
        return st.text_input(value=default, max_chars=200, **common)
    if isinstance(default, bool):
        return st.toggle(value=default, **common)
    kind: Any = int if isinstance(default, int) else float
    if parameter.grid:
        common |= {"format_func": parameter.text}
        numbers = [kind(number) for number in parameter.grid if high is None or number <= high]
        return st.select_slider(options=numbers, value=default, **common)
    assert parameter.low is not None and parameter.high is not None and parameter.step is not None
    top = kind(parameter.high if high is None else min(high, parameter.high))
    many = parameter.high - parameter.low > 2000 * parameter.step
    draw: Any = st.number_input if many else st.slider
    ends = {"min_value": kind(parameter.low), "max_value": top, "step": kind(parameter.step)}
    return draw(value=default, **ends, **common)
