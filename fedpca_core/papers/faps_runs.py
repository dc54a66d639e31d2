"""FAPS's experiments as cells: every method from every start, at the live and at the paper's size.

Of runs that are compared the data are those of seed 0, and a cell's seed is that of the random
start, on which round counts depend. Rounds stream by, nothing but their measures is kept.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar

import numpy as np

from fedpca_core import attacks, metrics
from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.ssi import SSI, LocalPower
from fedpca_core.arrays import Array
from fedpca_core.attacks import scores
from fedpca_core.papers.counted import Aligned, Leading, Pooled
from fedpca_core.papers.experiment import Cell, Experiment, Number, Piece, Size
from fedpca_core.papers.faps import FapsPreset, preset
from fedpca_core.problems import Problem
from fedpca_core.problems.data_sets import DATA_SETS
from fedpca_core.problems.images import images, load_images
from fedpca_core.problems.problem import from_blocks
from fedpca_core.problems.spectrum import singular_values
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate, stream
from fedpca_core.protocol.trace import Round
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams
from fedpca_core.study.build import build_problem
from fedpca_core.study.deployed import private_matrix
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.world import PROBLEMS

#: What is compared, the most telling first: the method's own cells may be all there is time for.
#: “FAPS, as printed” is a key of stored cells and not to the letter: `faps.toml`, as_run, says how.
COMPARED: Mapping[str, Callable[[int], Algorithm]] = {
    "FAPS, 5 inner steps": lambda p: FAPS(p, inner_rule="fixed", inner_steps=5),
    "Block Krylov": BlockKrylov,
    "SSI": SSI,
    "LocalPower": LocalPower,
    "LocalPower (decay)": lambda p: LocalPower(p, schedule="decay"),
    "FAPS, as printed": lambda p: FAPS(p, inner_rule="change"),
    "FAPS, conditions": lambda p: FAPS(p, inner_rule="conditions", inner_residual=1.0),
}
#: Variants of them, for readings alone.
VARIANTS: Mapping[str, Callable[[int], Algorithm]] = {
    "LocalPower (aligned)": Aligned,
    "LocalPower (two)": lambda p: FedPower(p, products=12_000, decay=False, alignment=False),
    "FAPS, tighter": lambda p: FAPS(p, inner_rule="change", inner_tolerance=1e-3),
}
#: What a configuration says of its size.
_WORDS: Mapping[str, str] = {
    "features": "features",
    "clients": "clients",
    "samples": "records a client",
    "sizes": "client sizes",
    "components": "components",
    "decay": "decay",
    "condition": "condition number",
}
#: Accuracy at which all methods are compared, near which the paper's tables end.
MATCHED = 1.07e-7
#: Stopping rule (27): relative change of the objective, and the most rounds.
CHANGE, LONGEST = 1e-10, 3000
#: Rounds after which a bare product is timed once, to compare a method's time with.
TIMED_EVERY = 10
#: Methods of the tables, and the reading with five inner steps.
STOPPED = ("SSI", "LocalPower", "FAPS, as printed", "FAPS, 5 inner steps", "LocalPower (aligned)")
#: Rules by name, and the level at which each stops. The violation that is not scaled and the
#: objective's own change are those of data whose largest singular value is 1, as the paper's are.
RULES: Mapping[str, float] = {
    "rule (27)": CHANGE,
    "rule (27) at 2e-9": 2e-9,
    "objective's change at most 3e-8": 3e-8,
    "scaled violation at most 2e-6": 2e-6,
    "violation at most 1e-4, not scaled": 1e-4,
}
#: Points of a kept curve.
CURVE_POINTS = 40


class FapsConvergence(Experiment):
    """Rounds, bytes, products and seconds of every method, as one of FAPS's presets has it."""

    source = "faps"
    x_title = "communication round"
    y_title = "relative error"
    #: In runs that are not timed, features with singular values below this share of the largest are
    #: left out: their products are below 1e-17.
    negligible: ClassVar[float] = 1e-9
    methods: Sequence[str] = tuple(COMPARED)
    #: What a cell's numbers depend on besides its data and method.
    read_at: Mapping[str, Any] = {}

    def __init__(self, name: str, variant: str = "", methods: Sequence[str] = ()) -> None:
        self.preset: FapsPreset = preset(name)
        self.key, self.title, self.measure = name, self.preset.title, "rounds"
        if variant:
            self.key, self.title = f"{name}-{variant}", f"{self.title}: {variant}"
            self.methods, self.read_at = methods, {"variant": variant}
        self.varied = self.preset.varied
        self._problem: tuple[object, Problem] | None = None

    def pieces(self, size: Size) -> Iterable[Piece]:
        for value in self._values(size):
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            for series in self.methods:
                depends = {**self.preset.fields(size, value), "series": series, **self.read_at}
                yield "" if value is None else text, series, depends

    def described(self, size: Size) -> str:
        fields = self.preset.fields(size, None)
        shown = [PROBLEMS[str(fields["problem"])].lower()]
        shown += [f"{words} {fields[name]}" for name, words in _WORDS.items() if name in fields]
        varied = f"; {self.preset.varied} varied" * bool(self.preset.varied)
        cut = any(self._leading(size, value) for value in self._values(size))
        left = f"; singular values below {self.negligible:g} of the largest count as 0" * cut
        return ", ".join(shown) + varied + left

    def needs(self, size: Size) -> tuple[str, ...]:
        problems = {str(self.preset.fields(size, value)["problem"]) for value in self._values(size)}
        return tuple(sorted(problems & DATA_SETS.keys()))

    def live(self) -> ConvergeSettings:
        return self.preset.configuration()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        problem, algorithm, features = self._prepared(cell, size)
        how: dict[str, Any] = {"features": features, "longest": self.preset.longest}
        how["timed"] = not (size == "paper" and self.preset.counted)
        printed = self._printed_error(cell.series)
        return (yield from measure_run(problem, algorithm, cell, printed, **how))

    def _prepared(self, cell: Cell, size: Size) -> tuple[Problem, Algorithm, int]:
        """A cell's problem, its method, and all features, of which the problem may have fewer.

        The last problem is kept, since all its cells follow each other.
        """
        value = cell.configuration.get(self.preset.varied)
        if self._problem is None or self._problem[0] != (size, value):
            self._problem = None  # before the next one is made: two of them may not fit
            problem = (
                self.preset.paper_problem(value, leading=self._leading(size, value))
                if size == "paper"
                else build_problem(self.preset.configuration(value))
            )
            if self.varied == "problem" and "variant" in self.read_at:
                problem = prepared(str(value), problem.clients, self.read_at["variant"])
            self._problem = (size, value), problem
        problem = self._problem[1]
        algorithm = {**COMPARED, **VARIANTS}[cell.series](int(cell.configuration["components"]))
        if size == "live" or not self.preset.counted:
            return problem, algorithm, problem.features
        if algorithm.near == "power":
            algorithm = Pooled(algorithm, problem.covariance)
        features = int(self.preset.fields(size, value).get("features", problem.features))
        if problem.features < features:
            algorithm = Leading(algorithm, features)
        return problem, algorithm, features

    def _printed_error(self, series: str) -> float:
        """The relative error at which the paper's table gives the KKT violation."""
        row = "FAPS" if series.startswith("FAPS") else series
        errors = (one for one in self.preset.published if one.id.endswith("/error"))
        return next((one.value for one in errors if one.method == row), MATCHED)

    def _leading(self, size: Size, value: Value | None) -> int | None:
        """How many features are made where the data of others are negligible; None for all.

        Beside those that count there are as many as the start has columns (`Leading`).
        """
        fields = self.preset.fields(size, value)
        if size == "live" or not self.preset.counted or "decay" not in fields:
            return None
        roots = singular_values(fields["features"], fields["decay"], None)
        kept = int((roots > self.negligible).sum()) + int(fields["components"])
        return kept if kept < len(roots) else None

    def _values(self, size: Size) -> Sequence[Value | None]:
        return (self.preset.paper_values if size == "paper" else self.preset.values) or (None,)


