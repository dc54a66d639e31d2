"""The experiments on network traffic as cells: runs with some settings changed, and what is sent.

The data are public files; where they are missing a cell says so. A cell's seed draws the start,
the participants and what is random in a rival; the split of the records is that of the seed, too.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.fedpe_fedpg import FedPE, FedPG
from fedpca_core.anomaly.autoencoder import FEDAE, FEDAE_2, BiGAN, Network, training
from fedpca_core.anomaly.autoencoder import score as reconstruction_error
from fedpca_core.anomaly.detectors import mean_rates
from fedpca_core.anomaly.evaluation import (
    area,
    area_pair,
    best_for_labels,
    evaluate,
    for_labels,
    quantile,
    reconstruct,
    score,
)
from fedpca_core.arrays import Array, Arrays, BoolArray
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import orthonormalise, remove_span
from fedpca_core.papers.entries import Reading, paper
from fedpca_core.papers.experiment import Cell, Experiment, Number, Piece, Size
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate, stream
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.anomaly.trained import LEARNING, run, told
from fedpca_core.steps import Part, Step
from fedpca_core.study.here import named

DATA = {"unsw": "UNSW-NB15", "ton": "TON-IoT"}
#: Kind of the networks, and which of two widths they have.
NETWORKS: Mapping[str, tuple[type[Network], int]] = {
    "FedAE": (Network, 0), "FedAE-2": (Network, 1), "FedBiGAN": (BiGAN, 0), "FedBiGAN-2": (BiGAN, 1)
}  # fmt: skip
#: A run has arrived when its subspace is this close to centralised PCA's (root mean square sine).
NEAR = 0.1
#: It has learnt enough when it captures this share of the variance that the best subspace does.
LEARNT = 0.95
#: Features, and records of a client, of UNSW-NB15 and of TON-IoT.
HELD = {"": (39, 560), ", TON-IoT": (49, 1149)}
#: Ranks at which uploads are compared, and twice as many: a frame with its multiplier.
UPLOADED, TWICE = (2, 14), (4, 28)
#: Bytes of a graphics card of the paper's make.
CARD = 24e9
#: Numbers of a number's size that training holds: weights, gradient, Adam's two moments; of a
#: subspace method frame, multiplier, average and gradient.
COPIES = 4
#: Local solves of a client in a run that is followed to its end, whatever its participation.
SOLVES: Mapping[Size, int] = {"paper": 500, "live": 200}
_WIRE = Channel(dtype="float32", record="estimates")
_BOTH = {"FedPG": {"method": "fedpg"}, "FedPE": {"method": "fedpe"}}
#: What is changed by part and series, from both starts.
STARTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    start: {name: {**fields, "initial": start} for name, fields in _BOTH.items()}
    for start in ("orthonormal", "uniform")
}
#: FedPG with one thing as printed, and the same corrected.
PRINTED_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "projection as printed": {"projection": "printed", "participation": 1.0},
    "projection corrected": {"projection": "stiefel", "participation": 1.0},
    "average as printed": {"average": "printed"},
    "average corrected": {"average": "mean"},
    "50 local steps": {"local_steps": 50, "participation": 1.0},
}
#: Settings that are varied one by one, what they are called, and their values.
VALUES: Mapping[str, tuple[str, Sequence[int]]] = {
    "clients": ("clients", (20, 100, 200)),
    "components": ("rank", (1, 2, 4, 8, 16)),
    "local_steps": ("local rounds", (10, 20, 50)),
}
#: Numbers of clients of the public script that varies them; without and with its rounds.
SCRIPT_CLIENTS: Sequence[int] = range(100, 1001, 100)
SCRIPTS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "": ("", {}),
    "-many": (", 100 to 1,000", {}),
    "-script": (", 100 to 1,000, rounds of a script", {"FedPG": 30, "FedPE": 200}),
}


@dataclass(kw_only=True, eq=False)
class Runs(Experiment):
    """FedPE and FedPG with some settings changed: when they have learnt, and what they detect.

    Measures: distance, farthest (second half) and nearest to centralised PCA; rounds until it is
    near; share of all variance that is left over; share of the best subspace's that is learnt, and
    rounds_learnt and seconds (of the processor) until that is enough; seconds_all; auc, and
    accuracy at the largest TPR − FPR.
    The first seed has the curve of its distance where one is ``drawn``.
    """

    key: str
    title: str
    varied: str
    measure: str
    #: Changed fields by part and series, and those that all runs have.
    changed: Mapping[str, Mapping[str, Mapping[str, Any]]]
    shared: Mapping[str, Any]
    #: Whether every client solves `SOLVES` times, so that runs with few clients a round are
    #: followed as far as those with all; the paper states neither rounds nor a rule that ends them.
    followed: bool = False
    #: Rounds by series, where they are not the settings'.
    rounds: Mapping[str, int] = field(default_factory=dict)
    #: The penalty as a number, where it is no multiple of what the data ask for: beside a loss that
    #: is a sum over a client's records, as printed, where ours is their mean.
    penalty: float = 0.0
    drawn: bool = False
    sizes: tuple[Size, ...] = ("live", "paper")

    source, seed_by_seed = "iot", True
    x_title, y_title = "communication round", "distance to centralised PCA (mean sine)"

    def pieces(self, size: Size) -> Iterable[Piece]:
        fixed = {"size": size, **self.shared} | ({"penalty": self.penalty} if self.penalty else {})
        for part, every in self.changed.items():
            for series, fields in every.items():
                own = {"rounds": self.rounds[series]} if series in self.rounds else {}
                yield part, series, {**fixed, **fields, **own}

    def described(self, size: Size) -> str:
        c = self._settings(size, {}, 0)
        ends = f"{SOLVES[size]} local solves of every client" if self.followed else ""
        told = (DATA.get(c.problem, "synthetic traffic"), f"{c.clients} clients, rank 2", ends)
        return ", ".join(filter(None, told)) + ", unless varied" * (self.varied in VALUES)

    def needs(self, size: Size) -> tuple[str, ...]:
        return named(self._settings(size, {}, 0))

    def live(self) -> AnomalySettings:
        fields = next(iter(next(iter(self.changed.values())).values()))
        return replace(self._settings(self.sizes[0], fields, 0), view="learning")

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: reading the records")
        settings = self._settings(size, self.changed[cell.part][cell.series], cell.seed)
        on, k, name = task(settings), settings.components, cell.series
        problem, method = on.problem, settings.algorithm()
        if self.penalty:
            method = with_penalty(method, problem, self.penalty)
        target, best = problem.target(k), float(problem.eigenvalues[:k].sum())
        every: float = self.rounds.get(name, settings.rounds)
        every = SOLVES[size] / settings.participation if self.followed else every
        distances, learnt, spent = [], [], [0.0]
        how: dict[str, Any] = {"participation": settings.participation, "seed": settings.seed}
        began = time.process_time()
        for entry in stream(problem, method, rounds=round(every), channel=_WIRE, **how):
            spent.append(spent[-1] + time.process_time() - began)
            distances.append(float(np.linalg.norm(remove_span(entry.estimate, target))) / k**0.5)
            basis = orthonormalise(entry.estimate)
            learnt.append(float((basis * (problem.covariance @ basis)).sum()) / best)
            if entry.index % 10 == 0:
                yield Step(entry.index / every, f"{cell.name}: round {entry.index}")
            began = time.process_time()
        found = {
            "distance": distances[-1],
            "farthest": max(distances[len(distances) // 2 :]),
            "nearest": min(distances),
            "learnt": learnt[-1],
            "left": 1.0 - learnt[-1] * best / float(problem.eigenvalues.sum()),
            "seconds_all": spent[-1],
        }
        if near := [at for at, away in enumerate(distances) if away <= NEAR]:
            found["rounds"] = float(near[0])
        if enough := [at for at, share in enumerate(learnt) if share >= LEARNT]:
            found |= {"rounds_learnt": float(enough[0]), "seconds": spent[enough[0] + 1]}
        if on.source.labelled:
            scores = score(on.records, entry.estimate)
            level = best_for_labels(on.attack, scores)
            found["auc"] = area(on.attack, scores)
            found["accuracy"] = evaluate(on.attack, scores, level).accuracy
        numbers = Number.each(name, found)
        if self.drawn and cell.seed == 0:
            numbers += Number.curve(name, self.y_title, distances, 50)
        return numbers

    def _settings(self, size: Size, fields: Mapping[str, Any], seed: int) -> AnomalySettings:
        problem = "ton" if size == "paper" else "synthetic"
        own = {"problem": problem, "clients": 100 if size == "paper" else 40, "rounds": 500}
        return AnomalySettings(**{**own, "components": 2, **self.shared, **fields, "seed": seed})


def varied(name: str, data: str, penalty: float = 0.0, script: str = "") -> Runs:
    """One setting varied on one data set, features as they are; more local rounds of FedPE only."""
    word, values = VALUES[name]
    values = SCRIPT_CLIENTS if script else values
    told, rounds = SCRIPTS[script]
    methods = {m: f for m, f in _BOTH.items() if name != "local_steps" or m == "FedPE"}
    return Runs(
        key=f"iot-{word.replace(' ', '-')}-{data}{script}" + "-literal" * bool(penalty),
        title=f"Effect of {word} on {DATA[data]}{told}" + f", ρ = {penalty:g}" * bool(penalty),
        varied=name,
        measure="accuracy",
        changed={f"{v}": {m: {**f, name: v} for m, f in methods.items()} for v in values},
        shared={"problem": data, "transform": "none", "rounds": 300},
        rounds=rounds,
        penalty=penalty,
        sizes=("paper",),
    )


RUNS = (
    Runs(
        key="iot-learning",
        title="Loss against rounds",
        varied="start",
        measure="rounds",
        changed=STARTS,
        shared={},
        drawn=True,
    ),
    Runs(
        key="iot-printed",
        title="FedPG as printed, and corrected",
        varied="variant",
        measure="distance",
        changed={"": PRINTED_VARIANTS},
        shared={"method": "fedpg"},
        followed=True,
    ),
    *(
        varied(name, data, penalty, script)
        for script in SCRIPTS
        for penalty in (0.0, 1.0)
        for name in (("clients",) if script else VALUES)
        for data in DATA
    ),
)


# ---------------------------------------------------------------------- Table I, every reading
#: Settings by name. The public scripts have rank 2, steps of 1e-4 from a uniform start, and every
#: client standardises by its own moments; penalty and clients are the paper's.
_RANK_11: Mapping[str, Any] = {"transform": "none", "components": 11, "rounds": 500}
_SCRIPTS: Mapping[str, Any] = {"transform": "none", "components": 2, "standardising": "local"}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "rank 2": {"transform": "none", "components": 2, "rounds": 1500},
    "rank 11": _RANK_11,
    "public scripts": {**_SCRIPTS, "rounds": 20},
    "public scripts, 200 rounds": {**_SCRIPTS, "rounds": 200},
    "logarithms": {"transform": "log", "components": 6, "rounds": 300},
    "rank 11, own z-scores": {**_RANK_11, "standardising": "local"},
    "rank 11, shuffled clients": {**_RANK_11, "split": "iid"},
}
#: What else is tried: readings that are a part by their own name say what is changed, beside the
#: settings of rank 2 and of our networks, and of which methods.
PARTS: Mapping[str, Reading] = {
    one.name: one
    for one in paper("iot").readings["table-1"]
    if one.reads.get("part") == one.name and one.name not in SETTINGS
}
SCRIPT_STEP, PENALTY = 1e-4, 1.0
#: Where a client's records vary by less than this share of the largest variance, its own directions
#: are arbitrary.
VARYING = 1e-10
_SUBSPACES = ("FedPE", "FedPG")
Scorer = Callable[[Array], Array]


def with_penalty(method: ConsensusADMM, problem: Problem, penalty: float) -> ConsensusADMM:
    """The method with a number as its penalty, beside a sum over a client's records, as printed."""
    data = problem.client_data
    largest = float(data.spectral_norms().mean() * data.samples.mean())
    return replace(method, penalty_factor=penalty / largest)


