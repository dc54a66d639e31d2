"""What a run guarantees: an epsilon never stands without the words that give it a meaning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.privacy import gaussian

#: The unit of every guarantee here: what an adversary cannot tell apart.
RECORD = "one record of one client, replaced by another"
ACCOUNTANT = "exact composition of Gaussian releases (GDP, closed form)"
FULL = "every client takes part"
WITH_REPLACEMENT = (
    "clients drawn with replacement by the server, which knows them: no amplification"
)

WITHOUT_REPLACEMENT = (
    "clients drawn without replacement by the server, which knows them: no amplification"
)


def short(value: float) -> str:
    """A number as text, without the zero that Python puts into small powers of ten."""
    return f"{value:g}".replace("e-0", "e-")


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of one client's data towards the server.

    Attributes
    ----------
    epsilon, delta : float
        Totals over the run. epsilon is infinite when the noise is off.
    releases : int
        Products with the client's data that left it (hidden local ones count).
    sensitivity, noise : float
        Largest change of one release when the unit changes, and the standard deviation added to
        every entry of it.
    clip_norm : float
        Bound on the norm of every record, enforced before the second moments are formed.
    unit, sampling, accountant : str
    composition : float
        Releases that count at full sensitivity; fewer than ``releases`` where probes are mutually
        orthogonal and share one sensitivity.
    """

    epsilon: float
    delta: float
    releases: int
    sensitivity: float
    noise: float
    clip_norm: float
    composition: float
    unit: str = RECORD
    sampling: str = FULL
    accountant: str = ACCOUNTANT

    @property
    def private(self) -> bool:
        """Whether epsilon is finite."""
        return bool(np.isfinite(self.epsilon))

    @property
    def mu(self) -> float:
        """The same guarantee in Gaussian differential privacy; infinite without noise."""
        if self.noise == 0:
            return float("inf")
        return float(np.sqrt(self.composition)) * self.sensitivity / self.noise

    @property
    def budget(self) -> str:
        """Epsilon as text, the sign for infinity when there is none."""
        return f"{self.epsilon:.3g}" if self.private else "∞"

    def terms(self) -> dict[str, str]:
        """What must stand beside epsilon, as label and text."""
        return {
            "δ": short(self.delta),
            "unit": self.unit,
            "clip norm": f"{self.clip_norm:g}",
            "sampling": self.sampling,
            "accountant": self.accountant,
        }

    def sentence(self) -> str:
        """The whole guarantee in one sentence."""
        said = "; ".join(f"{label}: {text}" for label, text in self.terms().items())
        if not self.private:
            return f"ε = ∞: no noise is added, so nothing is guaranteed ({said})."
        return f"ε = {self.budget} ({said}; {self.releases} releases)."


@dataclass(frozen=True)
class Refusal:
    """Why no epsilon can be stated for a method, as a sentence for the screen."""

    reason: str


def guarantee(
    noise: float,
    delta: float,
    releases: int,
    sensitivity: float,
    clip_norm: float,
    *,
    composition: float | None = None,
    sampling: str = FULL,
) -> Guarantee:
    """The guarantee of Gaussian releases with one sensitivity (about 0.2 ms)."""
    count = float(releases if composition is None else composition)
    gaussian.check_delta(delta)
    if noise == 0 and count > 0:
        epsilon = float("inf")
    else:
        mu = 0.0 if count == 0 else np.sqrt(count) * sensitivity / noise
        epsilon = float(gaussian.epsilon_of(mu, delta))
    return Guarantee(
        epsilon, delta, releases, sensitivity, noise, clip_norm, count, sampling=sampling
    )
