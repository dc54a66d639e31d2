"""The Flower app of a client: one handler for every method and every step."""

from __future__ import annotations

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedpca_core.errors import InvalidInput
from fedpca_flower.participant import Participant
from fedpca_flower.records import opened, packed

#: Messages are of type "query.<action>".
ACTIONS = ("hello", "agree", "product", "start", "round", "hear", "unmask", "feedback", "settle")

app = ClientApp()


def handle(message: Message, context: Context) -> Message:
    """Answer one message; what the client refuses goes back as a sentence, never as an upload."""
    action = message.metadata.message_type.partition(".")[2]
    told, groups = opened(message.content)
    try:
        content = getattr(Participant(context), action)(told, groups)
    except InvalidInput as refusal:
        content = packed({"refused": str(refusal)})
    return Message(content, reply_to=message)


for _action in ACTIONS:
    app.query(_action)(handle)
