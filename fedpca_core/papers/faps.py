"""The experiments of FAPS, and some that it does not show, as presets.

Each preset makes one point at a size that answers at once and, where the paper has it, at the
paper's own. Live sizes keep the number of samples per client rather than its ratio to the features,
on which the number of useful inner steps depends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fedpca_core.errors import require
from fedpca_core.papers.entries import Entry
from fedpca_core.papers.files import paper
from fedpca_core.problems import Problem, decay_spectrum, images, samples_per_client
from fedpca_core.settings import Value
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

#: Values by the name of a field of `ConvergeSettings`.
Fields = Mapping[str, Any]


#: The paper's table by preset: its entries are what the paper prints for it.
PRINTED: Mapping[str, str] = {
    "table-1": "table-1",
    "vary-features": "table-2/n",
    "vary-samples": "table-2/m",
    "vary-components": "table-2/p",
    "vary-decay": "table-2/xi",
    "images": "table-3",
}

_ROUNDS = {
    one.method: one.printed for one in paper("faps").entries if one.id.startswith("table-1/")
    and one.column == "Iteration"
}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """One experiment."""

    #: Short name for links and the command line.
    name: str
    #: title, point: What it is called, and the one thing it shows.
    title: str
    point: str
    #: Fields of the configuration that differ from its defaults.
    live: Fields = field(default_factory=dict)
    #: The same at the paper's size, which may exceed the sliders; empty where the paper has no such
    #: experiment. ``samples`` is the mean over clients, as everywhere.
    paper: Fields = field(default_factory=dict)
    #: Field that the experiment varies; empty if none. The live configuration takes one of them.
    varied: str = ""
    #: live_values, paper_values: Its values.
    live_values: tuple[Value, ...] = ()
    paper_values: tuple[Value, ...] = ()
    #: Whether it belongs to the attack rather than to convergence.
    attack: bool = False
    #: Whether its many large runs are counted and not timed at the paper's size: time is judged on
    #: Table 1. There a sum over clients that is known beforehand is not worked out client by
    #: client.
    counted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "live", MappingProxyType(dict(self.live)))
        object.__setattr__(self, "paper", MappingProxyType(dict(self.paper)))

    @property
    def published(self) -> tuple[Entry, ...]:
        """The numbers that the paper prints for it."""
        place = PRINTED.get(self.name)
        return tuple(
            one for one in paper("faps").entries if place and one.id.startswith(f"{place}/")
        )

    def configuration(self, value: Value | None = None) -> ConvergeSettings:
        """The live configuration, with the varied field set to ``value``.

        Raises InvalidInput: a value for a preset that varies nothing.
        """
        kind = AttackSettings if self.attack else ConvergeSettings
        return kind(**{**self.live, **self._varied(value)})

    def paper_problem(
        self, value: Value | None = None, seed: int = 0, leading: int | None = None
    ) -> Problem:
        """The problem at the paper's size: up to 4 GiB of data and a minute to generate.

        With ``leading``, so many leading features of synthetic data alone.

        Raises InvalidInput: the paper has no such experiment, or image data are not there.
        """
        require(
            len(self.paper) > 0,
            f"“{self.title}” is not an experiment of the paper; it has a live size only.",
        )
        wanted = {**self.paper, **self._varied(value)}
        if wanted["problem"] not in ("decay_geometric", "decay_arithmetic"):
            return images(wanted["problem"], wanted["clients"], seed=seed)
        geometric = wanted["problem"] == "decay_geometric"
        total = wanted["clients"] * wanted["samples"]
        return decay_spectrum(
            wanted["features"],
            samples_per_client(wanted.get("split", "even"), wanted["clients"], total),
            decay=wanted["decay"] if geometric else None,
            condition=None if geometric else wanted["condition"],
            seed=seed,
            leading=leading,
        )

    def _varied(self, value: Value | None) -> Fields:
        if value is None:
            return {}
        require(
            self.varied != "",
            f"“{self.title}” varies nothing, so the value {value} has no place; leave it out.",
        )
        return {self.varied: value}


_COMPARED = ("ssi", "local_power", "faps", "block_krylov")
#: A live stand-in for the paper's sizes: many samples per client and close eigenvalues.
_LIVE: Fields = {
    "features": 50,
    "clients": 20,
    "samples": 1000,
    "decay": 1.03,
    "components": 5,
    "rounds": 150,
    "starts": 1,
    "inner_rule": "fixed",
    "methods": _COMPARED,
}
#: What most of the paper's experiments share.
_PAPER: Fields = {
    "problem": "decay_geometric",
    "features": 2000,
    "clients": 128,
    "samples": 1000,
    "decay": 1.01,
    "components": 20,
}

PRESETS: tuple[Preset, ...] = (
    Preset(
        "default",
        "Start here",
        "With many samples per client FAPS needs a fraction of SSI's rounds, block Krylov fewer "
        "still, at the same traffic per round; switch the axis to local products to see what "
        "FAPS pays for it.",
    ),
    Preset(
        "uneven",
        "Clients of uneven size",
        "Client i holds a share of the records proportional to i, and the picture stays the same: "
        "FAPS in at most a third of SSI's rounds. LocalPower is hardly ahead of SSI here at equal "
        "accuracy, unlike in the paper.",
        live={**_LIVE, "clients": 8, "samples": 5000, "split": "uneven"},
        paper={
            **_PAPER,
            "features": 1000,
            "clients": 8,
            "samples": 4500,
            "split": "uneven",
            "components": 10,
        },
    ),
    Preset(
        "table-1",
        "Table 1: rounds to convergence",
        f"The paper counts {_ROUNDS['SSI']} rounds for SSI and {_ROUNDS['FAPS']} for FAPS; "
        "five inner steps a round reproduce that.",
        live=_LIVE,
        paper=_PAPER,
    ),
    Preset(
        "vary-features",
        "Growing number of features",
        "At the same decay, more features leave the leading eigenvalues where they are, and the "
        "rounds of every method nearly so.",
        live={**_LIVE, "features": 70},
        paper=_PAPER,
        varied="features",
        live_values=(30, 70, 90),
        paper_values=(2000, 3000, 4000, 5000),
        counted=True,
    ),
    Preset(
        "vary-samples",
        "Growing number of samples",
        "SSI sees only the pooled data, so more samples per client change nothing for it; FAPS "
        "tends to gain, because clients come to resemble one another.",
        live={**_LIVE, "samples": 500},
        paper={**_PAPER, "components": 10, "samples": 1250},
        varied="samples",
        live_values=(200, 500, 2000),
        paper_values=(1250, 1500, 1750, 2000),
        counted=True,
    ),
    Preset(
        "vary-components",
        "Growing number of components",
        "On a geometric spectrum every gap is the same ratio, so the number of components hardly "
        "matters for SSI's rate.",
        live={**_LIVE, "components": 7},
        paper={**_PAPER, "features": 1000, "components": 10},
        varied="components",
        live_values=(3, 7, 9),
        paper_values=(10, 20, 30, 40),
    ),
    Preset(
        "vary-decay",
        "Flatter and flatter spectra",
        "The closer neighbouring eigenvalues are, the more rounds everybody needs: SSI's rate per "
        "round is the ratio of the two at the cut.",
        live={**_LIVE, "rounds": 300},
        paper={**_PAPER, "features": 1000, "samples": 2000, "components": 10, "decay": 1.1},
        varied="decay",
        live_values=(1.1, 1.05, 1.03, 1.02),
        paper_values=tuple(1.0 + 10.0 ** (-(1 + j) / 2) for j in range(1, 5)),
    ),
    Preset(
        "rates",
        "Linear rates at three condition numbers",
        "All methods converge linearly; FAPS keeps its lead whatever the condition number of the "
        "arithmetic spectrum.",
        live={**_LIVE, "problem": "decay_arithmetic", "condition": 10.0, "rounds": 300},
        paper={
            "problem": "decay_arithmetic",
            "features": 1000,
            "clients": 128,
            "samples": 1250,
            "condition": 10.0,
            "components": 10,
        },
        varied="condition",
        live_values=(10.0, 100.0, 1000.0),
        paper_values=(10.0, 100.0, 1000.0),
    ),
    Preset(
        "images",
        "Real images",
        "Leading eigenvalues of images are further apart, so every method is quick, and LocalPower "
        "nearly catches up with FAPS. The paper's averages are over MNIST, Fashion-MNIST and "
        "CIFAR.",
        live={
            "problem": "digits",
            "clients": 16,
            "components": 5,
            "rounds": 100,
            "starts": 1,
            "inner_rule": "fixed",
            "methods": _COMPARED,
        },
        paper={"problem": "mnist", "clients": 16, "components": 5},
        varied="problem",
        live_values=("digits",),
        paper_values=("mnist", "fashion_mnist", "cifar10"),
    ),
    Preset(
        "figure-1a",
        "Figure 1(a): recovered before converged",
        "Solving linear equations, the server holds the client's covariance as soon as the "
        "broadcasts span all 50 features, after round 10, long before SSI has converged; the same "
        "attack on FAPS ends, on this run, worse than guessing zero.",
        attack=True,
    ),
    Preset(
        "figure-1b",
        "Figure 1(b): recovery against convergence as features grow",
        "Rounds to recover the covariance grow as features over components; rounds to converge "
        "grow too and stay ahead.",
        live={"rounds": 30},
        varied="features",
        live_values=(20, 30, 40, 50, 60),
        attack=True,
    ),
    Preset(
        "replay",
        "FAPS replayed",
        "Solving linear equations fails on FAPS, but its update is public: a server that reruns it "
        "until the uploads fit has the client's covariance to rounding, from ten rounds, in about "
        "a second.",
        live={
            "features": 12,
            "components": 2,
            "samples": 50,
            "attacked": ("faps",),
            "replay": True,
        },
        attack=True,
    ),
    Preset(
        "sums-undone",
        "Changing participants undo secure aggregation",
        "With everybody in every round, the sums of a run reveal the pooled covariance only. With "
        "half the clients in each round they differ, and enough of them single out each client.",
        live={
            "features": 20,
            "components": 4,
            "clients": 4,
            "participation": 0.5,
            "rounds": 75,
            "attacked": ("ssi",),
            "secure_aggregation": True,
            "attack": "pooled",
        },
        attack=True,
    ),
    Preset(
        "one-more-record",
        "Secure aggregation does not hide a joining record",
        "Two runs on the digits, one image apart. The sums of SSI give the pooled covariance "
        "before and after, and their difference is that image, to nine digits. LocalPower's "
        "clients iterate on bases of their own, so this reading of its sums fails.",
        live={
            "problem": "digits",
            "components": 10,
            "rounds": 20,
            "attacked": ("ssi", "local_power"),
            "secure_aggregation": True,
            "attack": "pooled",
            "differencing": True,
            "record": 7,
        },
        attack=True,
    ),
    Preset(
        "ten-garments",
        "One message, ten garments",
        "Forty shops hold ten pictures each and send SSI's first message: ten columns. From the "
        "message of the one under attack the server makes the ten pictures, to the last grey "
        "level.",
        live={
            "problem": "fashion_mnist",
            "clients": 40,
            "records_per_client": 10.0,
            "components": 10,
            "rounds": 10,
            "attacked": ("ssi",),
            "fine": True,
        },
        attack=True,
    ),
    Preset(
        "ten-faces",
        "One message, ten faces",
        "Forty people's computers hold ten photographs each and send SSI's first message: ten "
        "columns. From the message of the one under attack the server makes the ten photographs.",
        live={
            "problem": "olivetti",
            "clients": 40,
            "records_per_client": 10.0,
            "components": 10,
            "rounds": 10,
            "attacked": ("ssi",),
            "fine": True,
        },
        attack=True,
    ),
    Preset(
        "unmasked",
        "Masked, replayed, unmasked",
        "FAPS's messages are no products, and reading them as if they were gives noise. But they "
        "span the directions in which ten records lie, and a server that reruns the public update "
        "within these has the matrix of 64 features in a second or two; whole numbers do the rest: "
        "ten digits, certified. Thirty records leave more open, and take it half a minute.",
        live={
            "problem": "digits",
            "clients": 5,
            "records_per_client": 10.0,
            "components": 10,
            "rounds": 20,
            "attacked": ("faps",),
            "unmask": True,
            "budget": 100,
        },
        attack=True,
    ),
    Preset(
        "people-joined",
        "24 people joined",
        "Two runs under secure aggregation, 24 digits apart: of 1,797 records the sums of both "
        "tell nothing one by one, and the difference tells the 24 that joined, exactly.",
        live={
            "problem": "digits",
            "components": 10,
            "rounds": 20,
            "attacked": ("ssi",),
            "secure_aggregation": True,
            "attack": "pooled",
            "joined": 24,
        },
        attack=True,
    ),
    Preset(
        "what-epsilon",
        "What ε would have stopped it",
        "Thirty digits a client are read to the last grey level without noise. Every ε on offer "
        "stops that, 100 too, and destroys the answer with it: noise that covers one of thirty "
        "records leaves little of their matrix. The reading itself fails from ε = 1e14 down, where "
        "the answer is still right to a sine of 8e-7: that it fails protects nobody, ε does.",
        live={
            "problem": "digits",
            "clients": 5,
            "records_per_client": 30.0,
            "components": 10,
            "rounds": 20,
            "attacked": ("ssi",),
            "clip_norm": 4.0,
            "epsilon": 100.0,
        },
        varied="epsilon",
        live_values=(1.0, 10.0, 100.0),
        attack=True,
    ),
    Preset(
        "faps-loses",
        "FAPS loses",
        "With two samples per feature the clients' spectra differ so much by chance that FAPS "
        "with five inner steps needs more rounds than SSI, and some nine times the local products.",
        live={
            **_LIVE,
            "samples": 100,
            "decay": 1.02,
            "rounds": 500,
            "methods": ("ssi", "local_power", "faps"),
        },
    ),
    Preset(
        "heterogeneity-helps",
        "Heterogeneity speeds FAPS up",
        "The pooled problem stays exactly the same while clients drift apart: SSI does not notice, "
        "and FAPS with three inner steps gets faster before it gets slower.",
        live={
            **_LIVE,
            "features": 100,
            "clients": 8,
            "samples": 5000,
            "split": "uneven",
            "decay": 1.02,
            "rounds": 300,
            "inner_steps": 3,
            "heterogeneity": 0.4,
            "methods": ("ssi", "local_power", "faps"),
        },
        varied="heterogeneity",
        live_values=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    ),
    Preset(
        "participation-floor",
        "Half the clients, and a floor",
        "Summing only the clients present leaves an error floor that no number of rounds removes; "
        "let the server reuse the last upload of the absent and it is gone.",
        live={
            **_LIVE,
            "participation": 0.5,
            "absent": "present",
            "rounds": 200,
            "methods": ("ssi", "local_power", "faps"),
        },
    ),
    Preset(
        "one-shot",
        "One round is not enough",
        "Averaging the clients' own subspaces takes one round and ends at an error that grows with "
        "heterogeneity; block Krylov goes on to full accuracy in a dozen.",
        live={
            **_LIVE,
            "rounds": 50,
            "heterogeneity": 0.5,
            "methods": ("one_shot", "ssi", "block_krylov"),
        },
        varied="heterogeneity",
        live_values=(0.0, 0.5, 1.0),
    ),
)


def preset(name: str) -> Preset:
    """The preset called ``name``.

    Raises InvalidInput: there is none.
    """
    known = {entry.name: entry for entry in PRESETS}
    require(name in known, f"There is no preset “{name}”; choose one of {', '.join(known)}.")
    return known[name]
