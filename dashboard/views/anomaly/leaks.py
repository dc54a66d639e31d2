"""What the server reads off FedPE and FedPG about one client."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Heat, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.views.anomaly.view import View
from fedpca_core import attacks
from fedpca_core.attacks import stationary
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.problems import Problem, without_record
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace

#: Fitting a whole covariance takes seconds up to so many features.
FITTED_FEATURES = 12
#: Every message of a run is held for the attack, so long runs are cut.
MOST_ROUNDS = 500
#: Participations that are fitted at most.
FITTED_RUNS = 5


@dataclass(frozen=True, eq=False)
class Leak:
    """Errors of the two readings, relative to the truth (simulation only).

    Attributes
    ----------
    rounds, errors : (participations,)
        After each participation, of the part of S_i Z outside the span of Z.
    fitted : tuple of float
        Error of the whole S_i fitted to the first 1, 2, ... participations.
    truth, found : (features, features) float64, or None
        The last of these and what it should be.
    differencing : (cosine, purity), or None
        How near the difference of two fits comes to the one record that joined between them, and
        the share of its leading eigenvalue, which the server sees.
    """

    rounds: np.ndarray
    errors: np.ndarray
    fitted: tuple[float, ...] = ()
    truth: np.ndarray | None = None
    found: np.ndarray | None = None
    differencing: tuple[float, float] | None = None


def leaks(view: View) -> None:
    """Replay, read and fit the messages of one client."""
    client = st.slider(
        "Attacked client",
        0,
        view.settings.clients - 1,
        0,
        key="attacked",
        bind="query-params",
        help="The client whose traffic statistics the server is after.",
    )

    def work(job: jobs.Job) -> Leak:
        return attack(view, client, job)

    layout.threat_card(
        "An honest-but-curious server",
        sees="every frame Uᵢ a client uploads, and its own averages Z",
        knows="ρ, the step rule, the number of local steps, and the public start",
        does="replays the dual Yᵢ ← Yᵢ + ρ(Uᵢ − Z), which never travels; at the limit "
        "Yᵢ = 2(I − ZZᵀ)SᵢZ; and fits the matrix on which the client's own code would have "
        "landed on its uploads",
        outcome="first how the client's traffic departs from the common model, then its whole "
        "covariance",
        protection="none",
    )
    jobs.show(view.key("leaks", client), work, draw, name="leaks")
    if view.detection.problem.features > FITTED_FEATURES:
        layout.sentence(
            f"Fitting the whole covariance is shown for up to {FITTED_FEATURES} features, where it "
            f"takes seconds; these data have {view.detection.problem.features}. Choose IoT-23 with "
            "4 components to see it.",
            kind="note",
        )
    layout.about(
        "How much does a participation tell?",
        "Each one gives as many equations as the frame has numbers, d·k; a covariance has "
        "d(d+1)/2 unknowns. Once there are enough, the fit is exact. Under secure aggregation the "
        "server sees sums only, which is all these methods need, and neither reading works.",
        formula=r"(I-ZZ^\top)S_iZ=\tfrac12(I-ZZ^\top)Y_i\qquad\text{at the limit}",
    )


def attack(view: View, client: int, job: jobs.Job) -> Leak:
    """Run the configured method and read one client off its transcript."""
    problem, algorithm = view.detection.problem, view.settings.algorithm()
    job.report(0.0, "Running the method")
    trace = _run(view, problem)
    truth = problem.client_data.only(np.array([client])).dense()[0]
    rounds, errors = [], []
    for round_, frame, found in stationary.outside_path(trace.transcript, algorithm, client):
        outside = remove_span(truth @ frame, frame)
        rounds.append(round_)
        errors.append(np.linalg.norm(found - outside) / np.linalg.norm(outside))
    leak = Leak(np.array(rounds), np.array(errors))
    if problem.features > FITTED_FEATURES:
        return leak
    fitted: list[float] = []
    for count in range(1, min(FITTED_RUNS, len(rounds)) + 1):
        if not job.report(count / (FITTED_RUNS + 1), f"Fitting {count} participations"):
            break
        matrix = stationary.fit_runs(trace.transcript, algorithm, client, rounds[count - 1])
        fitted.append(float(np.linalg.norm(matrix - truth) / np.linalg.norm(truth)))
        leak = Leak(leak.rounds, leak.errors, tuple(fitted), truth, matrix)
        job.publish(leak)
    if leak.found is None or not job.report(0.95, "Running once more without one record"):
        return leak
    return replace(
        leak, differencing=_differencing(view, client, leak.found, rounds[len(fitted) - 1])
    )


def _run(view: View, problem: Problem) -> Trace:
    return simulate(
        problem,
        view.settings.algorithm(),
        rounds=min(view.settings.rounds, MOST_ROUNDS),
        participation=view.settings.participation,
        seed=view.settings.seed,
        channel=Channel(dtype="float32"),
    )


def _differencing(
    view: View, client: int, found: np.ndarray, last_round: int
) -> tuple[float, float] | None:
    """The client's first record, read off the run with it and an earlier one without it."""
    problem = view.detection.problem
    if problem.blocks is None:
        return None
    record = problem.blocks[client][:, 0]
    if problem.client_data.samples[client] < 2 or not record.any():
        return None  # no earlier run, or a record that leaves no trace
    earlier = _run(view, without_record(problem, client, 0)).transcript
    before = stationary.fit_runs(earlier, view.settings.algorithm(), client, last_round)
    held = int(problem.client_data.samples[client])
    read = attacks.differencing(before, found, held - 1, held)
    sizes = float(np.linalg.norm(read.records) * np.linalg.norm(record))
    return (abs(float(read.records @ record)) / sizes if sizes > 0 else 0.0), float(read.purity)


