"""Variable splitting: the ordinary consensus ADMM with X_i = Z, which FAPS relaxes to subspaces.

The clients minimise -tr(X_i^T S_i X_i)/2 subject to X_i = Z, entry by entry. One round: the server
broadcasts Z; a client completes its last dual step with it, ``Lambda_i <- Lambda_i - beta_i (X_i -
Z)``, then makes J inner steps and answers ``Y_i = beta_i X_i - Lambda_i``; the server takes the
polar factor of the weighted sum, which is the exact minimiser of its step.

Two versions of the client's step:

``stiefel``
    X_i is orthonormal: ``X <- polar(S_i X + Lambda_i + beta_i Z)``. Level with FAPS, or ahead.
``free``
    X_i is any matrix: ``X <- (S_i X + Lambda_i + beta_i Z) / beta_i``, a gradient step on the
    augmented Lagrangian. It is convex only for beta_i > ||S_i||_2, and the run diverges for
    penalty factors well below 2: the handicap FAPS's paper measures itself against.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_at_least, require_choice, require_positive
from fedpca_core.linalg.stiefel import polar
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class VariableSplitting(Algorithm):
    """Consensus ADMM on frames rather than subspaces.

    Wire, each client and round: ``frame`` (Z) down and ``product`` (Y_i) up, features x components
    each. The sum is all the server needs, so secure aggregation is possible.

    Partial participation: an absent client keeps X_i and Lambda_i; when it returns its dual step
    uses the Z it then receives. A client that joins late starts from the Z of that round with
    Lambda_i = 0. The server reuses the last upload of an absent client or sums those present.

    ``penalty_factor``: beta_i as a multiple of ||S_i||_2; about 2 is needed when X_i is free.
    ``inner_steps``: J, products with S_i a round.
    ``constraint``, {"stiefel", "free"}.

    Raises InvalidInput: during a run with free X_i that diverges, when its entries overflow.
    """

    uploads: ClassVar[Uploads] = Uploads.UPDATE
    components: int = 5
    penalty_factor: float = 0.15
    inner_steps: int = 5
    constraint: str = "stiefel"

    @property
    def title(self) -> str:
        return "Variable splitting" + (" (free)" if self.constraint == "free" else "")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_positive("The penalty factor of variable splitting", self.penalty_factor, 0.15)
        require_at_least("Variable splitting's number of inner steps", self.inner_steps, 1)
        require_choice("The constraint of X_i", self.constraint, ("stiefel", "free"))

    def notes(self, setting: Setting) -> tuple[str, ...]:
        if self.constraint == "stiefel" or self.penalty_factor >= 2:
            return ()
        return (
            f"With free Xᵢ variable splitting diverges for small penalties; the factor "
            f"{self.penalty_factor:g} is below 2. Raise it to 2 or more, or keep Xᵢ orthonormal.",
        )

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, _ = super().start(data, setting, streams)
        frames = np.tile(server["frame"], (setting.clients, 1, 1))
        return server, {
            "frame": frames,
            "multiplier": np.zeros_like(frames),
            "penalty": self.penalty_factor * data.spectral_norms(),
            "joined": np.zeros(setting.clients),
        }

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        received = plan.downlink["frame"]
        penalty = clients["penalty"][:, None, None]
        known = clients["joined"][:, None, None] > 0
        frames = clients["frame"] if known.all() else np.where(known, clients["frame"], received)
        multiplier = clients["multiplier"] - penalty * (frames - received)
        pull = multiplier + penalty * received
        for _ in range(self.inner_steps):
            image = data.apply(frames) + pull
            if self.constraint == "stiefel":
                frames = polar(image)
            else:  # a client without data has no penalty and stays at zero
                frames = np.divide(image, penalty, out=np.zeros_like(image), where=penalty > 0)
        moved = {"frame": frames, "multiplier": multiplier, "joined": np.ones(len(frames))}
        return {"product": penalty * frames - multiplier}, {**clients, **moved}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply({"frame": polar(inbox.total("product"))})

    def exposed(self, clients: Arrays) -> Arrays:
        # The consensus gap compares spans of orthonormal frames, which free X_i are not.
        return {"frame": clients["frame"]} if self.constraint == "stiefel" else {}


_REFUSAL = (
    "its multipliers remember all earlier products, whose sensitivity noise on one does not cover"
)

METHODS = (
    Method(
        key="variable_splitting",
        algorithm=VariableSplitting,
        look=Look("#6d3fc0", "#b89bff", "dashdot", "triangle-up"),
        refusal=_REFUSAL,
    ),
    Method(
        key="variable_splitting_free",
        algorithm=VariableSplitting,
        fixed={"constraint": "free"},
        look=Look("#8f6fd0", "#d5c4ff", "longdash", "triangle-up"),
        refusal=_REFUSAL,
    ),
)
