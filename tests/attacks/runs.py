"""Runs that several attack tests share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import fedpca_core as fp
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import Estimate
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript


@lru_cache(maxsize=32)
def problem(features: int = 50, samples: int = 200, clients: int = 5, seed: int = 0) -> Problem:
    """Arithmetic spectrum of condition number 10, as in the attack experiments of FAPS."""
    return fp.problems.decay_spectrum(
        features=features, samples=[samples] * clients, condition=10.0, seed=seed
    )


def truth(of: Problem, client: int = 0) -> Array:
    return of.client_data.dense()[client]


def faps(components: int = 2, inner_steps: int = 3, **changes: Any) -> FAPS:
    """FAPS with a fixed rule and a fixed penalty unless told otherwise."""
    parameters: dict[str, Any] = {
        "inner_rule": "fixed",
        "inner_steps": inner_steps,
        "adaptive": False,
        **changes,
    }
    return FAPS(components, **parameters)


def transcript(
    of: Problem, algorithm: Any, rounds: int, seed: int = 0, **options: Any
) -> Transcript:
    return fp.simulate(of, algorithm, rounds=rounds, seed=seed, **options).transcript


def relative(estimate: Array, target: Array) -> float:
    return float(np.linalg.norm(estimate - target) / np.linalg.norm(target))


class AttackPath(NamedTuple):
    """An attack repeated after every round, the start first."""

    estimates: Array
    ranks: Array


def followed(rounds: Iterator[Estimate]) -> AttackPath:
    """All rounds of an attack at once."""
    estimates, ranks = zip(*rounds, strict=True)
    return AttackPath(np.stack(estimates), np.array(ranks))
