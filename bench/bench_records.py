"""From second moments to records: what the attack recovers, and how fast.

Targets on two cores: faces of 32 pixels, 40 clients of 10, all 400 photographs from the first
message of SSI at no more than 2 s a client; 31 and 40 faces a client; 30 digits; the heart table up
to 12 records; 1 to 24 records that join; every certified client exact. ``python -m bench records``
runs all of it in a few minutes; attempts that must fail are in ``python -m bench certificates``.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import fedpca_core as fp
from bench.bench_certificates import alike
from fedpca_core import attacks
from fedpca_core.attacks.scores import recovered_records
from fedpca_core.problems import from_table
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.data_sets import files_of
from fedpca_core.problems.heart import heart_table
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.attack.records.from_models import SIZES, from_models
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams

Array = np.ndarray

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


def pooled(problem: Problem) -> tuple[Array, PublicFacts]:
    """Everybody's records, and what is public about them."""
    assert problem.blocks is not None and problem.announced is not None
    return np.hstack(problem.blocks), problem.announced


def raw(block: Array, facts: PublicFacts) -> Array:
    """The records before anything was subtracted."""
    return block if facts.mean is None else block + facts.mean[:, None]


def attack(factor: attacks.Factor, facts: PublicFacts) -> attacks.Records:
    """With the public facts."""
    return attacks.records(factor, facts.grid, facts.mean, facts.records_total, bounds=facts.bounds)


def exactly(found: attacks.Records, block: Array, facts: PublicFacts) -> int:
    """Records found exactly."""
    return recovered_records(found.values, raw(block, facts), facts.grid)


def faces(per_client: int, clients: int, rounds: int, dtype: str = "float64") -> str:
    """All photographs of all clients from the first messages of SSI."""
    problem = fp.problems.images("olivetti", clients, resolution=32, heterogeneity=1.0)
    name = f"faces 32 px, {clients} clients of {per_client}, {rounds} rounds in {dtype}"
    return everybody(name, problem, rounds, dtype)


def garments() -> str:
    """The same for ten garments of each of forty clients, of the sample that comes along."""
    problem = fp.problems.images("fashion_mnist", 40, max_samples=400)
    return everybody("garments 28 px, 40 clients of 10, 1 round", problem, 1, "float64")


def everybody(name: str, problem: Problem, rounds: int, dtype: str) -> str:
    """How many records of all clients the server reads exactly off messages of SSI."""
    run = fp.simulate(problem, fp.SSI(10), rounds=rounds, channel=fp.Channel(dtype=dtype))
    facts = problem.announced
    assert facts is not None and problem.blocks is not None
    exact, seconds = 0, []
    for client in range(problem.clients):
        begun = time.perf_counter()
        found = attack(attacks.low_rank(run.transcript, client), facts)
        seconds.append(time.perf_counter() - begun)
        exact += exactly(found, problem.blocks[client], facts)
    return (
        f"{name}: {exact} of {facts.records_total}, {np.median(seconds):.2f} s a client, at most "
        f"{max(seconds):.2f} s"
    )


def random_clients(name: str, problem: Problem, size: int) -> str:
    """Random clients: how many are certified, and whether these are exact."""
    pool, facts = pooled(problem)
    generator = np.random.default_rng(0)
    certified = exact = unique = several = 0
    seconds = []
    for _ in range(RANDOM_CLIENTS):
        block = pool[:, generator.choice(pool.shape[1], size, replace=False)]
        factor = attacks.low_rank(messages(block, size), 0)
        begun = time.perf_counter()
        found = attack(factor, facts)
        seconds.append(time.perf_counter() - begun)
        certified += found.certified
        exact += exactly(found, block, facts) == size
        unique += found.certificate is not None and found.certificate.unique
        several += not found.certified and "sets of whole records" in found.note
    return (
        f"{name:24} {size:3} records: {certified:3} of {RANDOM_CLIENTS} certified, "
        f"{exact:3} exact, {unique:3} unique, {several} with several "
        f"solutions, {np.median(seconds):.2f} s (at most {max(seconds):.2f} s)"
    )


