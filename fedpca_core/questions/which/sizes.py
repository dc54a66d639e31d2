"""The size at which a problem is run: as it was asked for, or with fewer clients, which is said."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fedpca_core.questions.costs import ProblemSize
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import IMAGES

#: Entries of all clients' matrices together, up to which every candidate answers while one waits.
LIVE = 4_000_000
#: Fewer clients than these are no federation.
FEWEST = 4


def most_clients(features: int) -> int:
    """How many clients are run, at most, with so many features."""
    return max(FEWEST, LIVE // features**2)


def drawn(settings: FrontierSettings) -> int:
    """How many records of a client are drawn where they must be kept; at least its features."""
    c = settings
    if not c.problem.startswith("decay"):
        return c.samples
    most = LIVE // (c.features * c.clients)
    values = c.parameters()["samples"].grid
    return c.samples if c.samples <= most else int(max(one for one in values if one <= most))


def sized(
    settings: FrontierSettings, data: OwnData | None = None
) -> tuple[FrontierSettings, OwnData | None]:
    """The settings, and the table, of as many clients as are run.

    A table keeps some of its clients, drawn by the seed; where nobody says who they are it keeps a
    share of its rows.
    """
    size = ProblemSize.of(settings, data)
    most = most_clients(size.features)
    if settings.problem == "table":
        if data is None or (size.clients <= most and not settings.client_column):
            return settings, data
        return _some(settings, data, most)
    return replace(settings, clients=min(settings.clients, most)), data


def _some(settings: FrontierSettings, data: OwnData, most: int) -> tuple[FrontierSettings, OwnData]:
    draw = Streams(settings.seed).generator("some clients")
    table, column = data.table, settings.client_column
    if column in table.columns:
        names = table[column].dropna().unique()
        if len(names) <= most:
            return settings, data
        kept = table[table[column].isin(draw.permutation(names)[:most])]
        return settings, SomeRows.drawn(data, kept, settings.seed)
    rows = len(table) * most // settings.clients
    kept = table.iloc[np.sort(draw.permutation(len(table))[:rows])]
    return replace(settings, clients=most), SomeRows.drawn(data, kept, settings.seed)


@dataclass(frozen=True, eq=False)
class SomeRows(OwnData):
    """Some rows of a visitor's table; its ``content`` says of which, and which."""

    @classmethod
    def drawn(cls, whole: OwnData, rows: pd.DataFrame, seed: int) -> SomeRows:
        """Rows of a table, drawn by a seed."""
        made = cls(whole.name, f"{whole.digest} {len(rows)} rows of {seed}".encode())
        made.__dict__["table"] = rows.reset_index(drop=True)
        return made

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.table), self.table.shape[1]


def said(settings: FrontierSettings, data: OwnData | None, clients: int) -> str:
    """What the size of a run means for its answer; empty where it is the size that was asked for.

    ``settings``: As they were asked for.
    ``clients``: That were run.
    """
    c = settings
    if c.problem == "table" and c.client_column and data is not None:
        asked = int(data.table[c.client_column].nunique()) if clients else 0
    else:
        asked = c.clients
    if asked <= clients:
        return ""
    kept = {
        True: f"on the rows of {clients} of the {asked:,} clients, drawn anew from each seed",
        False: f"with {clients} clients in place of {asked:,} and the same spectrum",
    }[c.problem == "table"]
    more = "" if c.problem not in IMAGES else ", who hold more images each"
    noise = (
        ""
        if math.isinf(c.needed_epsilon)
        else " Noise for an ε weighs more here, since fewer share in the answer: with all of them "
        "less variance is lost."
    )
    return (
        f"At this size all candidates would take too long, so they were run {kept}{more}; a "
        f"client's features, records, bytes and messages are as asked.{noise}"
    )