def draw(leak: Leak) -> None:
    """Errors of both readings, and the covariance beside its reconstruction."""
    panels: list[Panel | Heat] = [
        Panel(
            key="outside",
            title="Read off the dual: (I − ZZᵀ)SᵢZ",
            x_title="communication round",
            y_title="relative error",
            curves=(
                Curve(
                    "after each participation",
                    leak.rounds,
                    np.maximum(leak.errors, 1e-16),
                    colour="FedPG",
                    marker=True,
                    simulation_only=True,
                ),
            ),
            baselines=(Baseline("guessing zero", 1.0),),
            follows=False,
            integer_x=True,
            description="Relative error of what the server reads off the replayed dual.",
        )
    ]
    if leak.fitted:
        panels.append(
            Panel(
                key="fitted",
                title="Fitted: the whole covariance",
                x_title="participations used",
                y_title="relative error",
                curves=(
                    Curve(
                        "Levenberg–Marquardt",
                        np.arange(1, len(leak.fitted) + 1),
                        np.maximum(leak.fitted, 1e-16),
                        colour="series 1",
                        marker=True,
                        simulation_only=True,
                    ),
                ),
                baselines=(Baseline("guessing zero", 1.0),),
                follows=False,
                integer_x=True,
                description="Relative error of the covariance fitted to the first participations.",
            )
        )
    chart(key="leak_view", panels=panels)
    last = f"{leak.errors[-1]:.1%}" if leak.errors[-1] > 1e-3 else f"{leak.errors[-1]:.1e}"
    text = f"After {len(leak.rounds)} participations the dual gives the part outside the model "
    text += f"to **{last}**. "
    if leak.fitted:
        text += f"The whole covariance is fitted to **{leak.fitted[-1]:.1e}** from "
        text += f"{len(leak.fitted)} participations."
    if leak.differencing is not None:
        cosine, purity = leak.differencing
        shown = "that record" if cosine > 0.99 else "too much besides to show that record"
        text += (
            f" When the client trains again with one more record, the two fits differ by {shown}: "
            f"a cosine of **{cosine:.4f}** to the truth (simulation only), and one eigenvalue is "
            f"{purity:.1%} of the difference."
        )
    st.markdown(text)
    if leak.truth is not None and leak.found is not None:
        names = [str(index + 1) for index in range(len(leak.truth))]
        high = float(np.abs(leak.truth).max())
        chart(
            key="leak_pictures",
            panels=[
                Heat(
                    key=key,
                    title=title,
                    values=matrix,
                    row_labels=names,
                    column_labels=names,
                    palette="diverging",
                    low=-high,
                    high=high,
                    height=300,
                    description=f"{title}, features by features.",
                )
                for key, title, matrix in (
                    ("truth", "The client's covariance (simulation only)", leak.truth),
                    ("found", "What the server found", leak.found),
                )
            ],
        )
