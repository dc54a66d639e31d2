"""The Privacy page's convergence view and the price of epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart, replay
from dashboard.shell import layout
from dashboard.shell.jobs import Job
from dashboard.views.privacy.promise import method_name
from fedpca_core.algorithms import FedPower
from fedpca_core.guarantee import short
from fedpca_core.problems import Problem
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.error_budget import noise_floor
from fedpca_core.studies.private.run import Repeated, Spending
from fedpca_core.studies.private.settings import PrivacySettings

#: Below this a curve shows rounding only.
ROUNDING = 1e-16
#: Colours of what is compared on this page; formal privacy has its own.
COLOURS = {"exact": "formal", "published": "series 1", "none": "guide"}


@dataclass(frozen=True)
class Convergence:
    """Repeated runs by label, the noise floor where one is predicted, and true spending."""

    runs: Mapping[str, Repeated]
    colours: Mapping[str, str]
    floor: float | None
    spending: Spending | None


def converge(c: PrivacySettings, problem: Problem, job: Job) -> Convergence:
    """The run as set, the same without noise, and with the other calibration."""
    seeds = [c.seed + 1009 * index for index in range(c.repetitions)]
    noises: dict[str, tuple[float, str]] = {}
    current = private_run.current_noise(c)
    if current:
        noises[f"{c.calibration} noise"] = current, COLOURS[c.calibration]
        other = "published" if c.calibration == "exact" else "exact"
        noises[f"{other} noise"] = private_run.noise_for(c, other), COLOURS[other]
    elif not private_run.accountable(c) and c.mask:
        noises["masked, no ε"] = 0.0, "heuristic"
    noises["without noise"] = 0.0, COLOURS["none"]
    runs: dict[str, Repeated] = {}
    for position, (label, (noise, _)) in enumerate(noises.items()):
        wire = private_run.channel(c if "masked" in label else replace(c, mask=0.0))

        def progress(share: float, text: str, position: int = position) -> bool:
            return job.report((position + share) / len(noises), text)

        method, rounds = private_run.method(c, noise), private_run.rounds_of(c)
        runs[label] = private_run.repeat(problem, method, rounds, wire, seeds, progress, label)
    run = private_run.method(c, current)
    private = isinstance(run, FedPower) and current > 0
    return Convergence(
        runs,
        {label: colour for label, (_, colour) in noises.items()},
        noise_floor(problem, run, private_run.public_setting(c))
        if isinstance(run, FedPower) and current > 0
        else None,
        private_run.spending(problem, c) if private and c.draws else None,
    )


def draw_convergence(result: Convergence, c: PrivacySettings) -> None:
    """Projection distance against communications, with quartile bands."""
    st.markdown(verdict(result, c))
    curves = tuple(
        Curve(
            name=label,
            x=np.arange(run.sines.shape[1]),
            y=np.maximum(np.median(run.sines, axis=0), ROUNDING),
            lower=np.maximum(np.quantile(run.sines, 0.25, axis=0), ROUNDING),
            upper=np.maximum(np.quantile(run.sines, 0.75, axis=0), ROUNDING),
            colour=result.colours[label],
            marker=True,
            simulation_only=True,
        )
        for label, run in result.runs.items()
    )
    floor = result.floor
    usable = floor is not None and floor < 0.5
    panels = [
        Panel(
            key="distance",
            title="",
            x_title="communication",
            y_title="projection distance, sin θ",
            curves=curves,
            baselines=(Baseline(f"predicted floor {floor:.2g}", float(np.sin(np.arctan(floor)))),)
            if floor is not None and usable
            else (),
            integer_x=True,
            height=420,
            description="Sine of the largest principal angle to the sample's leading space after "
            "each communication, median and quartiles over the repetitions.",
        )
    ]
    rounds = max(run.sines.shape[1] for run in result.runs.values()) - 1
    replay(key="privacy_run", rounds=rounds, panels=panels, round_label="communication")
    if result.spending is not None:
        _draw_spending(result.spending, c)


def verdict(result: Convergence, c: PrivacySettings) -> str:
    """One line on where the run ends and what noise has cost."""
    labels = list(result.runs)
    finals = {label: float(np.median(run.sines[:, -1])) for label, run in result.runs.items()}
    first = labels[0]
    sent = float(result.runs[first].bytes_up[-1])
    budget = f"ε = {c.epsilon:g}, " if first.endswith(" noise") and first != "without noise" else ""
    text = (
        f"**{method_name(c)}** ends at distance **{finals[first]:.2g}** ({budget}{first}) after "
        f"{result.runs[first].sines.shape[1] - 1} communications and {sent / 1e3:,.0f} kB up"
    )
    if others := [f"{finals[label]:.2g} {label}" for label in labels[1:]]:
        text += "; " + ", ".join(others)
    if budget and finals[first] > 0.5:
        text += ". That is hardly better than a random guess: allow a larger ε, or more samples"
    return text + "."


def _draw_spending(spending: Spending, c: PrivacySettings) -> None:
    layout.section(
        "What each client has really spent",
        "A round in which a client does not upload releases nothing about it. This is the first "
        "repetition; which rounds count depends on the server's draws alone. Not in the paper.",
    )
    names = [str(index + 1) for index in range(len(spending.epsilon))]
    chart(
        key="privacy_spending",
        panels=[
            Panel(
                key="spending",
                title="",
                x_title="client (1 is the reference and always uploads)",
                y_title=f"true ε at δ = {short(c.delta)}",
                curves=(Curve("true ε of the client", names, spending.epsilon, colour="formal"),),
                log_y=False,
                kind="bars",
                height=260,
                description="Epsilon spent by each client in one run, by exact composition.",
            )
        ],
    )
    st.caption(
        f"Unit: one record, replaced. Clip norm {private_run.treatment(c)[1]:g}. Releases: "
        f"{int(spending.releases.min())} to {int(spending.releases.max())} of {c.products}. "
        "Accountant: exact composition. Draws known to the server: no amplification."
    )


def table(result: Convergence) -> pd.DataFrame:
    """All curves, for the download."""
    rows = []
    for label, run in result.runs.items():
        low, middle, high = np.quantile(run.sines, [0.25, 0.5, 0.75], axis=0)
        rows.append(
            pd.DataFrame(
                {
                    "run": label,
                    "communication": np.arange(len(middle)),
                    "median": middle,
                    "lower_quartile": low,
                    "upper_quartile": high,
                    "bytes_up": run.bytes_up,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)
