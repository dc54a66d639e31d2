"""Widgets drawn from the dials of a configuration, each bound to the link.

A page creates `Controls` for its settings class before any widget, draws the dials it wants, and
asks for the settings. What a link holds is checked before Streamlit silently drops bad values, so
the visitor reads what was wrong and what is used instead. Values travel between pages that share
settings (from Converge to Attack, say) through the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

import streamlit as st
from streamlit.errors import StreamlitAPIException

from fedpca_core.dials import Dial, Settings
from fedpca_core.errors import InvalidInput

S = TypeVar("S", bound=Settings)

#: Parameters that belong to Streamlit or to the page, not to a configuration.
_RESERVED = ("embed", "embed_options")


class Controls(Generic[S]):
    """The dials of one page.

    Parameters
    ----------
    settings : type of Settings
        The configuration class of the page.
    also_known : sequence of str
        Link parameters that the page reads itself.
    """

    def __init__(self, settings: type[S], also_known: Sequence[str] = ()) -> None:
        self.settings_class = settings
        self._also_known = tuple(also_known)
        self.dials: dict[str, Dial] = settings.dials()
        self.values: dict[str, Any] = {}
        family = settings.family or settings.kind
        self._memory: dict[str, Any] = st.session_state.setdefault(f"_dials_{family}", {})
        self._arrive()
        self._notes_key = f"_link_notes_{settings.kind}"
        parameters = {name: st.query_params.get_all(name) for name in st.query_params}
        reading = settings.from_query(parameters, (*_RESERVED, *also_known))
        if reading.notes:
            st.session_state[self._notes_key] = reading.notes
        self._spell_out(parameters)

    def _arrive(self) -> None:
        """Start from this page's defaults and what the family remembers, not from stale widgets.

        Streamlit keeps the value of a bound widget over a page switch under its bare key, but only
        once something was touched, and whatever the key means on the page it came from. What the
        visitor set is in the family's memory; everything else opens as the page has it.
        """
        if st.session_state.get("_page_of_dials") != self.settings_class.kind:
            for dial in self.dials.values():
                if dial.key not in st.query_params:
                    st.session_state.pop(dial.key, None)
        st.session_state["_page_of_dials"] = self.settings_class.kind

    def _spell_out(self, parameters: Mapping[str, list[str]]) -> None:
        """Rewrite valid values that Streamlit would not recognise (100.0 for 100, ssi for SSI).

        Streamlit reads the link when a run starts and strips what it does not know, so the
        rewritten link needs a run of its own.
        """
        rewritten: dict[str, list[str]] = {}
        for dial in self.dials.values():
            texts = parameters.get(dial.key)
            if texts is None or dial.key in st.session_state:
                continue
            try:
                value: Any = dial.check(texts if dial.many else texts[-1])
            except InvalidInput:
                continue  # noted above
            spelled = [dial.text(part) for part in (value if dial.many else [value])]
            if spelled != texts and value != dial.default:
                rewritten[dial.key] = spelled
        if not rewritten:
            return
        with suppress(StreamlitAPIException):  # bound to a widget by now: then Streamlit writes it
            st.query_params.update(rewritten)
            st.rerun()

    # ------------------------------------------------------------------ notes
    @property
    def notes(self) -> tuple[str, ...]:
        """What was wrong with the link that led here; kept until dismissed."""
        return cast(tuple[str, ...], st.session_state.get(self._notes_key, ()))

    def show_notes(self) -> None:
        """Say what was wrong with the link, with a button to dismiss it."""
        place = st.container()  # always there, so that dismissing moves nothing below
        if not self.notes:
            return
        with place.container(border=True, key=f"link_notes_{self.settings_class.kind}"):
            st.markdown("**Something does not fit here.**")
            for note in self.notes:
                st.markdown(f"- {note}")
            st.button("Dismiss", key=f"dismiss_{self.settings_class.kind}", on_click=self._dismiss)

    def _dismiss(self) -> None:
        st.session_state.pop(self._notes_key, None)
        # Streamlit strips bad values of its own widgets; names that nobody knows are ours to strip.
        known = {dial.key for dial in self.dials.values()} | {*_RESERVED, *self._also_known}
        for name in [name for name in st.query_params if name not in known]:
            del st.query_params[name]

    # ------------------------------------------------------------------ widgets
    def draw(self, *names: str, **options: Any) -> None:
        """Draw several dials in order."""
        for name in names:
            self.dial(name, **options)

    def dial(
        self,
        name: str,
        *,
        label: str | None = None,
        disabled: bool = False,
        only: Sequence[str] | None = None,
        high: float | None = None,
        as_buttons: bool = False,
    ) -> Any:
        """Draw one dial and return its value.

        Parameters
        ----------
        name : str
            Field of the settings class.
        label : str, optional
            Another name than the dial's own.
        only : sequence of str, optional
            Restrict a choice to these keys.
        high : float, optional
            A lower upper end of a slider than the dial's own.
        as_buttons : bool
            Draw a single choice as a row of buttons rather than a list.
        """
        dial = self.dials[name]
        self._recall(name, dial)
        self._fit(dial, high)
        common: dict[str, Any] = {
            "key": dial.key,
            "bind": "query-params",
            "help": dial.help or None,
            "disabled": disabled,
        }
        value = _widget(dial, label or dial.label, common, only, high, as_buttons)
        self.values[name] = value
        if value != dial.default:
            self._memory[name] = value
        else:
            self._memory.pop(name, None)
        return value

    def _recall(self, name: str, dial: Dial) -> None:
        """Bring a value set on another page, unless the link or this page says otherwise."""
        if dial.key in st.session_state or dial.key in st.query_params or name not in self._memory:
            return
        self._set(dial, self._memory[name])

    @staticmethod
    def _set(dial: Dial, value: Any) -> None:
        """Give a widget that is not drawn yet its value, and the link its parameter.

        Streamlit writes the parameter itself only after the visitor has touched something.
        """
        st.session_state[dial.key] = list(value) if dial.many else value
        with suppress(StreamlitAPIException):  # bound already: then Streamlit writes it
            texts = [dial.text(part) for part in (value if dial.many else [value])]
            st.query_params[dial.key] = texts if dial.many else texts[0]

    def _fit(self, dial: Dial, high: float | None) -> None:
        """Lower a value that another page allows to what this page does, and say so."""
        value = st.session_state.get(dial.key, dial.default)
        if dial.key not in st.session_state and dial.key in st.query_params:
            try:
                value = dial.check(st.query_params[dial.key])
            except InvalidInput:
                return  # already noted, and Streamlit takes the default
        if high is None or not isinstance(value, int | float) or value <= high:
            return
        best = max((number for number in dial.grid if number <= high), default=high)
        self._set(dial, type(dial.default)(best))  # type: ignore[arg-type]
        note = f"{dial.label} of {dial.text(value)} is too much for this page; {best:g} is used."
        st.session_state[self._notes_key] = (*self.notes, note)

    # ------------------------------------------------------------------ result
    def settings(self) -> S:
        """The configuration of the drawn dials; the others keep their defaults."""
        return self.settings_class(**self.values)

    def apply(self, settings: S) -> None:
        """Set every dial; for the callback of a preset's button."""
        for name, dial in self.dials.items():
            value = getattr(settings, name)
            self._memory[name] = value
            st.session_state[dial.key] = list(value) if dial.many else value

    def changer(self, settings: S) -> Callable[[], None]:
        """A callback that applies ``settings``."""
        return lambda: self.apply(settings)


