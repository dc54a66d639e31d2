"""Lays out on a page what a question's figures say of a result."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st

from dashboard.player import prepared
from dashboard.shell import jobs, layout
from dashboard.shell.navigation import door
from dashboard.shell.palette import style
from fedpca_core.questions.trace.opened import Opened
from fedpca_core.remembered import Remembered
from fedpca_core.settings import Settings, short
from fedpca_core.study import Study, parts
from fedpca_core.study.facts import EPSILON, NOTICED, Facts, meant
from fedpca_core.study.parts import Part, words

#: By what makes them, which result, which settings; a result stays: no other takes its identity.
_FIGURES = Remembered[tuple[Any, tuple[Part, ...]]](48)


def drawing(
    figures: Callable[..., Iterable[Part]], settings: Settings, **more: Any
) -> Callable[[Any], None]:
    """What draws a result with figures of it and ``more``, made once for all who look."""

    def draw(found: Any) -> None:
        key = figures, id(found), settings
        lay_out(_FIGURES.get(key, lambda: (found, tuple(figures(found, settings, **more))))[1])

    return draw


def ask(
    study: Study[Any, Any],
    settings: Settings,
    figures: Callable[[Any, Any], Iterable[Part]],
    **how: Any,
) -> jobs.Job:
    """Run a study as `jobs.study` does, and lay out what figures say of its result."""
    return jobs.study(study, settings, drawing(figures, settings), **how)


@lru_cache(maxsize=32)
def _laid_out(shown: parts.Chart) -> Callable[..., None]:
    """A chart as it is sent, once for all who look."""
    return prepared(**vars(shown))


def lay_out(shown: Iterable[Part]) -> None:
    for part in shown:
        match part:
            case str():
                st.markdown(part)
            case parts.Caption(text):
                st.caption(text)
            case parts.Note(text, kind):
                layout.sentence(text, kind=kind)
            case parts.Badge(text, tint):
                st.badge(text, color=tint)  # type: ignore[arg-type]
            case parts.Section(title, lead):
                layout.section(title, lead)
            case parts.Chart():
                _laid_out(part)()
            case parts.Table(rows, label, numbers, wrapped):
                right = list(rows.columns[1:]) if numbers is None else numbers
                layout.small_table(rows, label=label, numbers=right, wrapped=wrapped)
            case parts.Rows(rows, None):
                st.dataframe(rows, hide_index=True)
            case parts.Rows(rows, marked):
                tints = np.where(marked, "background-color: #2e7d3233", "")
                shown_so = rows.style.apply(lambda _, tints=tints: tints, axis=None)
                st.dataframe(shown_so.format("{:.6g}"))
            case parts.Cards(cards):
                layout.metric_cards(cards)
            case parts.FactsCard(title, facts, protection):
                told = [f"- **{word}:** {text}" for word, text in facts.items() if text]
                lay_out([parts.Framed(f"**{title}**", protection, ["\n".join(told)])])
            case parts.GuaranteeOf(facts):
                lay_out(guaranteed(facts))
            case parts.Link(settings, label):
                door(settings, label)
            case parts.About():
                layout.about(part)
            case parts.Fold(title, inner, unfolded, late):
                asks: Any = {"key": f"fold {title}", "on_change": "rerun"} if late else {}
                fold = st.expander(title, expanded=unfolded, **asks)
                if fold.open is not False:
                    with fold:
                        lay_out(inner)
            case parts.Framed(title, protection, inner):
                label, tint, symbol = layout.PROTECTION[protection]
                with st.container(border=True):
                    with st.container(horizontal=True, vertical_alignment="center"):
                        st.markdown(title, width="content")
                        st.badge(label, color=tint, icon=symbol)
                    lay_out(inner)
            case parts.Beside(columns):
                for place, inner in zip(st.columns(len(columns)), columns, strict=True):
                    with place:
                        lay_out(inner)
            case parts.Space():
                _space(part)


def guaranteed(facts: Facts | Opened) -> parts.Parts:
    if (found := facts.guarantee) is None:
        return
    yield parts.FactsCard.of(
        "guarantee",
        "formal",
        found=found,
        epsilon=short(round(found.epsilon, 3)),
        delta=short(found.delta),
        norm=short(found.clip_norm),
        public=", ".join(found.public),
    )
    yield parts.Caption(
        "The answer's error is measured against the data without clipping and noise."
    )
    means = meant(facts.meanings(), "What may be replaced")
    yield parts.Fold(
        "What this ε means for a person, a client, two runs",
        [
            parts.Table(means, "What ε means", [EPSILON, NOTICED]),
            parts.Caption(words("guarantee-meanings", delta=short(found.delta))),
        ],
    )


def _space(space: parts.Space) -> None:
    import plotly.graph_objects as go

    scheme = "dark" if st.context.theme.type == "dark" else "light"
    figure = go.Figure()
    for index, (name, points) in enumerate(space.points.items()):
        where = dict(zip("xyz", points.astype("float32").T, strict=True))
        symbol = "circle" if index == 0 else "diamond"
        marker = {"size": 3, "color": getattr(style(f"series {index}"), scheme), "symbol": symbol}
        text = list(space.labels[name])
        figure.add_scatter3d(**where, mode="markers", name=name, text=text, marker=marker)
    across, along, up = space.axes
    figure.update_layout(
        scene={
            "xaxis_title": across,
            "yaxis_title": along,
            "zaxis": {"title": up, "range": [0.0, space.highest]},
            # From a distance: a phone has no more room.
            "camera": {"eye": {"x": 1.8, "y": 1.8, "z": 0.9}},
        },
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        legend={"orientation": "h", "y": 1.02, "itemsizing": "constant"},
        height=480,
    )
    st.plotly_chart(figure, key=space.key, alt=space.description)
