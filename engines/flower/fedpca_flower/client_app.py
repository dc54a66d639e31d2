"""The Flower app of a client: one handler for every method and every step."""

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.threads import one_thread
from fedpca_core.protocol.linear_answers import LinearAnswers
from fedpca_flower import masks
from fedpca_flower.member import Member
from fedpca_flower.records import Groups, Told, on_the_wire, opened, packed

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
    dtype = me.mine["run"]["channel"]["dtype"]
    return packed({"products": 1}, up=on_the_wire(answer, dtype))


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
    if "secure" in told and (unread := masks.unread(me, told)):
        return me.reply(unread=unread)
    plan, down = me.plan(told), groups.get("down", {})
    answers = LinearAnswers(me.data, plan, alone=True) if me.sharers > 1 else None
    data = me.data if answers is None else answers.as_data()
    with one_thread(me.setting.features):
        uplink, stepped = me.algorithm.client(data, me.state, plan, down, me.streams)
    if answers is not None:
        answers.check(uplink)
    upload = me.sent(uplink, plan)
    if "secure" in told:
        upload = masks.masked(me, told, down, upload)
    me.stepped(told, stepped)
    return me.reply(upload, unread=[])


def settle(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Whether the last step counted, and what the server made of the round."""
    me.settle(told["counted"], groups.get("owed"))
    return me.reply()


def hear(me: Member, told: Told, groups: Groups) -> RecordDict:
    """A broadcast of a round this client takes no part in."""
    return packed({})


def deal(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Shares of the masks of the next upload; once for every occasion."""
    return me.reply(**masks.deal(me, told))


def unmask(me: Member, told: Told, groups: Groups) -> RecordDict:
    """Open a secure sum over the clients that have arrived; once for every upload."""
    return me.reply(**masks.opening(me, told))


ANSWERS = {one.__name__: one for one in (hello, product, start, deal, step, settle, hear, unmask)}
for _action in ANSWERS:
    app.query(_action)(handle)
