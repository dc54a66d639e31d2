"""The Attack page's adversaries: runs, attacks, baselines and what to say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dashboard.player import Baseline, Images
from dashboard.shell import layout
from dashboard.views import reconstruction
from dashboard.views.reconstruction import Recovery
from fedpca_core import attacks
from fedpca_core.algorithms.registry import ATTACKABLE
from fedpca_core.arrays import Array
from fedpca_core.attacks import baselines, scores, simulation_only
from fedpca_core.attacks.linear import AttackPath
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams
from fedpca_core.studies.build import attacked_run
from fedpca_core.studies.pca_settings import AttackSettings

#: Told the share of the work that is done and what is being done; False ends it.
Progress = Callable[[float, str], bool]

#: A reconstruction counts as complete below this relative error.
RECOVERED = 1e-6

#: The adversaries under the keys of the configuration.
_ADVERSARIES = {entry.key: entry for entry in attacks.ADVERSARIES} | {
    setting: entry
    for setting, key in (("pooled", "sums"), ("collude", "collusion"))
    for entry in attacks.ADVERSARIES
    if entry.key == key
}


@dataclass(frozen=True)
class Outcome:
    """Attacks on all chosen methods.

    Attributes
    ----------
    recoveries : mapping of method key to Recovery
    refusals : mapping of method key to the sentence why an attack could not run
    baselines : tuple of Baseline
        Errors of guesses without any message.
    pictures : rows of Images
        The server's view, round by round.
    """

    recoveries: Mapping[str, Recovery]
    refusals: Mapping[str, str]
    baselines: tuple[Baseline, ...]
    pictures: Sequence[Sequence[Images]]


def private_matrix(problem: Problem, client: int) -> Array:
    """The attacked client's true S_i (simulation only)."""
    require(
        client < problem.clients,
        f"There is no client {client} among {problem.clients}; "
        f"choose an attacked client from 0 to {problem.clients - 1}.",
    )
    return problem.client_data.only(np.array([client])).dense()[0]


def attack_all(configuration: AttackSettings, problem: Problem, progress: Progress) -> Outcome:
    """Run each method from every start and attack its transcript round by round."""
    truth = private_matrix(problem, configuration.client)
    chosen, starts = configuration.attacked, configuration.starts
    require(len(chosen) > 0, "No method is under attack; choose at least one.")
    recoveries: dict[str, Recovery] = {}
    paths: dict[str, Array] = {}
    refusals: dict[str, str] = {}
    for position, method in enumerate(chosen):
        try:
            for start in range(starts):
                done = (position + start / starts) / len(chosen)
                text = f"Attacking {ATTACKABLE[method]}, start {start + 1} of {starts}"
                if not progress(done, text):
                    break
                found, path = _recover(configuration, problem, method, start, truth)
                if start == 0:
                    recoveries[method], paths[method] = found, path
                else:
                    recoveries[method] = recoveries[method].joined(found)
        except InvalidInput as refusal:
            refusals[method] = f"{ATTACKABLE[method]}: {refusal}"
    shown = reconstruction.pictures(recoveries, paths, truth, problem, configuration.client)
    return Outcome(recoveries, refusals, _baselines(configuration, problem, truth), shown)


def _recover(
    configuration: AttackSettings, problem: Problem, method: str, start: int, truth: Array
) -> tuple[Recovery, Array]:
    trace, table = attacked_run(problem, method, configuration, start)
    transcript = server_view(configuration, problem, method, start, trace.transcript)
    path = attack(configuration, transcript, float(np.trace(truth)))
    likeness: tuple[str, ...] = ()
    if start == 0 and problem.image_shape is not None:
        likeness = tuple(_likeness(one, truth, problem.image_shape) for one in path.estimates)
    found = Recovery(
        ranks=path.ranks,
        table=table,
        errors=scores.relative_errors(path.estimates, truth)[None],
        angles=_angles(path.estimates, truth, configuration.components),
        messages=messages(trace.transcript, path, configuration.client),
        likeness=likeness,
    )
    return found, path.estimates


def server_view(
    configuration: AttackSettings,
    problem: Problem,
    method: str,
    start: int,
    transcript: Transcript,
) -> Transcript:
    """What the adversary reads: the messages, or the sums without the colluders' uploads."""
    if configuration.attack != "collude":
        return transcript
    require(
        transcript.secure_aggregation,
        "Colluding clients add nothing while the server receives every upload one by one; "
        "switch secure aggregation on, or choose another adversary.",
    )
    others = [client for client in range(problem.clients) if client != configuration.client]
    require(
        configuration.colluders <= len(others),
        f"There are only {len(others)} other clients, not {configuration.colluders}; "
        "lower the number of colluding clients.",
    )
    # The same run without secure aggregation is what the colluders themselves remember.
    openly = replace(configuration, secure_aggregation=False)
    seen = attacked_run(problem, method, openly, start)[0].transcript
    told = [attacks.testify(seen, client) for client in others[: configuration.colluders]]
    return attacks.collude(transcript, told)


def attack(
    configuration: AttackSettings, transcript: Transcript, stated_trace: float
) -> AttackPath:
    """The chosen adversary's reconstruction after every round."""
    client = configuration.client
    single = all(exchange.uploads is not None for exchange in transcript.exchanges)
    paths: Mapping[str, Callable[[], AttackPath]] = {
        "linear": lambda: attacks.linear_path(transcript, client),
        "symmetric": lambda: attacks.symmetric_path(transcript, client, trace=stated_trace),
        "ridge": lambda: attacks.ridge_path(transcript, client, trace=stated_trace),
        "pooled": lambda: attacks.pooled_path(transcript, client),
        "collude": lambda: (
            attacks.symmetric_path(transcript, client)
            if single
            else attacks.pooled_path(transcript, client)
        ),
    }
    return paths[configuration.attack]()


