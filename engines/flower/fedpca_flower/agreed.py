"""Facts of all clients' data that a method needs before its first round, asked of the clients."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_flower.records import packed
from fedpca_flower.roster import Answers, Roster


def agree(roster: Roster, algorithm: Algorithm, setting: Setting) -> dict[str, Array]:
    """What `Algorithm.agreed` names: one number for each client, or one for all.

    Everybody learns these numbers, as the methods' authors assume. An eigenvalue of the pooled
    matrix takes some products with it (Lanczos), each a round of its own; neither is counted in
    the run's bytes, as in one process.

    Raises
    ------
    InvalidInput
        A client does not answer: before the first round nobody can be missing.
    """
    facts: dict[str, Array] = {}
    if "spectral_norms" in algorithm.agreed:
        answers = _everybody(roster, "agree", fact="spectral_norms")
        facts["spectral_norms"] = np.array([said["value"] for said, _ in answers.values()])
    if "pooled_norm" in algorithm.agreed:
        facts["pooled_norm"] = np.array([_largest_eigenvalue(roster, setting)])
    return facts


def _largest_eigenvalue(roster: Roster, setting: Setting) -> float:
    """lambda_1(S) to rounding, from products S v only."""

    def product(vector: Array) -> Array:
        frame = {"frame": np.asarray(vector, dtype=float).reshape(-1, 1)}
        answers = _everybody(roster, "product", frame)
        products = np.stack([groups["up"]["product"] for _, groups in answers.values()])
        total: Array = np.tensordot(setting.weights, products, axes=1)[:, 0]
        return total

    operator = LinearOperator((setting.features,) * 2, matvec=product, dtype=float)
    start = np.cos(np.arange(setting.features) * 1.7)  # fixed, so that the result is repeatable
    found = eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(found[0])


def _everybody(
    roster: Roster, action: str, frame: dict[str, Array] | None = None, **told: str
) -> Answers:
    contents = {client: packed(told, down=frame) for client in range(roster.clients)}
    answers = roster.ask(action, contents)
    missing = sorted(set(contents) - set(answers))
    if missing:
        refused = next((roster.refusals[c] for c in missing if c in roster.refusals), "")
        raise InvalidInput(
            f"Before the first round every client must answer, and clients {missing} did not; "
            f"see whether their nodes run, or give them more time (timeout). {refused}".strip()
        )
    require(bool(answers), "There are no clients to ask; start their nodes.")
    return answers
