"""Drawing the Personalise page: curves of three methods, gains, sweeps, angles, exposure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dashboard.player import Baseline, Curve, Heat, Panel
from dashboard.shell import layout
from fedpca_core.studies.papers.personal import FIGURES
from fedpca_core.studies.personalised import (
    AXES,
    Exposure,
    Outcome,
    PersonaliseSettings,
    Sweep,
)

NAMES: Mapping[str, str] = {
    "PersonalizedPCA": "Personalised PCA",
    "LocalTraining": "Training alone",
    "GlobalAveraging": "One shared model",
}
AXIS_TITLES: Mapping[str, str] = {
    "spread": "how much clients differ (standard deviation of the step)",
    "samples": "samples per client",
    "clients": "clients",
}
#: Differences in the error ratio below this are noise of one data set.
TIE = 0.002


def verdict(outcome: Outcome) -> str:
    """One paragraph: does collaborating pay here, and for whom?"""
    last = {name: float(values[-1].mean()) for name, values in outcome.fresh.items()}
    mine = last["PersonalizedPCA"]
    limits = outcome.limits
    other = min(limits, key=lambda name: limits[name])
    gain = limits[other] - mine
    alone = outcome.gains("LocalTraining")
    numbers = (
        f"Personalised PCA ends at **{mine:.3f}**, training alone at "
        f"{limits['LocalTraining']:.3f}, one shared model at {limits['GlobalAveraging']:.3f} "
        "(1 is what perfect knowledge of each client would reach)."
    )
    clients = f"{int((alone > 0).sum())} of {len(alone)} clients do better than alone."
    if gain > TIE:
        best = (
            "**Personalised collaboration pays here.** It beats both staying alone and one "
            "shared model."
        )
    elif gain > -TIE:
        best = (
            f"**Nothing to gain over {NAMES[other].lower()} here**: personalised PCA follows "
            "the better of the two extremes and ends level with it."
        )
    else:
        best = f"**{NAMES[other]} is still ahead here**; allow more rounds, or another prior."
    return f"{best} {numbers} {clients}"


def curves(outcome: Outcome, measure: str) -> Panel:
    """Mean error of the three methods against rounds, on fresh or on training records."""
    source = outcome.fresh if measure == "fresh" else outcome.training
    true = Baseline("the true common frame", outcome.centre, simulation_only=True)
    return Panel(
        key="personal-error",
        title="Error against rounds",
        x_title="communication round",
        y_title=f"error on {measure} records / noise floor",
        curves=tuple(
            Curve(
                NAMES[name], np.arange(len(values)), values.mean(axis=1), colour=name,
                simulation_only=True,
            )
            for name, values in source.items()
        ),
        baselines=(true,) if measure == "fresh" else (),
        log_y=False,
        integer_x=True,
        axes_id=f"personal-error-{measure}",
        description=f"Mean error on {measure} records of personalised PCA, training alone and one "
        "shared model, round by round.",
        height=400,
    )  # fmt: skip


def gains(outcome: Outcome) -> Panel:
    """Each client's gain over both baselines, sorted by the gain over training alone."""
    alone, shared = outcome.gains("LocalTraining"), outcome.gains("GlobalAveraging")
    order = np.argsort(-alone)
    place = np.arange(1, len(order) + 1)
    return Panel(
        key="personal-gain",
        title="Who gains?",
        x_title="client, sorted by gain over alone",
        y_title="fall of its error",
        curves=(
            Curve("over training alone", place, alone[order], colour="LocalTraining", marker=True,
                  simulation_only=True),
            Curve("over one shared model", place, shared[order], colour="GlobalAveraging",
                  marker=True, simulation_only=True),
        ),
        baselines=(Baseline("no gain", 0.0),),
        log_y=False,
        integer_x=True,
        kind="scatter",
        follows=False,
        description="How much lower each client's fresh error is with personalised PCA than with "
        "training alone and with one shared model; below zero the client loses.",
        height=400,
    )  # fmt: skip


