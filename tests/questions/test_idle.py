"""A parameter changes what is run, or the settings say why it does not; nothing between.

`Settings.idle` names what makes no difference beside the other values. For every page and method:
what is idle changes no run, and what is not changes one, in some of the settings where it is not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedpca_core.algorithms.registry import ATTACKABLE, COMPARED
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import noisy_task, task
from fedpca_core.questions.anomaly.trained import run as learning
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.questions.catalogue import studies_of
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.personalise.study import PersonalComparison
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.theory.settings import ITERATIONS, TheorySettings
from fedpca_core.questions.theory.study import AgainstClaims
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings, because
from fedpca_core.steps import outcome
from fedpca_core.study.build import build_problem, simulation
from fedpca_core.study.pca_settings import OF_METHODS, AttackSettings, ConvergeSettings
from fedpca_core.study.study import Study

#: Whatever tells two runs apart.
Seen = Callable[[Any], object]
#: Too many of these take long.
LARGEST = {"features": 60, "samples": 3000, "clients": 10, "rounds": 100, "starts": 3}
OF_FILES = (
    *("client_column", "columns", "scaling", "missing", "target", "label_column", "normal_value"),
)

#: What is run, not how.
NAMED = ("problem", "method", "methods")


# ---------------------------------------------------------------------- what two runs differ in
def digest(*things: object) -> str:
    state = hashlib.sha256()

    def add(thing: Any) -> None:
        if isinstance(thing, pd.DataFrame):
            for name in [name for name in thing if "second" not in name]:
                add((name, thing[name].tolist()))
        elif isinstance(thing, np.ndarray):
            state.update(f"{thing.shape}".encode() + np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, Mapping):
            for name, value in thing.items():
                add((name, value))
        elif isinstance(thing, tuple | list):
            for value in thing:
                add(value)
        else:
            state.update(repr(thing).encode())

    add(things)
    return state.hexdigest()


def of_trace(trace: Trace) -> str:
    exchanges = (*trace.transcript.before, *trace.transcript.exchanges)
    parts = [(e.participants, e.downlink, e.uploads, e.sums, e.feedback) for e in exchanges]
    counted = trace.bytes_up, trace.bytes_down, trace.local_products, trace.setting.guarantee
    return digest(trace.estimates, counted, trace.transcript.dtype, parts)


def runs(settings: Any) -> list[str]:
    """The runs of all methods of settings of a pooled problem, message by message."""
    try:
        problem = build_problem(settings)
    except InvalidInput as refusal:
        return [str(refusal)]
    found = []
    for method in settings.compared:
        for start in range(settings.starts):
            try:
                run = simulation(problem, method, settings, start=start)
                found.append(of_trace(run.finish()))
            except InvalidInput as refusal:
                found.append(str(refusal))
    return found


def of(*studies: Study[Any, Any]) -> Seen:
    """What the tables of some studies hold."""

    def seen(settings: Any) -> object:
        found = []
        for study in studies or studies_of(settings):
            try:
                result = outcome(study.run(settings))
                found.append(digest(study.tables(result, settings)))
            except InvalidInput as refusal:
                found.append(str(refusal))
        return found

    return seen


def private(settings: PrivacySettings) -> object:
    """Without the guarantee where there is none: its card states δ and the unit all the same."""
    off = math.isinf(settings.epsilon) and settings.view != "accountants"
    return of(*studies_of(settings)[off:])(settings)


def learned(settings: AnomalySettings) -> object:
    try:
        on = noisy_task(settings) if math.isfinite(settings.epsilon) else task(settings)
        run = learning(settings, settings.algorithm(), on.problem, Channel(), record="full")
        trace = outcome(run)
        assert trace is not None
        return of_trace(trace)
    except InvalidInput as refusal:
        return str(refusal)


# ---------------------------------------------------------------------- the law
def others(settings: Settings, name: str) -> Iterator[Any]:
    """Other values of a field, the nearest first."""
    described, now = settings.parameters()[name], getattr(settings, name)
    near: list[Any] = []
    if described.grid:
        at = described.grid.index(now)
        near = [described.grid[k] for k in (at - 1, at + 1) if 0 <= k < len(described.grid)]
    elif described.step is not None:
        near = [now + described.step, now - described.step]
    for value in dict.fromkeys([*near, *described.some()]):
        if not isinstance(value, str) and value > LARGEST.get(name, math.inf):
            continue
        try:
            if described.check(value) != now:
                yield described.check(value)
        except InvalidInput:
            continue


def check_law(bases: Sequence[Any], seen: Seen, without: Sequence[str] = ()) -> None:
    described = bases[0].parameters()
    names = [name for name, one in described.items() if not one.view]
    before = [seen(base) for base in bases]
    names = [name for name in names if name not in (*without, *OF_FILES, *NAMED)]
    for name in names:
        acted, free = False, False
        for base, here in zip(bases, before, strict=True):
            why = base.idle().get(name)
            free |= why is None
            if why is None and acted:
                continue  # once is enough
            for value in others(base, name):
                changed = seen(replace(base, **{name: value})) != here
                assert why is None or not changed, f"{name} = {value} acts although: {why}"
                acted |= changed
                if acted or why is not None:
                    break  # what is idle has its other values below
        assert acted or not free, f"{name} changes nothing, and the settings do not say why"
    for base, here in zip(bases, before, strict=True):
        idle = {name: list(others(base, name))[1:] for name in names if name in base.idle()}
        # All of a kind at once, which acts if one of them does; then whichever it is.
        for k in range(max(map(len, idle.values()), default=0)):
            values = {name: tried[k] for name, tried in idle.items() if k < len(tried)}
            if seen(replace(base, **values)) != here:
                for name, value in values.items():
                    one = replace(base, **{name: value})
                    assert seen(one) == here, f"{name} = {value} acts although: {base.idle()[name]}"


class Forgetful(TheorySettings):
    def idle(self) -> Mapping[str, str]:
        return because((True, "It is said to do nothing.", ("rounds", "dual_scale")))


@pytest.mark.parametrize("name", ["rounds", "dual_scale"])
def test_a_parameter_that_acts_far_from_its_value_alone_is_found_out(name: str) -> None:
    base = Forgetful()
    *_, far = others(base, name)
    rest = [one for one in base.parameters() if one not in ("rounds", "dual_scale")]
    with pytest.raises(AssertionError, match=f"{name} = {far} acts although: It is said"):
        check_law([base], lambda one: getattr(one, name) == far, rest)
    check_law([base], lambda one: 0, rest)


def test_a_parameter_that_does_nothing_is_found_out() -> None:
    base = {"clients": 3, "features": 3, "rounds": 20, "method": "fedavg"}
    with pytest.raises(AssertionError, match="penalty_factor changes nothing"):
        check_law([Forgetful(**base)], of(AgainstClaims()), ("kappa", "heterogeneity"))
    with pytest.raises(AssertionError, match=r"rounds = 50 acts although: It is said"):
        check_law([Forgetful(**base)], of(AgainstClaims()), ("penalty_factor", "probability"))


@pytest.mark.parametrize("name", OF_METHODS)
def test_a_parameter_of_methods_is_that_of_some(name: str) -> None:
    bases = [ConvergeSettings(inner_rule=rule) for rule in ("fixed", "change", "conditions")]
    has = [
        key
        for key in COMPARED
        if any(name not in replace(base, methods=(key,)).idle() for base in bases)
    ]
    assert has and len(has) < len(COMPARED)
    if name == "rho_factor":
        assert has == ["fedpe", "fedpg"]


# ---------------------------------------------------------------------- page by page
POOLED = {"features": 30, "clients": 5, "samples": 20, "components": 2, "seed": 2}
#: Parameters of the settings of a pooled problem that other pages offer.
ELSEWHERE = ("attacked", "client", "attack", "colluders")
OF_ATTACKS = ("private_start", "private_penalty", "random_inner_steps")


def few_rounds(method: str) -> dict[str, int]:
    """FAPS's penalty adapts after ten."""
    return {"rounds": 20 if method == "faps" else 10}


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # one method diverges
@pytest.mark.parametrize("method", COMPARED)
def test_converge(method: str) -> None:
    small = POOLED | few_rounds(method)
    base = ConvergeSettings(**small, decay=1.05, starts=1, methods=(method,), inner_rule="fixed")
    bases = [base, replace(base, inner_rule="auto"), replace(base, participation=0.2)]
    check_law([*bases, replace(base, epsilon=3.0)], runs, ELSEWHERE)


