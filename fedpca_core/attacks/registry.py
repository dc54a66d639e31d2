"""The registry of attacks: a new attack is one file and its line here."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from fedpca_core.attacks.attack import Attack, Deployment, MatrixAttack, RecordsAttack
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

A = TypeVar("A", bound=Attack[Any])


def fitting(listed: Mapping[str, A], deployment: Deployment, client: int = 0) -> list[A]:
    """Those of some attacks that fit."""
    return [one for one in listed.values() if not one.fits(deployment, client)]


def searching(deployment: Deployment, client: int = 0, longest: float = math.inf) -> list[str]:
    """Keys of those on matrices that fit and search, and take so many seconds at most."""
    found = [one for one in fitting(ON_MATRICES, deployment, client) if one.searches]
    return [one.key for one in found if one.seconds(deployment, client) <= longest]
