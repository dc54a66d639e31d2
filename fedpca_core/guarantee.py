"""What a run guarantees: an epsilon never stands without the words that give it a meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.errors import InvalidInput, require
from fedpca_core.settings import rough, short

ACCOUNTANT = "exact composition of Gaussian releases (GDP, closed form)"
FULL = "every client takes part"
DRAWN = "clients drawn {} replacement by the server, which knows them: no amplification"
ANY_SAMPLING = "any clients in any round: nothing more is released"
#: How the releases of a run are counted.
EACH_IN_FULL = "noise on every product, each counted in full"
TOGETHER = "noise on every product; all probes are orthogonal to each other and count as one"
REMEMBERED = (
    "noise on what a product asks anew; what was asked before is answered from memory, so all "
    "count as one"
)
AT_THE_SOURCE = "one release of Sᵢ + Eᵢ a client; everything else is post-processing"
MEAN_AND_SOURCE = (
    "one release of a noisy mean (clip norm {clip}) and one of Sᵢ + Eᵢ a client; everything else "
    "is post-processing"
)
#: Against whom the guarantee holds.
CHECKED = (
    "the server, even a dishonest one, and every other client; each client checks a probe "
    "before it answers"
)
ANYBODY = "the server, even a dishonest one, every other client, and all of them together"
#: What every guarantee takes as public.
SIZES = "how many records each client holds"
#: Where the noise comes from.
FROM_THE_SEED = "simulated, from the seed in the link; a deployment draws it from the system"
FROM_THE_SYSTEM = (
    "drawn by each client from its system, on a grid (discrete Gaussian; δ pays for its distance "
    "from a rounded Gaussian, to which the accountant applies)"
)


@dataclass(frozen=True)
class Unit:
    """What an adversary cannot tell apart."""

    #: How many of one client's records the unit replaces; None: all of them.
    records: int | None = 1

    def __post_init__(self) -> None:
        require(
            self.records is None or self.records >= 1,
            f"A person holds at least 1 record, not {self.records}; 1 protects single records.",
        )

    def changed(self, samples: int) -> int:
        """Records of a client of ``samples`` records that the unit replaces."""
        return samples if self.records is None else min(self.records, samples)

    def __str__(self) -> str:
        if self.records is None:
            return "one client: all of its records, replaced by others"
        if self.records == 1:
            return "one record of one client, replaced by another"
        return f"one person: {self.records} records of one client, replaced by others"


RECORD, CLIENT = Unit(), Unit(None)
#: Records of the persons that serve as examples.
PERSONS = (2, 5, 10)


def in_words(delta: float, clipped: str, public: Sequence[str]) -> str:
    """What every epsilon of many runs means, ``public`` taken as such besides the sizes."""
    return (
        f"ε here: {RECORD}; δ = {short(delta)}; records clipped at {clipped}; {ANY_SAMPLING} "
        f"(FedPower: every product, counted in full); {ACCOUNTANT}; {given(public)}."
    )


def given(public: Sequence[str]) -> str:
    """What an epsilon of many simulated runs takes as public, and where its noise comes from."""
    return f"taken as public: {', '.join((SIZES, *public))}; noise: {FROM_THE_SEED}"


@dataclass(frozen=True)
class PaidMean:
    """A noisy mean that every client released before the run, to centre the records on."""

    #: What it cost, for one record, in Gaussian differential privacy.
    mu: float
    #: Norm at which the records that entered it were clipped.
    clip_norm: float


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of one client's data."""

    #: epsilon, delta: Totals. epsilon follows from the rest; it is infinite when the noise is off.
    epsilon: float = field(init=False)
    delta: float
    #: Noisy answers about the client's data (hidden local products count).
    releases: int
    #: sensitivity, noise: Largest change of one release when the unit changes, and the standard
    #: deviation added to every entry of it.
    sensitivity: float
    noise: float
    #: Bound on the norm of every record, enforced before the second moments are formed.
    clip_norm: float
    #: Releases that count at full sensitivity; fewer than ``releases`` where probes are mutually
    #: orthogonal and share one sensitivity.
    composition: float
    unit: str = str(RECORD)
    sampling: str = FULL
    accountant: str = ACCOUNTANT
    released: str = EACH_IN_FULL
    towards: str = CHECKED
    #: What was used and is not covered, because it is public, the clients' sizes first.
    public: tuple[str, ...] = (SIZES,)
    drawn: str = FROM_THE_SEED

    def __post_init__(self) -> None:
        require(
            0 <= self.delta < 1
            and self.clip_norm > 0
            and min(self.releases, self.sensitivity, self.noise, self.composition) >= 0,
            "The terms of the guarantee do not fit: δ lies in [0, 1), the clip norm is positive "
            "and no other number negative; make the run again.",
        )
        object.__setattr__(self, "epsilon", _epsilon(self.mu, self.delta))

    @property
    def private(self) -> bool:
        return bool(np.isfinite(self.epsilon))

    @property
    def mu(self) -> float:
        """The same guarantee in Gaussian differential privacy; infinite without noise."""
        if self.composition == 0:
            return 0.0
        if self.noise == 0:
            return float("inf")
        return float(np.sqrt(self.composition)) * self.sensitivity / self.noise

    @property
    def budget(self) -> str:
        return rough(self.epsilon)

    def noticed(self, false_alarms: float) -> float:
        """How often the best test notices that the unit was replaced, at a rate of false alarms."""
        return float(gaussian.gaussian_roc(self.mu, false_alarms))

    def terms(self) -> dict[str, str]:
        """What must stand beside epsilon, as label and text."""
        return {
            "δ": short(self.delta),
            "unit": self.unit,
            "clip norm": f"{self.clip_norm:g}",
            "released": self.released,
            "towards": self.towards,
            "sampling": self.sampling,
            "accountant": self.accountant,
            "taken as public": ", ".join(self.public),
            "noise": self.drawn,
        }

    def row(self) -> dict[str, float | str]:
        """Its numbers and its terms, for a table."""
        numbers = {"epsilon": self.epsilon, "noise": self.noise, "releases": self.releases}
        numbers |= {"counted": self.composition, "sensitivity": self.sensitivity}
        return numbers | self.terms() | {"noise": self.noise, "noise drawn": self.drawn}

    def sentence(self) -> str:
        said = "; ".join(f"{label}: {text}" for label, text in self.terms().items())
        if not self.private:
            return f"ε = ∞: no noise is added, so nothing is guaranteed ({said})."
        count = "1 release" if self.releases == 1 else f"{self.releases} releases"
        return f"ε = {self.budget} ({said}; {count})."

    def after(self, mean: PaidMean | None) -> Guarantee:
        """The run together with the noisy mean released before it, where there is one."""
        if mean is None or not self.private:
            return self
        return replace(
            self,
            releases=self.releases + 1,
            composition=self.composition + (mean.mu * self.noise / self.sensitivity) ** 2,
            released=f"one noisy mean (clip norm {mean.clip_norm:g}); {self.released}",
        )

    def of_one_record(self, unit: Unit, samples: int) -> Guarantee:
        """The guarantee of one record that this one of ``unit`` contains; undoes `for_unit`."""
        return replace(self, sensitivity=self.sensitivity / unit.changed(samples), unit=str(RECORD))

    #: Of a `Refusal`.
    reason: ClassVar[str] = ""

    def stated(self) -> Guarantee:
        """Itself; see `Refusal.stated`."""
        return self

    def for_unit(self, unit: Unit, samples: int) -> Guarantee:
        """The same noise seen from a person with several of m_i ``samples``, or a whole client.

        Group privacy is exact here, ``mu -> g mu``: g records change S_i by g times as much as one,
        and a pair of data sets attains it.
        """
        require(
            self.unit == str(RECORD),
            f"This guarantee already speaks of {self.unit}; start from that of one record.",
        )
        return replace(self, sensitivity=unit.changed(samples) * self.sensitivity, unit=str(unit))