def test_converge_on_pictures() -> None:
    sizes = {"clients": 5, "records_per_client": 6.0, "resolution": 4, "components": 2}
    base = ConvergeSettings(problem="digits", **sizes, rounds=10, starts=1, methods=("ssi",))
    check_law([base, replace(base, epsilon=3.0)], runs, (*ELSEWHERE, "rounds"))


@pytest.mark.parametrize("method", ATTACKABLE)
def test_attack(method: str) -> None:
    small = POOLED | {"features": 12} | few_rounds(method)
    base = AttackSettings(**small, attacked=(method,), starts=1)
    told = replace(base, attack="collude", secure_aggregation=True)
    bases = [base, told, replace(base, participation=0.2), replace(base, epsilon=3.0)]
    not_here = ("decay", "local_steps", "rho_factor", "mean_share", "resolution")
    without = (*not_here, "attacked", "colluders", "records_per_client")

    def seen(settings: AttackSettings) -> object:
        return runs(settings), of(ClientReconstruction())(settings)

    check_law(bases, seen, without)
    check_law([told], seen, [name for name in base.parameters() if name != "colluders"])


@pytest.mark.parametrize("method", ["ssi", "faps", "one_shot", "centralized", "fedpe"])
def test_scene(method: str) -> None:
    sizes = {"clients": 4, "records_per_client": 6.0, "resolution": 4, "components": 2, "seed": 2}
    base = SceneSettings(**sizes, rounds=10, method=method, client=1)
    bases = [base, replace(base, participation=0.25), replace(base, epsilon=3.0)]
    not_here = ("sizes", "adaptive", "inner_rule", "inner_steps", "local_steps", "starts", "dtype")
    others_have = (*not_here, "upload_noise", "mean_share", "attacked", "attack", "colluders")

    def seen(settings: SceneSettings) -> object:
        return runs(settings), of(LivePicture())(settings)

    check_law(bases, seen, (*others_have, *OF_ATTACKS, "rounds"))


