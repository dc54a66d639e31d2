"""What the results of a study say of their problem: never the private data themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.guarantee import Guarantee, meanings
from fedpca_core.problems import Problem
from fedpca_core.settings import plural

EPSILON, NOTICED = "ε", "noticed by the best test"
#: Rate at which that test cries out without a cause.
FALSE_ALARMS = 0.05


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about a problem that outlive it."""

    #: name, note: Its name, and one sentence on how it was made.
    name: str
    note: str
    features: int
    clients: int
    #: least_samples, most_samples: Records of the smallest and of the largest client.
    least_samples: int
    most_samples: int
    #: (features,) float64: Of S, largest first (simulation only).
    eigenvalues: Array
    #: The measured eta, largest ‖S_i - S‖ / ‖S‖ (simulation only).
    heterogeneity: float
    #: (rows, columns) or None.
    image_shape: tuple[int, int] | None
    #: Of the private data, to tell problems apart.
    digest: str
    #: What every method on this problem guarantees its clients; None without noise.
    guarantee: Guarantee | None = None
    #: What the client column of a table calls them; empty elsewhere.
    client_names: tuple[str, ...] = ()

    @property
    def read(self) -> str:
        """How much was read or drawn."""
        return counted(self.features, self.clients, self.least_samples, self.most_samples)

    def label(self, client: int) -> str:
        """A client on an axis or on its picture: its name, or its number counted from 0."""
        return self.client_names[client] if self.client_names else str(client)

    def client(self, number: int) -> str:
        """A client in a sentence: by the number that settings and links use, and by its name."""
        named = f" ({self.client_names[number]})" if self.client_names else ""
        return f"client {number}{named}"

    def meanings(self) -> dict[str, Guarantee]:
        """What the guarantee says of other units; nothing where there is none."""
        return {} if self.guarantee is None else meanings(self.guarantee, self.most_samples)

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        same = (each.name for each in fields(cls) if not each.name.endswith("_samples"))
        samples = problem.client_data.samples
        return cls(
            **{name: getattr(problem, name) for name in same},
            least_samples=int(samples.min()),
            most_samples=int(samples.max()),
        )


def counted(features: int, clients: int, least: int, most: int) -> str:
    """Sizes in words: features, clients, and records of the smallest and the largest client."""
    spread = "" if least == most else f"{least:,} to "
    many = f"{plural(features, 'feature')}, {plural(clients, 'client')}"
    return f"{many} of {spread}{plural(most, 'record')}"


def read_of(results: Iterable[Any]) -> tuple[str, str]:
    """How much the first result that says so, and stands in for none, was made from, and how."""
    for found in sorted(results, key=lambda one: getattr(one, "stands_in", False)):
        for one in (getattr(found, "facts", None), found):
            read, note = getattr(one, "read", None), getattr(one, "note", "")
            if isinstance(read, str):
                return read, note and data_note(note, getattr(one, "promised", one))
    return "", ""


def meant(guarantees: Mapping[str, Guarantee], of: str) -> pd.DataFrame:
    """What each of several guarantees comes to, as finished texts; ``of`` heads their names."""
    rows = [
        {of: name, EPSILON: found.budget, NOTICED: f"{100 * found.noticed(FALSE_ALARMS):.3g}%"}
        for name, found in guarantees.items()
    ]
    return pd.DataFrame(rows)


def data_note(note: str, facts: Facts | None) -> str:
    """How the data were made, without the guarantee of a run: that has a card of its own."""
    if facts is None or facts.guarantee is None:
        return note
    return " ".join(note.replace(facts.guarantee.sentence(), "").split())