def _widget(
    dial: Dial,
    label: str,
    common: dict[str, Any],
    only: Sequence[str] | None,
    high: float | None,
    as_buttons: bool,
) -> Any:
    if dial.choices:
        options = [key for key in dial.choices if only is None or key in only]
        names: dict[str, Any] = {"options": options, "format_func": dial.text}
        if dial.many:
            default = [key for key in cast(tuple[str, ...], dial.default) if key in options]
            chosen = st.pills(label, default=default, selection_mode="multi", **names, **common)
            return tuple(key for key in options if key in chosen)
        if as_buttons:
            return st.segmented_control(
                label, default=cast(str, dial.default), required=True, **names, **common
            )
        index = options.index(dial.default) if dial.default in options else 0
        return st.selectbox(label, index=index, **names, **common)
    if isinstance(dial.default, bool):
        return st.toggle(label, value=dial.default, **common)
    if dial.grid:
        numbers = [
            int(number) if isinstance(dial.default, int) else float(number)
            for number in dial.grid
            if high is None or number <= high
        ]
        return st.select_slider(
            label, options=numbers, value=dial.default, format_func=dial.text, **common
        )
    assert dial.low is not None and dial.high is not None and dial.step is not None
    default_number: Any = dial.default
    kind: Any = int if isinstance(dial.default, int) else float
    top = kind(dial.high if high is None else min(high, dial.high))
    if dial.high - dial.low > 2000 * dial.step:
        return st.number_input(
            label, kind(dial.low), top, value=default_number, step=kind(dial.step), **common
        )
    return st.slider(
        label, kind(dial.low), top, value=default_number, step=kind(dial.step), **common
    )
