"""A client's end of secure sums: it masks its upload, and opens sums on its own terms.

Where last uploads stand in for absent clients, it sends the difference to its last upload, and the
server goes on with its total.
"""

from __future__ import annotations

from fedpca_core.arrays import Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_flower import secure
from fedpca_flower.member import Member
from fedpca_flower.records import Told

#: Fewest clients in a sum that a client opens, unless its node says otherwise.
FEWEST = 2


def masked(me: Member, terms: Told, upload: Arrays, weight: float) -> dict[str, secure.Words]:
    """A client's weighted upload under its masks; what opens them stays in its memory."""
    memory = me.memory
    keys = {int(other): key for other, key in terms["keys"].items()}
    point = secure.FixedPoint(terms["bound"], me.setting.clients)
    words = point.words({name: weight * array for name, array in upload.items()})
    if terms["differences"]:
        memory.arrays["sending"] = {"words": words}
        words = words - memory.arrays["sent"]["words"] if memory.arrays.get("sent") else words
    own = secure.own_seed()
    pairs = secure.pair_seeds(memory.told["key"], keys, me.client, terms["occasion"])
    kept = {"participants": sorted(keys), "own": own, "pairs": pairs}
    memory.told["masks"] = {"occasion": terms["occasion"], **kept}
    return {"words": secure.masked(words, me.client, own, pairs)}


def opening(me: Member, told: Told) -> Told:
    """What opens a client's latest upload for a sum over those who arrived; given once.

    Raises
    ------
    InvalidInput
        A sum that the client is no part of, over strangers, or over too few.
    """
    kept, arrived = me.memory.told.get("masks"), told["arrived"]
    if not kept or kept["occasion"] != told["occasion"]:
        raise InvalidInput("A client opens only the sum of its latest upload, and only once.")
    check_opening(me.client, kept["participants"], arrived, int(me.node.get("fewest", FEWEST)))
    me.memory.told["masks"] = None
    lost = {other: seed for other, seed in kept["pairs"].items() if int(other) not in arrived}
    return {"own": kept["own"], "lost": lost}


def check_opening(client: int, participants: list[int], arrived: list[int], fewest: int) -> None:
    """A client's own terms for opening a sum."""
    if client not in arrived or not set(arrived) <= set(participants):
        raise InvalidInput("A client opens only a sum that it has contributed to; it refuses.")
    require(
        len(arrived) >= fewest,
        f"A sum over {len(arrived)} client{'s' if len(arrived) != 1 else ''} says too much of each "
        f"(at least {fewest} are needed); wait until more are there.",
    )