def prepared(name: str, clients: int, variant: str) -> Problem:
    """Images "not-centred", "standardised" or, where our copy is not sorted, "in-order"."""
    dealt = images(name, clients, centre=variant != "not-centred")
    pixels, classes = load_images(name)
    if variant == "standardised":
        spread = pixels.std(axis=0, dtype=float)[:, None]
        return from_blocks([one / np.where(spread, spread, 1.0) for one in dealt.blocks or ()])
    if variant == "in-order" and (np.diff(classes) < 0).any():
        centred = pixels - pixels.mean(axis=0, dtype=float)
        return from_blocks(np.array_split(centred.T, clients, axis=1))
    return dealt


class Stopped(FapsConvergence):
    """Where runs of one of FAPS's tables may have stopped: read at every rule of `RULES`.

    The text states rule (27) with a tolerance that does not give its printed errors, and says
    nothing else. One run is read at each rule, so that all methods have the same ones.
    """

    #: Pooled products of what is left out are below 1e-10 of the largest; errors are read to 1e-7.
    negligible = 1e-5
    methods = STOPPED
    read_at: Mapping[str, Any] = {"rules": dict(RULES)}

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.key, self.title, self.measure = f"{name}-stops", f"{self.title}: where runs stop", ""
        self.preset = replace(self.preset, counted=True)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        problem, algorithm, _ = self._prepared(cell, size)
        spectrum = np.linalg.eigvalsh(problem.covariance)
        trace, largest = float(spectrum.sum()), float(spectrum[-1])
        stops: dict[str, tuple[float, float, float]] = {}
        before = float("nan")
        for entry, error, kkt, objective in _rounds(problem, algorithm, cell.seed):
            change = abs(objective - before)
            levels = {
                "rule (27)": change / abs(objective),
                "rule (27) at 2e-9": change / abs(objective),
                "objective's change at most 3e-8": change * trace / largest,
                "scaled violation at most 2e-6": kkt,
                "violation at most 1e-4, not scaled": kkt * trace / largest,
            }
            before = objective
            for rule, level in levels.items():
                if entry.index and level <= RULES[rule]:
                    stops.setdefault(rule, (float(entry.index), kkt, error))
            if len(stops) == len(RULES):
                break
            if entry.index % 10 == 0:
                yield Step(0.5, f"{cell.name}: round {entry.index}, error {error:.1e}")
        for rule in RULES:  # what no rule has ended ends with the most rounds, as the paper says
            stops.setdefault(rule, (float(entry.index), kkt, error))
        return [
            Number(cell.series, f"{measure}, {rule}", value)
            for rule, values in stops.items()
            for measure, value in zip(("rounds", "kkt", "relative_error"), values, strict=True)
        ]


