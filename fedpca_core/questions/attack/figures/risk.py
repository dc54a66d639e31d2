"""The maps of what is at risk: records a client, or noise, against the kind of data."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedpca_core.questions.attack.records.at_risk import (
    NOISE,
    PRECISION,
    RANK,
    RECORDS,
    ROWS,
    SEVERAL,
)
from fedpca_core.settings import short
from fedpca_core.study import parts
from fedpca_core.study.panels import Heat
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.sweep import Swept

#: Why a row of the map ends.
BOUNDARY = dict(zip((RANK, SEVERAL, PRECISION), parts.names("risk-ends").values(), strict=True))


#: What varies, and over which values.
VARIED: Mapping[str, tuple[str, Sequence[float]]] = {
    "records_per_client": ("records per client", RECORDS),
    "upload_noise": ("relative noise on uploads", NOISE),
}


def at_risk(swept: Swept, settings: AttackSettings) -> parts.Parts:
    """Share of clients whose records are certified, and why it ends where it ends.

    The map has all its cells from the beginning, so that nothing moves while they fill.
    """
    varied, varying = VARIED[swept.parameter]
    kinds, columns = list(ROWS), np.sort(varying)
    bands = [swept.band(name, "recovered") for name in kinds]
    values = np.full((len(kinds), len(columns)), np.nan)
    for row, band in zip(values, bands, strict=True):
        row[np.searchsorted(columns, band.x)] = band.middle
    heat = Heat.of(
        "at-risk",
        *(values, kinds, [short(value) for value in columns]),
        key=(key := f"at_risk_{swept.parameter}"),
        title=f"Share of clients whose records are all certified, by {varied}",
        x_title=varied,
        height=90 + 44 * len(kinds),
        description="For every kind of data, the share of clients whose records the "
        f"attack certifies, by {varied}.",
    )
    yield parts.Chart(key, [heat])
    yield "\n".join(f"- {boundary(swept, name, varied)}" for name in swept.series)


def boundary(swept: Swept, name: str, varied: str) -> str:
    """Where a row of the map ends, and what ends it."""
    recovered, why = swept.band(name, "recovered"), swept.band(name, "obstacle")
    ends = np.flatnonzero(recovered.middle < 1.0)
    if not len(ends):
        return f"**{name}**: all of them, up to {short(recovered.x[-1])} {varied}."
    first = int(ends[0])
    reason = BOUNDARY[int(why.middle[first])]
    where = f"at {short(recovered.x[first])}"
    if first > 0:
        where = f"between {short(recovered.x[first - 1])} and {short(recovered.x[first])}"
    return f"**{name}** ends {where} {varied}: {reason}."
