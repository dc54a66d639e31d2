"""What an attacker gets under noise: one client's matrix, and whether a record is in the data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.algorithms import FedPower
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.findings import Figure, Finding, Status, Target
from fedpca_core.gaussian_privacy import epsilon_of, gaussian_roc, mu_of
from fedpca_core.privacy import Audit, gaussian_audit, plain_audit, ranking_audit
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.perturbation import source_guarantee, symmetric_noise
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build, study
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import BUDGETS, QUIET, WITH_INFINITE, PrivateSweep
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.streams import Streams
from fedpca_core.study import Cost, Measured, OwnData, Point, Study, Swept, stacked


def attacked(settings: PrivacySettings) -> int:
    """The client under attack: the reference, which always uploads, or the next if it is public."""
    return int(build.plain(settings).protected(2)[0])


#: Guesses that need no message of the client.
PUBLIC, EVEN = "public answer S", "even guess I/d"
#: A guess counts as beaten from this share of its error on.
BEATEN = 0.95
#: Sizes of S_i - S, relative to S_i, that a server may have in mind when it sets the ridge.
_PRIOR_SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6)


def best_error(problem: Problem, run: Algorithm, transcript: Transcript, client: int = 0) -> float:
    """Relative Frobenius error of the best reconstruction of S_i the server can make.

    Ridge around the public answer S, its strength tuned with the truth in hand (no guess at all
    among the strengths), so that no server using ridge does better. Without noise every strength
    is 0: what remains of S are the directions that no message speaks of.

    Raises InvalidInput: the client's records are public.
    """
    run.check_protected(client)
    if run.plans_products:
        # An upload after the last communication carries frames, not answers to a probe.
        transcript = transcript.until(len(cast(FedPower, run).times))
    truth, public = problem.client_data.dense()[client], problem.covariance
    size = float(np.linalg.norm(truth))
    errors = [float(np.linalg.norm(public - truth))]
    noise = float(run.noise_of(problem.client_data.samples)[client])
    for share in _PRIOR_SHARES if noise else (1.0,):
        # lambda = nu^2/tau^2 for entries of S_i - S of size tau.
        tau = share * size / problem.features
        found = attacks.ridge(transcript, client, prior=public, strength=float((noise / tau) ** 2))
        errors.append(float(np.linalg.norm(found - truth)))
    return min(errors) / size


def public_guesses(problem: Problem, client: int = 0) -> dict[str, float]:
    """Errors of guesses that need no message of the client: S itself, and the even matrix."""
    truth = problem.client_data.dense()[client]
    even = np.eye(problem.features) * np.trace(truth) / problem.features
    size = float(np.linalg.norm(truth))
    guesses: dict[str, Array] = {PUBLIC: problem.covariance, EVEN: even}
    return {name: float(np.linalg.norm(guess - truth)) / size for name, guess in guesses.items()}


class Reconstruction(PrivateSweep):
    """Error of the same attacker at every budget, beside guesses that need no message."""

    key = "private_reconstruction"
    title = "Reconstructing one client's matrix"
    along = ("epsilon", WITH_INFINITE)
    opened_by = ("view", "attacks")

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return build.run_seeds(settings.seed, study.RUNS)

    def reading(self, settings: PrivacySettings) -> float:
        return len(_PRIOR_SHARES) * costs.solved(costs.ProblemSize(settings.features, 1, 1))

    def pieces(self, settings: PrivacySettings) -> Sequence[Point]:
        build.require_single_uploads(settings)
        return super().pieces(settings)

    def measure(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        c = settings
        problem, client = build.build_problem(c, data), attacked(c)
        found = {name: {"error": error} for name, error in public_guesses(problem, client).items()}
        chosen = build.kinds(c) or ((QUIET,) if build.accountable(c) else ())
        for kind, share in in_turn(chosen):
            if kind == "source":
                private = build.private(c, build.records(c, data), seed)
                found[kind] = {"error": shrunk_error(private, client)}
                continue
            run = build.method(c, build.noise_for(c, kind, data=data))
            steps = build.traced(problem, run, build.rounds(c), seed, Channel(), kind)
            trace = yield from part(steps, *share)
            found[kind] = {"error": best_error(problem, run, trace.transcript, client)}
        return found


def shrunk_error(private: Problem, client: int) -> float:
    """Relative error of S_i for a server that has all of M_i = S_i + E_i, the most that any method
    lets out: it moves from the public answer S towards M_i by the share that is best in hindsight.
    """
    assert private.source is not None
    truth = private.source.clipped.dense()[client]
    public, seen = private.covariance, private.client_data.dense()[client]
    towards = seen - public
    share = max(0.0, float(((truth - public) * towards).sum() / (towards**2).sum()))
    found = public + min(share, 1.0) * towards
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def finding(swept: Swept, kind: str) -> Finding:
    """What this one attacker gets of the client's matrix, at the budgets that were tried.

    It counts as had in part where it is nearer than the public guess, and as not opened elsewhere:
    another attacker may do better.
    """
    guess, start, at_the_edge = study.last_value(swept, PUBLIC), None, False
    assert guess is not None
    if kind == "none":
        error = study.last_value(swept, kind)
        assert error is not None
        had, closed = error < BEATEN * guess, "a guess without any message is as near"
        basis = "compared with the truth"
    else:
        band = swept.band(kind, "error")
        start, at_the_edge = beats_guess_from(swept, kind)
        error, largest, had = float(band.middle.min()), float(band.x[-1]), start is not None
        closed = f"at every ε up to {largest:g} a guess without any message is as near"
        basis = f"nearer than a guess without any message from ε = {start or 0:g} on"
        basis += ", the smallest ε that was tried" * at_the_edge
    figure = Figure(error, "relative error", draws=study.RUNS)
    if had:
        return Finding(Target.COVARIANCE, Status.PARTLY, "ridge", figure, basis, tried=1)
    basis = f"{closed}, which proves nothing"
    return Finding(Target.COVARIANCE, Status.NOT_OPENED, figure=figure, basis=basis, tried=1)


def beats_guess_from(swept: Swept, calibration: str) -> tuple[float | None, bool]:
    """The smallest budget from which on the server beats the public guess, if any.

    The second says whether that is the smallest budget tried, so that the border may lie below.
    """
    found, guess = swept.band(calibration, "error"), study.last_value(swept, PUBLIC)
    assert guess is not None
    first = int(np.flatnonzero(found.middle >= BEATEN * guess).max(initial=-1)) + 1
    return (float(found.x[first]), first == 0) if first < len(found.x) else (None, False)


#: Runs with the record, and as many without it, for one ROC curve.
TESTS = 120
#: The same for noise at the source, where a run is one draw.
TESTS_AT_SOURCE = 1000
_TESTING = "Testing for one record"
#: Numbers of the matrices that are drawn at once.
_RELEASED = 4_000_000


@dataclass(frozen=True, eq=False)
class Membership:
    """Scores of the best membership test over many runs."""

    #: first, second: (runs,) float64: Log-likelihood ratios when the record is there and when it
    #: was replaced.
    first: Array
    second: Array
    #: Mean distance mu of the two hypotheses in these runs.
    separation: float

    @property
    def auc(self) -> float:
        return attacks.empirical_auc(self.first, self.second)

    @property
    def uncertainty(self) -> float:
        """Standard error of the measured area, about."""
        return 1.0 / math.sqrt(6 * len(self.first))

    @property
    def expected_auc(self) -> float:
        """``Phi(mu/sqrt(2))`` at the runs' own mu."""
        return attacks.theoretical_auc(self.separation)

    def audits(self, delta: float) -> list[Audit]:
        """Lower bounds on epsilon that these runs prove: plain, Gaussian, and by ranking."""
        ways = plain_audit, gaussian_audit, ranking_audit
        return [audit(self.first, self.second, delta) for audit in ways]

    def roc(self) -> tuple[Array, Array]:
        """False and true positive rates of every threshold, from (0, 0) to (1, 1)."""
        thresholds = np.sort(np.concatenate([self.first, self.second, [np.inf]]))[::-1, None]
        false, true = ((some >= thresholds).mean(axis=1) for some in (self.second, self.first))
        return false, true


