"""Charts of tidy tables."""

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.study.plot import ROUNDING, plot

TABLE = pd.DataFrame(
    {
        "round": [0, 1, 0, 1, 0, 1],
        "seed": [0, 0, 1, 1, 0, 0],
        "method": ["ssi", "ssi", "ssi", "ssi", "faps", "faps"],
        "error": [1.0, 0.5, 0.5, 0.1, 1.0, 0.0],
    }
)


def test_a_curve_for_each_value_with_a_band_over_what_shares_a_place():
    panel = plot(TABLE, "round", "error", "method", key="k", x_title="round", y_title="error")
    ssi, faps = panel.curves
    assert (ssi.name, ssi.colour) == ("ssi", "ssi") and list(ssi.x) == [0, 1]
    np.testing.assert_allclose(ssi.y, [0.75, 0.3])
    np.testing.assert_allclose([ssi.lower, ssi.upper], [[0.5, 0.1], [1.0, 0.5]])
    assert faps.lower is None and faps.y[1] == ROUNDING  # zero has no place on a log axis
    plain = plot(TABLE, "round", "error", "method", key="k", x_title="", y_title="", log_y=False)
    assert plain.curves[1].y[1] == 0.0


def test_one_curve_without_a_column_to_part_by_and_texts_stay_in_their_order():
    bars = TABLE.assign(kind=["b", "a"] * 3)
    panel = plot(bars, "kind", "error", key="k", names=lambda name: "all", spread=False,
                 kind="bars", log_y=False, x_title="", y_title="")  # fmt: skip
    (curve,) = panel.curves
    assert curve.name == "all" and list(curve.x) == ["b", "a"] and curve.lower is None


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InvalidInput, match="needs the column “bytes”, and its table has round"):
        plot(TABLE, "bytes", "error", key="k", x_title="", y_title="")
