"""What counting alone says of a deployment: theorems whose hypotheses are numbers and formats.

A count may say that a target is open, because the messages determine it, or that it is closed,
because they provably do not. It never says that attacks have failed: for that they must be run.
"""

from dataclasses import dataclass

from fedpca_core.attacks.attack import Deployment
from fedpca_core.attacks.membership import permitted_ranking
from fedpca_core.findings import Target
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.settings import plural

#: A target of which no attack gets more often the right one of two is called closed.
CLOSED_RANKING = 0.6
#: Records that stay fixed when the others are turned: those that a mean ties down count one more.
_ROTATED = 2


@dataclass(frozen=True)
class Counted:
    """What a theorem says of one target: open or proved closed, and why."""

    target: Target
    open: bool
    basis: str


def counted(deployment: Deployment, client: int = 0) -> dict[Target, Counted]:
    """What counting decides, by target."""
    said = {True: _opened(deployment, client), False: _closed(deployment, client)}
    return {
        target: Counted(target, open_, basis)
        for open_, found in said.items()
        for target, basis in found.items()
    }


def _opened(d: Deployment, client: int) -> dict[Target, str]:
    rank, whole = d.rank(client), ""
    once = "as soon as it takes part: " if d.participation < 1 else ""
    if d.sums or not d.exact:
        return {}
    if d.uploads is Uploads.EIGENVECTORS:
        return {Target.LEADING: f"{once}the client sends its own leading space"}
    if d.uploads is Uploads.MATRIX:
        whole = f"{once}the client sends its whole matrix"
    elif d.uploads is Uploads.PRODUCTS and d.algorithm.steps(1) == 1 and d.components >= rank:
        whole = (
            f"{once}its first message answers {plural(d.components, 'random column')}, and its "
            f"matrix has at most {plural(rank, 'direction')}"
        )
    follows = {Target.LEADING: f"it follows from the covariance: {whole}"}
    return {Target.COVARIANCE: whole} | follows if whole else {}


def _closed(d: Deployment, client: int) -> dict[Target, str]:
    found = {}
    tied = 0 if d.centring == "none" else 1
    if d.records is None and d.held(client) >= _ROTATED + tied:
        found[Target.RECORDS] = (
            "all that is sent is made of second moments, which stay the same when records are "
            "turned among each other, and real numbers lie on no grid that tells by how much"
        )
    covered = d.centring == "none" or d.mean_paid
    if d.guarantee is None or not d.guarantee.private or not covered:
        return found
    most = permitted_ranking(d.guarantee.mu)
    if most <= CLOSED_RANKING:
        found[Target.MEMBERSHIP] = said = (
            f"no attack on one release tells which of two records is in it in more than {most:.0%} "
            f"of pairs: {d.guarantee.sentence().rstrip('.')}"
        )
        found[Target.NEWCOMER] = f"the first run does not hold it, and {said}"
    return found
