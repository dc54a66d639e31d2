"""What a server makes of a client's covariance: by equations, by replay, with every defence."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.attack.reconstruction import ClientReconstruction, Reconstructed
from fedpca_core.questions.attack.replay import Replayed
from fedpca_core.questions.home.story import angle
from fedpca_core.settings import short
from fedpca_core.study import parts, pictures
from fedpca_core.study.facts import data_note
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Images, Panel, plot
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import Pictures

#: An answer whose sine is below this is nobody's to improve.
EXACT = 1e-9


def reconstructed(found: Reconstructed, settings: AttackSettings) -> parts.Parts:
    for sentence in filter(None, [found.note, *parts.refusals(found.refusals)]):
        yield parts.Note(sentence)
    if not found.recoveries:
        return
    yield verdict(found)
    yield parts.Chart("attack_view", panels(found, settings), rows(found), rounds=found.rounds)


def rows(found: Reconstructed) -> list[list[Images]]:
    """The rows of replayed pictures, all as long as the longest run."""
    return [pictures.lasting(_row(row, found), found.rounds) for row in found.pictures]


#: By the kind of picture: title and caption of the true one, and the title of what was made of it.
_SAID = {
    "covariance": (
        *("True covariance of the client", "what the server must not learn"),
        "Server's reconstruction from {}",
    ),
    "eigen-images": ("True eigen-images", "the leading ones", "From {}"),
    "record": ("One record of the client", "record {}", "Recovered from {}"),
}


def _row(row: Pictures, found: Reconstructed) -> list[Images]:
    truth, caption, made = _SAID[row.kind]
    return pictures.row(
        row,
        truth=truth,
        caption=caption.format(row.record),
        titles={method: made.format(METHODS[method].title) for method in row.found},
        captions={method: _captions(row, method, found) for method in row.found},
    )


def _captions(row: Pictures, method: str, found: Reconstructed) -> list[str]:
    """How near each picture is to the true one."""
    recovery = found.recoveries[method]
    if row.kind == "eigen-images":
        return [
            f"first: PSNR {one.psnr:.0f} dB, SSIM {one.ssim:.2f}" if one else "nothing yet"
            for one in recovery.likeness
        ]
    errors = [short(error, 2) for error in row.errors[method]]
    if row.kind == "record":
        return [f"record error {error}, rotation fitted" for error in errors]
    return [
        f"error {error}, {rank} of {found.facts.features} directions"
        for error, rank in zip(errors, recovery.ranks, strict=True)
    ]


def panels(found: Reconstructed, settings: AttackSettings) -> list[Panel]:
    """Errors beside guesses that need no message; how far each method itself has converged; how
    well the reconstruction shows the client's own leading directions."""
    errors = ClientReconstruction().tables(found, settings)["errors"]
    guesses = tuple(
        replace(one, label=f"{one.label}: {short(one.value, 2)}") for one in found.guesses
    )
    progress = tuple(
        Curve(METHODS[m].title, np.arange(len(one.progress)), np.maximum(one.progress, ROUNDING))
        for m, one in found.recoveries.items()
    )
    shown = partial(plot, errors, "round", by="method", least=ROUNDING)
    return [
        Panel.of(
            "recovery",
            shown(y="reconstruction_error", spread=settings.starts > 1),
            baselines=guesses,
        ),
        Panel.of("attack-progress", progress),
        Panel.of("angles", shown(y="leading_space_sine", spread=False)),
    ]


def verdict(found: Reconstructed) -> str:
    """The finding of every method's messages, one a line."""
    parts = []
    for method, recovery in found.recoveries.items():
        name, then = METHODS[method].title, recovery.complete
        said = f"From **{name}**, the client's covariance: {recovery.finding.words}."
        if found.facts.guarantee is not None:
            off = short(recovery.released, 2)
            said += f" What the client released is read to an error of {off}."
        elif then is not None:
            sine = recovery.angle_of_method(then)
            answer = "is exact as well" if sine < EXACT else f"is still off by {angle(sine)}"
            said += f" Whole after round {then}, when the method's own answer {answer}."
        parts.append(said)
    if found.facts.guarantee is not None:
        parts.append("The difference is clipping and noise at the source.")
    return "  \n".join(parts)


