"""A visitor's own file, as several tests bring it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedpca_core.study.own_data import OwnData


def own_file(*, labels: bool = True, flipped: bool = False) -> OwnData:
    """A table of readings in two groups, one far from the other."""
    generator = np.random.default_rng(4)
    values = generator.standard_normal((400, 2)) @ generator.standard_normal((2, 5))
    values += 0.1 * generator.standard_normal((400, 5))
    odd = np.arange(400) % 8 == 0
    values[odd] += 3 * generator.standard_normal((int(odd.sum()), 5))
    table = pd.DataFrame(values, columns=list("abcde"))
    if labels:
        table["label"] = np.where(odd != flipped, "odd", "normal")
    return OwnData("own.csv", table.to_csv(index=False).encode())
