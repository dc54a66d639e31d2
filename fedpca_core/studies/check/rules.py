"""What counting alone says of a deployment: columns asked against what a matrix has to tell.

A rule that counting cannot decide says so, and a run at that size has to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.studies.check.settings import CheckSettings

#: Noise on uploads below this share leaves every count as it is.
FAINT = 1e-9
#: Up to so many records a lattice was always taken apart; above, it depends.
LATTICE = 12


@dataclass(frozen=True)
class Expected:
    """What a rule says of one target.

    Attributes
    ----------
    open : bool or None
        None where counting does not decide.
    why : str
        A sentence.
    """

    open: bool | None
    why: str


def asked(settings: CheckSettings) -> int:
    """Columns that the client answers in the whole run, at least, in 99 of 100 draws."""
    rounds = 1 if settings.method.startswith("one_shot") else settings.rounds
    share = settings.participation
    fewer = 2.33 * math.sqrt(rounds * share * (1 - share))  # rounds drawn are binomial
    return settings.components * max(math.floor(rounds * share - fewer), 0)


def rank(settings: CheckSettings) -> int:
    """Directions that the client's matrix has."""
    records = settings.samples - (settings.centring == "own")
    return min(settings.features, max(records, 1))


def expected(settings: CheckSettings) -> dict[str, Expected]:
    """Every target by its rule; `newcomer` only where the run is repeated."""
    whole = _covariance(settings)
    found = {
        "covariance": whole,
        "leading": _leading(settings, whole),
        "records": _records(settings, whole),
        "membership": _membership(settings, whole),
    }
    if settings.repeats:
        found["newcomer"] = _newcomer(settings)
    return found


def _covariance(c: CheckSettings) -> Expected:
    products = "linear" in METHODS[c.method].attacks and c.method != "faps"
    q, r, n = asked(c), rank(c), c.features
    if c.formal:
        return Expected(None, "the server gets the noisy matrix; how near it is depends on m and ε")
    if c.secure_aggregation:
        return Expected(
            None,
            "sums hold the pooled matrix; a client is as open as it is like all others, and "
            "participants that change from round to round are told apart",
        )
    if c.upload_noise > FAINT:
        return Expected(None, "noise on the uploads blurs the answers; averaging sharpens them")
    if c.method == "centralized":
        return Expected(True, "the client sends its whole matrix")
    if products and not c.method.startswith("local_power"):
        if q >= r:
            return Expected(
                True, f"{q} columns are answered, and the matrix has rank {r}: it follows from them"
            )
        return Expected(
            None, f"only {q} of {r} directions are asked; what is left depends on the spectrum"
        )
    if c.method in ("faps", "fedpe", "fedpg"):
        if c.method == "faps" and c.dtype == "float64":  # the messages span where few records lie
            asked_first = c.components * math.ceil(r / c.components)
            if q >= asked_first + c.components:
                n = min(n, asked_first + r)
        equations, unknowns = q * n, n * (n + 1) // 2
        if equations < unknowns:
            return Expected(
                None, f"{equations} equations for {unknowns} unknowns leave the matrix open"
            )
        attack = "replayed" if c.method == "faps" else "fitted"
        open_ = True if c.method == "faps" and c.dtype == "float64" else None
        return Expected(
            open_,
            f"the update is public and can be {attack}: {equations} equations for {unknowns} "
            "unknowns",
        )
    return Expected(None, "no count decides for this method")


def _leading(c: CheckSettings, whole: Expected) -> Expected:
    if whole.open:
        return Expected(True, "it follows from the covariance")
    alone = not c.secure_aggregation and not c.formal and c.upload_noise <= FAINT
    if alone and c.method.startswith("one_shot"):
        return Expected(True, "the client sends its own leading space")
    return Expected(None, "as far as the covariance is known")


def _records(c: CheckSettings, whole: Expected) -> Expected:
    if c.values == "real":
        return Expected(False, "real numbers lie on no grid that would tell the rotation")
    if c.samples >= c.features:
        return Expected(
            False,
            f"{c.samples} records in {c.features} features: a matrix of that rank fits many sets",
        )
    if c.formal:
        return Expected(False, "the noise at the source buries the grid")
    if c.secure_aggregation and c.participation == 1:
        return Expected(False, "sums over all clients hold more records than features")
    if c.centring == "own":
        return Expected(False, "a mean of its own takes one direction away, and with it the order")
    if whole.open and c.dtype == "float64" and c.samples <= LATTICE and c.centring != "secret":
        return Expected(
            True, f"{c.samples} records on a grid in {c.features} features: a lattice gives them"
        )
    return Expected(None, "where the matrix is whole and the grid known, a lattice gives them")


def _membership(c: CheckSettings, whole: Expected) -> Expected:
    if c.formal:
        return Expected(None, f"as often as ε permits, whatever the attack{_outside(c)}")
    if whole.open and c.samples - (c.centring == "own") < c.features:
        return Expected(
            True, "fewer records than features: a member lies in the matrix's space, nobody else"
        )
    # A member's squared length in the metric of S is on average shorter by the share n/m.
    if c.samples > c.features * math.sqrt(2 * c.features):
        return Expected(
            False, f"one of {c.samples} records moves the matrix too little to stand out"
        )
    return Expected(None, "the fewer records for each feature, the more a member stands out")


def _outside(c: CheckSettings) -> str:
    """What no noise on matrices covers."""
    if c.centring == "none":
        return ""
    return "; the mean that was subtracted without noise is outside it and has to be paid for"


def _newcomer(c: CheckSettings) -> Expected:
    if c.formal:
        why = f"every run has noise of its own, and the ε of two covers it{_outside(c)}"
        return Expected(False, why)
    if c.upload_noise > FAINT:
        return Expected(None, "the difference of two runs carries the noise of both")
    if c.method in ("ssi", "block_krylov") and c.participation == 1:
        return (
            Expected(True, "two runs differ by that record alone, in sums as in single uploads")
            if c.dtype == "float64"
            else Expected(None, "rounding of both runs is left in between")
        )
    return Expected(None, "two runs that were asked the same directions differ by that record")
