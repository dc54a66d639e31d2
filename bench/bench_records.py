"""From second moments to records: what the attack recovers, and how fast.

Targets on two cores: faces of 32 pixels, 40 clients of 10, all 400 photographs from the first
message of SSI at no more than 2 s a client; 31 and 40 faces a client; 30 digits; the heart table up
to 12 records; 1 to 24 records that join; every certified client exact. ``python -m bench records``
runs all of it in a few minutes; attempts that must fail are in ``python -m bench certificates``.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

import fedpca_core as fp
from bench.bench_certificates import alike
from fedpca_core import attacks
from fedpca_core.attacks.scores import recovered_records
from fedpca_core.problems import from_table
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.data_sets import files_of
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.table import heart_table
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.attack.sent_models import SIZES, from_models
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams

Array = np.ndarray

#: Records a client, clients, rounds and precision of runs on all photographs.
FACES = (
    (10, 40, 1, "float64"),
    (31, 13, 4, "float64"),
    (40, 10, 5, "float64"),
    (10, 40, 2, "float32"),
)
#: Random clients of each kind of data.
RANDOM_CLIENTS = 100


def sources() -> Iterator[tuple[str, Problem, int]]:
    """Every kind of data, with the records of a client for the hundred random clients."""
    yield "digits 8 px", fp.problems.images("digits"), 30
    yield "digits 8 px, uncentred", fp.problems.images("digits", centre=False), 30
    yield "faces 32 px", fp.problems.images("olivetti", resolution=32), 20
    yield "MNIST 14 px", fp.problems.images("mnist", resolution=14), 20
    yield "MNIST 28 px", fp.problems.images("mnist"), 20
    yield "Fashion 14 px", fp.problems.images("fashion_mnist", resolution=14), 20
    yield "Fashion 28 px", fp.problems.images("fashion_mnist"), 20
    yield "CIFAR grey 32 px", fp.problems.images("cifar10"), 20
    yield "CIFAR colour 16 px", colour(), 20
    table = heart_table()
    for scaling in ("centre", "standardise", "none"):
        for size in (10, 11, 12):
            yield f"heart, {scaling}", from_table(table, clients=4, scaling=scaling), size


def colour(side: int = 16) -> Problem:
    """CIFAR-10 in colour, every pixel the mean of four, centred."""
    with np.load(files_of("cifar10")[0]) as file:
        images = file["X_train"].reshape(-1, side, 32 // side, side, 32 // side, 3)
    pixels = images.astype(float).mean(axis=(2, 4)).reshape(len(images), -1) / 255.0
    mean = pixels.mean(axis=0)
    step = np.full(len(mean), 1.0 / (255.0 * (32 // side) ** 2))
    facts = PublicFacts(step, mean, len(pixels))
    return from_blocks(np.array_split((pixels - mean).T, 4, axis=1), announced=facts)


def known(problem: Problem) -> tuple[tuple[Array, ...], PublicFacts]:
    """Everybody's records, client by client, and what is public about them."""
    assert problem.blocks is not None and problem.announced is not None
    return tuple(problem.blocks), problem.announced


def drawn(problem: Problem, sizes: Iterable[int], seed: int) -> Iterator[Array]:
    """Clients of these sizes, of records drawn from everybody's."""
    pool, generator = np.hstack(known(problem)[0]), np.random.default_rng(seed)
    for size in sizes:
        yield pool[:, generator.choice(pool.shape[1], size, replace=False)]


def raw(block: Array, facts: PublicFacts) -> Array:
    """The records before anything was subtracted."""
    return block if facts.mean is None else block + facts.mean[:, None]


def attack(factor: attacks.Factor, facts: PublicFacts, truth: Array) -> tuple[attacks.Records, int]:
    """What comes of it with the public facts, and how many of the true records exactly."""
    found = attacks.records(
        factor, facts.grid, facts.mean, facts.records_total, bounds=facts.bounds
    )
    return found, recovered_records(found.values, raw(truth, facts), facts.grid)


def read_off(clients: Iterable[tuple[Transcript, int, Array]], facts: PublicFacts) -> pd.DataFrame:
    """The attack on messages, one row for each client; its true records stand beside them."""
    rows = []
    for transcript, client, block in clients:
        begun = time.perf_counter()
        found, exact = attack(attacks.low_rank(transcript, client), facts, block)
        rows.append(
            {
                "seconds": time.perf_counter() - begun,
                "exact": exact,
                "certified": found.certified,
                "unique": found.certificate is not None and found.certificate.unique,
                "several": not found.certified and "sets of whole records" in found.note,
            }
        )
    return pd.DataFrame(rows)


def everybody(name: str, problem: Problem, rounds: int, dtype: str) -> str:
    """How many records of all clients the server reads exactly off messages of SSI."""
    sent = fp.simulate(problem, fp.SSI(10), rounds=rounds, channel=fp.Channel(dtype=dtype))
    blocks, facts = known(problem)
    found = read_off(((sent.transcript, k, block) for k, block in enumerate(blocks)), facts)
    return (
        f"{name}: {found['exact'].sum()} of {facts.records_total}, "
        f"{found['seconds'].median():.2f} s a client, at most {found['seconds'].max():.2f} s"
    )