def together(guarantees: Sequence[Guarantee]) -> Guarantee:
    """What several runs on the same records guarantee together: their budgets add in squares.

    Two runs at epsilon = 1 and delta = 1e-6 are one at 1.45. A record that joins or leaves between
    two runs is exactly this case.

    Raises InvalidInput: no run, or runs whose unit, clip norm or delta differ.
    """
    require(len(guarantees) > 0, "There is no run to add up; give at least one guarantee.")
    first = guarantees[0]
    for other in guarantees:
        for name in ("unit", "clip_norm", "delta"):
            mine, theirs = getattr(first, name), getattr(other, name)
            require(
                mine == theirs,
                f"Runs compose at one {name.replace('_', ' ')}, not at {mine} and {theirs}; "
                "state all of them alike.",
            )
    if len(guarantees) == 1:
        return first
    mu = gaussian.compose([one.mu for one in guarantees])
    return replace(
        first,
        releases=sum(one.releases for one in guarantees),
        composition=(mu * first.noise / first.sensitivity) ** 2 if np.isfinite(mu) else 1.0,
        noise=first.noise if np.isfinite(mu) else 0.0,
        released=f"{len(guarantees)} runs, each with noise of its own: "
        + _joined(one.released for one in guarantees),
        sampling=_joined(one.sampling for one in guarantees),
        towards=_joined(one.towards for one in guarantees),
        public=tuple(dict.fromkeys(said for one in guarantees for said in one.public)),
        drawn=_joined(one.drawn for one in guarantees),
    )


def meanings(stated: Guarantee, samples: int) -> dict[str, Guarantee]:
    """What the guarantee of one record says of a person, of a client, and of a second run.

    By what may be replaced, the mildest first. ``samples`` are those of the largest client, which
    has most to lose; persons hold fewer records than it does.
    """
    persons = {
        f"a person with {held} records": stated.for_unit(Unit(held), samples)
        for held in PERSONS
        if held < samples
    }
    whole = "1 record" if samples == 1 else f"all {samples:,} records"
    return {
        "one record": stated,
        "one record, after two runs": together([stated, stated]),
        **persons,
        f"a client ({whole})": stated.for_unit(CLIENT, samples),
    }


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


@dataclass(frozen=True)
class Refusal:
    """Why no epsilon can be stated for a method, as a sentence for the screen."""

    reason: str

    def stated(self) -> Guarantee:
        """Raises InvalidInput: there is none."""
        raise InvalidInput(self.reason)

    def for_unit(self, unit: Unit, samples: int) -> Refusal:
        return self


@lru_cache(maxsize=1024)
def _epsilon(mu: float, delta: float) -> float:
    return float(gaussian.epsilon_of(mu, delta))
