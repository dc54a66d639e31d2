"""A fragment that runs again leaves nothing to be sent into a container that will not be sent."""

from __future__ import annotations

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from dashboard.shell import message_queue


def block(path: list[int], fragment: str) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.add_block.allow_empty = True
    message.delta.fragment_id = fragment
    message.metadata.delta_path.extend(path)
    return message


def waiting() -> ForwardMsgQueue:
    """A run that was cut short: a fragment inside another has drawn, and not all of it is sent."""
    queue = ForwardMsgQueue()
    started = ForwardMsg()
    started.session_status_changed.script_is_running = True
    queue.enqueue(started)
    queue.enqueue(block([0, 3, 0], "outer"))
    queue.enqueue(block([0, 3, 0, 0], "inner"))
    queue.enqueue(block([0, 3, 0, 0, 0], "innermost"))
    queue.enqueue(block([0, 4], ""))
    queue.enqueue(block([0, 4, 0], "other"))
    return queue


def left(queue: ForwardMsgQueue) -> list[list[int]]:
    return [
        list(message.metadata.delta_path)
        for message in queue.flush()
        if message.WhichOneof("type") == "delta"
    ]


@pytest.fixture
def ours(monkeypatch):
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)
    message_queue.drop_orphans()


def test_what_is_inside_a_dropped_container_is_dropped(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    kinds = [message.WhichOneof("type") for message in queue._queue]
    assert kinds == ["session_status_changed", "delta", "delta"]
    assert left(queue) == [[0, 4], [0, 4, 0]]


def test_what_has_its_container_is_sent(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["innermost"])
    assert left(queue) == [[0, 3, 0], [0, 3, 0, 0], [0, 4], [0, 4, 0]]
    queue = waiting()
    sent = queue._queue.pop(1)  # the outer container is with the browser already
    assert list(sent.metadata.delta_path) == [0, 3, 0]
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    assert left(queue) == [[0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 4], [0, 4, 0]]


def test_the_other_ways_to_clear_are_streamlits(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True)
    assert left(queue) == []
    queue = waiting()
    queue.clear()
    assert queue.is_empty()


def test_streamlit_itself_keeps_the_orphans(monkeypatch) -> None:
    """Where it does no longer, `message_queue` can go."""
    monkeypatch.setattr(ForwardMsgQueue, "clear", message_queue.CLEAR)
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    assert left(queue) == [[0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 4], [0, 4, 0]]
