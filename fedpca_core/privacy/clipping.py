"""Problems with clipped or normalised records."""

from __future__ import annotations

from collections.abc import Sequence

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.records import (
    clip,
    normalise,
    norms,
    treat,
)

__all__ = ["clip", "normalise", "norms", "treated"]


def treated(problem: Problem, treatment: str, norm: float = 1.0) -> Problem:
    """The same problem with every client's records normalised or clipped.

    Raises
    ------
    InvalidInput
        The problem keeps no records, only second moments, which cannot be clipped any more.
    """
    if problem.blocks is None:
        raise InvalidInput(
            f"“{problem.name}” keeps second moments only, and a record cannot be clipped after "
            "they are formed; clip the records where the data are made."
        )
    require(
        treatment == "raw" or not problem.own_moments,
        f"The records of “{problem.name}” were centred or scaled by moments of their own, so no "
        "clip norm bounds what one of them changes; leave them as they are.",
    )
    blocks: Sequence[Array] = [treat(block, treatment, norm) for block in problem.blocks]
    return from_blocks(
        blocks,
        weights=list(problem.client_data.weights),
        name=problem.name,
        image_shape=problem.image_shape,
        client_names=problem.client_names,
        feature_names=problem.feature_names,
        note=f"{problem.note} Records {treatment} at norm {norm:g}.".strip(),
        record_norm=None if treatment == "raw" else norm,
        own_mean=problem.own_mean,
        own_scale=problem.own_scale,
    )
