"""A run's file is read by everything that needs no private data, and gives what its run gives."""

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.__main__ import main
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.attacks.attack import Effort
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status, Target
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.trace import figures
from fedpca_core.questions.trace import opened as run_of_a_file
from fedpca_core.questions.trace.opened import (
    EXAMPLE,
    UNASKED,
    OpenedRun,
    OpenedSettings,
    at_a_glance,
    example,
)
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Caption, Note
from fedpca_core.trial import Trial

STUDY = OpenedRun()


def blocks():
    generator = np.random.default_rng(3)
    return [generator.integers(-9, 10, (16, m)).astype(float) for m in (5, 7, 6)]


def problem():
    return fp.problems.problem.from_blocks(blocks())


def written(trace, folder):
    """The file that a deployment leaves: without clients' states."""
    save_trace(replace(trace, states=None), folder / "trace.npz")
    return OwnData.of(folder / "trace.npz")


def opened(trace, folder, **settings):
    return outcome(STUDY.run(OpenedSettings(**settings), written(trace, folder)))


def complete(found):
    """The first round after which the server holds the client's whole matrix."""
    whole = found.rounds.loc[found.rounds["whole"], "round"]
    return None if whole.empty else whole.iloc[0]


def test_the_matrix_and_the_records_of_a_client_are_in_the_file(tmp_path):
    trace = fp.simulate(problem(), fp.SSI(3), rounds=6)
    found = opened(trace, tmp_path, client=1, grid="1")
    private = blocks()[1]
    second_moment = private @ private.T / private.shape[1]
    np.testing.assert_allclose(found.matrices[-1], second_moment, rtol=1e-4, atol=1e-4)
    assert complete(found) == 3  # 7 records, 3 columns a round
    assert found.certified == 3
    # A record and its negative have the same second moment: the one with a positive sum is given.
    mine = {tuple(record * (1 if record.sum() >= 0 else -1)) for record in private.T}
    assert {tuple(record) for record in found.records.to_numpy()} == mine
    assert found.rounds["bytes_up"].iloc[-1] == trace.bytes_up[-1]
    assert found.rounds["sine_to_last"].iloc[-1] < 1e-12


def test_an_unknown_step_is_found_and_real_values_are_left_alone(tmp_path):
    trace = fp.simulate(problem(), fp.SSI(3), rounds=4)
    assert opened(trace, tmp_path, grid="guess").certified is not None
    assert opened(trace, tmp_path).records is None


def test_sums_hold_nothing_of_one_client(tmp_path):
    channel = fp.Channel(secure_aggregation=True)
    found = opened(fp.simulate(problem(), fp.SSI(3), rounds=5, channel=channel), tmp_path)
    assert found.findings[0].target is Target.SUM
    assert complete(found) is None
    assert found.rounds["directions_held"].iloc[-1] == 15


def test_a_plain_reading_of_masked_messages_holds_no_direction(tmp_path):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    found = opened(trace, tmp_path, client=1)
    private = blocks()[1]
    true = private @ private.T / private.shape[1]
    assert np.linalg.norm(found.matrices[-1] - true) > np.linalg.norm(true)  # worse than zero
    assert not found.rounds["directions_held"].any()
    assert found.findings[0].status is Status.NOT_TRIED
    said = [
        one.text for one in figures.opened(found, OpenedSettings(client=1)) if isinstance(one, Note)
    ]
    (note,) = said
    assert note.startswith("FAPS masks its messages") and "about" not in note, "that is the finding"


def test_what_is_taken_for_granted_of_the_records_stands_before_the_verdict(tmp_path):
    """“Cannot” of real numbers holds for these alone, and the reader's dial says which they are."""
    trace = fp.simulate(problem(), fp.SSI(2), rounds=3, seed=0)
    for grid, said in (("real", "“any real numbers”:"), ("1", "“whole numbers”:")):
        found = opened(trace, tmp_path, grid=grid)
        assert said in figures.verdict(found, OpenedSettings(grid=grid))


def test_a_file_says_how_many_clients_there_are_to_choose_from(tmp_path):
    file = written(fp.simulate(problem(), fp.SSI(3), rounds=2), tmp_path)
    assert at_a_glance(file.content) == (3, 0.0), "products are read without a search"
    with pytest.raises(InvalidInput):
        at_a_glance(b"no run")


def test_a_file_says_what_searching_behind_all_its_messages_takes(tmp_path):
    """What takes little is searched for as a file is opened; the rest is offered with its price."""
    cheap = written(fp.simulate(problem(), fp.FAPS(3), rounds=4), tmp_path)
    wide = np.random.default_rng(0).standard_normal((60, 400))
    clients = fp.problems.problem.from_blocks([wide, wide + 1.0])
    dear = written(fp.simulate(clients, fp.FAPS(3), rounds=4), tmp_path)
    assert 0 < at_a_glance(cheap.content)[1] <= UNASKED < at_a_glance(dear.content)[1]


def test_a_replay_that_explains_nothing_has_no_matrix(tmp_path):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    found = opened(trace, tmp_path, client=1, unmask=True, stated_trace=1.0, budget=100)
    assert complete(found) is None
    assert not found.rounds["directions_held"].any()
    assert found.findings[0].status is not Status.OPEN


def test_a_replay_that_explains_the_messages_has_the_matrix(tmp_path):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    private = blocks()[0]
    true = private @ private.T / private.shape[1]
    found = opened(trace, tmp_path, client=0, unmask=True, stated_trace=float(np.trace(true)))
    np.testing.assert_allclose(found.matrices[-1], true, rtol=1e-4, atol=1e-4)
    assert complete(found) == 12


