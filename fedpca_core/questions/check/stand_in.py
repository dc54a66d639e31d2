"""Records that stand in for those of a deployment: of its sizes, on its grid, centred as it is."""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.streams import Streams

#: Smallest standard deviation of a direction, where the largest is 1.
FLATTEST, STEEPEST = 0.3, 0.1
#: Standard deviation of a grid value in steps, and where it is centred.
SPREAD, MIDDLE = 4.0, 8.0
#: Categories of a coded column; the last may have fewer.
CATEGORIES = 4
#: Records of the same kind that no client holds, to ask about membership.
STRANGERS = 200


def drawn(settings: CheckSettings, seed: int) -> tuple[Problem, Array]:
    """A problem like the deployment's, and records of the same kind that nobody holds.

    Returns the problem, of as many clients as are needed to hide in, each of the stated size, and
    the strangers, (features, STRANGERS) float64, treated as the attacked client's records are.
    """
    generator = Streams(seed).generator("data")
    n, m = settings.features, settings.samples
    turn = np.linalg.qr(generator.standard_normal((n, n)))[0]
    spread = np.linspace(1.0, generator.uniform(STEEPEST, FLATTEST), n)
    blocks = []
    for number in range(settings.clients):
        own = spread * np.exp(0.2 * generator.standard_normal(n))
        count = m + (STRANGERS if number == 0 else 0)
        raw = turn @ (own[:, None] * generator.standard_normal((n, count)))
        blocks.append(_codes(raw) if settings.values == "codes" else raw)
    if settings.values == "grid":
        size = float(np.std(blocks[0]))
        blocks = [np.rint(MIDDLE + SPREAD / size * one) for one in blocks]
    held = [blocks[0][:, :m], *blocks[1:]]
    strangers = blocks[0][:, m:]
    total = sum(one.shape[1] for one in held)
    mean: Array | None = None
    if settings.centring == "own":
        strangers = strangers - held[0].mean(axis=1, keepdims=True)
        held = [one - one.mean(axis=1, keepdims=True) for one in held]
    elif settings.centring in ("pooled", "secret"):
        mean = sum((one.sum(axis=1) for one in held), np.zeros(n)) / total
        held = [one - mean[:, None] for one in held]
        strangers = strangers - mean[:, None]
    public = None
    if settings.values != "real":
        codes = np.tile([0.0, 1.0], (n, 1)) if settings.values == "codes" else None
        public = PublicFacts(np.ones(n), mean, total, bounds=codes)
    problem = from_blocks(held, name="stand-in", announced=public, own_mean=mean)
    return problem, strangers


def _codes(raw: Array) -> Array:
    """One-hot columns: in every group of features a 1 for the largest, (features, records)."""
    found = np.zeros_like(raw)
    for begin in range(0, len(raw), CATEGORIES):
        group = raw[begin : begin + CATEGORIES]
        found[begin + group.argmax(axis=0), np.arange(raw.shape[1])] = 1.0
    return found