def worst_pair(problem: Problem, client: int = 0, clip_norm: float = 1.0) -> tuple[Array, Array]:
    """Two neighbouring S_i that are easiest to tell apart, (features, features) each.

    One record of the client lies along the first leading direction, or along the second: orthogonal
    records inside the space that the run converges to attain the sensitivity.
    """
    samples = int(problem.client_data.samples[client])
    require(samples >= 2, build.REFUSED["alone"])
    target = problem.target(2)
    rest = problem.client_data.dense()[client] * (samples - 1) / samples
    first, second = (clip_norm**2 * np.outer(u, u) / samples for u in target.T)
    return rest + first, rest + second


def membership(
    problem: Problem,
    run: Algorithm,
    *,
    runs: int,
    client: int = 0,
    clip_norm: float = 1.0,
    seed: int = 0,
) -> Part[Membership]:
    """Test for one record in ``runs`` runs with it and as many with its neighbour.

    Raises InvalidInput: hidden local products (their answers are not seen), no noise, or a client
    whose records are public.
    """
    run.check_protected(client)
    require(run.period == 1, build.REFUSED["hidden"].format(period=run.period))
    require(run.noise != 0, build.REFUSED["decided"])
    pair = worst_pair(problem, client, clip_norm)
    noise = float(run.noise_of(problem.client_data.samples)[client])
    data, neighbours = problem.client_data, []
    for matrix in pair:
        grams = data.dense().copy()
        grams[client] = matrix
        held = ClientData.from_grams(grams, data.samples, data.weights)
        neighbours.append(replace(problem, client_data=held))
    scores, apart = np.empty((2, runs)), np.empty(runs)
    assert run.rounds is not None
    for index, share in in_turn(range(runs)):
        for truth, neighbour in enumerate(neighbours):
            at = seed + 2 * index + truth
            steps = build.traced(neighbour, run, run.rounds, at, Channel(), _TESTING)
            seen = (yield from part(steps, *share)).transcript
            found = attacks.membership_score(seen, *pair, noise, client)
            scores[truth, index], apart[index] = found
    return Membership(scores[0], scores[1], float(np.sqrt(np.mean(apart**2))))


