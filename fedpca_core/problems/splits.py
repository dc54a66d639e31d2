"""How many records each client holds, and which, where they are dealt by kind."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require, require_choice
from fedpca_core.streams import Streams

SPLITS = ("even", "uneven", "dirichlet")


def samples_per_client(split: str, clients: int, total: int, *, seed: int = 0) -> tuple[int, ...]:
    """Sizes m_i of all clients, summing to ``total``.

    ``split``, {"even", "uneven", "dirichlet"}: The same for all (up to one record); m_i
        proportional to i = 1, 2, ...; or proportional to a draw from the flat Dirichlet
        distribution (stream ``"split"``), none below a tenth of the mean.
    """
    require_choice("The split", split, SPLITS)
    check_clients(clients)
    require(
        total >= clients,
        f"There are more clients ({clients}) than samples ({total}), so some would be empty; "
        f"choose at most {total} clients or more samples.",
    )
    if split == "even":
        return _apportion(np.ones(clients), total, 1)
    if split == "uneven":
        return _apportion(np.arange(1.0, clients + 1.0), total, 1)
    generator = Streams(seed).generator("split")
    # Exponential draws, each one of shape 2 times a uniform number.
    powers = np.log(generator.uniform(size=clients))
    logs = np.log(generator.gamma(2.0, size=clients)) + powers
    return _apportion(np.exp(logs - logs.max()), total, max(1, total // clients // 10))


#: Splits of records by what they are, as data sets for federated learning name them.
BY_KIND = ("dirichlet", "pathological", "shards")
#: Draws of a Dirichlet split until nobody is left with too little.
_DRAWS = 20
#: Fewest records of a client then.
FEWEST = 2


def by_kind(
    split: str,
    kinds: IntArray,
    clients: int,
    *,
    seed: int = 0,
    concentration: float = 0.5,
    each: int = 2,
) -> list[IntArray]:
    """Positions of every client's records, dealt by their kind.

    ``split``, {"dirichlet", "pathological", "shards"}: Every kind is divided in proportions from a
        symmetric Dirichlet distribution; or a client holds ``each`` kinds, the records of a kind
        divided evenly among its holders; or the records are sorted by kind and cut into ``each``
        shards a client, which are dealt at random.
    ``kinds``, (records,) int: Of every record, counted from 0 without a gap.
    ``seed``: Of the stream ``"split"``.
    ``concentration``: Dirichlet parameter: large gives everybody the same mixture.
    """
    require_choice("The split", split, BY_KIND)
    check_clients(clients)
    many = int(kinds.max()) + 1
    require(
        1 <= each <= many or split != "pathological",
        f"The records are of {many} kinds, so a client cannot hold {each}; choose at most {many}.",
    )
    generator = Streams(seed).generator("split")

    def dealt() -> list[IntArray]:
        if split == "shards":
            cut = np.array_split(np.argsort(kinds, kind="stable"), clients * each)
            order = generator.permutation(clients * each).reshape(clients, each)
            return [np.concatenate([cut[shard] for shard in own]) for own in order]
        if split == "pathological":
            # The first kind of each client in turn, so that every kind has a holder where it can.
            holds = np.zeros((clients, many))
            for client in range(clients):
                first = client % many
                others = generator.permutation(np.delete(np.arange(many), first))[: each - 1]
                holds[client, [first, *others]] = 1.0
        else:
            holds = generator.dirichlet(np.full(clients, concentration), size=many).T
        held: list[list[IntArray]] = [[] for _ in range(clients)]
        for kind in range(many):
            rows = generator.permutation(np.flatnonzero(kinds == kind))
            shares = holds[:, kind]
            if not shares.sum():  # fewer clients than kinds: nobody holds this one
                continue
            ends = np.round(np.cumsum(shares) / shares.sum() * len(rows)).astype(int)[:-1]
            for client, part in enumerate(np.split(rows, ends)):
                held[client].append(part)
        return [np.concatenate(parts) for parts in held]

    least = 0
    for _ in range(_DRAWS if split == "dirichlet" else 1):
        held = dealt()
        least = min(map(len, held))
        if least >= FEWEST:
            return held
    remedy = "a larger α" if split == "dirichlet" else "more kinds or shards for each client"
    raise InvalidInput(
        f"The split leaves a client with {least} of {len(kinds)} records; every client needs at "
        f"least {FEWEST}. Choose fewer clients or {remedy}."
    )


def check_clients(clients: int) -> None:
    require(
        isinstance(clients, Integral) and clients >= 2,
        f"The number of clients is {clients}; federated PCA needs a whole number of at least 2.",
    )


def checked_sizes(samples: Sequence[int] | IntArray) -> tuple[int, ...]:
    require(
        isinstance(samples, Sequence | np.ndarray) and not isinstance(samples, str),
        f"Samples must list the number of records of each client, not {samples!r}; "
        "for example samples=[1000, 1000].",
    )
    check_clients(len(samples))
    for client, size in enumerate(samples):
        require(
            isinstance(size, Integral) or (isinstance(size, float) and float(size).is_integer()),
            f"Client {client} has {size!r} samples; give a whole number.",
        )
        require(
            size >= 1,
            f"Client {client} is empty ({int(size)} samples); leave it out or give it some.",
        )
    return tuple(int(size) for size in samples)


def _apportion(shares: Array, total: int, minimum: int) -> tuple[int, ...]:
    """Whole numbers proportional to ``shares`` (largest remainders), none below ``minimum``."""
    fixed = np.zeros(len(shares), dtype=bool)
    while True:
        exact = np.full(len(shares), float(minimum))
        free = total - minimum * int(fixed.sum())
        exact[~fixed] = free * shares[~fixed] / shares[~fixed].sum()
        short = ~fixed & (exact < minimum)
        if not short.any():
            break
        fixed |= short
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    sizes[np.argsort(sizes - exact, kind="stable")[: total - int(sizes.sum())]] += 1
    return tuple(int(size) for size in sizes)