def _rounds(
    problem: Problem, algorithm: Algorithm, seed: int, longest: int | None = None
) -> Iterator[tuple[Round, float, float, float]]:
    """Rounds, `LONGEST` at most, each with its relative error, KKT violation and objective."""
    wire, most = Channel(record="estimates"), longest or LONGEST
    for entry in stream(problem, algorithm, rounds=most, seed=seed, channel=wire):
        found = metrics.subspace_errors(entry.estimate[None], problem, algorithm.components)
        error, kkt, objective = (found[name][0] for name in ("relative_error", "kkt", "objective"))
        yield entry, float(error), float(kkt), float(objective)


def measure_run(
    problem: Problem,
    algorithm: Algorithm,
    cell: Cell,
    printed_error: float,
    *,
    timed: bool = True,
    features: int = 0,
    longest: int = LONGEST,
) -> Part[Sequence[Number]]:
    """Run a method until it is accurate and its stopping rule has fired; what it needed.

    Measures: rounds, bytes, products (a client) and seconds to the accuracy `MATCHED`; kkt where
    the relative error reaches ``printed_error``; stop_rounds, stop_relative_error and stop_kkt
    where rule (27) stops it; time_ratio, its seconds over those of its bare products; linearity,
    the R² of log error against rounds once it is below a hundredth; the same two by the violation,
    to 2e-6 and over the same rounds. From seed 0 the curve of its relative error, too. Without
    ``timed`` there are neither seconds nor time_ratio.
    Bytes are those of messages with ``features`` rows, where the problem has leading ones only.
    """
    spent = {"rounds": 0.0, "bytes": 0.0, "products": 0.0, "seconds": 0.0}
    reached: dict[str, float] = {}
    stopped: dict[str, float] = {}
    errors: list[float] = []
    violations: list[float] = []
    met: dict[str, float] = {}
    bare: list[float] = []
    before = float("nan")
    rows = (features or problem.features) / problem.features
    for entry, error, kkt, value in _rounds(problem, algorithm, cell.seed, longest):
        spent["rounds"] = float(entry.index)
        spent["bytes"] += rows * (entry.bytes_up + entry.bytes_down)
        spent["products"] += entry.local_products / problem.clients
        spent["seconds"] += entry.seconds
        errors.append(error)
        violations.append(kkt)
        if entry.index > 0:
            if kkt <= RULES["scaled violation at most 2e-6"]:
                met.setdefault("rounds, violation", spent["rounds"])
            if "rounds" not in reached and error <= MATCHED:
                reached |= spent
            if "kkt" not in reached and error <= printed_error:
                reached["kkt"] = kkt
            # Krylov's first estimate is the start itself, which is no progress to judge.
            if not stopped and entry.index > 1 and abs(value - before) <= CHANGE * abs(value):
                stopped = {"stop_rounds": spent["rounds"], "stop_kkt": kkt}
                stopped["stop_relative_error"] = error
        before = value
        if timed and entry.index % TIMED_EVERY == 1:
            bare.append(_seconds_of_a_product(problem, entry.estimate))
        if len(reached) == len(spent) + 1 and stopped:
            break
        if entry.index % TIMED_EVERY == 0:
            yield Step(_share(errors), f"{cell.name}: round {entry.index}, error {error:.1e}")
    measured = {**reached, **stopped, **met, **_linearity(errors, violations)}
    if timed:
        measured["time_ratio"] = spent["seconds"] / (spent["products"] * float(np.median(bare)))
    else:
        measured.pop("seconds", None)
    numbers = Number.each(cell.series, measured)
    if cell.seed == 0:
        numbers += Number.curve(cell.series, "relative error", errors, CURVE_POINTS)
    return numbers


