"""What a replay of FAPS shows: what came of it, the fit, and every defence."""

import pandas as pd

from fedpca_core.questions.attack.replay import Replayed
from fedpca_core.settings import short
from fedpca_core.study import parts, pictures
from fedpca_core.study.panels import Baseline, Panel, plot
from fedpca_core.study.pca_settings import AttackSettings

#: Starts whose fit is drawn: the last ones.
_SHOWN = 6


def replayed(found: Replayed, settings: AttackSettings) -> parts.Parts:
    """What came of it, as a sentence, pictures and the course of the fit."""
    yield sentence(found)
    row = pictures.row(
        found.pictures,
        truth="True covariance of the client",
        caption="what the server must not learn",
        titles={"prior": "The prior it starts from", "replay": "Reconstruction by replay"},
        captions={
            name: [f"error {short(errors[0], 2)}"] for name, errors in found.pictures.errors.items()
        },
    )
    yield parts.Chart("replay_view", [panel(found)], [[*row]])


def sentence(found: Replayed) -> str:
    """What came of it, and how the server itself would know."""
    result = found.attack
    how = f"after {result.evaluations} evaluations from " + (
        "one start" if result.starts == 1 else f"{result.starts} starts"
    )
    judged = (
        "and the residual tells it so"
        if result.succeeded
        else f"and a residual of {short(result.residual, 2)} tells it that the fit is not exact"
        if result.residual > result.tolerance
        else "but the messages it read leave other covariances possible"
        if result.ended
        else "and it goes on"
    )
    fitted = []
    if result.frame is not None:
        fitted.append("the client's private start")
    if result.inner_steps is not None:
        fitted.append("its numbers of inner steps")
    if result.penalty is not None:
        fitted.append(f"its penalty β = {short(result.penalty, 3)}")
    also = f" It also knows {' and '.join(fitted)}." if fitted and result.succeeded else ""
    told = {
        "released": short(found.released, 2),
        "error": short(found.error, 2),
        "prior": short(found.prior_error, 2),
    }
    which = "replay-released" if found.released != found.error else "replay-own"
    return parts.words(which, how=how, judged=judged, also=also, **told)


def panel(found: Replayed) -> Panel:
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
    """The defences with what two attacks recover."""
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