def test_nobody_has_to_know_the_size_of_the_data_and_every_client_is_read(tmp_path):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    found = opened(trace, tmp_path, client=1, unmask=True)
    assert found.clients["client"].tolist() == [0, 1, 2]
    assert (found.clients["The client's covariance"] == "open").all()
    told = figures.verdict(found, OpenedSettings(client=1, unmask=True))
    assert "of 3 clients**: open for 3." in told
    assert "replay of the update" in found.facts["Attacks that were run"]
    assert any(isinstance(one, Caption) for one in figures.opened(found, OpenedSettings(client=1)))
    plain = opened(fp.simulate(problem(), fp.SSI(3), rounds=6), tmp_path, unmask=True)
    drawn = figures.opened(plain, OpenedSettings(unmask=True))
    assert not any(isinstance(one, Caption) for one in drawn), "nothing was replayed"
    waiting = opened(trace, tmp_path, client=1)
    assert (waiting.clients["The client's covariance"].str.startswith("not tried")).all()
    assert "**: not tried (about" in figures.verdict(waiting, OpenedSettings(client=1))
    assert waiting.facts["Attacks that fit and were not"] == "replay of the update"


def test_the_leak_check_is_offered_for_a_deployment_of_this_size(tmp_path):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    there = opened(trace, tmp_path).alike
    assert there is not None
    assert (there.method, there.clients, there.samples, there.features) == ("faps", 3, 6, 16)
    assert opened(fp.simulate(problem(), fp.LocalTraining(3), rounds=2), tmp_path).alike is None
    source = problem().private(1.0, 1e-5, 3.0, Streams(0))
    noisy = opened(fp.simulate(source, fp.SSI(3), rounds=4), tmp_path).alike
    assert noisy is not None
    assert (noisy.epsilon, noisy.delta) == (1.0, 1e-5)


def test_others_are_priced_by_what_was_tried_in_vain_as_well(monkeypatch):
    trace = fp.simulate(problem(), fp.FAPS(3), rounds=12)
    deployment = run_of_a_file._deployment(trace, OpenedSettings())
    found = Trial(deployment, 0, refused={"replay": "It has sent nothing."})
    price = ATTACKS["replay"].seconds(deployment, 0)
    for allowed, read in ((0.5 * price, [0]), (1.5 * price, [0, 1])):
        monkeypatch.setattr(run_of_a_file, "OTHERS", allowed)
        effort = Effort(unmask=False)
        every = run_of_a_file._everybody(trace.transcript, deployment, found, effort)
        assert outcome(every)["client"].tolist() == read


@pytest.mark.parametrize(
    "algorithm",
    [fp.FAPS(3), fp.FedPG(3), fp.PersonalizedPCA(3), fp.BlockKrylov(3), fp.LocalTraining(3)],
    ids=lambda one: one.title,
)
def test_every_kind_of_answer_is_opened(algorithm, tmp_path):
    found = opened(fp.simulate(problem(), algorithm, rounds=4), tmp_path, client=2)
    assert len(found.rounds) == 5
    assert found.facts["Method"] == algorithm.title
    assert found.components.shape == (16, 4)


def test_a_guarantee_is_stated_and_the_matrix_is_what_was_released(tmp_path):
    private = problem().private(1.0, 1e-5, 3.0, Streams(0))
    found = opened(fp.simulate(private, fp.SSI(3), rounds=6), tmp_path, grid="1")
    assert found.guarantee is not None
    assert found.meanings()
    assert found.records is None
    wrapped = fp.simulate(problem(), Noisy(fp.SSI(2), noise=0.1, products=3), rounds=3)
    assert "SSI" in opened(wrapped, tmp_path).facts["Method"]


def test_messages_that_were_not_kept_leave_the_rest(tmp_path):
    channel = fp.Channel(record="estimates")
    found = opened(fp.simulate(problem(), fp.SSI(3), rounds=3, channel=channel), tmp_path)
    assert complete(found) is None
    assert not found.matrices.any()


def test_no_file_another_file_and_another_client_are_sentences(tmp_path):
    with pytest.raises(InvalidInput, match="There is no run to open"):
        outcome(STUDY.run(OpenedSettings()))
    with pytest.raises(InvalidInput, match="not the file of a trace"):
        outcome(STUDY.run(OpenedSettings(), OwnData("a.npz", b"a,b\n1,2\n")))
    with pytest.raises(InvalidInput, match="no client 9 among 3"):
        opened(fp.simulate(problem(), fp.SSI(2), rounds=1), tmp_path, client=9)


def test_the_command_line_writes_the_tables_of_the_page(tmp_path):
    settings = OpenedSettings(client=1, grid="1")
    data = written(fp.simulate(problem(), fp.SSI(3), rounds=4), tmp_path)
    (tmp_path / "settings.json").write_text(settings.to_json())
    arguments = ["run", str(tmp_path / "settings.json"), "--table", str(tmp_path / "trace.npz")]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    for name, table in STUDY.tables(outcome(STUDY.run(settings, data)), settings).items():
        stored = (tmp_path / "out" / f"opened-{name}.csv").read_text(encoding="utf-8")
        assert stored == table.to_csv(index=False)


def test_the_example_gives_its_records_away():
    found = outcome(STUDY.run(EXAMPLE, example()))
    assert found.certified is not None and len(found.records) == 20
