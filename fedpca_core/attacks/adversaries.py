"""Who attacks: what each adversary knows, and which attack is the best it can do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Adversary:
    """One kind of honest-but-curious server, for cards and menus.

    Attributes
    ----------
    key : str
        Stable, for links.
    title : str
    knows : str
        One line: what it sees and knows beyond the protocol.
    does : str
        One line: what it makes of that.
    attack : str
        Name of the function in `fedpca_core.attacks`.
    needs_single_uploads : bool
        Whether secure aggregation stops it.
    """

    key: str
    title: str
    knows: str
    does: str
    attack: str
    needs_single_uploads: bool


ADVERSARIES: tuple[Adversary, ...] = (
    Adversary(
        "linear",
        "Passive, linear",
        "which answer belongs to which broadcast",
        "takes the smallest matrix that explains all answers as products",
        "linear",
        True,
    ),
    Adversary(
        "symmetric",
        "Knows the structure",
        "also that a covariance is symmetric and, where stated, its trace",
        "takes the smallest symmetric matrix that explains all answers",
        "symmetric",
        True,
    ),
    Adversary(
        "ridge",
        "Knows there is noise",
        "also a public guess, and that answers may be noisy",
        "shrinks towards the guess as far as the likelihood of the messages asks for",
        "ridge",
        True,
    ),
    Adversary(
        "replay",
        "Knows and replays the algorithm",
        "the client's public update rule and every broadcast it answered",
        "searches for the matrix whose replay reproduces the uploads",
        "replay",
        True,
    ),
    Adversary(
        "collusion",
        "Colludes with k clients",
        "the sums, and the uploads of the clients that collude",
        "subtracts the colluders' share of every sum; with all others colluding the client's own "
        "upload is left",
        "collude",
        False,
    ),
    Adversary(
        "sums",
        "Sees only sums",
        "sums over the clients, and who took part in each",
        "solves for the mean of the clients or, when participants change, for each of them",
        "pooled",
        False,
    ),
)
