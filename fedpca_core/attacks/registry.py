"""The registry of attacks: a new attack is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterator

from fedpca_core.attacks.attack import MatrixAttack, RecordsAttack
from fedpca_core.attacks.deployment import Deployment
from fedpca_core.attacks.lattice.apart import LATTICE_ATTACKS
from fedpca_core.attacks.matrices import MATRIX_ATTACKS

#: All attacks by key; of those that fit, the first is the reading that pages show.
ATTACKS: dict[str, MatrixAttack | RecordsAttack] = {}


def register(*attacks: MatrixAttack | RecordsAttack) -> None:
    """Add attacks.

    Raises
    ------
    ValueError
        A key that is taken.
    """
    for attack in attacks:
        if attack.key in ATTACKS:
            raise ValueError(f"There is an attack called {attack.key!r} already.")
        ATTACKS[attack.key] = attack


def on_matrices(deployment: Deployment, client: int = 0) -> Iterator[MatrixAttack]:
    """Attacks on second-moment matrices that fit."""
    for attack in ATTACKS.values():
        if isinstance(attack, MatrixAttack) and not attack.fits(deployment, client):
            yield attack


def on_records(deployment: Deployment, client: int = 0) -> Iterator[RecordsAttack]:
    """Attacks on records that fit."""
    for attack in ATTACKS.values():
        if isinstance(attack, RecordsAttack) and not attack.fits(deployment, client):
            yield attack


register(*MATRIX_ATTACKS, *LATTICE_ATTACKS)
