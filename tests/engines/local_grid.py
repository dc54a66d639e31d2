"""A grid in one process: clients answer at once, from contexts of their own, unless a test says no.

The server's loop and the clients' handler are the deployed ones, and messages travel as records;
only Flower's queues and processes are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedpca_flower.client_app import app as client_app


class LocalGrid(Grid):
    """Nodes with configurations of their own, in this process.

    Parameters
    ----------
    nodes : sequence of mappings
        The nodes' configurations.
    run : mapping
        The run's configuration.
    lost : callable, optional
        Says of a message whether it is lost: "before" it arrives, "after" it was answered, or ""
        for neither.
    number : int
        Of the run.
    """

    def __init__(
        self,
        nodes: Sequence[Mapping[str, Any]],
        run: Mapping[str, Any],
        lost: Callable[[Message], str] = lambda message: "",
        app: ClientApp = client_app,
        number: int = 1,
    ) -> None:
        # Flower tells every process which task it runs, and a message asks for it.
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = number, 1, 1
        self._number = number
        self.nodes = [dict(node) for node in nodes]
        self._run_config, self._lost, self._app = dict(run), lost, app
        self.contexts: dict[int, Context] = {}
        for number, node in enumerate(self.nodes):
            self.join(1000 + number, node)
        self._replies: dict[str, Message] = {}

    def join(self, node_id: int, node: Mapping[str, Any]) -> None:
        """A node comes, with an empty context."""
        self.contexts[node_id] = Context(
            self._number, node_id, dict(node), RecordDict(), self._run_config
        )

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        identifiers = []
        for message in messages:
            identifier = str(uuid4())
            message.metadata.__dict__["_message_id"] = identifier
            identifiers.append(identifier)
            lost, context = self._lost(message), self.contexts.get(message.metadata.dst_node_id)
            if context is None or lost == "before":
                continue
            reply = self._app(message, context)
            if lost != "after":
                self._replies[identifier] = reply
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(one) for one in message_ids if one in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))

    @property
    def run(self) -> Any:
        raise AssertionError("A grid in one process belongs to no run of Flower.")

    def set_run(self, run: Any) -> None:
        raise AssertionError("A grid in one process belongs to no run of Flower.")

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise AssertionError("Messages are made with Flower's class Message.")
