"""FAPS: its rounds, its inner loop, and its rules."""

from fedpca_core.algorithms.faps.faps import FAPS

__all__ = ["FAPS"]
