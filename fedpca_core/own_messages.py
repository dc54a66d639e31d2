"""Messages of somebody's own pipeline, given as arrays: what its server makes of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core import findings
from fedpca_core.algorithms.one_round import Centralized, OneShot
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import Array
from fedpca_core.attacks.attack import CENTRINGS, Deployment
from fedpca_core.errors import require, require_choice, require_noise, require_whole
from fedpca_core.problems.announced import FINE, PublicFacts
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.transcript import Exchange, Transcript
from fedpca_core.steps import outcome
from fedpca_core.trial import trial

#: What one client can send: the name of the upload, how it is written, a method that sends such.
KINDS: Mapping[str, tuple[str, Callable[[Array], Array], Callable[[int], Algorithm]]] = {
    "products": ("product", np.asarray, SSI),
    "matrix": ("covariance", lambda matrix: matrix[np.triu_indices(len(matrix))], Centralized),
    "eigenvectors": ("eigenvectors", np.asarray, OneShot),
    "scaled eigenvectors": ("scaled_eigenvectors", np.asarray, lambda p: OneShot(p, "stacked")),
}


@dataclass(frozen=True, eq=False)
class OpenedMessages:
    """What the attacks made of one client's messages.

    Attributes:
        findings: One a row; ``words`` says it in a sentence, ``basis`` what it stands on.
        matrix: (features, features) float64: What the messages say of ``sum x x^T / samples``,
            which is that itself where the findings say so; None where nothing was read.
        records: (samples, features) float64: Certified records, one a row, in no order; or None.
    """

    findings: pd.DataFrame
    matrix: Array | None
    records: Array | None


def attack_arrays(
    received: Sequence[Array],
    sent: Sequence[Array] | None = None,
    *,
    kind: str = "products",
    samples: int,
    summed: bool = False,
    grid: float | Array | None = None,
    mean: Array | None = None,
    centring: str | None = None,
    dtype: str = "float64",
    noise: float = 0.0,
) -> OpenedMessages:
    """Run every attack that fits on what one client sent.

    Args:
        received: One array for each round. "products": (features, columns), the client's matrix
            times what it was sent; "matrix": (features, features); "eigenvectors", "scaled
            eigenvectors": (features, columns), the leading ones, each times the root of its
            eigenvalue where they are scaled.
        sent: (features, columns) arrays: What the client was sent in each round, for products.
        kind: {"products", "matrix", "eigenvectors", "scaled eigenvectors"}.
        samples: Records of the client, which protocols state.
        summed: The client's matrix is the sum of ``x x^T`` over its records and not their mean.
        grid: float or (features,) array: Of what the records are whole multiples (1 for pixels and
            codes, 0.1 for one decimal); None: that is not known, and single records not sought.
        mean: (features,) array: What was subtracted from every record, where the server knows it.
        centring: {"none", "own", "announced", "secret"}: What was subtracted before: nothing, the
            client's own mean, ``mean``, or something that the server is not told. By default
            "announced" with a mean and "none" without.
        dtype: {"float64", "float32"}: Format in which the messages were sent.
        noise: Standard deviation of noise that the client adds to its messages, relative to their
            size.

    Raises:
        InvalidInput: Arrays that do not fit each other, or a kind of message that is not read.
    """
    require(kind in KINDS, f"Messages are of the kinds {', '.join(KINDS)}, not “{kind}”.")
    name, written, method = KINDS[kind]
    answers = [np.asarray(one, dtype=float) for one in received]
    frames = [np.asarray(one, dtype=float) for one in sent or ()]
    features = _checked(answers, frames, kind)
    require_whole("The number of records", samples)
    require(samples >= 1, f"A client with messages holds at least 1 record, not {samples}.")
    require_choice("The format of messages", dtype, ("float64", "float32"))
    centring = centring or ("none" if mean is None else "announced")
    require(
        centring in CENTRINGS and (centring == "announced") == (mean is not None),
        f"“{centring}” does not fit {'a mean' if mean is not None else 'no mean'}: give the mean "
        "that the server knows with “announced”, and none with “none”, “own” or “secret”.",
    )
    require_noise(noise)
    size, share = np.array([samples]), np.ones(1)
    scale = samples if summed and kind in ("products", "matrix") else 1.0
    exchanges = tuple(
        Exchange(
            round=number,
            participants=np.array([0]),
            weights=share,
            local_steps=1,
            downlink={"frame": frames[number]} if frames else {},
            uploads={name: written(answer / scale)[None]},
            sums=None,
            feedback=None,
            recorded=True,
            sum_weights=share,
            bytes_up=answer.nbytes,
            bytes_down=frames[number].nbytes if frames else 0,
            upload_bytes=answer.nbytes,
        )
        for number, answer in enumerate(answers)
    )
    view = Transcript(features, 1, size, share, False, dtype, exchanges)
    columns = min(answers[0].shape[1], features - 1)
    deployment = Deployment(
        features=features,
        clients=1,
        components=columns,
        rounds=len(exchanges),
        samples=size,
        algorithm=method(columns),
        dtype=dtype,
        upload_noise=noise,
        records=None if grid is None else _facts(grid, mean, features),
        centring=centring,
    )
    found = outcome(trial(view, deployment))
    assert found is not None
    states = found.best[1]
    whole, records = found.ended, None
    if whole.whole is not None and not whole.differences:
        step = deployment.steps if whole.step is None else whole.step
        records = np.asarray(whole.whole.T * step, dtype=np.float64)
    return OpenedMessages(
        findings.frame(found.findings),
        np.asarray(states[-1].matrix, dtype=np.float64) if states else None,
        records,
    )


def _checked(answers: Sequence[Array], frames: Sequence[Array], kind: str) -> int:
    """The number of features, of arrays that fit each other."""
    require(bool(answers), "No message was given; give what the client sent, an array a round.")
    shapes = [one.shape for one in answers]
    require(
        all(len(shape) == 2 and min(shape) >= 1 and shape[0] == shapes[0][0] for shape in shapes),
        f"Every message is an array of features × columns, with the same features; these are "
        f"{', '.join(map(str, shapes[:5]))}.",
    )
    features = shapes[0][0]
    require(features >= 2, "Messages about 1 feature tell its variance and nothing else.")
    require(
        kind != "matrix" or all(shape == (features, features) for shape in shapes),
        f"A client's matrix is square, not {shapes[0][0]} × {shapes[0][1]}.",
    )
    require(
        kind != "products" or [one.shape for one in frames] == shapes,
        "Products are read with what they are products of: give in sent, for every round, the "
        "array that the client was sent, as large as its answer.",
    )
    require(
        kind == "products" or not frames,
        f"A client that sends {'its matrix' if kind == 'matrix' else kind} is asked nothing; "
        "leave sent out.",
    )
    require(
        all(bool(np.isfinite(one).all()) for one in (*answers, *frames)),
        "A message holds NaN or infinite numbers; leave that round out.",
    )
    return features


def _facts(grid: float | Array, mean: Array | None, features: int) -> PublicFacts:
    given = np.asarray(grid, dtype=float)
    require(
        given.shape in ((), (features,)),
        f"The step of a grid is one number, or {features}, one a feature.",
    )
    steps = np.broadcast_to(given, (features,)).copy()
    require(
        bool((steps > 0).all() and np.isfinite(steps).all()),
        f"The step of a grid is positive, not {np.min(steps):g}; 1 stands for whole numbers.",
    )
    told = None if mean is None else np.asarray(mean, dtype=float)
    require(
        told is None or told.shape == (features,),
        f"The mean needs {features} numbers, one a feature.",
    )
    return PublicFacts(steps, told, FINE)
