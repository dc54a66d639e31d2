"""What one client knows of a run: its part of the algorithm, and what it keeps between messages."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, RecordDict

from fedpca_core.arrays import AnyArray, Array, Arrays
from fedpca_core.errors import require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Algorithm, Plan, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.described import restore
from fedpca_flower import secure
from fedpca_flower.kept import ClientStreams, Kept, Served, client_data, columns, position, source
from fedpca_flower.one_of_many import OneOfMany
from fedpca_flower.records import (
    Groups,
    Told,
    load_arrays,
    on_the_wire,
    opened,
    packed,
    save_arrays,
)

#: What a client keeps of a plan until the round is settled.
_PLAN = ("round", "weight", "local_steps", "extra")


class Member:
    """One client while it answers one message, with what it remembers of one job.

    A SuperNode keeps Flower's context as long as it runs. With a folder of its own (``memory`` in
    its configuration) the client also survives a restart of its machine: the file is written whole
    or not at all, after the step and before the reply leaves.

    ``job``: The job's number, which is that of a run that was resumed, too; the server gives it.
    ``mine``: Plain values that it remembers, ready for JSON.
    ``arrays``: ``state``, ``pending`` (a step not known to have counted), ``agreed``.

    Raises InvalidInput: a number that is none, which would be part of a file's name.
    """

    def __init__(self, context: Context, job: object) -> None:
        require(
            isinstance(job, str) and bool(re.fullmatch("[0-9a-f]{16}", job)),
            "A job's number has 16 hexadecimal digits; the client refuses any other.",
        )
        self._context, self.job = context, str(job)
        self.node, self.run = context.node_config, context.run_config
        self.client = position(self.node)
        #: Whether a simulation hands out the data; with records of its own a node obeys itself.
        self.simulated = not (self.node.get("data") or self.node.get("service"))
        folder = self.node.get("memory")
        self._file = Path(str(folder)) / f"run-{job}.npz" if folder else None
        self.mine: Told = {}
        self.arrays: Groups = {}
        if context.state:
            self.mine, self.arrays = opened(context.state)
        elif self._file is not None and self._file.exists():
            self.mine, self.arrays = load_arrays(self._file)

    def keep(self) -> None:
        """Write down what is remembered."""
        self._context.state = packed(self.mine, **self.arrays)
        if self._file is not None:  # it holds the client's secrets
            save_arrays(self._file, self.mine, self.arrays)

    # ------------------------------------------------------------------ the run
    def enter(self, run: Told) -> None:
        """Take part in a run that meets the node's terms; what it is told first stays."""
        if not self.mine:
            private, public = secure.key(secure.new_seed())
            secret = run["seed"] if self.simulated else secrets.randbits(64)
            self.mine = {
                "run": run,
                "secret": self.node.get("secret", secret),
                "key": private,
                "public": public,
                "columns": columns(self.run),
                "records": self.kept.state(),
            }
        noisy = self.budget is not None or getattr(self.algorithm, "noise", 0.0) > 0
        require(
            not noisy or self._file is not None or self.simulated,
            f"Client {self.client} has no folder to remember its noise in: after a restart it "
            "would draw it anew, which is a second release. Start the node with --node-config "
            "'memory=\"/srv/fedpca\"'.",
        )
        self.keep()

    def facts(self) -> Told:
        """What everybody learns of this client."""
        data = self.own_data()
        norms = "spectral_norms" in self.algorithm.agreed
        told = {
            "client": self.client,
            "public": self.mine["public"],
            "simulated": self.simulated,
            "features": data.features,
            "samples": int(data.samples[0]),
            "columns": self.kept.columns(tuple(self.mine["columns"])),
        }
        self.check_summed(not norms)
        return told | ({"spectral_norm": float(data.spectral_norms()[0])} if norms else {})

    def learns(self, setting: Told, agreed: Arrays) -> bool:
        """Whether the setting of the run is news."""
        if "setting" in self.mine:
            return False
        self.mine |= {"setting": setting, "last": None}
        samples = self.setting.samples
        fair = np.array_equal(self.setting.weights, samples / samples.sum())
        require(
            self.sharers == 1 or bool(fair and samples[self.client] == self.own_data().samples[0]),
            f"Client {self.client} shares its noise with clients that count by their records, and "
            "the server counts otherwise; it refuses.",
        )
        self.arrays["agreed"] = dict(agreed)
        return True

    @property
    def algorithm(self) -> Algorithm:
        return restore(self.mine["run"]["algorithm"])

    @property
    def streams(self) -> ClientStreams:
        return ClientStreams(self.mine["run"]["seed"], self.mine["secret"], self.client)

    @property
    def setting(self) -> Setting:
        told = dict(self.mine["setting"])
        samples = np.array(told.pop("samples"), dtype=np.int64)
        weights = np.array(told.pop("weights"))
        return Setting(clients=len(samples), samples=samples, weights=weights, **told)

    @property
    def budget(self) -> dict[str, float] | None:
        """What the run's noise at the source may cost; None where there is none."""
        budget: dict[str, float] | None = self.mine["run"]["budget"]
        return budget

    @property
    def sharers(self) -> int:
        """How many clients' noise must add up; 1: the client's own is enough."""
        return int((self.budget or {}).get("sharers", 1))

    def check_summed(self, summed: bool) -> None:
        """Refuse to tell a number of one's own where only sums are covered by noise."""
        require(
            summed or self.sharers == 1,
            f"Client {self.client} adds a share of the noise only, and tells nothing but its part "
            "of a secure sum over all clients; it refuses.",
        )

    @cached_property
    def kept(self) -> Kept | Served:
        """The records, in this process or in one of another user (``service``)."""
        if service := self.node.get("service"):
            return Served(str(service))
        # What is simulated has no ledger, and no limits but those of whoever runs it.
        node = {} if self.simulated else self.node
        return Kept(self.client, source(self.node, self.run), node)

    def own_data(self) -> ClientData:
        """The client's data as the run may use them: plain, or its one noisy release.

        Raises InvalidInput: records that have changed since the client entered the run; a release
        that the node's ledger does not allow.
        """
        named, seen = tuple(self.mine["columns"]), self.mine["records"]
        require(
            self.kept.unchanged(seen),
            f"The records of client {self.client} ({self.kept.name}) have changed since it entered "
            "the run, and a run is about one state of them; restore the file, or start a new run, "
            "which is a new release.",
        )
        if self.budget is None:
            return self.kept.plain(named, self.job)
        if self.simulated:
            records = source(self.node, self.run)
            return client_data(records, named, self.budget, self.streams)
        return self.kept.release(named, self.budget, seen["digest"], self.job)

    @cached_property
    def data(self) -> OneOfMany:
        """The client's data in their place among all; products are counted for one message."""
        setting, agreed = self.setting, self.arrays.get("agreed", {})
        return OneOfMany.of(self.own_data(), self.client, setting.samples, setting.weights, agreed)

    # ------------------------------------------------------------------ a round
    @property
    def state(self) -> dict[str, AnyArray]:
        """What the algorithm keeps of this client, as far as it counts."""
        return self.arrays.get("state", {})

    @state.setter
    def state(self, arrays: Arrays) -> None:
        self.arrays["state"] = dict(arrays)

    def plan(self, told: Mapping[str, Any], down: Arrays) -> Plan:
        """The plan as far as it concerns this client, with what has arrived."""
        return Plan(
            round=told["round"],
            participants=np.array([self.client], dtype=np.int64),
            weights=np.array([told["weight"]]),
            downlink=down,
            local_steps=told["local_steps"],
            extra=told["extra"],
        )

    def sent(self, uplink: Arrays, plan: Plan) -> dict[str, Array]:
        """The upload as the channel carries it: with its noise, at its precision."""
        channel = Channel(**self.mine["run"]["channel"])
        single = replace(channel, secure_aggregation=False)
        box = Mailbox(single, self.setting, self.streams, reuse_uploads=False)
        uploads = box.up(uplink, plan).uploads or {}
        return on_the_wire({name: array[0] for name, array in uploads.items()}, channel.dtype)

    def stepped(self, told: Told, state: Arrays) -> None:
        """A step whose upload is on its way."""
        self.arrays["pending"] = dict(state)
        kept = {name: told[name] for name in _PLAN}
        self.mine["last"] = {**kept, "open": True, "finished": False}

    def settle(self, counted: int, feedback: Arrays | None) -> None:
        """Take the pending step into the state, or forget it; what was sent stays counted."""
        arrays, last = self.arrays, self.mine["last"]
        if last is None:
            return
        if last["open"]:
            last["open"] = False
            stepped, words = arrays.pop("pending", {}), arrays.pop("sending", {})
            if last["round"] == counted:
                arrays["state"], arrays["sent"] = stepped, words
            else:
                spent = {name: stepped[name] for name in self.algorithm.spent}
                arrays["state"] = {**self.state, **spent}
        if feedback is not None and last["round"] == counted and not last["finished"]:
            last["finished"] = True
            plan = self.plan(last, {})
            self.state = self.algorithm.finish(self.data, self.state, plan, feedback)

    def reply(self, up: Arrays | None = None, **told: Any) -> RecordDict:
        """Write down what is remembered, and answer."""
        self.keep()
        shows = bool(self.run.get("reveal")) and self.simulated
        # As if the step counted: the server drops what it does not count.
        state = self.arrays.get("pending") or self.state
        shown = {name: array[0] for name, array in state.items()} if shows else None
        products = int(self.data.products[self.client]) if "data" in vars(self) else 0
        told |= {"products": products, "shows": shows}
        return packed(told, up=up, simulation_only=shown)