def source_membership(
    problem: Problem, noise: float, *, runs: int, client: int, clip_norm: float, seed: int
) -> Part[Membership]:
    """Test for one record from M_i itself, of which any method's messages are made.

    ``noise``: nu_i of the attacked client, on the diagonal of E_i.
    ``runs``: Releases with the record, and as many with its neighbour.
    """
    pair = worst_pair(problem, client, clip_norm)
    step = max(1, _RELEASED // problem.features**2)
    scores = np.empty((2, runs))
    for truth, begin in product((0, 1), range(0, runs, step)):
        yield Step(0.5 * (truth + begin / runs), _TESTING)
        spread = np.full(min(step, runs - begin), noise)
        drawn = symmetric_noise(spread, problem.features, Streams(seed), 2 * begin + truth)
        found = attacks.matrix_scores(pair[truth] + drawn, *pair, spread)
        scores[truth, begin : begin + step] = found
    return Membership(scores[0], scores[1], float(np.linalg.norm(pair[0] - pair[1])) / noise)


@dataclass(frozen=True, eq=False)
class Tested:
    """Membership tests at the budget that is set, and what is expected at others."""

    #: By kind of noise; empty without noise.
    tests: Mapping[str, Membership]
    #: The epsilon of one record that is stated for these runs.
    promised: Mapping[str, float]
    #: Areas under the curve by epsilon: expected_KIND (``Phi(mu/sqrt(2))`` at the runs' mu), and
    #: the largest that Gaussian noise with this guarantee (gaussian_ceiling) and (epsilon,
    #: delta)-DP alone, whatever the mechanism (permitted), let through.
    areas: pd.DataFrame
    #: Detections at false ``alarms`` under both ceilings, ``gaussian`` and ``permitted``, at the
    #: budget that is set.
    ceilings: pd.DataFrame


class RecordMembership(Study[PrivacySettings, Tested]):
    """The likelihood-ratio test for the pair of records that is easiest to tell apart."""

    key = "record_membership"
    title = "Is one record in the data?"
    opened_by = ("view", "attacks")
    seconds = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, costs.CALIBRATED * (2 * TESTS + len(BUDGETS)))

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Tested]:
        # Membership has an exact likelihood without hidden products, draws and sums.
        c = replace(settings, local_steps=1, draws=0)
        build.require_bound(c)
        build.require_single_uploads(c)
        yield Step(0.0, "Drawing the data")
        problem, public = build.build_problem(c, data), build.public_setting(c, data)
        client, norm = attacked(c), build.treatment(c)[1]
        held = int(public.samples[client])
        # The question is about one record, whatever the unit of the budget.
        share = 1.0 / build.unit(c).changed(held)
        means = [float(mu_of(epsilon, c.delta)) * share for epsilon in BUDGETS]
        told: dict[str, Any] = {"client": client, "clip_norm": norm, "seed": c.seed}

        def runs(kind: str, epsilon: float, count: int) -> Part[Membership]:
            if kind == "source":
                at = replace(c, epsilon=epsilon)
                noise, _ = source_guarantee(public.samples, public.weights, build.budget(at))
                count = TESTS_AT_SOURCE if count > 1 else 1
                return source_membership(problem, float(noise[client]), runs=count, **told)
            run = build.method(c, build.noise_for(c, kind, epsilon, data))
            return membership(problem, run, runs=count, **told)

        def promise(kind: str) -> float:
            found = build.stated(replace(c, calibration=kind), data).stated()
            # Noise at the source fits each client's own unit, noise on products the largest one.
            count = held if kind == "source" else int(build.protected(c, public).max())
            return found.of_one_record(build.unit(c), count).epsilon

        tests: dict[str, Membership] = {}
        kinds = build.kinds(c)
        promised = {kind: promise(kind) for kind in kinds}
        areas = pd.DataFrame({"epsilon": BUDGETS})
        areas[[f"expected_{kind}" for kind in kinds]] = np.nan
        areas["gaussian_ceiling"] = [attacks.theoretical_auc(mu) for mu in means]
        alone = [float(epsilon_of(mu, c.delta)) for mu in means]
        areas["permitted"] = [attacks.permitted_auc(epsilon, c.delta) for epsilon in alone]
        ceilings = pd.DataFrame()
        if kinds:
            mu = float(mu_of(c.epsilon, c.delta)) * share
            epsilon = float(epsilon_of(mu, c.delta))
            # Of what (ε, δ) permits.
            corners = [(1.0 - c.delta) / (1.0 + math.exp(epsilon)), 1.0 - c.delta]
            alarms = np.union1d(np.linspace(1e-6, 1 - 1e-6, 101), corners)
            ceilings = pd.DataFrame({"alarms": alarms, "gaussian": gaussian_roc(mu, alarms)})
            ceilings["permitted"] = attacks.permitted_roc(epsilon, c.delta, alarms)
        for kind, (begin, end) in in_turn(kinds):
            most = 0.8 * end + 0.2 * begin
            tests[kind] = yield from part(runs(kind, c.epsilon, TESTS), begin, most)
            for index, epsilon in enumerate(BUDGETS):
                yield Step(most, f"Expected at ε = {epsilon:g}")
                single = yield from part(runs(kind, epsilon, 1), most, end)
                areas.loc[index, f"expected_{kind}"] = single.expected_auc
            yield Step(end, "", Tested(dict(tests), promised, areas.copy(), ceilings))
        return Tested(tests, promised, areas, ceilings)

    def tables(self, result: Tested, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        tables = {"areas": result.areas}
        if result.tests:
            tables["measured"] = pd.DataFrame(
                {
                    "noise": kind,
                    "epsilon": settings.epsilon,
                    "area": test.auc,
                    "expected_area": test.expected_auc,
                    "separation": test.separation,
                    "runs": len(test.first),
                }
                for kind, test in result.tests.items()
            )
            tables["audits"] = pd.DataFrame(
                {"noise": kind, "promised": result.promised[kind], **vars(audit)}
                for kind, test in result.tests.items()
                for audit in test.audits(settings.delta)
            )
            tables["roc"] = stacked(
                {"noise": kind, "false_alarms": false, "detections": true}
                for kind, test in result.tests.items()
                for false, true in [test.roc()]
            )
        return tables
