"""A client's side of a run: the steps of the algorithm on its own data, a batch of one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from flwr.app import Context, RecordDict

from fedpca_core.arrays import AnyArray, Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.one_of_many import OneOfMany
from fedpca_core.protocol.algorithm import Algorithm, Plan, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.described import restore
from fedpca_flower import secure
from fedpca_flower.memory import Memory
from fedpca_flower.own import ClientStreams, own_data, position
from fedpca_flower.records import Groups, Told, on_the_wire, packed


class Participant:
    """One client answering one message; what lasts is in its memory."""

    def __init__(self, context: Context) -> None:
        self.node, self.run = context.node_config, context.run_config
        self.memory = Memory(context)
        self.client = position(self.node)
        #: Whether a simulation hands out the data; with records of its own a node obeys itself.
        self.simulated = not self.node.get("data")

    # ------------------------------------------------------------------ before the first round
    def hello(self, told: Told, groups: Groups) -> RecordDict:
        """Public facts of this client; a run that does not meet its terms is refused."""
        if not self.memory.told:
            private, public = secure.new_key()
            secret = told["seed"] if self.simulated else secrets.randbits(64)
            secret = self.node.get("secret", secret)
            self.memory.told = {"run": told, "secret": secret, "key": private, "public": public}
        self._check_terms(told["budget"])
        data = self._own()
        self.memory.keep()
        return packed(
            {
                "client": self.client,
                "features": data.features,
                "samples": int(data.samples[0]),
                "public": self.memory.told["public"],
            }
        )

    def agree(self, told: Told, groups: Groups) -> RecordDict:
        """One fact of the client's data that is agreed before the run."""
        require(
            told["fact"] == "spectral_norms" and told["fact"] in self.algorithm.agreed,
            f"A client does not tell “{told['fact']}” of its data.",
        )
        return packed({"value": float(self._own().spectral_norms()[0])})

    def product(self, told: Told, groups: Groups) -> RecordDict:
        """S_i X for a public X; asked before the run where an eigenvalue of S is agreed."""
        require(
            "pooled_norm" in self.algorithm.agreed,
            f"{self.algorithm.title} needs no eigenvalue before the run; the client refuses.",
        )
        return packed({}, up={"product": self._own().apply(groups["down"]["frame"])[0]})

    def start(self, told: Told, groups: Groups) -> RecordDict:
        """The state before the first round; a client that has one already keeps it."""
        memory = self.memory
        if "setting" not in memory.told:
            memory.told |= {"setting": told, "last": None}
            memory.arrays["agreed"] = groups.get("agreed", {})
            whole = self.data.for_everybody()
            everyone = self.algorithm.start(whole, self.setting, self.streams)[1]
            memory.arrays["state"] = {n: a[self.client][None] for n, a in everyone.items()}
            memory.keep()
        return self._reply()

    # ------------------------------------------------------------------ rounds
    def round(self, told: Told, groups: Groups) -> RecordDict:
        """The step of one round and its upload; the step counts once the server says so."""
        self._settle(told["counted"], groups.get("owed"))
        plan, memory, received = self._plan(told), self.memory, groups.get("down", {})
        with one_thread(self.setting.features):
            uplink, stepped = self.algorithm.client(
                self.data, self._method_state(), plan, received, self.streams
            )
        plain = replace(self.channel, secure_aggregation=False)
        box = Mailbox(plain, self.setting, self.streams, reuse_uploads=False)
        sent = box.up(uplink, plan).uploads or {}
        upload = on_the_wire({name: array[0] for name, array in sent.items()}, plain.dtype)
        pending = dict(stepped)
        if "secure" in told:
            upload = self._masked(told["secure"], upload, plan, pending)
        memory.arrays["pending"] = pending
        kept = {name: told[name] for name in _PLAN}
        memory.told["last"] = {**kept, "open": True, "finished": False}
        memory.keep()
        return self._reply(upload)

    def feedback(self, told: Told, groups: Groups) -> RecordDict:
        """The end of a round in which this client's upload counted."""
        self._settle(told["counted"], groups.get("down"))
        self.memory.keep()
        return self._reply()

    def hear(self, told: Told, groups: Groups) -> RecordDict:
        """A broadcast of a round this client takes no part in."""
        return packed({})

    def settle(self, told: Told, groups: Groups) -> RecordDict:
        """After the last round: whether its step counted."""
        self._settle(told["counted"], groups.get("owed"))
        self.memory.keep()
        return self._reply()

    def unmask(self, told: Told, groups: Groups) -> RecordDict:
        """Open a secure sum over the clients that have arrived; once for every upload."""
        kept = self.memory.told.get("masks")
        if not kept or kept["occasion"] != told["occasion"]:
            raise InvalidInput("A client opens only the sum of its latest upload, and only once.")
        fewest = int(self.node.get("fewest", secure.FEWEST))
        secure.check_opening(self.client, kept["participants"], told["arrived"], fewest)
        lost = {c: s for c, s in kept["pairs"].items() if int(c) not in told["arrived"]}
        self.memory.told["masks"] = None
        self.memory.keep()
        return packed({"own": kept["own"], "lost": lost})

    # ------------------------------------------------------------------ inside
    def _settle(self, counted: int, feedback: Arrays | None) -> None:
        """Take the pending step into the state, or forget it; what was sent stays counted."""
        memory, last = self.memory, self.memory.told["last"]
        if last is None:
            return
        if last["open"]:
            stepped = memory.arrays.pop("pending", {})
            if last["round"] != counted:
                spent = {name: stepped[name] for name in self.algorithm.spent}
                stepped = {**memory.arrays.get("state", {}), **spent}
            memory.arrays["state"] = stepped
            last["open"] = False
        if feedback is None or last["round"] != counted or last["finished"]:
            return
        last["finished"] = True
        plan = self._plan(last)
        finished = self.algorithm.finish(self.data, self._method_state(), plan, feedback)
        memory.arrays["state"] = {**memory.arrays.get("state", {}), **finished}

    def _masked(
        self, told: Told, upload: Arrays, plan: Plan, pending: dict[str, AnyArray]
    ) -> dict[str, AnyArray]:
        keys = {int(client): key for client, key in told["keys"].items()}
        point = secure.FixedPoint(told["bound"], self.setting.clients)
        words = point.words({name: plan.weights[0] * array for name, array in upload.items()})
        if told["differences"]:
            for name, word in words.items():
                last = self.memory.arrays.get("state", {}).get(f"{_LAST}{name}")
                pending[f"{_LAST}{name}"] = word[None]
                if last is not None:
                    words[name] = word - last[0]
        own, key = secure.own_seed(), self.memory.told["key"]
        pairs = secure.pair_seeds(key, keys, self.client, told["occasion"])
        self.memory.told["masks"] = {
            "occasion": told["occasion"],
            "participants": sorted(keys),
            "own": own,
            "pairs": {str(other): seed for other, seed in pairs.items()},
        }
        return secure.masked(words, self.client, own, pairs)

    def _method_state(self) -> dict[str, AnyArray]:
        state = self.memory.arrays.get("state", {})
        return {name: array for name, array in state.items() if not name.startswith(_LAST)}

    def _plan(self, told: Mapping[str, Any]) -> Plan:
        return Plan(
            round=told["round"],
            participants=np.array([self.client], dtype=np.int64),
            weights=np.array([told["weight"]]),
            downlink={},
            local_steps=told["local_steps"],
            extra=told["extra"],
        )

    def _reply(self, up: Arrays | None = None) -> RecordDict:
        products = int(self.data.products[self.client])
        shown = None
        if self.run.get("reveal") and self.simulated:
            # As if the step counted: the server drops what it does not count.
            pending = self.memory.arrays.get("pending")
            state = self._method_state() if pending is None else pending
            shown = {n: a[0] for n, a in state.items() if not n.startswith(_LAST)}
        return packed(
            {"products": products, "revealed": shown is not None}, up=up, simulation_only=shown
        )

    def _check_terms(self, budget: Mapping[str, float] | None) -> None:
        limit = self.node.get("epsilon")
        asked = "adds no noise" if budget is None else f"asks for {budget['epsilon']:g}"
        require(
            limit is None or (budget is not None and budget["epsilon"] <= float(limit)),
            f"Client {self.client} takes part up to ε = {limit} only, and the run {asked}.",
        )
        noisy = budget is not None or getattr(self.algorithm, "noise", 0.0) > 0
        require(
            not noisy or self.memory.on_disk or self.simulated,
            f"Client {self.client} has no folder to remember its noise in: after a restart it "
            "would draw it anew, which is a second release. Start the node with --node-config "
            "'memory=\"/srv/fedpca\"'.",
        )

    def _own(self) -> ClientData:
        return own_data(self.node, self.run, self.memory.told["run"]["budget"], self.streams)

    @cached_property
    def data(self) -> OneOfMany:
        """The client's data in their place among all; products are counted for one message."""
        setting, agreed = self.setting, self.memory.arrays.get("agreed", {})
        return OneOfMany.of(self._own(), self.client, setting.samples, setting.weights, agreed)

    @property
    def algorithm(self) -> Algorithm:
        """The method of this run."""
        return restore(self.memory.told["run"]["algorithm"])

    @property
    def channel(self) -> Channel:
        """How messages travel."""
        return Channel(**self.memory.told["run"]["channel"])

    @property
    def streams(self) -> ClientStreams:
        """The randomness of this client."""
        told = self.memory.told
        return ClientStreams(told["run"]["seed"], told["secret"], self.client)

    @property
    def setting(self) -> Setting:
        """What everybody knows about the run."""
        told = self.memory.told["setting"]
        return Setting(
            features=told["features"],
            clients=len(told["samples"]),
            samples=np.array(told["samples"], dtype=np.int64),
            weights=np.array(told["weights"]),
            participation=told["participation"],
            absent=told["absent"],
        )


#: What a client keeps of a plan until the round is settled.
_PLAN = ("round", "weight", "local_steps", "extra")
#: State under which a client keeps the upload that the server's sum holds of it.
_LAST = "last upload of "
