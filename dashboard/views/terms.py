"""Four terms, each in a small picture where it is first used."""

from base64 import b64encode

import streamlit as st

#: A cloud of points along a direction, drawn by hand.
_CLOUD = (
    (55, 36), (38, 44), (45, 31), (82, 13), (51, 34), (69, 19), (57, 19), (43, 31), (23,
    35), (22, 44), (46, 30), (47, 22), (49, 32), (60, 18), (37, 23), (35, 23), (30, 49),
    (16, 55), (54, 25), (59, 28), (67, 19), (38, 32), (34, 39), (40, 43), (16, 42), (28,
    28), (44, 30), (71, 4), (66, 16), (45, 28), (57, 18), (50, 33), (78, 20), (43, 36),
)  # fmt: skip
#: Seen on light paper and on dark.
_LINE, _QUIET = "#1a8a7d", "#85857c"


def row(names: tuple[str, ...]) -> None:
    """The pictures of some terms side by side."""
    if names:
        cells = "".join(
            f'<figure><img alt="" src="{_picture(_DRAWN[name]())}">'
            f"<figcaption>{_WORDS[name]}</figcaption></figure>"
            for name in names
        )
        st.html(f'<div class="fp-terms">{cells}</div>')


def _picture(drawing: str) -> str:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 60">{drawing}</svg>'
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _federation() -> str:
    boxes = "".join(
        f'<rect x="4" y="{y}" width="16" height="12" rx="2" fill="none" stroke="{_QUIET}"/>'
        f'<path d="M20 {y + 6} L70 30" stroke="{_QUIET}" stroke-opacity=".5"/>'
        for y in (4, 24, 44)
    )
    return (
        f'{boxes}<rect x="70" y="20" width="24" height="20" rx="3" fill="none" stroke="{_LINE}"/>'
    )


def _dots() -> str:
    return "".join(
        f'<circle cx="{x}" cy="{y}" r="1.3" fill="{_QUIET}" fill-opacity=".6"/>' for x, y in _CLOUD
    )


def _arrow(right: int, down: int) -> str:
    return f'<path d="M50 30 l{right} {down}" stroke="{_LINE}" stroke-width="2.4"/>'


def _directions() -> str:
    return _dots() + _arrow(29, -17) + _arrow(-6, -10)


def _basis() -> str:
    right = f'<path d="M55 27 l-3 -5 l-5 3" stroke="{_QUIET}" fill="none"/>'
    return _arrow(29, -17) + _arrow(-13, -22) + right


def _covariance() -> str:
    """Eight pixels in a row: neighbours go together, and less so the further apart."""
    return "".join(
        f'<rect x="{26 + 6 * column}" y="{6 + 6 * line}" width="6" height="6" fill="{_LINE}" '
        f'fill-opacity="{0.7 ** abs(line - column):.2f}"/>'
        for line in range(8)
        for column in range(8)
    )


_DRAWN = {
    "federation": _federation,
    "directions": _directions,
    "basis": _basis,
    "covariance": _covariance,
}
_WORDS = {
    "federation": "<b>Federation</b>: many hold data, one coordinates.",
    "directions": "<b>Leading directions</b>: along them the points vary most.",
    "basis": "<b>Basis</b>: directions at right angles, like the axes of a map.",
    "covariance": "<b>Covariance</b>: how strongly any two pixels vary together.",
}
