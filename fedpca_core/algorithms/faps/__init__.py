"""FAPS: `faps` is the algorithm as printed, `inner` its loop and the answer, `rules` its decisions.

`state` is what a client remembers. `fast` and `coordinates` are the loop of `inner` with less work;
a test holds them equal.
"""

from fedpca_core.algorithms.faps.faps import FAPS

__all__ = ["FAPS"]
