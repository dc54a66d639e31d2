"""The protocol of docs/protocol.md between nodes: noise that is shared, in sums over everybody."""

import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

from flwr.app import Context, RecordDict
from flwr.common.config import parse_config_args

import fedpca_core as fp
from fedpca_core.algorithms.block_krylov import CentredBlockKrylov
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.perturbation import Trust
from fedpca_core.protocol.trace_file import load_trace
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.questions.which.use import Use
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_flower import client_app, secure
from fedpca_flower.job import FedJob
from fedpca_flower.server_app import app as server_app
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, SAMPLES, blocks, grid, over_a_grid, written
from tests.engines.test_secure_sums import silent

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "clip": 2.0}
SECURE = fp.Channel(secure_aggregation=True)
OPTIONS = {"rounds": 4, "seed": 3, "channel": SECURE}


def nodes(folder, **more):
    return [
        {
            "client": client,
            "data": str(folder / f"client-{client}.npy"),
            "memory": str(folder / f"memory-{client}"),
            "sharers": 4,
            **more,
        }
        for client in range(CLIENTS)
    ]


@pytest.mark.parametrize(
    ("algorithm", "colluding"),
    [(fp.BlockKrylov(3), 0), (CentredBlockKrylov(3), 1), (fp.BlockKrylov(3), 2)],
)
def test_from_seeds_it_is_the_run_in_one_process(algorithm, colluding, tmp_path):
    problem = written(tmp_path).private(*BUDGET.values(), Streams(3), trust=Trust(colluding))
    expected = fp.simulate(problem, algorithm, **OPTIONS)
    options = {"budget": BUDGET, "colluding": colluding, **OPTIONS}
    trace = over_a_grid(tmp_path, algorithm, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    found, stated = (replace(one.setting.guarantee, public=()) for one in (trace, expected))
    assert found.sentence() == stated.sentence()
    assert trace.setting.guarantee.epsilon == pytest.approx(1.0)


def test_nodes_draw_their_own_shares_and_the_sum_has_the_noise_of_the_budget(tmp_path):
    """n shares of 1/h of the variance: n/h of what one client adds alone, entry by entry."""
    problem = written(tmp_path)
    trace = run(LocalGrid(nodes(tmp_path), {}), FedJob(
        fp.BlockKrylov(3), CLIENTS, budget=BUDGET, colluding=1, timeout=1.0, **OPTIONS
    ))  # fmt: skip
    kept = [next((tmp_path / f"memory-{c}").glob("release-*.npy")) for c in range(CLIENTS)]
    data = ClientData.from_grams(np.stack([np.load(one) for one in kept]), np.array(SAMPLES))
    released = Problem("released", replace(data, indefinite=True))
    expected = fp.simulate(released, fp.BlockKrylov(3), **OPTIONS)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    exact = problem.private(*BUDGET.values(), Streams(0), trust=Trust(1)).source
    weights = np.array(SAMPLES) / sum(SAMPLES)
    noise = np.einsum("c,cij->ij", weights, data.dense() - exact.clipped.dense())
    upper = noise[np.triu_indices(len(noise), 1)]
    spread = np.sqrt(np.sum((weights * exact.noise) ** 2) / 2)
    assert upper.std() == pytest.approx(spread, rel=0.3)
    assert "from its system" in trace.setting.guarantee.drawn
    assert "rounds its own part" in trace.setting.guarantee.sentence()


def test_another_run_is_another_release(tmp_path):
    """In sums with other clients an old share would be covered by less."""
    written(tmp_path)
    job = FedJob(fp.BlockKrylov(3), CLIENTS, budget=BUDGET, colluding=1, timeout=1.0, **OPTIONS)
    for _ in range(2):
        run(LocalGrid(nodes(tmp_path), {}), job)
    assert len(list((tmp_path / "memory-0").glob("release-*.npy"))) == 2


@pytest.mark.parametrize("action", ["deal", "step"])
def test_without_everybody_nothing_is_opened(action, tmp_path):
    """A round that somebody misses is asked for again, whole, or the run ends with a sentence."""
    written(tmp_path)
    options = {"budget": BUDGET, "colluding": 1, "timeout": 0.01, **OPTIONS}
    gone = silent({3}, action, "before", rounds=(2,))
    with pytest.raises(InvalidInput, match="Round 2 got too few answers"):
        over_a_grid(tmp_path, fp.BlockKrylov(3), gone, patience=0.0, **options)
    silent_once = silent({3}, "unmask", "after", rounds=(2, 3))
    trace = over_a_grid(tmp_path, fp.BlockKrylov(3), silent_once, patience=1.0, **options)
    assert trace.rounds == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": None}, "needs an ε"),
        ({"channel": fp.Channel()}, "secure aggregation"),
        ({"algorithm": fp.FAPS(3)}, "waits for everybody"),
        ({"weights": "equal"}, "counted by their records"),
        ({"colluding": CLIENTS}, "nobody is left"),
    ],
)
def test_a_job_whose_sums_noise_does_not_cover_is_refused(changes, words):
    terms = {"algorithm": fp.BlockKrylov(3), "budget": BUDGET, "colluding": 1, **OPTIONS}
    terms |= changes
    with pytest.raises(InvalidInput, match=words):
        FedJob(terms.pop("algorithm"), CLIENTS, **terms)


