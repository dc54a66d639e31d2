"""What an honest-but-curious server reconstructs of one client from its messages.

An attack is a function of a transcript and of public configuration, and of nothing else. Each
refuses, in a sentence, when the messages it needs are missing.
"""

from fedpca_core.attacks import yardsticks
from fedpca_core.attacks.linear import AttackPath, linear, linear_path
from fedpca_core.attacks.ridge import ridge, ridge_path
from fedpca_core.attacks.symmetric import symmetric, symmetric_path

__all__ = [
    "AttackPath",
    "linear",
    "linear_path",
    "ridge",
    "ridge_path",
    "symmetric",
    "symmetric_path",
    "yardsticks",
]
