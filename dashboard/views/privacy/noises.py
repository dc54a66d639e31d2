"""How the Privacy page names and colours what it compares; formal privacy has its own colour."""

from __future__ import annotations

NAMES = {
    "exact": "exact noise",
    "published": "published noise",
    "source": "noise at the source",
    "masked": "masked, no ε",
    "none": "without noise",
}
COLOURS = {
    "exact": "formal",
    "published": "series 1",
    "source": "series 0",
    "masked": "heuristic",
    "none": "guide",
}

#: Below this a curve shows rounding only.
ROUNDING = 1e-16
