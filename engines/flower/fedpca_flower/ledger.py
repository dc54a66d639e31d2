"""A node's ledger: everything that it has released of its records, in all runs, on its own disk.

One noisy matrix belongs to one state of the records and one set of terms. It is drawn and paid for
once; a later run on the same terms is answered with the same matrix, which costs nothing more. The
ledger is written whole and to the disk before a matrix is used, and one process at a time reads and
writes it. It is the operator's: no run can change its limit.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.settings import short
from fedpca_flower.on_grid import spent
from fedpca_flower.records import whole

#: δ at which a node adds its runs up, unless its configuration says another one.
DELTA = 1e-6
#: Rounding in an ε that is met exactly.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Offer:
    """A release that has not been made."""

    #: (mu, tau): As `fedpca_flower.on_grid.release_cost` gives it.
    cost: tuple[float, float]
    #: m_i.
    samples: int
    #: For the operator: the terms, and the run.
    about: Mapping[str, Any]
    #: Makes the matrix, (features, features) float64, with noise of its own.
    draw: Callable[[], Array]


@dataclass(frozen=True)
class Ledger:
    """Releases of one node."""

    client: int
    #: The node's own (``memory``).
    folder: Path
    #: epsilon, delta: The most that all releases together may cost one record; an infinite epsilon:
    #: no limit.
    epsilon: float = math.inf
    delta: float = DELTA

    @classmethod
    def of(cls, client: int, node: Mapping[str, Any]) -> Ledger:
        """As a node's configuration says (``memory``, ``epsilon``, ``delta``)."""
        limit, delta = float(node.get("epsilon", math.inf)), float(node.get("delta", DELTA))
        require(
            limit > 0 and 0 < delta < 1,
            f"The limit of client {client} is an ε above 0 and a δ between 0 and 1, not {limit:g} "
            f"and {delta:g}; correct its --node-config.",
        )
        return cls(client, Path(str(node["memory"])), limit, delta)

    def releases(self) -> list[dict[str, Any]]:
        """Every release so far, the first one first.

        Raises InvalidInput: a ledger that cannot be read; what was spent is not forgotten because
        of it.
        """
        if not self._file.exists():
            return []
        try:
            found: list[dict[str, Any]] = json.loads(self._file.read_text(encoding="utf-8"))
            _costs(found)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InvalidInput(
                f"The ledger of client {self.client} cannot be read ({error}), so nothing more is "
                "released; its operator must restore ledger.json from a copy."
            ) from None
        return found

    def spent(self) -> float:
        """ε of all releases together, at the node's δ; infinite after a run without noise."""
        return spent(_costs(self.releases()), self.delta)

    def release(self, key: str, prepared: Callable[[], Offer]) -> tuple[Array, int]:
        """The matrix that was released under a key, or a new one that is paid for; and its m_i.

        ``key``: Of the records' state and the terms.
        ``prepared``: Reads the records, where there is no such matrix yet.

        Raises InvalidInput: it would cost more than is left.
        """
        file = self.folder / f"release-{key}.npy"
        with self._alone():
            before = self.releases()
            for one in before:
                if one["key"] == key:
                    return self._kept(file), int(one["samples"])
            offer = prepared()
            self._check(before, offer)
            matrix = offer.draw()
            with whole(file, private=True) as written:
                np.save(written, matrix)
            mu, tau = offer.cost
            entry = {"key": key, "mu": mu, "tau": tau, "samples": offer.samples, **offer.about}
            self._write([*before, entry])
            return matrix, offer.samples

    def _check(self, before: list[dict[str, Any]], offer: Offer) -> None:
        most = 1.0 / offer.samples
        require(
            math.isinf(self.epsilon) or self.delta < most,
            f"The limit of client {self.client} is stated at δ = {short(self.delta)}, which must "
            f"be below {most:.2g}, one over its records; start its node with a smaller delta.",
        )
        costs = _costs(before)
        now, total = spent(costs, self.delta), spent([*costs, offer.cost], self.delta)
        require(
            total <= self.epsilon * (1 + _ROUNDING),
            f"Client {self.client} takes part up to ε = {self.epsilon:g} only (δ = "
            f"{short(self.delta)}, all its runs together); {now:.3g} are spent, and the run would "
            f"make it {total:.3g}.",
        )

    def _kept(self, file: Path) -> Array:
        require(
            file.exists(),
            f"The matrix {file.name} of client {self.client} is gone, and to draw it anew would be "
            "another release; its operator must restore it from a copy.",
        )
        return np.asarray(np.load(file, allow_pickle=False), dtype=float)

    def unbounded(self, key: str, about: Mapping[str, Any]) -> None:
        """Write down a run without noise, after which no ε can be stated any more."""
        with self._alone():
            before = self.releases()
            if not any(one["key"] == key for one in before):
                self._write([*before, {"key": key, "mu": None, "tau": 0.0, **about}])

    @property
    def _file(self) -> Path:
        return self.folder / "ledger.json"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        with (self.folder / "ledger.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, releases: list[dict[str, Any]]) -> None:
        with whole(self._file, private=True) as file:
            file.write(json.dumps(releases, indent=1, ensure_ascii=False).encode())


def _costs(releases: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(mu, tau) of each."""
    return [
        (math.inf if one["mu"] is None else float(one["mu"]), float(one["tau"])) for one in releases
    ]