def with_records(on: DetectionTask, changed: Scorer) -> DetectionTask:
    """The task with other records of all clients and tests, (records, features)."""
    assert on.problem.blocks is not None
    blocks = [changed(block.T).T for block in on.problem.blocks]
    problem = from_blocks(blocks, name=on.problem.name, feature_names=on.problem.feature_names)
    return replace(on, problem=problem, records=changed(on.records))


def by_moments_of(block: Array, records: Array) -> Array:
    """Records by mean and deviation of a block (features, records); by its mean where constant."""
    deviation = block.std(axis=1)
    return (records - block.mean(axis=1)) / np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class FixedStep(FedPE):
    """FedPE with steps of ``step_factor``, whatever the curvature."""

    def curvature(self, frames: Array, clients: Arrays) -> Array:
        return np.ones(len(frames))


class TableReadings(Experiment):
    """The methods of Table I that run here, at every setting, read at every threshold.

    Every method is run with the same settings and read at the same thresholds, so that none is
    granted what another is not.

    Measures: the areas, and every rate "rate, threshold". Rates of clients' own subspaces are
    averaged, each at its own threshold; besides, "..., summed" are those of the summed counts, and
    "..., one threshold" those at one threshold for the scores of all. "..., own quantile" are means
    over clients of which each has a quantile of its training scores as its threshold.
    """

    source, sizes = "iot", ("paper",)
    seed_by_seed = True

    def __init__(self, data: str) -> None:
        self.data = data
        self.key, self.title = f"iot-readings-{data}", f"Table I on {DATA[data]}, every reading"
        self.varied = "setting"

    def pieces(self, size: Size) -> Iterable[Piece]:
        for part, fields in SETTINGS.items():
            others = () if "scripts" in part else ("Self-learning PCA", "Norm only", *NETWORKS)
            for series in (*_SUBSPACES, *others):
                yield part, series, {"data": self.data, **fields}
        for part, one in PARTS.items():
            for series in one.only or (*_SUBSPACES, "Self-learning PCA", *NETWORKS):
                yield part, series, {"data": self.data, **one.changes}

    def described(self, size: Size) -> str:
        return "100 clients of whom 10% take part in a round"

    def needs(self, size: Size) -> tuple[str, ...]:
        return (self.data,)

    def live(self) -> AnomalySettings:
        return self._settings(next(iter(SETTINGS)), {}, 0)

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: reading the records")
        how = PARTS[cell.part].changes if cell.part in PARTS else {}
        settings = self._settings(cell.part, how, cell.seed)
        on = task(settings)
        if "clip" in how:
            on = with_records(on, lambda records: np.clip(records, -how["clip"], how["clip"]))
        if how.get("features") == "range":
            least, width = on.training.min(axis=0), np.ptp(on.training, axis=0)
            on = with_records(on, lambda records: (records - least) / width)
        if cell.series == "Self-learning PCA":
            rates = yield from self._alone(cell, on, settings, how.get("tested") == "own")
            return Number.each(cell.series, rates)
        scored = yield from self._learnt(cell, on, settings, how)
        if scored is None:  # its fixed steps are too long for these data
            return [Number(cell.series, "diverged", 1.0)]
        assert on.problem.blocks is not None
        levels = [quantile(scored(block.T)) for block in on.problem.blocks]
        rates = self._rates(on.attack, cell.series, scored(on.records), levels)
        return Number.each(cell.series, rates)

    def _learnt(
        self, cell: Cell, on: DetectionTask, settings: AnomalySettings, how: Mapping[str, Any]
    ) -> Part[Scorer | None]:
        """What scores records, learnt by the cell's method; None where it diverged."""
        series = cell.series
        if series in NETWORKS:
            kind, width = NETWORKS[series]
            hidden = how.get("hidden", (FEDAE, FEDAE_2))[width]
            shape = {name: how[name] for name in {"rate", "clip", "plain"} & how.keys()}
            taught = {name: how[name] for name in {"rounds", "local_epochs", "batch"} & how.keys()}
            network = kind(on.problem.features, hidden, **shape)
            trained = training(on.problem, network, seed=cell.seed, **taught)
            model = yield from told(trained, cell.name)
            learnt = bool(np.isfinite(model.weights).all())
            return (lambda records: reconstruction_error(model, records)) if learnt else None
        basis: Array | None = None
        if "scripts" in cell.part:
            try:
                basis = as_in_the_scripts(on, series, settings.rounds, cell.seed)
            except InvalidInput:
                return None
        elif series in _SUBSPACES:
            method = replace(settings, method=series.lower()).algorithm()
            if "penalty" in how:
                method = with_penalty(method, on.problem, how["penalty"])
            trace = yield from run(settings, method, on.problem, _WIRE, record="full")
            if how.get("scored") == "average":
                average = (trace.transcript.exchanges[-1].feedback or {})["frame"]
                return lambda records: ((records - reconstruct(records, average)) ** 2).sum(axis=1)
            basis = trace.estimate
        return lambda records: score(records, basis)

    def _alone(
        self, cell: Cell, on: DetectionTask, settings: AnomalySettings, own: bool
    ) -> Part[dict[str, float]]:
        """The rates of every client's own subspace; its ``own`` moments may be the test's, too."""
        values, frames = on.problem.client_data.top_eigenvectors(settings.components)
        common = task(replace(settings, standardising="global")).problem.blocks
        assert on.problem.blocks is not None and common is not None
        scored, found = [], []
        for client, frame in enumerate(frames):
            varying = frame[:, values[client] > VARYING * values[client, 0]]
            records = by_moments_of(common[client], on.records) if own else on.records
            level = quantile(score(on.problem.blocks[client].T, varying))
            scored.append(score(records, varying))
            found.append(self._rates(on.attack, cell.series, scored[-1], [level]))
            yield Step(client / len(frames), f"{cell.name}: client {client}")
        rates = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        pooled = np.tile(on.attack, len(scored)), cell.series, np.concatenate(scored)
        one = {f"{name}, one threshold": rate for name, rate in self._rates(*pooled).items()}
        many, few = int(on.attack.sum()), int((~on.attack).sum())
        summed = {}
        for name, rate in rates.items():
            word, _, rule = name.partition(", ")
            if rule:
                hits = rates[f"recall, {rule}"] * many / 100
                alarms = hits + rates[f"fpr, {rule}"] * few / 100
                theirs = {"precision": hits / alarms, "f1": 2 * hits / (alarms + many)}
                summed[f"{name}, summed"] = 100 * theirs[word] if word in theirs else rate
        return rates | summed | one

    def _rates(
        self, attack: BoolArray, series: str, scores: Array, own: Sequence[float] = ()
    ) -> dict[str, float]:
        """Rates by threshold, of which clients may have their ``own``."""
        areas = area_pair(attack, scores)
        found = {"auc": areas[0], "average_precision": areas[1]}
        printed = {
            one.method: one.value
            for one in paper("iot").entries
            if one.id.startswith(f"table-1/{self.data}/") and one.id.endswith("/recall")
        }
        recall = printed.get(series, printed["FedPG"])
        levels = {rule: [level] for rule, level in for_labels(attack, scores, recall).items()}
        for rule, every in {**levels, "own quantile": own}.items():
            judged = [evaluate(attack, scores, level, areas) for level in every]
            if judged:
                rates = mean_rates(judged)
                found |= {f"{name}, {rule}": 100 * rate for name, rate in rates.items()}
        return found

    def _settings(self, part: str, how: Mapping[str, Any], seed: int) -> AnomalySettings:
        learnt = {name: how[name] for name in how.keys() & (LEARNING | {"standardising"})}
        fields = SETTINGS.get(part, {**SETTINGS["rank 2"], **learnt})
        return AnomalySettings(problem=self.data, rule="oracle", seed=seed, **fields)


