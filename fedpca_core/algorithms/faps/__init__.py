"""FAPS: `faps` is the algorithm as printed, `inner` its loop and the answer.

`state` is what a client remembers, `rules` what it decides. `fast` is the loop of `inner` in
coordinates of a client's records; a test holds them equal.
"""

from fedpca_core.algorithms.faps.faps import FAPS

__all__ = ["FAPS"]
