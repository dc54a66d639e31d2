"""Who should collaborate? The configuration of the Personalise page and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.global_averaging import GlobalAveraging
from fedpca_core.algorithms.local_training import LocalTraining
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.arrays import Array
from fedpca_core.attacks import personal as attack
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.metrics.personal import (
    angles_between,
    crossover,
    fresh_ratios,
    oracles,
    training_ratios,
)
from fedpca_core.problems.personal import PersonalProblem, personal
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.settings import Settings, parameter
from fedpca_core.studies.papers.personal import METHODS, curve, settled

Progress = Callable[[float, str], bool]

SPREADS = (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
SAMPLES = (1, 2, 5, 10, 20, 40, 80, 160, 320)
CLIENTS = (3, 5, 10, 20, 50, 100, 200)
#: Axis values of the three sweeps.
AXES: Mapping[str, tuple[float, ...]] = {
    "spread": (0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0),
    "samples": (2, 5, 10, 20, 40, 80, 160, 320),
    "clients": (3, 5, 10, 20, 50, 100),
}


@dataclass(frozen=True)
class PersonaliseSettings(Settings):
    """Everything that determines the Personalise page."""

    kind: ClassVar[str] = "personalise"
    family: ClassVar[str] = "personalise"

    spread: float = parameter(
        0.2,
        key="p-spread",
        label="How much clients differ",
        help="Standard deviation of the random step that takes the common frame to a client's own "
        "(PerPCA's σ_U, printed there as a variance).",
        grid=SPREADS,
    )
    samples: int = parameter(
        10,
        key="p-samples",
        label="Samples per client",
        help="Records each client holds (n in PerPCA). With few, a client alone overfits.",
        grid=SAMPLES,
    )
    clients: int = parameter(
        50,
        key="p-clients",
        label="Clients",
        help="How many parties could join (m in PerPCA).",
        grid=CLIENTS,
    )
    features: int = parameter(
        30, key="p-features", label="Features", help="Dimension d of a record.",
        low=10, high=100, step=5,
    )  # fmt: skip
    components: int = parameter(
        10, key="p-components", label="Components", help="Columns r of every frame.",
        low=1, high=20, step=1,
    )  # fmt: skip
    noise_variance: float = parameter(
        0.5,
        key="p-noise",
        label="Noise variance",
        help="σ_ε² of PerPCA; the signal has variance 1. The methods are told its value.",
        grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    )
    reading: str = parameter(
        "std",
        key="p-reading",
        label="How the paper's number is read",
        help="PerPCA prints its heterogeneity as a variance. Its findings appear only when the "
        "number is a standard deviation; read literally, nobody can gain by collaborating.",
        choices={"std": "Standard deviation", "literal": "Variance, literally"},
    )
    prior: str = parameter(
        "matched",
        key="p-prior",
        label="Prior",
        help="Variance the objective assumes around the common frame: the generator's own number, "
        "or the smaller one that its frames really have (they lie on a curved surface).",
        choices={"matched": "As generated", "calibrated": "Calibrated"},
    )
    gradient: str = parameter(
        "exact",
        key="p-gradient",
        label="Data gradient",
        help="The paper prints half of the true data gradient. The printed one acts like a prior "
        "twice as strong.",
        choices={"exact": "Exact", "printed": "As printed (half)"},
    )
    start_from: str = parameter(
        "independent",
        key="p-start",
        label="Start",
        help="Everybody at a random frame of their own (as in Figure 1a), all at one common "
        "random frame, or all at the pooled answer.",
        choices={"independent": "Independent", "common": "Common", "pooled": "Pooled answer"},
    )
    pace: float = parameter(
        2.0,
        key="p-pace",
        label="Pace",
        help="Factor on the safe step sizes. At 1 the objective falls in every round; 2 arrives "
        "sooner; above 2.5 it gets worse.",
        grid=(0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    )
    rounds: int = parameter(
        300, key="p-rounds", label="Rounds", help="Communication rounds.",
        grid=(50, 100, 150, 200, 300, 400, 600),
    )  # fmt: skip
    seed: int = parameter(
        0, key="p-seed", label="Seed", help="Seed of data and starts.", low=0, high=9999, step=1
    )
    measure: str = parameter(
        "fresh",
        key="p-measure",
        label="Error on",
        help="Fresh records tell how good a model is; its own training records only how well it "
        "fits them.",
        choices={"fresh": "Fresh records", "training": "Training records"},
        view=True,
    )
    vary: str = parameter(
        "spread",
        key="p-vary",
        label="Vary",
        choices={
            "spread": "How much they differ",
            "samples": "Samples per client",
            "clients": "Clients",
        },
        view=True,
    )

    # ------------------------------------------------------------------ what it stands for
    def problem(self) -> PersonalProblem:
        """The clients' data."""
        return personal(
            features=self.features,
            components=self.components,
            clients=self.clients,
            samples=self.samples,
            spread=self.spread,
            reading=self.reading,
            noise_variance=self.noise_variance,
            seed=self.seed,
        )

    def personalised(self) -> PersonalizedPCA:
        """Personalised PCA with these parameters."""
        calibrated = self.prior == "calibrated"
        literal = self.reading == "literal"
        deviation = float(np.sqrt(self.spread)) if literal else self.spread
        return PersonalizedPCA(
            components=self.components,
            # The calibrated variance starts from a standard deviation in either reading.
            spread=deviation if calibrated else self.spread,
            noise_variance=self.noise_variance,
            prior="calibrated" if calibrated else self.reading,
            gradient=self.gradient,
            pace=self.pace,
            start_from=self.start_from,
        )

    def methods(self) -> dict[str, Algorithm]:
        """Personalised PCA and its two baselines, by title."""
        return {
            "PersonalizedPCA": self.personalised(),
            "LocalTraining": LocalTraining(components=self.components),
            "GlobalAveraging": GlobalAveraging(
                components=self.components, noise_variance=self.noise_variance
            ),
        }


