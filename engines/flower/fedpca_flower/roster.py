"""The server's list of clients, and how it asks them: push, wait, and go on without the silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from logging import getLogger

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fedpca_core.errors import InvalidInput, require
from fedpca_flower.records import Groups, Told, opened, packed, payload

#: Flower's own waiting loop looks every three seconds.
_PAUSE = 0.02
_LOG = getLogger("fedpca_flower")

Answers = dict[int, tuple[Told, Groups]]


class Roster:
    """Which node is which client, and what has crossed the wire.

    Parameters
    ----------
    grid : Grid
    clients : int
        How many take part in the run; their numbers are 0 to clients - 1.
    timeout : float
        Seconds after which an answer is not waited for any more; messages expire with it.
    run : Told
        The run's public description, the content of every ``hello``.

    Attributes
    ----------
    bytes_up, bytes_down : int
        Bytes of the arrays in all messages of the groups ``up`` and ``down``, from the records.
    refusals : dict
        The latest sentence of each client that refused.
    """

    def __init__(self, grid: Grid, clients: int, timeout: float, run: Told) -> None:
        self.grid, self.clients, self.timeout, self.run = grid, clients, timeout, run
        self.nodes: dict[int, int] = {}
        self.facts: dict[int, Told] = {}
        self.bytes_up = self.bytes_down = 0
        self.refusals: dict[int, str] = {}
        self._greeted: set[int] = set()
        self._welcome: Callable[[Collection[int]], object] = lambda clients: None

    # ------------------------------------------------------------------ who is there
    def gather(self, patience: float) -> None:
        """Wait until every client has said hello.

        Raises
        ------
        InvalidInput
            Some did not within ``patience`` seconds, or one refuses the run.
        """
        end = time.monotonic() + patience
        while len(self.nodes) < self.clients:
            self.refresh()
            if self.refusals:
                raise InvalidInput(next(iter(self.refusals.values())))
            missing = sorted(set(range(self.clients)) - set(self.nodes))
            require(
                not missing or time.monotonic() < end,
                f"Clients {missing} of {self.clients} have not come within {patience:g} seconds; "
                "start their nodes, or set the number of clients (clients) to those there are.",
            )
            if missing:
                time.sleep(_PAUSE)

    def refresh(self) -> None:
        """Greet nodes that are new, which are clients that come or come back."""
        online = set(self.grid.get_node_ids())
        self._greeted &= online
        self.nodes = {client: node for client, node in self.nodes.items() if node in online}
        new = online - self._greeted
        if not new:
            return
        known = len(self.nodes)
        for node, (told, _) in self._exchange("hello", {n: packed(self.run) for n in new}).items():
            self._greeted.add(node)
            if "refused" in told:
                self.refusals[-node] = told["refused"]
                continue
            self._enter(node, told)
        if len(self.nodes) > known:
            self._welcome(set(self.nodes))

    def _enter(self, node: int, told: Told) -> None:
        client = told["client"]
        require(
            client < self.clients,
            f"A node calls itself client {client}, and the run has {self.clients} clients, "
            "numbered from 0; correct its configuration.",
        )
        require(
            client not in self.nodes,
            f"Two nodes call themselves client {client}; give each a number of its own.",
        )
        before = self.facts.get(client, told)
        require(
            all(told[name] == before[name] for name in ("features", "samples")),
            f"Client {client} came back with other data than before ({told['samples']} records of "
            f"{told['features']} features); restore its file or start a new run.",
        )
        self.nodes[client], self.facts[client] = node, told

    def on_arrival(self, welcome: Callable[[Collection[int]], object]) -> None:
        """What to do when clients have come (they are told all that are there)."""
        self._welcome = welcome

    # ------------------------------------------------------------------ questions
    def ask(self, action: str, contents: Mapping[int, RecordDict]) -> Answers:
        """Send a message to some clients; the answers of those that answer in time."""
        there = {self.nodes[c]: content for c, content in contents.items() if c in self.nodes}
        client_of = {node: client for client, node in self.nodes.items()}
        answers: Answers = {}
        for node, (told, groups) in self._exchange(action, there).items():
            client = client_of[node]
            if "refused" in told:
                self.refusals[client] = told["refused"]
                _LOG.warning("Client %d refuses: %s", client, told["refused"])
            else:
                answers[client] = told, groups
        return dict(sorted(answers.items()))

    def tell(self, action: str, contents: Mapping[int, RecordDict]) -> None:
        """Send a message and do not wait."""
        self._push(action, {self.nodes[c]: m for c, m in contents.items() if c in self.nodes})

    def _exchange(self, action: str, contents: Mapping[int, RecordDict]) -> Answers:
        waiting = self._push(action, contents)
        end = time.monotonic() + self.timeout
        answers: Answers = {}
        while waiting:
            for reply in self.grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is None:
                    continue
                if reply.has_error():
                    _LOG.warning("Node %d did not answer: %s", node, reply.error.reason)
                    continue
                self.bytes_up += payload(reply.content, "up")
                answers[node] = opened(reply.content)
            if waiting and time.monotonic() >= end:
                _LOG.warning("No answer to “%s” in time from %s", action, sorted(waiting.values()))
                break
            if waiting:
                time.sleep(_PAUSE)
        return answers

    def _push(self, action: str, contents: Mapping[int, RecordDict]) -> dict[str, int]:
        waiting: dict[str, int] = {}
        for node, content in contents.items():
            message = Message(content, node, f"query.{action}", ttl=self.timeout)
            # One at a time: a node that is gone has no identifier in the list of all.
            for identifier in self.grid.push_messages([message]):
                waiting[identifier] = node
                self.bytes_down += payload(content, "down") + payload(content, "owed")
        return waiting
