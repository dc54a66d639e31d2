"""The section of the Attack page where one record joins and two runs are subtracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.player import Curve, Images, Panel, replay
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.views import adversary
from dashboard.views.reconstruction import record_picture
from fedpca_core import attacks
from fedpca_core.algorithms.registry import ATTACKABLE
from fedpca_core.arrays import Array
from fedpca_core.attacks import Differencing
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems import Problem, without_record
from fedpca_core.studies.build import attacked_run
from fedpca_core.studies.pca_settings import AttackSettings

#: A difference this nearly of rank one is one record, as far as the server can tell.
PURE = 0.99
#: Angles below this are rounding.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Joined:
    """What the server reads off two runs.

    Attributes
    ----------
    record : (features,)
        The record that joined (simulation only).
    found : mapping of method key to Differencing
        After each round.
    sines : mapping of method key to (rounds + 1,)
        Sine of the angle between the record and what the server reads (simulation only).
    counts : mapping of method key to int
        Records behind the reconstruction of the later run.
    refusals : mapping of method key to the sentence why it could not be read
    """

    record: Array
    found: Mapping[str, Differencing]
    sines: Mapping[str, Array]
    counts: Mapping[str, int]
    refusals: Mapping[str, str]


def show(controls: Controls[AttackSettings], settings: AttackSettings, problem: Problem) -> None:
    """Draw the parameters and, once switched on, the job and what it found."""
    layout.section(
        "One more record",
        "Models are trained again when somebody joins or asks to be forgotten. Whoever knows the "
        "covariance before and after can subtract: what is left is that one record. Neither "
        "FAPS' masking nor secure aggregation is made for this; differential privacy is.",
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.draw("differencing", "record")
    chosen = replace(controls.settings(), attack=_adversary(settings))
    if not chosen.differencing:
        st.caption("Switch it on to run every method under attack a second time.")
        return
    asked = replace(settings.run_key(), attack=chosen.attack, starts=1)
    jobs.show(
        ("newcomer", asked, chosen.record, problem.digest),
        lambda job: run(chosen, problem, job),
        lambda joined: draw(joined, problem),
        name="newcomer",
    )


def _adversary(settings: AttackSettings) -> str:
    """The chosen adversary, or where the section needs more the best one that only looks on."""
    if settings.secure_aggregation:
        return settings.attack if settings.attack == "collude" else "pooled"
    return settings.attack if settings.attack == "ridge" else "symmetric"


def run(configuration: AttackSettings, problem: Problem, job: jobs.Job) -> Joined:
    """Attack both runs of every method and subtract."""
    earlier = without_record(problem, configuration.client, configuration.record)
    assert problem.blocks is not None  # without_record has refused otherwise
    record = problem.blocks[configuration.client][:, configuration.record]
    require(
        bool(record.any()),
        f"Record {configuration.record} is zero throughout and leaves no trace in a covariance; "
        "choose another record.",
    )
    found: dict[str, Differencing] = {}
    counts: dict[str, int] = {}
    refusals: dict[str, str] = {}
    for position, method in enumerate(configuration.attacked):
        try:
            paths: list[Array] = []
            behind: list[int] = []
            for late, of in enumerate((earlier, problem)):
                share = (position + late / 2) / len(configuration.attacked)
                if not job.report(share, f"{ATTACKABLE[method]}, {('earlier', 'later')[late]} run"):
                    return _joined(record, found, counts, refusals)
                trace, _ = attacked_run(of, method, configuration)
                view = adversary.server_view(configuration, of, method, 0, trace.transcript)
                stated = float(np.trace(adversary.private_matrix(of, configuration.client)))
                paths.append(adversary.attack(configuration, view, stated).estimates)
                behind.append(attacks.records_behind(view, configuration.client))
            rounds = min(len(path) for path in paths)  # a method may stop earlier in one of them
            before, after = (path[:rounds] for path in paths)
            found[method] = attacks.differencing(before, after, *behind)
            counts[method] = behind[-1]
        except InvalidInput as refusal:
            refusals[method] = f"{ATTACKABLE[method]}: {refusal}"
    return _joined(record, found, counts, refusals)


def _joined(
    record: Array,
    found: Mapping[str, Differencing],
    counts: Mapping[str, int],
    refusals: Mapping[str, str],
) -> Joined:
    sines = {method: _sines(differencing.records, record) for method, differencing in found.items()}
    return Joined(record, dict(found), sines, dict(counts), dict(refusals))


def _sines(records: Array, record: Array) -> Array:
    """Sine of the angle to the record; 1 where nothing has been read yet."""
    unit = record / np.linalg.norm(record)
    sizes = np.linalg.norm(records, axis=-1)
    across = np.linalg.norm(records - (records @ unit)[:, None] * unit, axis=-1)
    return np.divide(across, sizes, out=np.ones_like(sizes), where=sizes > 0)


def draw(joined: Joined, problem: Problem) -> None:
    """The record beside what the server reads, how near it is, and how sure the server can be."""
    for refusal in joined.refusals.values():
        layout.sentence(refusal, kind="note")
    if not joined.found:
        return
    st.markdown(sentence(joined, problem))
    images, panels = [], [_angle_panel(joined), _purity_panel(joined)]
    if problem.image_shape is not None:
        images.append(_pictures(joined, problem.image_shape))
    else:
        panels.insert(0, _record_panel(joined, problem))
    replay(
        key="newcomer_view",
        rounds=max(len(sines) for sines in joined.sines.values()) - 1,
        images=images,
        panels=panels,
    )


def sentence(joined: Joined, problem: Problem) -> str:
    """What came of it, method by method, and whose record it is."""
    parts: list[str] = []
    for method, differencing in joined.found.items():
        # The server cannot see the angle; it trusts the round whose difference is purest.
        best = int(np.argmax(differencing.purity))
        purity, sine = float(differencing.purity[best]), float(joined.sines[method][best])
        cosine = float(np.sqrt(max(1.0 - sine**2, 0.0)))
        if purity >= PURE:
            parts.append(
                f"From **{ATTACKABLE[method]}** the server has the record that joined after round "
                f"{best}, at a cosine of {cosine:.4f} to the truth, and knows it: one eigenvalue "
                f"is {purity:.1%} of the difference."
            )
        else:
            parts.append(
                f"From **{ATTACKABLE[method]}** the server cannot be sure: one eigenvalue is at "
                f"best {purity:.0%} of the difference (round {best}). In truth what it reads there "
                f"has a cosine of {cosine:.4f} to the record."
            )
    everybody = int(problem.client_data.samples.sum())
    if any(count == everybody for count in joined.counts.values()):
        parts.append("It saw sums only: they hide whose record this is, not the record.")
    elif "faps" in joined.found and joined.found["faps"].purity.max() < PURE:
        parts.append(
            "FAPS withstands this linear reading; whether its masking holds is for the replay "
            "above to say, run by run."
        )
    return " ".join(parts)


def _pictures(joined: Joined, shape: tuple[int, int]) -> list[Images]:
    top = float(np.abs(joined.record).max())
    words = ["nobody should see it"]
    row = [record_picture("The record that joined", joined.record[None], shape, top, words, True)]
    for method in joined.found:
        captions = [f"sine of the angle {sine:.1e}" for sine in joined.sines[method]]
        title = f"Read from {ATTACKABLE[method]}"
        row.append(record_picture(title, _signed(joined, method), shape, top, captions, False))
    return row


def _signed(joined: Joined, method: str) -> Array:
    """Records with the sign of the truth, which two runs leave open (simulation only)."""
    records = joined.found[method].records
    result: Array = records * np.where(records @ joined.record < 0, -1.0, 1.0)[:, None]
    return result


def _record_panel(joined: Joined, problem: Problem) -> Panel:
    tall = 1.5 * float(np.abs(joined.record).max())  # wrong guesses may be larger than the page
    names = list(problem.feature_names) or np.arange(1, problem.features + 1)
    curves = [
        Curve(
            "the record that joined",
            names,
            joined.record,
            colour="simulation",
            simulation_only=True,
        )
    ]
    curves += [
        Curve(ATTACKABLE[method], names, _signed(joined, method), colour=method, marker=True)
        for method in joined.found
    ]
    return Panel(
        key="newcomer_record",
        title="The record, sign as in the truth",
        x_title="feature",
        y_title="value",
        curves=tuple(curves),
        log_y=False,
        y_range=(-tall, tall),
        follows=False,
        integer_x=True,
        description="Values of the record that joined and of what the server reads, by feature.",
    )


def _angle_panel(joined: Joined) -> Panel:
    return Panel(
        key="newcomer_angle",
        title="How near (simulation only)",
        x_title="communication round",
        y_title="sine of the angle to the record",
        curves=tuple(
            Curve(
                ATTACKABLE[method],
                np.arange(len(sines)),
                np.maximum(sines, _SMALLEST),
                colour=method,
                simulation_only=True,
            )
            for method, sines in joined.sines.items()
        ),
        integer_x=True,
        description="Sine of the angle between the true record and the one the server reads.",
    )


def _purity_panel(joined: Joined) -> Panel:
    return Panel(
        key="newcomer_purity",
        title="How sure the server can be",
        x_title="communication round",
        y_title="share of the leading eigenvalue",
        curves=tuple(
            Curve(
                ATTACKABLE[method],
                np.arange(len(differencing.purity)),
                differencing.purity,
                colour=method,
            )
            for method, differencing in joined.found.items()
        ),
        log_y=False,
        y_range=(0.0, 1.05),
        integer_x=True,
        description="Share of the leading eigenvalue in the difference of the two runs; 1 is one "
        "record. The server can compute it.",
    )