PRESETS: Mapping[str, tuple[str, PersonaliseSettings]] = {
    "figure-1a": (
        "Figure 1(a)",
        PersonaliseSettings(clients=200),
    ),
    "figure-1b": (
        "Figure 1(b): who differs",
        PersonaliseSettings(samples=20, rounds=200),
    ),
    "figure-1c": (
        "Figure 1(c): samples",
        PersonaliseSettings(
            features=100, components=20, clients=20, spread=0.1, rounds=50, vary="samples"
        ),
    ),
    "figure-1d": (
        "Figure 1(d): clients",
        PersonaliseSettings(
            features=100, components=20, clients=20, spread=0.1, rounds=50, vary="clients"
        ),
    ),
    "figure-2a": (
        "Figure 2(a): training error",
        PersonaliseSettings(samples=20, rounds=200, measure="training"),
    ),
    "figure-2b": (
        "Figure 2(b): fresh error",
        PersonaliseSettings(samples=20, rounds=200, spread=0.4),
    ),
    "too-heterogeneous": (
        "Too heterogeneous",
        PersonaliseSettings(reading="literal"),
    ),
    "alone": (
        "Many samples",
        PersonaliseSettings(samples=320, spread=0.3, rounds=100),
    ),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the three methods reached on one problem.

    Attributes
    ----------
    fresh, training : mapping of title to (rounds + 1, clients) float64
    limits : mapping of title to float
        Closed-form fresh error of the two baselines.
    centre : float
        Fresh error of the true common frame: no shared model can do better for ever.
    angles : (shown, shown) float64
        Largest principal angle, in degrees, between the true frames of the first clients.
    learned : (shown, shown) float64
        The same between the personalised frames.
    bytes_sent : mapping of title to int
        All clients, both directions, whole run.
    """

    problem: PersonalProblem
    fresh: Mapping[str, Array]
    training: Mapping[str, Array]
    limits: Mapping[str, float]
    centre: float
    angles: Array
    learned: Array
    bytes_sent: Mapping[str, int]

    def gains(self, over: str) -> Array:
        """By how much each client's fresh error falls with personalised PCA, (clients,)."""
        return self.fresh[over][-1] - self.fresh["PersonalizedPCA"][-1]

    def table(self) -> pd.DataFrame:
        """One row for each method and round."""
        return pd.concat(
            pd.DataFrame(
                {
                    "method": name,
                    "round": np.arange(len(values)),
                    "fresh_ratio": values.mean(axis=1),
                    "training_ratio": self.training[name].mean(axis=1),
                }
            )
            for name, values in self.fresh.items()
        )


#: Clients shown in the heat map of angles.
SHOWN = 30


def compare(configuration: PersonaliseSettings, report: Progress) -> Outcome | None:
    """Run the three methods; None when ``report`` asked to stop."""
    problem = configuration.problem()
    fresh: dict[str, Array] = {}
    training: dict[str, Array] = {}
    models: dict[str, Array] = {}
    for index, (name, algorithm) in enumerate(configuration.methods().items()):
        pairs, models[name] = curve(
            problem,
            algorithm,
            rounds=configuration.rounds,
            seed=configuration.seed,
            measure=_both,
            wanted=lambda done, name=name, index=index: report(  # type: ignore[misc]
                (index + done) / len(METHODS), f"{name}: {done:.0%} of the rounds"
            ),
        )
        if len(pairs) <= configuration.rounds:
            return None
        fresh[name], training[name] = pairs[:, 0], pairs[:, 1]
    best = oracles(problem)
    features, components = problem.centre.shape
    message = 8 * features * components * configuration.clients * configuration.rounds
    return Outcome(
        problem=problem,
        fresh=fresh,
        training=training,
        limits={
            "LocalTraining": float(fresh_ratios(best["local"], problem).mean()),
            "GlobalAveraging": float(fresh_ratios(best["global"], problem).mean()),
        },
        centre=float(fresh_ratios(problem.centre, problem).mean()),
        angles=angles_between(problem.frames[:SHOWN]),
        learned=angles_between(models["PersonalizedPCA"][:SHOWN]),
        bytes_sent={
            "PersonalizedPCA": 2 * message,
            "LocalTraining": 0,
            "GlobalAveraging": 2 * message,
        },
    )


def _both(estimates: Array, problem: PersonalProblem) -> Array:
    return np.stack([fresh_ratios(estimates, problem), training_ratios(estimates, problem)])


@dataclass(frozen=True)
class Sweep:
    """Fresh error of the three methods along one axis."""

    axis: str
    values: Array
    ratios: Mapping[str, Array]

    @property
    def crossing(self) -> float | None:
        """Where global averaging stops or starts being better than training alone."""
        return crossover(self.values, self.ratios["GlobalAveraging"], self.ratios["LocalTraining"])

    def largest_gain(self) -> tuple[float, float]:
        """Where personalised PCA gains most over the better baseline, and how much."""
        better = np.minimum(self.ratios["LocalTraining"], self.ratios["GlobalAveraging"])
        gain = better - self.ratios["PersonalizedPCA"]
        at = int(gain.argmax())
        return float(self.values[at]), float(gain[at])


def sweep(
    configuration: PersonaliseSettings,
    report: Progress,
    publish: Callable[[Sweep], None] = lambda _: None,
) -> Sweep | None:
    """Vary one parameter and keep the others.

    The baselines are their closed-form limits; personalised PCA starts from the pooled answer.
    At most 50 clients take part, unless their number is what varies.
    """
    axis = configuration.vary
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    seen: list[float] = []
    values = AXES[axis]
    latest: Sweep | None = None
    for index, value in enumerate(values):
        if not report(index / len(values), f"{axis} {value:g}"):
            return latest
        here = _at(configuration, axis, value)
        problem = here.problem()
        best = oracles(problem)
        enough = here.clients * here.samples > here.components
        algorithm = replace(here.personalised(), start_from="pooled" if enough else "independent")
        found["PersonalizedPCA"].append(
            float(settled(problem, algorithm, configuration.rounds, 1e-5).mean())
        )
        found["LocalTraining"].append(float(fresh_ratios(best["local"], problem).mean()))
        found["GlobalAveraging"].append(float(fresh_ratios(best["global"], problem).mean()))
        seen.append(float(value))
        latest = Sweep(
            axis, np.array(seen), {name: np.array(entries) for name, entries in found.items()}
        )
        publish(latest)
    return latest


def _at(configuration: PersonaliseSettings, axis: str, value: float) -> PersonaliseSettings:
    if axis == "clients":
        return replace(configuration, clients=int(value))
    few = replace(configuration, clients=min(configuration.clients, 50))
    if axis == "samples":
        return replace(few, samples=int(value))
    return replace(few, spread=float(value))


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a server recovered from the uploads of a short run (errors are simulation only).

    Attributes
    ----------
    rounds : (rounds + 1,)
    errors : mapping of start to (rounds + 1,) float64
        ||U U^T - R R^T||_F / sqrt(2 r) between a client's frame and the recovered one, median over
        the attacked clients; NaN where nothing was recovered.
    baseline : (rounds + 1,) float64
        The same for a server that takes the common frame for every client's.
    moment_errors : (attacked,) float64
        Relative errors of the recovered S_i after a common start; NaN where that failed.
    record_errors : (attacked,) float64
        Relative errors of single records (one sample a client); NaN otherwise.
    """

    rounds: Array
    errors: Mapping[str, Array]
    baseline: Array
    moment_errors: Array
    record_errors: Array


def give_away(
    configuration: PersonaliseSettings,
    report: Progress,
    *,
    rounds: int = 10,
    attacked: int = 5,
) -> Exposure | None:
    """Attack the uploads of a few clients, after a common and after independent starts.

    With the safe steps: long ones carry frames past 45 degrees of the common one, where the
    attack has to choose between branches.
    """
    small = replace(configuration, clients=min(configuration.clients, 10))
    problem = small.problem()
    chosen = range(min(attacked, problem.clients))
    errors: dict[str, Array] = {}
    moments = np.full(len(chosen), np.nan)
    records = np.full(len(chosen), np.nan)
    baseline = np.zeros(rounds + 1)
    for start in ("common", "independent"):
        algorithm = replace(small.personalised(), start_from=start, pace=1.0)
        algorithm = algorithm.prepared(problem.client_data)
        trace = simulate(problem, algorithm, rounds=rounds, seed=small.seed)
        found = np.full((len(chosen), rounds + 1), np.nan)
        for client in chosen:
            share = (client / len(chosen) + (start != "common")) / 2
            if not report(share, f"Reading the uploads of client {client}"):
                return None
            tracked = attack.frames(trace.transcript, algorithm, client)
            for item in tracked:
                found[client, item.round] = _apart(item.frame, trace.estimates[item.round, client])
            if start == "common":
                moments[client], records[client] = _data_errors(
                    problem, algorithm, trace, client, tracked
                )
        errors[start] = np.nanmedian(found[:, 1:], axis=0)
        errors[start] = np.concatenate([[np.nan], errors[start]])
        if start == "common":
            centres = [exchange.downlink["centre"] for exchange in trace.transcript.exchanges]
            guesses = [
                [_apart(centre, trace.estimates[row + 1, client]) for client in chosen]
                for row, centre in enumerate(centres)
            ]
            baseline = np.concatenate([[np.nan], np.median(guesses, axis=1)])
    return Exposure(np.arange(rounds + 1.0), errors, baseline, moments, records)


def _apart(found: Array, true: Array) -> float:
    return float(projector_distance(found, true)) / float(np.sqrt(2 * true.shape[1]))


def _data_errors(
    problem: PersonalProblem,
    algorithm: PersonalizedPCA,
    trace: Trace,
    client: int,
    tracked: Sequence[attack.Recovered],
) -> tuple[float, float]:
    """Relative errors of S_i and, with one sample, of the record itself; NaN where refused."""
    assert problem.blocks is not None
    block = problem.blocks[client]
    true = block @ block.T / block.shape[1]
    try:
        found = attack.second_moment(trace.transcript, algorithm, client, tracked=tracked).matrix
    except InvalidInput:
        return float("nan"), float("nan")
    moment = float(np.linalg.norm(found - true) / np.linalg.norm(true))
    if block.shape[1] > 1:
        return moment, float("nan")
    record, actual = attack.factor(found, 1)[:, 0], block[:, 0]
    signed = min(np.linalg.norm(record - actual), np.linalg.norm(record + actual))
    return moment, float(signed / np.linalg.norm(actual))


def tables(configuration: PersonaliseSettings, report: Progress) -> dict[str, pd.DataFrame]:
    """What the command line prints and writes: ``summary``, ``curves`` and ``sweep``."""
    outcome, swept = compare(configuration, report), sweep(configuration, report)
    assert outcome is not None and swept is not None  # a report that never stops the work
    summary = pd.DataFrame(
        {
            "method": list(METHODS),
            "fresh_ratio": [outcome.fresh[name][-1].mean() for name in METHODS],
            "training_ratio": [outcome.training[name][-1].mean() for name in METHODS],
            "limit": [outcome.limits.get(name, np.nan) for name in METHODS],
            "bytes": [outcome.bytes_sent[name] for name in METHODS],
        }
    )
    return {
        "summary": summary,
        "curves": outcome.table(),
        "sweep": pd.DataFrame({swept.axis: swept.values, **swept.ratios}),
    }