def _linearity(errors: Sequence[float], violations: Sequence[float]) -> dict[str, float]:
    """R² of straight lines through logarithms while errors are between 1e-2 and `MATCHED`."""
    low = np.asarray(errors)
    rounds = np.flatnonzero((low < 1e-2) & (low > MATCHED))
    if len(rounds) < 3:
        return {}
    both = {"linearity": low, "linearity, violation": np.asarray(violations)}
    lines = {name: np.corrcoef(rounds, np.log(of[rounds]))[0, 1] for name, of in both.items()}
    return {name: float(correlation**2) for name, correlation in lines.items()}


def _seconds_of_a_product(problem: Problem, frame: Array) -> float:
    """Seconds that one product of every client takes, with a frame each as FAPS's clients have."""
    frames = np.tile(frame, (problem.clients, 1, 1))
    data = problem.client_data.metered()
    began = time.perf_counter()
    data.apply(frames)
    return time.perf_counter() - began


def _share(errors: Sequence[float]) -> float:
    """How far a run has come that ends at `MATCHED`, by the logarithm of its error."""
    first, last = np.log(max(errors[0], MATCHED * 2)), np.log(max(min(errors), MATCHED))
    return float(np.clip((first - last) / (first - np.log(MATCHED)), 0.0, 0.99))


# ---------------------------------------------------------------------- recovered by the server
#: Both the reconstruction and the KKT violation count as done below this (the paper).
DONE = 1e-5
#: Rounds beyond those that the equations need, in which the attack is tried.
SPARE = 6
#: Bytes of messages that are kept of the longest run.
MESSAGES = 10**10
#: The paper's sizes; five clients are ours. Features are those of Figure 1(a), then of 1(b).
PAPER = {"records": 10_000, "components": 100, "clients": 5}
FEATURES = (1000, 2000, 3000, 4000, 5000)