def _angles(estimates: Array, truth: Array, components: int) -> Array:
    """Sine of the largest angle between leading spaces after each round."""
    return np.array([scores.top_space_sine(one, truth, components) for one in estimates])


def _likeness(estimate: Array, truth: Array, shape: tuple[int, int]) -> str:
    """PSNR and SSIM of the first eigen-image."""
    if not np.any(estimate):
        return "nothing yet"
    score = scores.eigen_image_scores(estimate, truth, shape, 1)[0]
    return f"first: PSNR {score.psnr:.0f} dB, SSIM {score.ssim:.2f}"


def messages(transcript: Transcript, path: AttackPath, client: int) -> pd.DataFrame:
    """Round by round: who took part, what was sent, its size, what the server knows by then."""
    rows = []
    for exchange, rank in zip(transcript.exchanges, path.ranks[1:], strict=False):
        uploads = exchange.uploads if exchange.uploads is not None else exchange.sums or {}
        shape = {name: array.shape[-2:] for name, array in uploads.items()}
        sent = " + ".join(f"{name} {rows} × {columns}" for name, (rows, columns) in shape.items())
        present = len(exchange.participants)
        each = sum(rows * columns for rows, columns in shape.values())
        rows.append(
            {
                "Round": exchange.round,
                "Participants": f"{present} of {transcript.clients}",
                "Client took part": bool((exchange.participants == client).any()),
                "Broadcast": " + ".join(
                    f"{name} {' × '.join(map(str, array.shape))}"
                    for name, array in exchange.downlink.items()
                ),
                "Uploads": sent if exchange.uploads is not None else f"sum of {sent}",
                "kB up": round(8e-3 * each * present, 2),
                "Directions known": f"{rank} of {transcript.features}",
            }
        )
    return pd.DataFrame(rows)


def _baselines(
    configuration: AttackSettings, problem: Problem, truth: Array
) -> tuple[Baseline, ...]:
    features, trace = problem.features, float(np.trace(truth))
    generator = Streams(configuration.seed).generator("baseline")
    guesses: list[tuple[str, Array, bool]] = [
        ("guess 0", baselines.zero(features), False),
        ("guess cI, trace stated", baselines.scaled_identity(features, trace), False),
        (
            "random subspace",
            baselines.random_subspace(features, configuration.components, trace, generator),
            False,
        ),
    ]
    matrices, weights = problem.client_data.dense(), problem.client_data.weights
    others = simulation_only.mean_of_others(matrices, weights, configuration.client)
    guesses.append(("mean of the other clients", others, True))
    guesses.append(("pooled S", simulation_only.pooled_mean(matrices, weights), True))
    return tuple(
        Baseline(label=f"{name}: {error:.2g}", value=error, simulation_only=hidden)
        for name, guess, hidden in guesses
        if (error := scores.relative_error(guess, truth)) > 0
    )


def verdict(recoveries: Mapping[str, Recovery], configuration: AttackSettings) -> str:
    """One line on what this adversary has learned from each method."""
    parts = []
    for method, recovery in recoveries.items():
        errors = np.median(recovery.errors, axis=0)
        last, angle = float(errors[-1]), float(recovery.table["sin_theta"].iloc[-1])
        complete = np.flatnonzero(errors <= RECOVERED)
        if len(complete):
            at = int(complete[0])
            then = float(recovery.table["sin_theta"].iloc[min(at, len(recovery.table) - 1)])
            parts.append(
                f"From **{ATTACKABLE[method]}** the server has the client's whole covariance after "
                f"round {at}, while the method itself is still at an angle of {then:.1g}."
            )
        elif last > 1:
            parts.append(
                f"From **{ATTACKABLE[method]}** this attack ends at error {last:.2g}, worse than "
                f"guessing zero; the method is at an angle of {angle:.1g}."
            )
        else:
            parts.append(
                f"From **{ATTACKABLE[method]}** this attack gets the covariance to {last:.1%}."
            )
    if "faps" in recoveries and configuration.attack == "linear":
        parts.append("That is masking, not privacy: replaying FAPS' public update does better.")
    return " ".join(parts)


def card(configuration: AttackSettings, outcome: Outcome | None) -> None:
    """Who sees what, what they know and do, and what comes of it."""
    secure = configuration.secure_aggregation
    gets = "see the curves above"
    if outcome is not None and outcome.recoveries:
        gets = ", ".join(
            f"error {float(np.median(recovery.errors[:, -1])):.1e} from {ATTACKABLE[method]}"
            for method, recovery in outcome.recoveries.items()
        )
    masked = secure or configuration.upload_noise > 0 or configuration.dtype == "float32"
    layout.threat_card(
        "An honest-but-curious server",
        sees="every broadcast and "
        + ("the sum of the uploads" if secure else "every client's upload, one by one"),
        knows=_ADVERSARIES[configuration.attack].knows,
        does=_ADVERSARIES[configuration.attack].does,
        outcome=gets,
        protection="heuristic" if masked else "none",
    )


def error_table(outcome: Outcome) -> pd.DataFrame:
    """Errors and ranks by method, start and round, for the download."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "method": ATTACKABLE[method],
                    "start": start,
                    "round": np.arange(len(errors)),
                    "reconstruction_error": errors,
                    "leading_space_sine": recovery.angles if start == 0 else np.nan,
                }
            )
            for method, recovery in outcome.recoveries.items()
            for start, errors in enumerate(recovery.errors)
        ],
        ignore_index=True,
    )