@pytest.mark.parametrize("method", ["faps", "one_shot"])
def test_which(method: str) -> None:
    sizes = {"features": 8, "clients": 4, "samples": 50, "components": 2, "rounds": 10, "seeds": 1}
    base = FrontierSettings(**sizes, candidates=(method,), searches=False, vary="none")
    noisy = replace(base, epsilon=3.0, secure_aggregation=True)
    bases = [base, noisy, replace(base, rounds=50, accuracy=1e-4), replace(base, vary="epsilon")]
    not_here = ("decay", "starts", "absent", "upload_noise", "mean_share", "candidates", "searches")
    data = ("records_per_client", "resolution")
    # Said by the run of Converge; here a run is over when it settles.
    said = ("rounds", "adaptive", "accuracy", "measure", "vary")
    check_law(bases, of(Frontier()), (*ELSEWHERE, *OF_ATTACKS, *not_here, *data, *said))


@pytest.mark.parametrize("method", ITERATIONS)
def test_theory(method: str) -> None:
    bases = [
        TheorySettings(clients=3, features=3, rounds=20, method=method, problem=problem)
        for problem in ("quadratics", "pair", "logistic")
    ]
    check_law(bases, of(AgainstClaims()))


def test_personalise() -> None:
    base = PersonaliseSettings(clients=3, features=8, components=2, samples=10, rounds=50)
    check_law(
        [base, replace(base, epsilon=10.0), replace(base, prior="calibrated")],
        of(PersonalComparison()),
    )


@pytest.mark.parametrize("method", ["fedpg", "fedpe"])
def test_anomaly(method: str) -> None:
    sizes = {"problem": "synthetic", "clients": 10, "components": 3, "rounds": 20}
    base = AnomalySettings(**sizes, participation=0.3, method=method)
    noisy = replace(base, epsilon=10.0, standardising="centre")
    check_law([base, noisy, replace(base, participation=1.0)], learned, ("client",))


PRIVATE = {
    "fedpower": {},
    "drawn": {"draws": 2},
    "ssi": {"method": "ssi"},
    "krylov at the source": {"method": "block_krylov", "calibration": "source"},
    "shared": {"method": "ssi", "trusted": "clients"},
    "local power": {"method": "local_power"},
    "masked": {"method": "faps", "epsilon": math.inf},
    "faps at the source": {"method": "faps", "calibration": "source"},
    "no noise": {"epsilon": math.inf},
    "raw": {"epsilon": math.inf, "treatment": "raw"},
    "person": {"unit": "person"},
    "networks": {"problem": "blocks"},
    "distinct": {"problem": "distinct"},
    "digits": {"problem": "digits"},
    "digits without noise": {"problem": "digits", "epsilon": math.inf},
    "accountants without a budget": {"view": "accountants", "epsilon": math.inf},
    "where the error is": {"view": "budget"},
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_privacy(kind: str) -> None:
    sizes = {"clients": 4, "features": 10, "components": 2, "samples": 500, "networks": 4}
    base = PrivacySettings(**sizes, products=4, repetitions=2)
    check_law([replace(base, **PRIVATE[kind])], private)
