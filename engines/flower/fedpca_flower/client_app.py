"""The Flower app of a client: one handler for every method and every step, secure sums included.

Each client deals shares of its masks' seeds, masks, and opens sums on its own terms. Where last
uploads stand in for absent clients, it sends the difference to its last upload, and the server goes
on with its total.
"""

from typing import Any

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedpca_core.arrays import Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.threads import one_thread
from fedpca_core.protocol.linear_answers import LinearAnswers
from fedpca_flower import secure
from fedpca_flower.member import Member
from fedpca_flower.records import Groups, Told, on_the_wire, opened, packed

#: Fewest clients in a sum that a client opens, unless its node says otherwise.
FEWEST = 2

app = ClientApp()


def handle(message: Message, context: Context) -> Message:
    """Answer one message; what the client refuses goes back as a sentence, never as an upload."""
    action = message.metadata.message_type.removeprefix("query.")
    try:
        told, groups = opened(message.content)
        me = Member(context, told.pop("job", None))
        require(
            action in ("hello", "hear") or bool(me.mine),
            "This client knows nothing of the run, because it has no folder to remember it in "
            "(memory); it has to be greeted again.",
        )
        answer = ANSWERS[action](me, told, groups)
    except InvalidInput as refusal:
        answer = packed({"refused": str(refusal)})
    return Message(answer, reply_to=message)


# ---------------------------------------------------------------------- the steps of a run
def hello(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Public facts of this client; a run that does not meet its terms is refused."""
    me.enter(told)
    return packed(me.facts())


def product(me: Member, told: Told, groups: Groups) -> RecordDict:
    """S_i X for a public X; asked before the run where an eigenvalue of S is agreed."""
    me.check_summed(False)
    needed = "pooled_norm" in me.algorithm.agreed
    require(needed, f"{me.algorithm.title} needs no eigenvalue before the run; the client refuses.")
    frame = np.asarray(groups["down"]["frame"], dtype=np.float64)
    answer = {"product": me.own_data().apply(frame)[0]}
    return packed({"products": 1}, up=on_the_wire(answer, me.mine["run"]["channel"]["dtype"]))


def start(me: Member, told: Told, groups: Groups) -> RecordDict:
    """The state before the first round; a client that has one already keeps it."""
    if me.learns(told, groups.get("agreed", {})):
        everyone = me.algorithm.start(me.data.for_everybody(), me.setting, me.streams)[1]
        me.state = {name: array[me.client][None] for name, array in everyone.items()}
    return me.reply()


def step(me: Member, told: Told, groups: Groups) -> RecordDict:
    """The step of one round and its upload; the step counts once the server says so."""
    me.check_summed("secure" in told)
    me.settle(told["counted"], groups.get("owed"))
    if "secure" in told and (unread := _unread(me, told)):
        return me.reply(unread=unread)
    down = groups.get("down", {})
    plan = me.plan(told, down)
    answers = LinearAnswers(me.data, plan, alone=True) if me.sharers > 1 else None
    data = me.data if answers is None else answers.as_data()
    with one_thread(me.setting.features):
        uplink, stepped = me.algorithm.client(data, me.state, plan, me.streams)
    if answers is not None:
        answers.check(uplink)
    upload = me.sent(uplink, plan)
    if "secure" in told:
        upload = _masked(me, told, down, upload)
    me.stepped(told, stepped)
    return me.reply(upload, unread=[])


def settle(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Whether the last step counted, and what the server made of the round."""
    me.settle(told["counted"], groups.get("owed"))
    return me.reply()


def hear(me: Member, told: Told, groups: Groups) -> RecordDict:
    """A broadcast of a round this client takes no part in."""
    return packed({})


# ---------------------------------------------------------------------- a client's end of a sum
def deal(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Draw the masks' seeds for one occasion, and deal shares of them among its participants.

    Raises InvalidInput: an occasion that was there before, whose old shares would open new masks; a
    sum that the client is no part of, or over too few.
    """
    mine, occasion, keys = me.mine, told["occasion"], _by_client(told["keys"])
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
        me.sharers == 1 or _by_client(company) == keys,
        "The noise of this client is shared with the clients of its first sum, and covers no sum "
        "with others; it refuses.",
    )
    mine["occasions"].append(occasion)
    own, pairs = secure.new_seed(), secure.new_seed()
    mine["masks"] = {"occasion": occasion, "keys": keys, "own": own, "pairs": pairs}
    return me.reply(**secure.dealt(own, pairs, me.client, mine["key"], keys, occasion))


def _unread(me: Member, told: Told) -> list[int]:
    """Whose shares cannot be read, or are not those that everybody was told of.

    Raises InvalidInput: a second upload for one occasion; shares of too few, or of strangers.
    """
    kept, terms = me.mine.get("masks") or {}, told["secure"]
    require(
        kept.get("occasion") == terms["occasion"] and "held" not in kept,
        "A client uploads once under the masks that it has dealt shares of; it refuses.",
    )
    keys, dealt = _by_client(kept["keys"]), _by_client(terms["dealt"])
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


def _masked(me: Member, told: Told, down: Arrays, upload: Arrays) -> dict[str, secure.Words]:
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
    question = secure.question(kept["occasion"], me.setting.weights.tolist(), told, down)
    pairs = secure.pair_seeds(private, kept["publics"], me.client, question)
    return {"words": secure.masked(words, me.client, kept["own"], pairs)}


def unmask(me: Member, told: Told, groups: Groups) -> RecordDict:
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
    held = _by_client(kept["held"])
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
    given = {dealer: shares[dealer not in arrived] for dealer, shares in held.items()}
    return me.reply(shares=given)


def _by_client(named: Told) -> dict[int, Any]:
    """What JSON keeps under names, under the clients' numbers again."""
    return {int(client): value for client, value in named.items()}


def _check_many(me: Member, clients: int) -> None:
    """The node's own least number of clients in a sum; all of them where they share noise."""
    everybody = me.setting.clients if me.sharers > 1 else FEWEST
    fewest = max(int(me.node.get("fewest", FEWEST)), everybody)
    require(
        clients >= fewest,
        f"A sum over {clients} client{'s' if clients != 1 else ''} says too much of each "
        f"(at least {fewest} are needed); wait until more are there.",
    )


ANSWERS = {one.__name__: one for one in (hello, product, start, deal, step, settle, hear, unmask)}
for _action in ANSWERS:
    app.query(_action)(handle)