def card(found: Reconstructed, settings: AttackSettings) -> parts.Parts:
    """Whose data these are; who sees what, what they know and do, and what comes of it."""
    yield parts.Caption(data_note(found.facts.note, found.facts))
    secure = settings.secure_aggregation
    gets = [
        f"error {short(recovery.last, 2)} from {METHODS[method].title}"
        for method, recovery in found.recoveries.items()
    ]
    masked = secure or settings.upload_noise > 0 or settings.dtype == "float32"
    yield parts.FactsCard(
        "An honest-but-curious server",
        {
            "Sees": "every broadcast and "
            + ("the sum of the uploads" if secure else "every client's upload, one by one"),
            "Knows": parts.names("adversary-knows")[found.by],
            "Does": parts.names("adversary-does")[found.by],
            "Gets": ", ".join(gets) or "nothing: every chosen method refused to run, see above",
        },
        protection="formal" if found.facts.guarantee else "heuristic" if masked else "none",
    )
    yield parts.GuaranteeOf(found.facts)


def messages(found: Reconstructed) -> parts.Parts:
    for method, recovery in found.recoveries.items():
        yield f"**{METHODS[method].title}**"
        yield parts.Rows(recovery.messages.rename(columns=lambda name: _WIRE.get(name, name)))


#: Columns of the messages as the page calls them.
_WIRE = parts.names("wire-columns")

#: Starts whose fit is drawn: the last ones.
_SHOWN = 6


def replayed(found: Replayed, settings: AttackSettings) -> parts.Parts:
    yield replay_said(found)
    row = pictures.row(
        found.pictures,
        truth="True covariance of the client",
        caption="what the server must not learn",
        titles={"prior": "The prior it starts from", "replay": "Reconstruction by replay"},
        captions={
            name: [f"error {short(errors[0], 2)}"] for name, errors in found.pictures.errors.items()
        },
    )
    yield parts.Chart("replay_view", [fit_panel(found)], [[*row]])


def replay_said(found: Replayed) -> str:
    """What came of it, and how the server itself would know."""
    result = found.attack
    starts = "one start" if result.starts == 1 else f"{result.starts} starts"
    how = f"after {result.evaluations} evaluations from {starts}"
    judged = (
        "and the residual tells it so"
        if result.succeeded
        else f"and a residual of {short(result.residual, 2)} tells it that the fit is not exact"
        if result.residual > result.tolerance
        else "but the messages it read leave other covariances possible"
        if result.ended
        else "and it goes on"
    )
    fitted = ["the client's private start"] * (result.frame is not None)
    fitted += ["its numbers of inner steps"] * (result.inner_steps is not None)
    if result.penalty is not None:
        fitted.append(f"its penalty β = {short(result.penalty, 3)}")
    also = f" It also knows {' and '.join(fitted)}." if fitted and result.succeeded else ""
    errors = {"released": found.released, "error": found.error, "prior": found.prior_error}
    told = {name: short(error, 2) for name, error in errors.items()}
    which = "replay-released" if found.released != found.error else "replay-own"
    return parts.words(which, how=how, judged=judged, also=also, **told)


def fit_panel(found: Replayed) -> Panel:
    """Residual of the fit against the evaluations, a curve for each start."""
    fit = found.fit
    last = sorted(set(fit["start"]))[-_SHOWN:]
    curves = plot(
        fit[fit["start"].isin(last)],
        *("evaluation", "residual", "start"),
        names={start: f"start {start}" for start in last},
        colours={start: f"series {position}" for position, start in enumerate(last)},
        least=1e-17,
        spread=False,
        marker=True,
    )
    explained = Baseline("explained", found.attack.tolerance)
    return Panel.of("replay_residual", curves, baselines=(explained,))


#: Why there is no replay, and why one ended.
_ENDED = parts.names("replay-ended")


def defended(found: pd.DataFrame, settings: AttackSettings) -> parts.Parts:
    rows = pd.DataFrame(
        {
            "Defence": found["defence"],
            "Angle reached": [short(angle, 2) for angle in found["method_sine"]],
            "Linear attack": [short(error, 2) for error in found["linear_error"]],
            "Replay, hidden part fitted": [
                "–" if ended in ("sums", "products") else short(error, 2)
                for error, ended in zip(found["replay_error"], found["ended"], strict=True)
            ],
            "Replay ended": [
                _ENDED[ended] + (f" after {count} evaluations" if count else "")
                for ended, count in zip(found["ended"], found["evaluations"], strict=True)
            ],
        }
    )
    yield parts.Table(rows, "Defences of FAPS", list(rows.columns[1:4]))
    yield parts.Caption(parts.words("replay-defences"))
