"""The Attack page's adversary: runs, attacks, yardsticks and what to say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard import layout
from dashboard.reconstruction import Recovery
from dashboard.replay import Yardstick
from fedpca_core import attacks
from fedpca_core.arrays import Array
from fedpca_core.attacks import simulation_only, yardsticks
from fedpca_core.attacks.linear import AttackPath
from fedpca_core.config import METHODS, AttackConfiguration
from fedpca_core.errors import InvalidInput, require
from fedpca_core.laboratory import Progress, attacked_run
from fedpca_core.problems import Problem
from fedpca_core.streams import Streams
from fedpca_core.transcript import Transcript

#: A reconstruction counts as complete below this relative error.
RECOVERED = 1e-6


@dataclass(frozen=True)
class Outcome:
    """Attacks on all chosen methods.

    Attributes
    ----------
    recoveries : mapping of method key to Recovery
    refusals : mapping of method key to the sentence why an attack could not run
    yardsticks : tuple of Yardstick
        Errors of guesses without any message.
    """

    recoveries: Mapping[str, Recovery]
    refusals: Mapping[str, str]
    yardsticks: tuple[Yardstick, ...]


def private_matrix(problem: Problem, client: int) -> Array:
    """The attacked client's true S_i (simulation only)."""
    require(
        client < problem.clients,
        f"There is no client {client} among {problem.clients}; "
        f"choose an attacked client from 0 to {problem.clients - 1}.",
    )
    return problem.cohort.only(np.array([client])).dense()[0]


def attack_all(configuration: AttackConfiguration, problem: Problem, progress: Progress) -> Outcome:
    """Run each method from the same start and attack its transcript round by round."""
    truth = private_matrix(problem, configuration.client)
    recoveries: dict[str, Recovery] = {}
    refusals: dict[str, str] = {}
    chosen = configuration.attacked
    require(len(chosen) > 0, "No method is under attack; choose at least one.")
    for position, method in enumerate(chosen):
        if not progress(position / len(chosen), f"Running and attacking {METHODS[method]}"):
            break
        try:
            trace, table = attacked_run(problem, method, configuration)
            path = _attack(configuration, trace.transcript, float(np.trace(truth)))
            recoveries[method] = Recovery(path.estimates, path.ranks, table)
        except InvalidInput as refusal:
            refusals[method] = f"{METHODS[method]}: {refusal}"
    return Outcome(recoveries, refusals, _yardsticks(configuration, problem, truth))


def _attack(
    configuration: AttackConfiguration, transcript: Transcript, stated_trace: float
) -> AttackPath:
    client = configuration.client
    attacks_by_key: Mapping[str, Callable[[], AttackPath]] = {
        "linear": lambda: attacks.linear_path(transcript, client),
        "symmetric": lambda: attacks.symmetric_path(transcript, client, trace=stated_trace),
        "ridge": lambda: attacks.ridge_path(transcript, client, trace=stated_trace),
    }
    return attacks_by_key[configuration.attack]()


def _yardsticks(
    configuration: AttackConfiguration, problem: Problem, truth: Array
) -> tuple[Yardstick, ...]:
    size = float(np.linalg.norm(truth))
    features, trace = problem.features, float(np.trace(truth))
    generator = Streams(configuration.seed).generator("yardstick")
    guesses: list[tuple[str, Array, bool]] = [
        ("guess 0", yardsticks.zero(features), False),
        ("guess cI, trace stated", yardsticks.scaled_identity(features, trace), False),
        (
            "random subspace",
            yardsticks.random_subspace(features, configuration.components, trace, generator),
            False,
        ),
    ]
    if problem.clients > 1:
        matrices = problem.cohort.dense()
        others = simulation_only.mean_of_others(
            matrices, problem.cohort.weights, configuration.client
        )
        guesses.append(("mean of the other clients", others, True))
        guesses.append(("pooled S", problem.covariance, True))
    return tuple(
        Yardstick(
            label=f"{name}: {error:.2g}",
            value=error,
            simulation_only=hidden,
        )
        for name, guess, hidden in guesses
        if (error := float(np.linalg.norm(guess - truth)) / size) > 0
    )


def verdict(
    recoveries: Mapping[str, Recovery], truth: Array, configuration: AttackConfiguration
) -> str:
    """One line on what this adversary has learned from each method."""
    parts = []
    for method, recovery in recoveries.items():
        errors = recovery.errors(truth)
        last, angle = float(errors[-1]), float(recovery.table["sin_theta"].iloc[-1])
        complete = np.flatnonzero(errors <= RECOVERED)
        if len(complete):
            at = int(complete[0])
            then = float(recovery.table["sin_theta"].iloc[min(at, len(recovery.table) - 1)])
            parts.append(
                f"From **{METHODS[method]}** the server has the client's whole covariance after "
                f"round {at}, while the method itself is still at an angle of {then:.1g}."
            )
        elif last > 1:
            parts.append(
                f"From **{METHODS[method]}** this attack ends at error {last:.2g}, worse than "
                f"guessing zero; the method is at an angle of {angle:.1g}."
            )
        else:
            parts.append(
                f"From **{METHODS[method]}** this attack gets the covariance to {last:.1%}."
            )
    if "faps" in recoveries and configuration.attack == "linear":
        parts.append("That is masking, not privacy: replaying FAPS' public update does better.")
    return " ".join(parts)


def card(configuration: AttackConfiguration, outcome: Outcome | None) -> None:
    """Who sees what, what they know and do, and what comes of it."""
    secure = configuration.secure_aggregation
    knows = {
        "linear": "the protocol: which answer belongs to which broadcast",
        "symmetric": "also that a covariance is symmetric, and its trace",
        "ridge": "also a prior, cI with the stated trace, and that answers may be noisy",
    }[configuration.attack]
    does = {
        "linear": "takes the smallest matrix that explains all answers",
        "symmetric": "takes the smallest symmetric matrix that explains all answers",
        "ridge": "shrinks towards the prior as far as the messages' own likelihood asks for",
    }[configuration.attack]
    gets = "nothing about a single client: only sums arrive" if secure else "see the curve above"
    masked = secure or configuration.upload_noise > 0 or configuration.dtype == "float32"
    layout.threat_card(
        "An honest-but-curious server",
        sees="every broadcast and "
        + ("the sum of the uploads" if secure else "every client's upload, one by one"),
        knows=knows,
        does=does,
        outcome=gets,
        protection="heuristic" if masked else "none",
    )


def error_table(outcome: Outcome, truth: Array) -> pd.DataFrame:
    """Errors and ranks by method and round, for the download."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "method": METHODS[method],
                    "round": np.arange(len(recovery.estimates)),
                    "reconstruction_error": recovery.errors(truth),
                    "directions_known": recovery.ranks,
                }
            )
            for method, recovery in outcome.recoveries.items()
        ],
        ignore_index=True,
    )