def sweep_panel(sweep: Sweep, configuration: PersonaliseSettings) -> Panel:
    """Fresh error of the three methods along one axis, with a mark at the current setting."""
    here = float(getattr(configuration, sweep.axis))
    extra: tuple[Curve, ...] = ()
    everything = np.concatenate(list(sweep.ratios.values()))
    if sweep.values[0] <= here <= sweep.values[-1]:
        ends = [float(everything.min()), float(everything.max())]
        extra = (Curve("this page's setting", [here, here], ends, colour="guide", guide=True),)
    extra += _expected(sweep.axis, configuration)
    return Panel(
        key="personal-sweep",
        title="",
        x_title=AXIS_TITLES[sweep.axis],
        y_title="error on fresh records / noise floor",
        curves=(
            *(
                Curve(
                    NAMES[name], sweep.values, values, colour=name, marker=True,
                    simulation_only=True,
                )
                for name, values in sweep.ratios.items()
            ),
            *extra,
        ),
        log_x=True,
        log_y=False,
        follows=False,
        axes_id=f"personal-sweep-{sweep.axis}",
        description="Error of the three methods after they have settled: personalised PCA follows "
        "the shared model where clients are alike and training alone where they are not.",
        height=400,
    )  # fmt: skip


def _expected(axis: str, configuration: PersonaliseSettings) -> tuple[Curve, ...]:
    """What the same settings gave at the paper's size, where they are a figure of the paper."""
    c = configuration
    variant = "PersonalizedPCA" if c.prior == "matched" else c.prior
    if c.gradient == "printed":
        variant = "printed" if c.prior == "matched" else ""
    for figure in FIGURES.values():
        fixed = {"features": figure.features, "components": figure.components,
                 "samples": figure.samples, "spread": figure.spread,
                 "noise_variance": 0.5, "reading": "std"}  # fmt: skip
        fixed.pop(axis, None)
        same = all(getattr(c, name) == value for name, value in fixed.items())
        if figure.axis == axis and same and variant in figure.expected:
            name = f"personalised PCA at the size of Figure {figure.name[0]}({figure.name[1]})"
            return (
                Curve(name, figure.paper.values, figure.expected[variant], colour="simulation",
                      guide=True),
            )  # fmt: skip
    return ()


def sweep_sentence(sweep: Sweep) -> str:
    """Where the baselines cross and where personalised PCA gains most."""
    if len(sweep.values) < len(AXES[sweep.axis]):
        return "Still running: values further to the right are on their way."
    unit = {"spread": "a spread of", "samples": "", "clients": ""}[sweep.axis]
    noun = {"spread": "", "samples": " samples per client", "clients": " clients"}[sweep.axis]

    def at(value: float) -> str:
        shown = f"{value:.2g}" if sweep.axis == "spread" else f"{value:.0f}"
        return f"{unit} {shown}{noun}".strip()

    if sweep.crossing is None:
        shared = sweep.ratios["GlobalAveraging"][-1] < sweep.ratios["LocalTraining"][-1]
        who = "One shared model is" if shared else "Training alone is"
        crossing = f"{who} the better extreme all along."
    else:
        crossing = f"The two extremes cross at **{at(sweep.crossing)}**."
    where, gain = sweep.largest_gain()
    if gain <= TIE:
        return f"{crossing} Personalised PCA never gains more than {TIE} over the better one."
    return (
        f"{crossing} Personalised PCA gains most over the better one, **{gain:.3f}**, "
        f"at {at(where)}."
    )


def angles(outcome: Outcome) -> list[Heat]:
    """Largest principal angles between clients: the truth, and what the models say."""
    shown = len(outcome.angles)
    labels = [str(index + 1) for index in range(shown)]
    result = []
    for key, title, values in (
        ("true", "True frames", outcome.angles),
        ("learned", "Personalised models", outcome.learned),
    ):
        result.append(
            Heat(
                key=f"personal-angles-{key}",
                title=title,
                values=values,
                row_labels=labels,
                column_labels=labels,
                x_title="client",
                y_title="client",
                low=0.0,
                high=90.0,
                description=f"{title}: largest principal angle between every two of the first "
                f"{shown} clients, in degrees from 0 to 90.",
            )
        )
    return result


