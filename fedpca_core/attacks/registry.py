"""The registry of attacks: a new attack is one file and its line here."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fedpca_core.attacks.attack import Attack, MatrixAttack, RecordsAttack
from fedpca_core.attacks.deployment import Deployment
from fedpca_core.attacks.lattice.apart import LATTICE_ATTACKS
from fedpca_core.attacks.matrices import MATRIX_ATTACKS

#: Attacks on second-moment matrices by key; of those that fit, the first is what pages show.
_LISTED: tuple[MatrixAttack, ...] = (
    *MATRIX_ATTACKS,
    # Others, each in a file of its own, go here.
)
ON_MATRICES: Mapping[str, MatrixAttack] = {one.key: one for one in _LISTED}
ON_RECORDS: Mapping[str, RecordsAttack] = {one.key: one for one in LATTICE_ATTACKS}
ATTACKS: Mapping[str, Attack[Any]] = {**ON_MATRICES, **ON_RECORDS}


def on_matrices(deployment: Deployment, client: int = 0) -> Iterator[MatrixAttack]:
    """Attacks on second-moment matrices that fit."""
    return (one for one in ON_MATRICES.values() if not one.fits(deployment, client))


def searching(deployment: Deployment, client: int = 0, longest: float = math.inf) -> list[str]:
    """Keys of those that fit and search, and take so many seconds at most."""
    fitting = [one for one in on_matrices(deployment, client) if one.searches]
    return [one.key for one in fitting if one.seconds(deployment, client) <= longest]


def on_records(deployment: Deployment, client: int = 0) -> Iterator[RecordsAttack]:
    """Attacks on records that fit."""
    return (one for one in ON_RECORDS.values() if not one.fits(deployment, client))