def test_a_node_shares_its_noise_with_no_more_than_its_operator_says(tmp_path):
    written(tmp_path)
    job = FedJob(fp.BlockKrylov(3), CLIENTS, budget=BUDGET, colluding=0, timeout=0.1, **OPTIONS)
    with pytest.raises(InvalidInput, match=r"5 clients' noise together .* relies on 4"):
        run(LocalGrid(nodes(tmp_path), {}), job)
    with pytest.raises(InvalidInput, match="relies on 1"):
        run(LocalGrid(nodes(tmp_path, sharers=1), {}), job)


class Cunning(FedJob):
    """A server's job that says one thing of itself and does another."""

    def _check_shared(self):
        pass


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        (fp.BlockKrylov(3), {"channel": fp.Channel()}),
        (fp.BlockKrylov(3), {"weights": "equal"}),
        (fp.FAPS(3), {}),
        (fp.FedPE(3), {"channel": fp.Channel()}),
    ],
)
def test_a_node_lets_nothing_out_but_its_part_of_the_sum(algorithm, changes, tmp_path):
    """Whatever the server asks: single uploads, other weights, norms, other answers."""
    written(tmp_path)
    terms = {"budget": BUDGET, "colluding": 1, "timeout": 0.05, "patience": 0.1, **OPTIONS}
    job = Cunning(algorithm, CLIENTS, **{**terms, **changes})
    federation = LocalGrid(nodes(tmp_path), {})
    sent = []
    push = federation.push_messages

    def watched(messages):
        found = list(push(messages))
        sent.extend(federation._replies[one].content for one in found if one in federation._replies)
        return found

    federation.push_messages = watched
    with pytest.raises(InvalidInput, match="refuses"):
        run(federation, job)
    assert all("up" not in content.array_records for content in sent)


def test_answers_to_different_questions_do_not_add_up():
    """Asked for nothing, the others would leave one client's answer alone in the sum."""
    told = {"round": 1, "local_steps": 1, "extra": {}}
    frame = np.eye(4)[:, :2]
    same = secure.question("1/0", [0.5, 0.5], told, {"frame": frame})
    assert same == secure.question("1/0", [0.5, 0.5], dict(told), {"frame": frame.copy()})
    others = [
        secure.question("1/0", [0.5, 0.5], told, {"frame": 0 * frame}),
        secure.question("1/0", [0.9, 0.1], told, {"frame": frame}),
        secure.question("1/1", [0.5, 0.5], told, {"frame": frame}),
        secure.question("1/0", [0.5, 0.5], {**told, "extra": {"a": 1}}, {"frame": frame}),
    ]
    assert same not in others
    keys = {client: secure.key(secure.new_seed()) for client in range(2)}
    public = {client: key for client, (_, key) in keys.items()}

    def both(first, second):
        pairs = [
            secure.pair_seeds(keys[c][0], public, c, asked)
            for c, asked in enumerate((first, second))
        ]
        return secure.pair_masks(0, pairs[0], 3) + secure.pair_masks(1, pairs[1], 3)

    assert not both(same, same).any()
    assert all(both(same, other).all() for other in others)


