"""What an honest-but-curious server reconstructs of one client from its messages.

An attack is a function of a transcript and of public configuration, and of nothing else. Each
refuses, in a sentence, when the messages it needs are missing. `scores` are the other side: they
need the private truth and serve the simulation's curves.
"""

from fedpca_core.attacks import personal, scores, stationary
from fedpca_core.attacks.differencing import Differencing, differencing, joined, records_behind
from fedpca_core.attacks.lattice.records import Records, record_stages, records
from fedpca_core.attacks.lattice.without_mean import records_without_mean
from fedpca_core.attacks.linear import linear, random_subspace, ridge, scaled_identity, symmetric
from fedpca_core.attacks.low_rank import Factor, factor_of, low_rank, recover_samples
from fedpca_core.attacks.membership import (
    empirical_auc,
    matrix_scores,
    membership_score,
    permitted_auc,
    permitted_roc,
    theoretical_auc,
)
from fedpca_core.attacks.pooled import collude, pooled, pooled_rounds
from fedpca_core.attacks.replay.attack import Replay, Replaying, replay