def random_clients(name: str, problem: Problem, size: int) -> str:
    """Random clients: how many are certified, and whether these are exact."""
    clients = drawn(problem, [size] * RANDOM_CLIENTS, 0)
    found = read_off(((messages(block, size), 0, block) for block in clients), known(problem)[1])
    return (
        f"{name:24} {size:3} records: {found['certified'].sum():3} of {RANDOM_CLIENTS} certified, "
        f"{(found['exact'] == size).sum():3} exact, {found['unique'].sum():3} unique, "
        f"{found['several'].sum()} with several solutions, {found['seconds'].median():.2f} s "
        f"(at most {found['seconds'].max():.2f} s)"
    )


def messages(block: Array, size: int) -> Transcript:
    """SSI's transcript of a client beside another one, with as many columns as records."""
    columns = min(10, len(block) - 1)
    both = from_blocks([block, block[:, ::-1] * 0.5])
    return fp.simulate(both, fp.SSI(columns), rounds=-(-size // columns) + 1).transcript


def joining(problem: Problem, count: int, *, secure: bool) -> str:
    """Records that join between two runs of SSI."""
    blocks, facts = known(problem)
    parts = np.array_split(np.hstack(blocks), 5, axis=1)
    channel = fp.Channel(secure_aggregation=secure)
    runs = [
        fp.simulate(from_blocks(held), fp.SSI(24), rounds=1, channel=channel).transcript
        for held in ([parts[0][:, count:], *parts[1:]], parts)
    ]
    begun = time.perf_counter()
    _, exact = attack(attacks.joined(runs[0], runs[1]), facts, parts[0][:, :count])
    where = "sums" if secure else "single uploads"
    return (
        f"{count:2} of 1,797 joined, {where}: {exact} exact in {time.perf_counter() - begun:.2f} s"
    )


def masked(name: str, size: int, rounds: int, side: int | None = None) -> str:
    """FAPS of 10 components replayed, then taken apart: the first of five clients."""
    problem = fp.problems.images(name, 5, max_samples=5 * size, resolution=side)
    (block, *_), facts = known(problem)
    method = fp.FAPS(10, inner_rule="fixed")
    run = fp.simulate(problem, method, rounds=rounds)
    begun, trace = time.process_time(), float((block**2).sum()) / size
    replayed = attacks.replay(
        attacks.Replaying(run.transcript, method, trace=trace, evaluations=200)
    )
    _, exact = attack(attacks.factor_of(replayed.estimate, size), facts, block)
    return (
        f"FAPS, {name}, {problem.features} features, {size} records, {rounds} rounds: {exact} "
        f"exact ({replayed.ended} after {replayed.evaluations} evaluations, "
        f"{time.process_time() - begun:.1f} s)"
    )


def kept_back(name: str, problem: Problem, sizes: Sequence[int], count: int) -> str:
    """Differences between the records of random clients whose mean nobody tells."""
    _, facts = known(problem)
    certified = right = unique = 0
    for block in drawn(problem, np.repeat(sizes, count), 3):
        size = block.shape[1]
        factor = attacks.factor_of(block @ block.T / size, size)
        found = attacks.records_without_mean(factor, facts.grid)
        certified += found.certified
        unique += found.certificate is not None and found.certificate.unique
        records = raw(block, facts) / facts.grid[:, None]
        right += found.whole is not None and alike(found.whole, records)
    return (
        f"mean kept back, {name}, {sizes} records: {certified} of {len(sizes) * count} certified, "
        f"{right} right, {unique} unique"
    )


def epsilons() -> Iterator[str]:
    """For every demonstration the largest budget that stops it, and what that costs the answer.

    Noise at the source; one record is the unit, δ = 1e-6, a tenth of the budget pays for the mean;
    the clip norm is the largest norm there is, so that clipping takes nothing away.
    """
    table = heart_table().sample(frac=1, random_state=0)
    digits = fp.problems.images("digits", 5, max_samples=150)
    faces = fp.problems.images("olivetti", 40, resolution=32)
    heart = from_table(table[:120], list(table.columns), scaling="centre", public_schema=True)
    for name, problem, recovered in (
        ("digits, 5 clients of 30", digits, partial(from_messages, rounds=4)),
        ("faces 32 px, 40 clients of 10", faces, partial(from_messages, rounds=2)),
        ("heart, 10 clients of 12", heart, partial(from_messages, rounds=3)),
        ("24 of 1,797 digits joined, sums", fp.problems.images("digits", 5), from_sums),
        ("FAPS on digits, its matrix replayed without error", digits, from_matrix),
    ):
        begun = time.process_time()
        yield f"{name}: {_stopping(problem, recovered)} ({time.process_time() - begun:.0f} s)"


#: A release of a problem with noise at the source.
Private = Callable[[Problem, int], Problem]
#: What is read of a problem whose clients' matrices carry noise, and that noisy problem.
Read = tuple[attacks.Factor, Problem]
#: Work of one attempt; the powers of ten between which the boundary lies, up to the largest taken.
_WORK, _POWERS = 2e9, 15


def _stopping(problem: Problem, reading: Callable[[Problem, Private], Read]) -> str:
    """The largest power of ten at which the records stay secret, by halving: more noise, less."""
    blocks, facts = known(problem)
    clip = float(np.linalg.norm(raw(np.hstack(blocks), facts), axis=0).max())

    def private(power: float, clean: Problem, release: int) -> Problem:
        return clean.private(10.0**power, 1e-6, clip, Streams(release), mean_share=0.1)

    def recovered(power: int) -> bool:
        factor, noisy = reading(problem, partial(private, power))
        assert noisy.guarantee is not None  # the size of the noise is public, too
        factor = replace(factor, error=max(factor.error, noisy.guarantee.noise))
        told = facts.grid, facts.mean, facts.records_total
        return attacks.records(factor, *told, bounds=facts.bounds, budget=_WORK).certified

    low, high = 0, _POWERS  # stopped at the lower one; at the upper one there is next to no noise
    if not recovered(high):
        return f"no ε up to 1e{high} lets it through"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recovered(middle) else (middle, high)
    sines = [_answer(private(power, problem, 0)) for power in (low, 2, 0)]
    return (
        f"ε = 1e{low} is the largest power of ten that stops it; the answer's sine is "
        "{:.1e} there, {:.2g} at ε = 100, {:.2g} at ε = 1".format(*sines)
    )


def from_messages(problem: Problem, private: Private, rounds: int) -> Read:
    """Client 0 from messages of SSI."""
    noisy = private(problem, 0)
    run = fp.simulate(noisy, fp.SSI(min(10, problem.features - 1)), rounds=rounds)
    return attacks.low_rank(run.transcript, 0), noisy


def from_matrix(problem: Problem, private: Private) -> Read:
    """Client 0 from its noisy matrix itself: no attack on FAPS' messages has more."""
    noisy = private(problem, 0)
    size = int(noisy.client_data.samples[0])
    return attacks.factor_of(noisy.client_data.dense()[0], size), noisy


def from_sums(problem: Problem, private: Private) -> Read:
    """24 newcomers from the sums of two releases."""
    (first, *others), facts = known(problem)
    earlier = from_blocks([first[:, 24:], *others], announced=facts)
    secure = fp.Channel(secure_aggregation=True)
    releases = private(earlier, 0), private(problem, 1)
    before, after = (
        fp.simulate(one, fp.SSI(24), rounds=3, channel=secure).transcript for one in releases
    )
    return attacks.joined(before, after), releases[1]


def _answer(noisy: Problem) -> float:
    """Sine of the largest angle of the pooled subspace of five components to the true one.

    Of the matrix itself and not of a run: what any method could answer at best.
    """
    answer, truth = (
        np.linalg.eigh(matrix)[1][:, -5:] for matrix in (noisy.client_data.mean(), noisy.covariance)
    )
    return float(np.linalg.norm(truth - answer @ (answer.T @ truth), 2))


def main() -> None:
    """Print one line for each target."""
    for per_client, clients, rounds, dtype in FACES:
        faces = fp.problems.images("olivetti", clients, resolution=32, heterogeneity=1.0)
        name = f"faces 32 px, {clients} clients of {per_client}, {rounds} rounds in {dtype}"
        print(everybody(name, faces, rounds, dtype), flush=True)
    garments = fp.problems.images("fashion_mnist", 40, max_samples=400)  # those that come along
    name = "garments 28 px, 40 clients of 10, 1 round"
    print(everybody(name, garments, 1, "float64"), flush=True)
    for name, problem, size in sources():
        print(random_clients(name, problem, size), flush=True)
    digits = fp.problems.images("digits")
    for count in range(1, 25):
        for secure in (False, True):
            print(joining(digits, count, secure=secure), flush=True)
    print(kept_back("digits", digits, (3, 4, 6, 10, 15, 20, 25, 30, 35), 20), flush=True)
    faces_pool = fp.problems.images("olivetti", resolution=32)
    print(kept_back("faces 32 px", faces_pool, (4, 10, 15), 10), flush=True)
    for method in SIZES:
        sent = outcome(from_models(method))
        assert sent is not None
        print(f"{method}, {sent.size}: {sent.exact} exact, matrix to {sent.error:.0e}", flush=True)
    for size, rounds in ((4, 10), (10, 10), (15, 10), (30, 20)):
        print(masked("digits", size, rounds), flush=True)
    print(masked("olivetti", 10, 6, side=32), flush=True)
    for line in epsilons():
        print(line, flush=True)
