"""Who attacks: what each adversary knows, and which attack is the best it can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Adversary:
    """One kind of honest-but-curious server, for cards.

    Attributes
    ----------
    knows : str
        One line: what it sees and knows beyond the protocol.
    does : str
        One line: what it makes of that.
    needs_single_uploads : bool
        Whether secure aggregation stops it.
    """

    knows: str
    does: str
    needs_single_uploads: bool


#: By the name of the function in `fedpca_core.attacks`, which links use too.
ADVERSARIES: Mapping[str, Adversary] = {
    "linear": Adversary(
        "which answer belongs to which broadcast",
        "takes the smallest matrix that explains all answers as products",
        True,
    ),
    "symmetric": Adversary(
        "also that a covariance is symmetric and, where stated, its trace",
        "takes the smallest symmetric matrix that explains all answers",
        True,
    ),
    "ridge": Adversary(
        "also a public guess, and that answers may be noisy",
        "shrinks towards the guess as far as the likelihood of the messages asks for",
        True,
    ),
    "collude": Adversary(
        "the sums, and the uploads of the clients that collude",
        "subtracts the colluders' share of every sum; with all others colluding the client's own "
        "upload is left",
        False,
    ),
    "pooled": Adversary(
        "sums over the clients, and who took part in each",
        "solves for the mean of the clients or, when participants change, for each of them",
        False,
    ),
}