def facts(outcome: Outcome, configuration: PersonaliseSettings) -> None:
    """What it costs, next to what the raw data would."""
    features, components = configuration.features, configuration.components
    frame, records = features * components, features * configuration.samples
    moment = features * (features + 1) // 2
    median = float(np.median(outcome.angles[np.triu_indices(len(outcome.angles), 1)]))
    layout.metric_cards(
        [
            layout.Card(
                "Sent in all",
                f"{outcome.bytes_sent['PersonalizedPCA'] / 1e6:,.1f} MB",
                "personalised PCA, both directions",
                help="As much as one shared model; training alone sends nothing.",
            ),
            layout.Card(
                "One upload", f"{frame:,} floats", f"{8 * frame / 1e3:.3g} kB in each round"
            ),
            layout.Card(
                "A client's raw data",
                f"{records:,} floats",
                _uploads(records / frame),
                help="Bandwidth is no argument for this method at such sizes.",
            ),
            layout.Card(
                "Between two clients",
                f"{median:.0f}°",
                "median largest angle",
                help=f"Largest principal angle between true frames. A whole Sᵢ has {moment:,} "
                "floats.",
            ),
        ]
    )


def _uploads(count: float) -> str:
    return "as much as one upload" if count == 1 else f"as much as {count:.2g} uploads"


def exposure_panel(exposure: Exposure) -> Panel:
    """How far the recovered frame is from the client's own, message by message."""
    floor = 1e-16
    return Panel(
        key="personal-exposure",
        title="",
        x_title="round of the upload",
        y_title="distance of the recovered frame",
        curves=(
            Curve("recovered, common start", exposure.rounds,
                  np.maximum(exposure.errors["common"], floor), colour="PersonalizedPCA",
                  marker=True, simulation_only=True),
            Curve("recovered, independent starts", exposure.rounds,
                  np.maximum(exposure.errors["independent"], floor), colour="FedPG", marker=True,
                  simulation_only=True),
            Curve("a server that only looks at the common frame", exposure.rounds,
                  exposure.baseline, colour="guide", simulation_only=True),
        ),
        integer_x=True,
        follows=False,
        y_range=(1e-16, 2.0),
        description="Median distance between five clients' private frames and what the server "
        "recovers from their uploads, after a common and after independent starts.",
        height=360,
    )  # fmt: skip


def exposure_sentence(exposure: Exposure) -> str:
    """What was recovered, in words."""
    first = float(exposure.errors["common"][1])
    parts = [f"After a common start, **one upload gives a client's private frame to {first:.0e}**."]
    exact = exposure.moment_errors < 1e-6
    if np.isfinite(exposure.moment_errors).any():
        parts.append(
            f"For {int(exact.sum())} of {len(exact)} clients a few rounds give the whole "
            "covariance Sᵢ as well."
        )
    records = exposure.record_errors
    if np.isfinite(records).any():
        whole = int((records < 1e-6).sum())
        parts.append(
            f"With one sample per client, the **sample itself** is recovered for {whole} of "
            f"{len(records)} clients, up to its sign."
        )
    late, known = float(exposure.errors["independent"][-1]), float(exposure.baseline[-1])
    parts.append(
        "Independent starts hide the first messages, not the later ones."
        if late < known / 2
        else "After independent starts these few uploads tell little more than the common frame."
    )
    lost = float(exposure.errors["common"][-1]) > 1e-6
    if lost:
        parts.append(
            "Where the curve jumps, frames have come close to 45° from the common one: there two "
            "answers fit the same upload and this solver may follow the wrong one. That is no "
            "protection."
        )
    return " ".join(parts)