def as_in_the_scripts(on: DetectionTask, series: str, rounds: int, seed: int) -> Array:
    """The basis (features, components) that the settings of the authors' scripts end with."""
    data = on.problem.client_data
    largest = float(data.spectral_norms().mean())
    penalty = PENALTY / float(data.samples.mean())  # the printed loss is a sum, ours a mean
    shared: dict[str, Any] = {"penalty_factor": penalty / largest, "initial": "uniform"}
    components = int(_SCRIPTS["components"])
    method = (
        FixedStep(components, step_factor=SCRIPT_STEP, **shared)
        if series == "FedPE"
        else FedPG(components, step_factor=SCRIPT_STEP * (2 * largest + penalty), **shared)
    )
    how: dict[str, Any] = {"participation": 0.1, "seed": seed, "channel": _WIRE}
    return simulate(on.problem, method, rounds=rounds, **how).estimate


class Bytes(Experiment):
    """Numbers in one upload of a network over those of FedPG, and bytes held in training.

    Arithmetic, no run. Measures: ratio; held, float32 bytes of a client without its records; card,
    the share in per cent of a graphics card that all clients take with their records.
    """

    key, title, source = "iot-bytes", "Numbers in one upload, bytes in training", "iot"
    measure, varied = "ratio", "rank"
    sizes, exact = ("paper",), True

    def pieces(self, size: Size) -> Iterable[Piece]:
        alone = {name: x.changes for name, x in PARTS.items() if x.changes.keys() == {"hidden"}}
        for data, (features, records) in HELD.items():
            fixed = {"features": features, "clients": 100, "records": records, "card": CARD}
            for word, widths in {"": {}, **alone}.items():
                for rank in UPLOADED if word else (*UPLOADED, *TWICE):
                    for name in NETWORKS if word else (*NETWORKS, "FedPG", "FedPE"):
                        part = f"k = {rank}{data}" + f", {word}" * bool(word)
                        yield part, name, {"rank": rank, **fixed, **widths}

    def described(self, size: Size) -> str:
        return "features of UNSW-NB15 or TON-IoT, float32 on both sides"

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, cell.name)
        on, name = cell.configuration, cell.series
        features, rank = int(on["features"]), int(on["rank"])
        sent = features * rank
        held = COPIES * sent + features**2 + rank**2 * (name == "FedPE")
        if name in NETWORKS:
            kind, width = NETWORKS[name]
            sent = kind(features, on.get("hidden", (FEDAE, FEDAE_2))[width]).parameters
            held = COPIES * sent
        whole = 4 * (held + features * int(on["records"])) * int(on["clients"])
        found = {"held": 4.0 * held, "card": 100 * whole / float(on["card"])}
        if name in NETWORKS:
            found["ratio"] = sent / (features * rank)
        return Number.each(name, found)
