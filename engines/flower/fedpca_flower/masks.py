"""A client's end of secure sums: it deals shares of its masks' seeds, masks, and opens sums.

Each on its own terms. Where last uploads stand in for absent clients, it sends the difference to
its last upload, and the server goes on with its total.
"""

from fedpca_core.arrays import Arrays
from fedpca_core.errors import require
from fedpca_flower import secure
from fedpca_flower.member import Member
from fedpca_flower.records import Told

#: Fewest clients in a sum that a client opens, unless its node says otherwise.
FEWEST = 2


def deal(me: Member, told: Told) -> Told:
    """Draw the masks' seeds for one occasion, and deal shares of them among its participants.

    Raises InvalidInput: an occasion that was there before, whose old shares would open new masks; a
    sum that the client is no part of, or over too few.
    """
    mine, occasion = me.mine, told["occasion"]
    keys = {int(client): key for client, key in told["keys"].items()}
    require(
        keys.get(me.client) == mine["public"],
        "A client deals shares only for a sum that it is part of, under its own key; it refuses.",
    )
    require(
        occasion not in mine.setdefault("occasions", []),
        "A client deals shares of its masks once for an occasion; it refuses a second time.",
    )
    _check_many(me, len(keys))
    company = mine.setdefault("company", keys)
    require(
        me.sharers == 1 or {int(client): key for client, key in company.items()} == keys,
        "The noise of this client is shared with the clients of its first sum, and covers no sum "
        "with others; it refuses.",
    )
    mine["occasions"].append(occasion)
    own, pairs = secure.new_seed(), secure.new_seed()
    mine["masks"] = {"occasion": occasion, "keys": keys, "own": own, "pairs": pairs}
    return secure.dealt(own, pairs, me.client, mine["key"], keys, occasion)


def unread(me: Member, told: Told) -> list[int]:
    """Whose shares cannot be read, or are not those that everybody was told of.

    Raises InvalidInput: a second upload for one occasion; shares of too few, or of strangers.
    """
    kept, terms = me.mine.get("masks") or {}, told["secure"]
    require(
        kept.get("occasion") == terms["occasion"] and "held" not in kept,
        "A client uploads once under the masks that it has dealt shares of; it refuses.",
    )
    keys = {int(client): key for client, key in kept["keys"].items()}
    dealt = {int(dealer): given for dealer, given in terms["dealt"].items()}
    least = secure.threshold(len(keys))
    require(
        me.client in dealt and set(dealt) <= set(keys) and len(dealt) >= least,
        f"Shares of {len(dealt)} of {len(keys)} clients were dealt, and a sum needs {least} of "
        "these, this one included; it refuses.",
    )
    private, occasion = me.mine["key"], kept["occasion"]
    kept["held"] = {
        dealer: secure.held(given, dealer, me.client, private, keys[dealer], occasion)
        for dealer, given in dealt.items()
    }
    kept["publics"] = {dealer: given["public"] for dealer, given in dealt.items()}
    if bad := [dealer for dealer, shares in kept["held"].items() if shares is None]:
        me.mine["masks"] = None
    return bad


def masked(me: Member, told: Told, down: Arrays, upload: Arrays) -> dict[str, secure.Words]:
    """A client's weighted upload under its masks; what was dealt of them opens the sum.

    The masks belong to the question: of answers to different ones they do not cancel.

    Raises InvalidInput: the sum holds an earlier upload that the client does not remember, or one
    that is too large.
    """
    terms, weight, arrays = told["secure"], told["weight"], me.arrays
    point = secure.FixedPoint(terms["bound"], me.setting.clients)
    words = point.words({name: weight * array for name, array in upload.items()})
    if terms["differences"]:
        require(
            not told["counted"] or bool(arrays.get("sent")),
            f"Client {me.client} does not remember the upload that the sum holds of it, so its "
            "next one would count twice; give its node a folder (memory) before the run.",
        )
        arrays["sending"] = {"words": words}
        words = words - arrays["sent"]["words"] if arrays.get("sent") else words
    kept = me.mine["masks"]
    private, _ = secure.key(kept["pairs"])
    weights = me.setting.weights.tolist()
    question = secure.question(kept["occasion"], weights, told, down)
    pairs = secure.pair_seeds(private, kept["publics"], me.client, question)
    return {"words": secure.masked(words, me.client, kept["own"], pairs)}


def opening(me: Member, told: Told) -> Told:
    """Shares that open a sum over those who arrived, one of each dealer, for one list of these.

    A server that was stopped may ask the same again, and is told the same.

    Raises InvalidInput: a sum that the client is no part of, over strangers, or over too few.
    """
    kept, arrived = me.mine.get("masks") or {}, sorted(set(told["arrived"]))
    require(
        kept.get("occasion") == told["occasion"]
        and "held" in kept
        and kept.get("arrived", arrived) == arrived,
        "A client opens only the sum of its latest upload, and over one list of arrivals.",
    )
    held = {int(dealer): shares for dealer, shares in kept["held"].items()}
    require(
        me.client in arrived and set(arrived) <= set(held),
        "A client opens only a sum that it has contributed to; it refuses.",
    )
    _check_many(me, len(arrived))
    least = secure.threshold(len(kept["keys"]))
    require(
        len(arrived) >= least,
        f"A sum over {len(arrived)} of {len(kept['keys'])} clients is not opened; {least} of them "
        "must have arrived.",
    )
    kept["arrived"] = arrived
    # Of who arrived the own seed, of who did not the pairs' key, and of nobody both.
    return {"shares": {dealer: shares[dealer not in arrived] for dealer, shares in held.items()}}


def _check_many(me: Member, clients: int) -> None:
    """The node's own least number of clients in a sum; all of them where they share noise."""
    everybody = me.setting.clients if me.sharers > 1 else FEWEST
    fewest = max(int(me.node.get("fewest", FEWEST)), everybody)
    require(
        clients >= fewest,
        f"A sum over {clients} client{'s' if clients != 1 else ''} says too much of each "
        f"(at least {fewest} are needed); wait until more are there.",
    )
