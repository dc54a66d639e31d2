"""What a run is asked to do: from Flower's run configuration and the project's settings file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput, require, require_choice
from fedpca_core.guarantee import FROM_THE_SYSTEM
from fedpca_core.problems.perturbation import Budget, Trust, source_guarantee
from fedpca_core.problems.table_columns import listed
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.described import describe
from fedpca_core.protocol.run import check_sums
from fedpca_core.questions.catalogue import read_settings
from fedpca_core.study.build import build_channel
from fedpca_flower.declared import quoted
from fedpca_flower.kept import columns
from fedpca_flower.own_records import Column, first_difference

#: Of a job, which a run configuration may set.
_LIMITS = ["timeout", "patience", "secure_bound", "norm_bound", "most_records", "most_features"]
#: What a single client computes from its share before the sum.
ROUNDED = "; each client rounds its own part of the sum, which the accountant does not see"


@dataclass(frozen=True)
class FedJob:
    """One run."""

    algorithm: Algorithm
    #: How many must have come before the run begins.
    clients: int
    #: rounds, seed, participation, absent, channel: As for `fedpca_core.simulate`; without secure
    #: aggregation of the channel the server sees single uploads.
    rounds: int = 50
    seed: int = 0
    participation: float = 1.0
    absent: str = "memory"
    channel: Channel = field(default_factory=Channel)
    #: {"records", "equal"}.
    weights: str = "records"
    #: ``epsilon``, ``delta`` and ``clip`` of the noise that clients add at the source.
    budget: Mapping[str, float] | None = None
    #: The clients share that noise, and so many of them may tell an adversary theirs; None: each
    #: adds enough by itself.
    colluding: int | None = None
    #: Seconds a client may take for one message.
    timeout: float = 120.0
    #: Seconds to wait for all clients before the run, and in a round for one without whom it cannot
    #: be finished.
    patience: float = 600.0
    #: No entry of a secure sum may exceed it in size.
    secure_bound: float = 2.0**20
    #: No client's ||S_i||_2 may exceed it; infinite: nothing is agreed.
    norm_bound: float = math.inf
    #: most_records, most_features: No client may hold more.
    most_records: int = 10**8
    most_features: int = 10**5
    #: Features that the clients read; empty: all of their files.
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(self.clients >= 2, f"A run needs at least 2 clients, not {self.clients}.")
        require(self.rounds >= 1, f"A run needs at least 1 round, not {self.rounds}.")
        require_choice("What clients count by", self.weights, ("records", "equal"))
        require(
            self.timeout > 0 and self.patience >= 0,
            f"Timeout and patience are seconds, not {self.timeout} and {self.patience}.",
        )
        check_sums(self.algorithm, self.channel)
        secure = self.channel.secure_aggregation
        require(
            not (secure and self.participation < 1 and self.waits),
            f"{self.algorithm.title} waits for absent clients and then asks them alone, which no "
            "sum hides; under secure aggregation let every client take part, or choose a method "
            "that reuses last uploads (SSI, LocalPower, FAPS).",
        )
        require(
            not (secure and self.channel.dtype != "float64"),
            "Masked numbers travel as 64-bit words, so float32 saves nothing under secure "
            "aggregation; choose float64.",
        )
        require(
            not self.algorithm.shares_noise,
            "Noise that clients share covers sums over all of them only, and on a network one may "
            "fall silent; let each client add its noise in full.",
        )
        require(
            not self.algorithm.public_clients,
            "On a network no client has the records that are said to be public, so that none can "
            "align its own upload; let the server align (FedPower's public=False).",
        )
        if self.colluding is not None:
            self._check_shared()
        require(
            bool(np.isfinite(self.secure_bound)) and self.secure_bound > 0,
            f"The bound of secure sums must be positive, not {self.secure_bound}.",
        )
        require(self.norm_bound > 0, f"A bound on norms is positive, not {self.norm_bound}.")

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> FedJob:
        """From the run configuration of Flower (the keys of the app's pyproject.toml)."""
        settings: Any = read_settings(_text(str(run["settings"])))
        asked = str(run.get("method", ""))
        chosen = (asked,) if asked else tuple(getattr(settings, "methods", ()))
        require(
            len(chosen) == 1 and chosen[0] in METHODS,
            f"A run is of one method, not of {', '.join(chosen) or 'none'}; name one with "
            f"--run-config 'method=\"faps\"': {', '.join(METHODS)}.",
        )
        private = math.isfinite(getattr(settings, "epsilon", math.inf))
        colluding = int(run.get("colluding", -1))
        terms = ("epsilon", "epsilon"), ("delta", "delta"), ("clip", "clip_norm")
        given = {name: run[key] for name in _LIMITS if (key := name.replace("_", "-")) in run}
        try:
            return cls(
                algorithm=METHODS[chosen[0]].make(settings),
                clients=int(run.get("clients", 0) or settings.clients),
                rounds=int(run.get("rounds", 0)) or settings.rounds,
                seed=settings.seed,
                participation=settings.participation,
                absent=getattr(settings, "absent", "memory"),
                channel=build_channel(settings),
                weights=str(run.get("weights", "records")),
                budget={name: getattr(settings, key) for name, key in terms} if private else None,
                colluding=None if colluding < 0 else colluding,
                columns=columns(run),
                **{name: type(getattr(cls, name))(value) for name, value in given.items()},
            )
        except AttributeError as error:
            raise InvalidInput(
                f"These settings do not say what {METHODS[chosen[0]].title} needs ({error}); make "
                "a file with: python -m fedpca_core config converge"
            ) from None

    def _check_shared(self) -> None:
        """Shared noise covers the sum over all clients, so nothing else may be seen of a run."""
        require(
            self.budget is not None and self.channel.secure_aggregation and self.waits,
            "Noise that clients share covers the sum over all of them and nothing less; it needs "
            "an ε, secure aggregation, and a method that waits for everybody (block_krylov).",
        )
        require(
            self.participation == 1 and self.weights == "records" and not self.algorithm.agreed,
            "Noise that clients share needs all of them in every round, counted by their records, "
            "and no number of a single one before the run.",
        )
        self.trust.honest(self.clients)

    @property
    def trust(self) -> Trust:
        """Who those that share their noise rely on."""
        return Trust(self.colluding or 0)

    def _spent(self) -> Budget:
        """The budget with whom it trusts."""
        assert self.budget is not None
        epsilon, delta, clip = (self.budget[name] for name in ("epsilon", "delta", "clip"))
        shared = self.colluding is not None
        return Budget(epsilon, delta, clip, trust=self.trust if shared else None)

    @property
    def waits(self) -> bool:
        """Whether the server stands still until every client has answered."""
        return self.algorithm.waits and self.absent == "memory"

    def public(self) -> dict[str, Any]:
        """What clients are told of the run."""
        budget = None if self.budget is None else dict(self.budget)
        if budget is not None and self.colluding is not None:
            budget["sharers"] = self.trust.honest(self.clients)
        return {
            "algorithm": describe(self.algorithm),
            "channel": asdict(self.channel),
            "seed": self.seed,
            "budget": budget,
        }

    def setting(self, facts: Sequence[Mapping[str, Any]]) -> Setting:
        """What everybody knows of the run, from what each client has said of itself."""
        _check_columns(facts)
        samples = np.array([fact["samples"] for fact in facts], dtype=np.int64)
        counts = samples if self.weights == "records" else np.ones(len(samples))
        setting = Setting(
            features=facts[0]["features"],
            clients=self.clients,
            samples=samples,
            weights=np.asarray(counts / counts.sum(), dtype=float),
            participation=self.participation,
            absent=self.absent,
        )
        if self.budget is None:
            return setting
        budget = self._spent()
        stated = source_guarantee(samples, setting.weights, budget, self.taken)[1]
        if not any(fact["simulated"] for fact in facts):
            rounded = "" if self.colluding is None else ROUNDED
            stated = replace(stated, drawn=FROM_THE_SYSTEM + rounded)
        return replace(setting, record_norm=budget.clip, guarantee=stated)

    def largest(self, setting: Setting) -> float:
        """What ||M_i||_2 of a client's matrix can be: as agreed, or clip² and its noise.

        Noise of deviation ν an entry has a norm of about 2ν√features, and with chances that no run
        will meet more than 3ν√features + 12ν.
        """
        if self.budget is None or math.isfinite(self.norm_bound):
            return self.norm_bound
        budget = self._spent()
        noise = float(source_guarantee(setting.samples, setting.weights, budget)[0].max())
        return budget.clip**2 + noise * (3.0 * math.sqrt(setting.features) + 12.0)

    @property
    def taken(self) -> tuple[str, ...]:
        """What an ε takes as public of the clients' files."""
        named = f" ({listed(self.columns)})" if self.columns else ""
        return f"the columns of their files{named}", "that a cell without a number counts as 0"


def _check_columns(facts: Sequence[Mapping[str, Any]]) -> None:
    """Refuse columns that differ in number, name, order, kind or unit; a sum would mix them up."""
    named = [[Column(*one) for one in fact["columns"]] for fact in facts]
    # Files without names fit any; whoever says the most is compared with.
    model = max(range(len(named)), key=lambda client: sum(bool(one.name) for one in named[client]))
    for client, (fact, own) in enumerate(zip(facts, named, strict=True)):
        width, most = fact["features"], facts[model]["features"]
        require(
            width == most == len(own),
            f"Client {client} has {width} features and client {model} has {most}; they must agree "
            "on the same columns (--run-config 'columns=\"a,b,c\"').",
        )
        at = first_difference(own, named[model])
        require(
            at is None,
            f"Column {(at or 0) + 1} of client {client} is {quoted(str(own[at or 0]))}, and of "
            f"client {model} {quoted(str(named[model][at or 0]))}; bring them into the same order "
            "and units, or name the columns (--run-config 'columns=\"a,b,c\"').",
        )


def _text(settings: str) -> str:
    if settings.lstrip().startswith("{"):
        return settings
    try:
        return Path(settings).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"The settings file {settings!r} cannot be read where the server app runs ({error}); "
            "give its path there, or its text, with --run-config 'settings=...'."
        ) from None
