"""The server's list of clients, and how it asks them: push, wait, and go on without the silent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from logging import getLogger

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fedpca_core.arrays import Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_flower.declared import FLAG, KEY, SCHEMA, Declared, quoted, size, whole
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.records import Groups, Told, opened, packed, payload

#: Flower's own waiting loop looks every three seconds.
_PAUSE = 0.02
_LOG = getLogger("fedpca_flower")

Answers = dict[int, tuple[Told, Groups]]


class Roster:
    """Which node is which client, and what has crossed the wire.

    ``nodes``: The node of each client that is there.
    ``facts``: What each client has said of itself.
    ``left_out``: Why a client takes no part any more, in a sentence: its answer was none.
    ``bytes_up``, ``bytes_down``: Bytes of the arrays in all messages of the groups ``up``, ``down``
        and ``owed``, from the records.
    """

    def __init__(self, grid: Grid, job: FedJob, journal: Journal) -> None:
        self.grid, self.job, self.journal = grid, job, journal
        self.nodes: dict[int, int] = {}
        self.facts: dict[int, Told] = {}
        self.left_out: dict[int, str] = {}
        self.bytes_up = self.bytes_down = 0
        self._refusals: list[str] = []
        self._greeted: set[int] = set()
        self._awake = False

    # ------------------------------------------------------------------ who is there
    @classmethod
    def gathered(cls, grid: Grid, job: FedJob, journal: Journal) -> Roster:
        """Wait until every client has said hello.

        Raises InvalidInput: some did not within the job's patience, or one refuses the run.
        """
        roster, end = cls(grid, job, journal), time.monotonic() + job.patience
        while True:
            roster.refresh()
            require(not roster._refusals, roster.refusal())
            missing = sorted(set(range(job.clients)) - set(roster.nodes))
            if not missing:
                return roster
            require(
                time.monotonic() < end,
                f"Clients {missing} of {job.clients} have not come within {job.patience:g} "
                "seconds; start their nodes, or set the number of clients (clients) to those "
                "there are.",
            )
            time.sleep(_PAUSE)

    def refresh(self) -> None:
        """Greet nodes that are new, which are clients that come or come back."""
        if entry := self.journal.next("roster"):
            self._recall(entry[0])
        if self.journal.replays:
            return
        if not self._awake:  # who was there in an earlier process is greeted again
            self._awake, self.nodes, self._greeted = True, {}, set()
        before = dict(self.nodes), dict(self.facts)
        online = set(self.grid.get_node_ids())
        self._greeted &= online
        self.nodes = {client: node for client, node in self.nodes.items() if node in online}
        hello = dict.fromkeys(online - self._greeted, self._packed(self.job.public()))
        for node, (told, _) in self._exchange("hello", hello, self._facts()).items():
            if told["client"] not in self.nodes:  # else its killed node may be listed for a minute
                self._greeted.add(node)
            try:
                self._enter(node, told)
            except InvalidInput as refusal:
                self._note(str(refusal))
        if (self.nodes, self.facts) != before:
            self.journal.add({"kind": "roster", "facts": self.facts, **self._known()}, {})

    def _known(self) -> Told:
        counted = [self.bytes_up, self.bytes_down]
        return {"nodes": self.nodes, "left_out": self.left_out, "bytes": counted}

    def _recall(self, told: Told) -> None:
        self.nodes = {int(client): node for client, node in told["nodes"].items()}
        self.left_out.update({int(client): why for client, why in told["left_out"].items()})
        self.bytes_up, self.bytes_down = told["bytes"]
        self.facts |= {int(client): facts for client, facts in told.get("facts", {}).items()}

    def _packed(self, told: Told, **groups: Arrays | None) -> RecordDict:
        return packed({**told, "job": self.journal.number}, **groups)

    def refusal(self) -> str:
        """The latest sentence of a client that refused, or about one; empty without any."""
        return self._refusals[-1] if self._refusals else ""

    def _facts(self) -> Declared:
        norms = "spectral_norms" in self.job.algorithm.agreed
        known = {"client": whole(0, 10**6), "public": KEY, "simulated": FLAG}
        known["features"] = whole(1, self.job.most_features)
        known["samples"] = whole(1, self.job.most_records)
        known["columns"] = SCHEMA
        return Declared(known | ({"spectral_norm": size(self.job.norm_bound)} if norms else {}))

    def _enter(self, node: int, told: Told) -> None:
        client, clients = told["client"], self.job.clients
        require(
            client < clients,
            f"A node calls itself client {client}, and the run has {clients} clients, "
            "numbered from 0; correct its configuration.",
        )
        require(
            client not in self.nodes,
            f"Two nodes call themselves client {client}; give each a number of its own.",
        )
        require(client not in self.left_out, self.left_out.get(client, ""))
        before = self.facts.get(client, told)
        require(
            all(told[name] == before[name] for name in ("features", "samples", "columns")),
            f"Client {client} came back with other data than before ({told['samples']} records of "
            f"{told['features']} features, or other columns); restore its file or start a new run.",
        )
        self.nodes[client], self.facts[client] = node, told

    def leave_out(self, node: int, why: str) -> None:
        """Ask a node nothing any more."""
        told = f"{self._name(node)} is left out: {why}. Its operator must see what runs there."
        for client in [c for c, known in self.nodes.items() if known == node]:
            del self.nodes[client]
            self.left_out[client] = told
        self._greeted.add(node)
        self._note(told)

    def _name(self, node: int) -> str:
        client = next((c for c, known in self.nodes.items() if known == node), None)
        return f"Node {node}" if client is None else f"Client {client}"

    def _note(self, sentence: str) -> None:
        self._refusals.append(sentence)
        _LOG.warning(sentence)

    # ------------------------------------------------------------------ questions
    def ask(
        self,
        action: str,
        told: Mapping[int, Told],
        declared: Declared,
        owed: Mapping[int, Arrays] | None = None,
        **groups: Arrays | None,
    ) -> Answers:
        """Send some clients a message each; the answers, by client, of those in time.

        ``told`` and ``owed`` are each client's own; the other groups of arrays are the same for
        all. Who is not there is not asked.
        """
        if entry := self.journal.next(action):
            said, groups_ = entry
            self._recall(said)
            return {
                int(client): (plain, _of(client, groups_))
                for client, plain in said["answers"].items()
            }
        client_of = {self.nodes[client]: client for client in told if client in self.nodes}
        contents = {
            node: self._packed(told[client], owed=(owed or {}).get(client), **groups)
            for node, client in client_of.items()
        }
        answers = self._exchange(action, contents, declared)
        found = dict(sorted((client_of[node], answer) for node, answer in answers.items()))
        plain = {client: told for client, (told, _) in found.items()}
        kept = {
            f"{client}/{group}": arrays
            for client, (_, groups_) in found.items()
            for group, arrays in groups_.items()
        }
        self.journal.add({"kind": action, "answers": plain, **self._known()}, kept)
        return found

    def tell(self, action: str, clients: list[int], **groups: Arrays) -> None:
        """Send some clients arrays and do not wait."""
        if not self.journal.replays:
            content = self._packed({}, **groups)
            self._push(action, dict.fromkeys((self.nodes[c] for c in clients), content))

    def _exchange(
        self, action: str, contents: Mapping[int, RecordDict], declared: Declared
    ) -> Answers:
        """The answers that hold what was declared, by node; whoever sends another is left out."""
        waiting = self._push(action, contents)
        end = time.monotonic() + self.job.timeout
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
                try:
                    said, groups = opened(reply.content)
                    if "refused" in said:
                        require(isinstance(said["refused"], str), "it refuses without a sentence")
                        self._greeted.add(node)
                        self._note(f"{self._name(node)} refuses: {quoted(said['refused'])}")
                        continue
                    declared.check(said, groups)
                except InvalidInput as lie:
                    self.leave_out(node, f"in its answer to “{action}” {lie}")
                else:
                    answers[node] = said, groups
            if waiting and time.monotonic() >= end:
                _LOG.warning("No answer to “%s” in time from %s", action, sorted(waiting.values()))
                break
            if waiting:
                time.sleep(_PAUSE)
        return answers

    def _push(self, action: str, contents: Mapping[int, RecordDict]) -> dict[str, int]:
        waiting: dict[str, int] = {}
        for node, content in contents.items():
            message = Message(content, node, f"query.{action}", ttl=self.job.timeout)
            # One at a time: a node that is gone has no identifier in the list of all.
            for identifier in self.grid.push_messages([message]):
                waiting[identifier] = node
                self.bytes_down += payload(content, "down") + payload(content, "owed")
        return waiting


def _of(client: str, groups: Groups) -> Groups:
    """One client's groups among all of an entry."""
    return {
        group.removeprefix(f"{client}/"): arrays
        for group, arrays in groups.items()
        if group.startswith(f"{client}/")
    }
