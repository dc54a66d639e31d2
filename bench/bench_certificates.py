"""How often a certificate is wrong: records behind a matrix, over drawn cases on real data.

Every case draws a few records of a real table or of images, prepares them in one of the usual ways,
answers as a client would in one of the formats, and lets the attack take its matrix apart; some
attackers are told a wrong number of records or a wrong grid, some matrices carry noise. A certified
case is wrong where the records are not the client's, up to what the certificate itself names as
open. Run with ``python -m bench certificates --cases 14000 --seed 0``; the target is none in 10,000
certified.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core.attacks.lattice.records import records
from fedpca_core.attacks.lattice.without_mean import records_without_mean
from fedpca_core.attacks.linear import LinearSystem
from fedpca_core.attacks.low_rank import Factor, factor_of, from_answers
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.announced import decimal_steps
from fedpca_core.problems.data_sets import data_folder
from fedpca_core.problems.images import SOURCES, load_images
from fedpca_core.problems.table import heart_table

Array = np.ndarray
#: A source, and its clients' records in units of their grids, (features, records) each.
Pool = tuple[str, list[Array]]
#: Ways to prepare records, formats of messages, and what is wrong for the attacker.
CENTRINGS = ("raw", "raw", "public mean", "public mean", "own mean")
FORMATS = ("float64", "float64", "float32")
FLAWS = (*("none",) * 7, "m + 1 records", "2 m records", "coarser grid", "odd grid", "noise")
#: Most work of one case, images of a data set, and features of an image that are used.
BUDGET, IMAGES, PIXELS = 3e8, 3000, (30, 150)
#: Cases between two lines.
PROGRESS = 1000


@dataclass(frozen=True)
class DrawnCase:
    """A case and how it ended."""

    source: str
    flaw: str
    certified: bool = False
    right: bool = False
    unique: bool = False


def pools() -> list[Pool]:
    """Real tables and images."""
    found = [_table("heart", [heart_table()])]
    air = data_folder() / "beijing_air_daily.csv"
    if air.exists():
        table = pd.read_csv(air).drop(columns="date").dropna()
        stations = [one.drop(columns="station") for _, one in table.groupby("station")]
        found += [_table("air quality", stations)] * 2
    else:
        print(f"  left out: {air.name} is not in {air.parent}")
    for name in ("digits", "fashion_mnist", "mnist", "cifar10"):
        try:
            pixels, _ = load_images(name)
        except InvalidInput as missing:
            print(f"  left out: {missing}")
            continue
        found.append(
            (
                name,
                [np.rint(pixels[:IMAGES].astype(float) / SOURCES[name].step(SOURCES[name].side)).T],
            )
        )
    return found


def _table(name: str, clients: Sequence[pd.DataFrame]) -> Pool:
    values = [one.to_numpy(dtype=float) for one in clients]
    steps = decimal_steps(np.vstack(values))
    return name, [np.rint(one / steps).T for one in values]


def case(pool: Pool, generator: np.random.Generator) -> DrawnCase:
    """Draw a case and attack it."""

    def pick(of: Sequence[str]) -> str:
        return of[int(generator.integers(len(of)))]

    source, clients = pool
    whole = clients[generator.integers(len(clients))]
    if len(whole) > PIXELS[0]:
        most = min(PIXELS[1], len(whole))
        kept = generator.choice(len(whole), generator.integers(PIXELS[0], most + 1), replace=False)
        whole = whole[np.sort(kept)]
    features, everybody = whole.shape
    count = int(generator.integers(3, min(features - 1, 40) + 1))
    centring, dtype, flaw = pick(CENTRINGS), pick(FORMATS), pick(FLAWS)
    standardised, bounded = generator.random() < 0.3, generator.random() < 0.5
    chosen = whole[:, generator.choice(everybody, count, replace=False)]
    units = np.ones(features)
    if standardised:
        deviation = whole.std(axis=1)
        units = 1.0 / np.where(deviation > 0, deviation, 1.0)
    mean = whole.mean(axis=1)
    subtracted = {"raw": 0.0 * mean, "public mean": mean, "own mean": chosen.mean(axis=1)}
    sent = (chosen - subtracted[centring][:, None]) * units[:, None]
    factor = _messages(sent, dtype, flaw, generator)
    scale = 2.0 if flaw == "coarser grid" else 1.0
    if flaw == "odd grid":
        scale = generator.uniform(1.02, 1.9)
    if factor.rank == 0:
        return DrawnCase(source, flaw)
    if centring == "own mean":
        found = records_without_mean(factor, scale * units)
    else:
        known = (mean * units, everybody) if centring == "public mean" else (None, None)
        ends = np.stack([whole.min(axis=1), whole.max(axis=1)], axis=1) * units[:, None]
        bounds = ends if bounded else None
        found = records(factor, scale * units, *known, bounds=bounds, budget=BUDGET)
    if found.whole is None or found.certificate is None:
        return DrawnCase(source, flaw)
    if centring == "own mean":
        right = alike(found.whole, chosen)
    else:
        open_, got = found.certificate.ambiguity, found.whole * scale
        if "times fewer" in open_:
            got, chosen = np.unique(got, axis=1), np.unique(chosen, axis=1)
        right = _same(got, chosen, "negative" in open_)
    return DrawnCase(source, flaw, True, right, found.certificate.unique)


def _messages(sent: Array, dtype: str, flaw: str, generator: np.random.Generator) -> Factor:
    """What the attacker has of the client's matrix."""
    features, count = sent.shape
    told = count + (flaw == "m + 1 records") + count * (flaw == "2 m records")
    if flaw == "noise":
        matrix = sent @ sent.T / count
        size = 10.0 ** generator.uniform(-12, -1) * float(np.abs(matrix).max())
        noise = np.tril(generator.normal(0.0, size, matrix.shape))
        return factor_of(matrix + noise + np.tril(noise, -1).T, count, error=size)
    columns = min(count + int(generator.integers(1, 4)), features - 1)
    asked = np.linalg.qr(generator.standard_normal((features, columns)))[0]
    if dtype == "float32":
        asked = asked.astype(np.float32).astype(float)
    answered = (sent @ (sent.T @ asked) / count).astype(dtype).astype(float)
    return from_answers(LinearSystem.empty(features).with_pair(asked, answered), told)