def messages(block: Array, size: int) -> Transcript:
    """SSI's transcript of a client beside another one, with as many columns as records."""
    columns = min(10, len(block) - 1)
    both = from_blocks([block, block[:, ::-1] * 0.5])
    return fp.simulate(both, fp.SSI(columns), rounds=-(-size // columns) + 1).transcript


def joining(problem: Problem, count: int, *, secure: bool) -> str:
    """Records that join between two runs of SSI."""
    pool, facts = pooled(problem)
    parts = np.array_split(pool, 5, axis=1)
    before = [parts[0][:, count:], *parts[1:]]
    runs = [
        fp.simulate(
            from_blocks(blocks),
            fp.SSI(24),
            rounds=1,
            channel=fp.Channel(secure_aggregation=secure),
        ).transcript
        for blocks in (before, parts)
    ]
    begun = time.perf_counter()
    found = attack(attacks.joined(runs[0], runs[1]), facts)
    seconds = time.perf_counter() - begun
    exact = exactly(found, parts[0][:, :count], facts)
    where = "sums" if secure else "single uploads"
    return f"{count:2} of 1,797 joined, {where}: {exact} exact in {seconds:.2f} s"


def masked(name: str, size: int, rounds: int, side: int | None = None) -> str:
    """FAPS of 10 components replayed, then taken apart: the first of five clients."""
    problem = fp.problems.images(name, 5, max_samples=5 * size, resolution=side)
    facts, method = problem.announced, fp.FAPS(10, inner_rule="fixed")
    assert facts is not None and problem.blocks is not None
    block = problem.blocks[0]
    run = fp.simulate(problem, method, rounds=rounds)
    begun, trace = time.process_time(), float((block**2).sum()) / size
    replayed = attacks.replay(
        attacks.Replaying(run.transcript, method, trace=trace, evaluations=200)
    )
    found = attack(attacks.factor_of(replayed.estimate, size), facts)
    exact, seconds = exactly(found, block, facts), time.process_time() - begun
    return (
        f"FAPS, {name}, {problem.features} features, {size} records, {rounds} rounds: {exact} "
        f"exact ({replayed.ended} after {replayed.evaluations} evaluations, {seconds:.1f} s)"
    )


def kept_back(name: str, problem: Problem, sizes: tuple[int, ...], count: int) -> str:
    """Differences between the records of random clients whose mean nobody tells."""
    pool, facts = pooled(problem)
    generator = np.random.default_rng(3)
    certified = right = unique = 0
    for size in np.repeat(sizes, count):
        block = pool[:, generator.choice(pool.shape[1], size, replace=False)]
        factor = attacks.factor_of(block @ block.T / size, int(size))
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
    for name, problem, recovered in (
        ("digits, 5 clients of 30", digits, from_messages(4)),
        (
            "faces 32 px, 40 clients of 10",
            fp.problems.images("olivetti", 40, resolution=32),
            from_messages(2),
        ),
        (
            "heart, 10 clients of 12",
            from_table(table.iloc[:120], list(table.columns), scaling="centre", public_schema=True),
            from_messages(3),
        ),
        ("24 of 1,797 digits joined, sums", fp.problems.images("digits", 5), from_sums),
        ("FAPS on digits, its matrix replayed without error", digits, from_matrix),
    ):
        begun = time.process_time()
        yield f"{name}: {_stopping(problem, recovered)} ({time.process_time() - begun:.0f} s)"


#: Whether records are certified where noise is put on the clients' matrices: the problem without
#: noise, and the mechanism, by release.
Attempted = Callable[[Problem, Callable[[Problem, int], Problem]], bool]
#: Work of one attempt; the powers of ten between which the boundary lies.
_WORK, _POWERS = 2e9, 24


def _stopping(problem: Problem, recovered: Attempted) -> str:
    """The largest power of ten at which the records stay secret, by halving: more noise, less."""
    assert problem.blocks is not None and problem.announced is not None
    records = np.hstack([raw(block, problem.announced) for block in problem.blocks])
    clip = float(np.linalg.norm(records, axis=0).max())

    def private(power: float) -> Callable[[Problem, int], Problem]:
        return lambda clean, release: clean.private(
            10.0**power, 1e-6, clip, Streams(release), mean_share=0.1
        )

    low, high = 0, _POWERS  # stopped at the lower one; at the upper one there is next to no noise
    if not recovered(problem, private(high)):
        return f"no ε up to 1e{high} lets it through"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recovered(problem, private(middle)) else (middle, high)
    sines = [_answer(private(power)(problem, 0)) for power in (low, 2, 0)]
    return (
        f"ε = 1e{low} is the largest power of ten that stops it; the answer's sine is "
        "{:.1e} there, {:.2g} at ε = 100, {:.2g} at ε = 1".format(*sines)
    )


def from_messages(rounds: int) -> Attempted:
    """Client 0 from messages of SSI."""

    def recovered(problem: Problem, private: Callable[[Problem, int], Problem]) -> bool:
        noisy = private(problem, 0)
        columns = min(10, problem.features - 1)
        run = fp.simulate(noisy, fp.SSI(columns), rounds=rounds)
        return _certified(attacks.low_rank(run.transcript, 0), problem, noisy)

    return recovered


def from_matrix(problem: Problem, private: Callable[[Problem, int], Problem]) -> bool:
    """Client 0 from its noisy matrix itself: no attack on FAPS' messages has more."""
    noisy = private(problem, 0)
    size = int(noisy.client_data.samples[0])
    return _certified(attacks.factor_of(noisy.client_data.dense()[0], size), problem, noisy)


def from_sums(problem: Problem, private: Callable[[Problem, int], Problem]) -> bool:
    """24 newcomers from the sums of two releases."""
    assert problem.blocks is not None
    earlier = from_blocks(
        [problem.blocks[0][:, 24:], *problem.blocks[1:]], announced=problem.announced
    )
    secure = fp.Channel(secure_aggregation=True)
    before, after = (
        fp.simulate(private(one, release), fp.SSI(24), rounds=3, channel=secure)
        for release, one in enumerate((earlier, problem))
    )
    factor = attacks.joined(before.transcript, after.transcript)
    return _certified(factor, problem, private(problem, 1))


def _certified(factor: attacks.Factor, problem: Problem, noisy: Problem) -> bool:
    """With the public facts, and the size of the noise, which is public too."""
    facts = problem.announced
    assert facts is not None and noisy.guarantee is not None
    factor = replace(factor, error=max(factor.error, noisy.guarantee.noise))
    return attacks.records(
        factor, facts.grid, facts.mean, facts.records_total, bounds=facts.bounds, budget=_WORK
    ).certified


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
    for per_client, clients, rounds in ((10, 40, 1), (31, 13, 4), (40, 10, 5)):
        print(faces(per_client, clients, rounds), flush=True)
    print(faces(10, 40, 2, dtype="float32"), flush=True)
    print(garments(), flush=True)
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