class Recovered(Experiment):
    """Figure 1: the linear attack round by round, beside the run's own convergence.

    The paper names features, records and components, not the data or the clients: entries are drawn
    independently here, for five clients. At live size the problem is the Attack page's.
    """

    source = "faps"
    x_title, y_title = "communication round", "error, KKT violation"

    def __init__(self, key: str, title: str) -> None:
        self.key, self.title, self.preset = key, title, preset(key)
        self.varied = self.preset.varied
        self.growing = bool(self.varied)
        self.measure = "recovered" if self.growing else ""

    def pieces(self, size: Size) -> Iterable[Piece]:
        for features in self._features(size):
            for method in ("SSI",) if self.growing else ("SSI", "FAPS"):
                depends = {**self._fields(size, features), "method": method}
                yield str(features) if self.growing else "", method, depends

    def described(self, size: Size) -> str:
        words = [f"{name} {value}" for name, value in self._fields(size, 0).items() if value]
        return f"{', '.join(words)}, features {', '.join(map(str, self._features(size)))}"

    def live(self) -> ConvergeSettings:
        return self.preset.configuration()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        problem = self._problem(cell, size)
        components, features = (int(cell.configuration[n]) for n in ("components", "features"))
        method = COMPARED["SSI" if cell.series == "SSI" else "FAPS, 5 inner steps"](components)
        enough = ceil(features / components)
        # Before the broadcasts can span the features there is nothing to find, and a large problem
        # is not solved after every round.
        few = enough, enough + 1, enough + SPARE
        tried: Sequence[int] = few if self.growing else range(enough + SPARE + 1)
        wire = Channel(byte_limit=MESSAGES)
        run = simulate(problem, method, rounds=tried[-1], seed=cell.seed, channel=wire)
        truth = private_matrix(problem, 0)
        errors: dict[int, float] = {}
        for index in tried:
            yield Step(0.5 * index / tried[-1], f"{cell.name}: attack after round {index}")
            seen = run.transcript.until(index)
            guess = attacks.linear(seen) if index else np.zeros_like(truth)
            errors[index] = scores.relative_error(guess, truth)
            if self.growing and errors[index] <= DONE:
                break
        # Where nothing else is asked of SSI, the sum of its answers is known beforehand.
        quick = Pooled(method, problem.covariance) if self.growing else method
        kkt: dict[int, float] = {}
        for entry, _, violation, _ in _rounds(problem, quick, cell.seed):
            kkt[entry.index] = violation
            if entry.index and violation <= DONE:
                break
            if entry.index % 20 == 0:
                said = f"{cell.name}: round {entry.index}, KKT violation {violation:.1e}"
                yield Step(0.75, said)
        measures = {
            "recovered": _first_done(errors),
            "converged": _first_done(kkt),
            "least_error": min(list(errors.values())[-SPARE:]),
        }
        numbers = Number.each(cell.series, measures)
        if not self.growing and cell.seed == 0:
            thinned = dict([*kkt.items()][:: max(1, len(kkt) // 60)])
            for name, curve in {"the server's error": errors, "KKT violation": thinned}.items():
                shown = f"{cell.series}, {name}"
                numbers += [Number(shown, "error", e, float(i)) for i, e in curve.items()]
        return numbers

    def _features(self, size: Size) -> Sequence[Any]:
        if size == "paper":
            return FEATURES if self.growing else FEATURES[:1]
        return self.preset.values or (self.live().features,)

    def _fields(self, size: Size, features: int) -> dict[str, Any]:
        if size == "paper":
            return {**PAPER, "features": features, "data": "independent entries"}
        settings = self.live()
        return {
            "features": features,
            "records": settings.samples * settings.clients,
            "components": settings.components,
            "clients": settings.clients,
            "data": settings.problem,
        }

    def _problem(self, cell: Cell, size: Size) -> Problem:
        fields = cell.configuration
        if size == "live":
            changes: dict[str, Any] = {"features": fields["features"], "seed": cell.seed}
            return build_problem(replace(self.live(), **changes))
        generator = Streams(cell.seed).generator("data")
        clients = int(fields["clients"])
        shape = int(fields["features"]), int(fields["records"]) // clients
        return from_blocks([generator.standard_normal(shape) for _ in range(clients)])


def _first_done(curve: Mapping[int, float]) -> float:
    """The first round after the start with a value that counts as done; NaN for none."""
    return next((float(at) for at, value in curve.items() if at and value <= DONE), float("nan"))
