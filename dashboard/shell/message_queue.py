"""What waits to be sent when a fragment runs again: nothing whose container will not be sent.

Streamlit then drops what the fragment has drawn and not yet sent, and keeps what fragments inside
it have, which hangs in containers that are dropped. A browser that is told to draw into a container
it never heard of shows an empty page until it is loaded again. It takes a server that is busy for a
moment and a visitor who turns two dials, or one by two steps, within that moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

#: As Streamlit has it.
CLEAR = ForwardMsgQueue.clear


def drop_orphans() -> None:
    """Let Streamlit's queue drop with a container what is inside it."""

    def cleared(
        queue: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        before = queue._queue
        CLEAR(queue, retain_lifecycle_msgs, fragment_ids_this_run)
        if retain_lifecycle_msgs and fragment_ids_this_run:
            queue._queue = with_container(before, queue._queue)

    ForwardMsgQueue.clear = cleared  # type: ignore[method-assign, assignment]


def with_container(before: Sequence[ForwardMsg], kept: Sequence[ForwardMsg]) -> list[ForwardMsg]:
    """What of the ``kept`` messages is in no container that was sent ``before`` and is dropped."""
    stays = {id(message) for message in kept}
    missing: set[tuple[int, ...]] = set()
    found = []
    for message in before:
        path = tuple(message.metadata.delta_path)
        if id(message) not in stays:
            missing.add(path)
        elif not any(path[:depth] in missing for depth in range(1, len(path))):
            missing.discard(path)
            found.append(message)
    return found