def test_the_company_of_shared_noise_stays_the_same(tmp_path, monkeypatch):
    """A share that was summed with some clients is in no sum with others."""
    written(tmp_path)
    job = FedJob(fp.BlockKrylov(3), CLIENTS, budget=BUDGET, colluding=1, timeout=0.05, **OPTIONS)
    federation = LocalGrid(nodes(tmp_path), {})
    deal, others = client_app.deal, secure.key(secure.new_seed())[1]

    def forged(me, told, groups):
        if told["occasion"].startswith("2/") and me.client != 4:
            told["keys"] = {**told["keys"], "4": others}
        return deal(me, told, groups)

    monkeypatch.setitem(client_app.ANSWERS, "deal", forged)
    with pytest.raises(InvalidInput, match="clients of its first sum"):
        run(federation, replace(job, patience=0.1))


def test_one_command_runs_it_and_prints_its_epsilon(tmp_path, capsys):
    """The settings of the dashboard, how many may collude, and a constant to centre by."""
    written(tmp_path)
    chosen = ConvergeSettings(
        methods=("block_krylov",), clients=CLIENTS, components=3,
        secure_aggregation=True, epsilon=1.0, delta=1e-5, clip_norm=2.0,
    )  # fmt: skip
    out = tmp_path / "trace.npz"
    config = {"settings": chosen.to_json(), "out": str(out), "rounds": 4, "colluding": 1}
    config["method"] = "block_krylov_centred"
    server_app(grid(tmp_path), Context(1, 1, {}, RecordDict(), config))
    said = capsys.readouterr().out
    assert "All rounds are done" in said and "ε = 1" in said
    assert "at least 4 of 5 clients are honest" in said


def handed_over(method: str, folder, mean: float) -> Use:
    """What “Which one?” gives away for shared noise on a table, whose files lie in a folder."""
    names = [f"x {number}" for number in range(1, 13)]
    made = [pd.DataFrame(block.T + mean, columns=names) for block in blocks()]
    (folder / "clients").mkdir()
    for client, table in enumerate(made):
        table.assign(one=1.0).to_csv(folder / "clients" / f"{client}.csv", index=False)
    whole = pd.concat([table.assign(site=client) for client, table in enumerate(made)])
    data = OwnData("all.csv", whole.to_csv(index=False).encode())
    asked = FrontierSettings(
        problem="table", client_column="site", scaling="centre" if mean else "none",
        components=3, needed_epsilon=20.0, delta=1e-5, clip_norm=8.0, server="sums",
    )  # fmt: skip
    row = pd.Series({"method": method, "noise": True, "sums": True, "rounds": 4.0})
    use = Use.of(row, asked, data)
    (folder / "settings.json").write_text(use.files()["settings.json"])
    return use


@pytest.mark.parametrize(
    ("method", "mean"),
    [("block_krylov", 0.0), ("block_krylov", 2.0), ("centralized", 0.0), ("faps", 0.0)],
)
@pytest.mark.parametrize("simulated", [True, False], ids=["simulation", "nodes"])
def test_what_which_one_prints_runs_as_printed(method, mean, simulated, tmp_path, monkeypatch):
    """The noise is shared where everybody is in every sum, and the page says where it is not."""
    use = handed_over(method, tmp_path, mean)
    monkeypatch.chdir(tmp_path)
    lines = use.commands().replace("\\\n", "").splitlines()
    local, lab = (shlex.split(line) for line in lines if line.startswith("flwr run"))
    (node,) = (shlex.split(line) for line in lines if line.startswith("flower-supernode"))
    assert (local[3], lab[3]) == ("local", "lab")
    config = parse_config_args([(local if simulated else lab)[-1]])
    nodes = [{"partition-id": c, "num-partitions": CLIENTS} for c in range(CLIENTS)]
    if not simulated:
        own = parse_config_args([node[-1]])
        assert own["memory"] and own["data"]
        nodes = [
            {**own, "client": c, "data": f"clients/{c}.csv", "memory": f"memory-{c}"}
            for c in range(CLIENTS)
        ]
    server_app(LocalGrid(nodes, config), Context(1, 1, {}, RecordDict(), config))
    trace = load_trace(tmp_path / "trace.npz")
    stated = trace.setting.guarantee
    assert trace.rounds == (1 if method == "centralized" else 4)
    assert trace.setting.clients == CLIENTS and stated.epsilon == pytest.approx(20.0)
    shared = method != "faps"
    assert ("at least 4 of 5 clients are honest" in stated.sentence()) == shared
    assert ("in full" in use.refused()) == (not shared)
    assert ("column" in use.refused()) == bool(mean) == (len(trace.estimate) == 13)
