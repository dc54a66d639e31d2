"""Tidy tables as curves, and parts of a page as Streamlit shows them."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from dashboard.shell import parts as layout
from fedpca_core.study import parts
from fedpca_core.study.panels import plot

TABLE = pd.DataFrame(
    {
        "at": [2.0, 1.0, 1.0, 1.0, 2.0, 3.0],
        "error": [4.0, 1.0, 5.0, 2.0, 6.0, 0.0],
        "method": ["b", "b", "b", "b", "b", "a"],
    }
)


def test_a_curve_is_the_median_and_its_band_spans_all_rows():
    b, a = plot(TABLE, "at", "error", "method", least=1e-9, marker=True)
    assert (b.name, a.name, b.marker) == ("b", "a", True)
    np.testing.assert_array_equal((b.x, b.y, b.lower, b.upper), ([1, 2], [2, 5], [1, 4], [5, 6]))
    assert a.y.tolist() == a.lower.tolist() == [1e-9], "an axis may be logarithmic"


def test_names_choose_and_order_the_curves():
    names = {"a": "A", "gone": "Gone", "b": "B"}
    found = plot(TABLE, "at", "error", "method", names=names, colours={"a": "text"}, spread=False)
    assert [(curve.name, curve.colour, curve.lower) for curve in found] == [
        ("A", "text", None),
        ("B", None, None),
    ]


def test_numbers_become_texts_and_a_missing_one_a_dash():
    texts = parts.written(pd.DataFrame({"n": [1234.5, np.nan], "m": [1.0, 2.0]}), {"n": 0}, 1)
    assert texts.to_numpy().tolist() == [["1,234", "1.0"], ["–", "2.0"]]


def page() -> None:
    import numpy as np
    import pandas as pd

    from dashboard.shell.parts import lay_out
    from fedpca_core.study import parts
    from fedpca_core.study.panels import Curve, Panel
    from fedpca_core.study.pca_settings import AttackSettings

    panel = Panel("one", "", "x", "y", (Curve("a", [1, 2], [1, 2]),))
    rows = pd.DataFrame({"name": ["row"], "value": ["1"]})
    lay_out(
        [
            "words",
            parts.Caption("small"),
            parts.Note("known"),
            parts.Note("to change", kind="remedy"),
            parts.Badge("holds", "green"),
            parts.Section("Part", "lead"),
            parts.Chart("still", [panel]),
            parts.Chart("played", [panel], rounds=1),
            parts.Table(rows, "rows"),
            parts.Rows(rows),
            parts.Cards([parts.Card("n", "5")]),
            parts.FactsCard("Who", {"Sees": "sums"}),
            parts.GuaranteeOf(None),
            parts.About("How", "so"),
            parts.Link(AttackSettings(), "Attack it"),
            parts.Fold("more", [parts.Caption("inside")]),
            parts.Framed("None", "none", [parts.Caption("why")]),
            parts.Beside([["left"], ["right"]]),
            parts.Space("space", {"a": np.ones((2, 3))}, {"a": "pq"}, ("1", "2", "3"), 1.0, "two"),
        ]
    )


def test_every_kind_of_part_is_laid_out(monkeypatch):
    ways: list[str] = []
    monkeypatch.setattr(layout, "guaranteed", lambda facts: ())
    monkeypatch.setattr(layout.st, "page_link", lambda page, **words: ways.append(page))
    app = AppTest.from_function(page).run()
    assert not app.exception and ways == ["../pages/attack.py"]
    assert [one.value for one in app.caption] == ["small", "inside", "why"]
    assert ([one.value for one in app.info], [one.value for one in app.warning]) == (
        ["known"],
        ["to change"],
    )
    words = [one.value for one in app.markdown]
    assert words[0] == "words" and {"left", "right"} <= {*words}
    assert len(app.get("bidi_component")) == 2 and len(app.get("plotly_chart")) == 1


def test_the_page_above_has_every_kind():
    kinds = {str(kind).strip() for kind in get_args(parts.Part)} or {*parts.Part.split(" | ")}
    used = {name for name in page.__code__.co_names} | {"str"}
    assert {kind.strip() for kind in kinds} <= used