def _same(found: Array, truth: Array, signs: bool) -> bool:
    """Whether two sets of records are the same, up to their signs where these are open."""

    def listed(columns: Array) -> Counter[tuple[float, ...]]:
        every = [tuple(np.rint(one).tolist()) for one in columns.T]
        return Counter(max(one, tuple(-v for v in one)) if signs else one for one in every)

    return listed(found + 0.0) == listed(truth + 0.0)


def alike(found: Array, truth: Array) -> bool:
    """Whether all differences are the same, up to one common sign."""
    above = truth - truth.min(axis=1, keepdims=True)
    below = truth.max(axis=1, keepdims=True) - truth
    return _same(found, above, False) or _same(found, below, False)


def main(cases: int = 600, seed: int = 0) -> None:
    """Print, by kind of case, how many were certified, proved unique, and wrong."""
    sources = pools()
    drawn: list[DrawnCase] = []
    wrong: list[str] = []
    for number in range(seed, seed + cases):
        generator = np.random.default_rng([15, number])
        drawn.append(one := case(sources[generator.integers(len(sources))], generator))
        if one.certified and not one.right:
            wrong.append(f"{one.source}, {one.flaw}, case {number}")
        if len(drawn) % PROGRESS == 0:
            certified, unique = sum(c.certified for c in drawn), sum(c.unique for c in drawn)
            print(
                f"{len(drawn)} cases: {certified} certified, {unique} of them proved "
                f"to be the only ones, {len(wrong)} wrong",
                flush=True,
            )
    table = pd.DataFrame(drawn)
    for (source, flaw), some in table.groupby(["source", "flaw"]):
        print(
            f"  {source:14} {flaw:14} {len(some):6} cases {some['certified'].sum():6} certified "
            f"{some['unique'].sum():6} proved unique"
        )
    print(
        f"{cases} cases, {table['certified'].sum()} certified, {table['unique'].sum()} proved "
        f"unique, {len(wrong)} wrong{': ' * bool(wrong)}{'; '.join(wrong)}"
    )
