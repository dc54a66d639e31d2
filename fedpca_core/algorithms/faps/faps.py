"""FAPS: federated ADMM over subspaces (Wang, Liu, Zhang, "Seeking Consensus on Subspaces").

The clients minimise -tr(X_i^T S_i X_i)/2 subject to X_i X_i^T = Z Z^T. The multiplier of that
constraint has the closed form ``Lambda_i = X_i W_i^T + W_i X_i^T`` with
``W_i = -(I - X_i X_i^T) S_i X_i``, so no features x features matrix is ever formed.

One round: the server broadcasts Z; a client approximately solves its subproblem by subspace
iterations ``X <- orth(H X)`` with ``H = S_i + Lambda_i + beta_i Z Z^T``, recomputes W_i, and
answers ``Y_i = (beta_i X_i X_i^T - Lambda_i) Z``; the server orthonormalises the weighted sum.

Y_i is masked by a heuristic (it is not a product of S_i with Z); no privacy guarantee follows.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.faps import rules
from fedpca_core.algorithms.faps.fast import solve
from fedpca_core.algorithms.faps.inner import answer, join
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_at_least, require_choice, require_positive
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Plan, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class FAPS(Algorithm):
    """Federated ADMM with subspace constraints.

    Wire, each client and round: ``frame`` (Z) down and ``product`` (Y_i = Q_i Z) up, features x
    components each. The sum is all the server needs, so secure aggregation is possible.

    Partial participation: an absent client keeps X_i, W_i and beta_i, and counts its own rounds
    for the penalty rule; the server reuses the last upload of an absent client or sums those
    present. A client that joins late starts from the Z of that round, and in its first round it
    makes no inner step, because there ``H X`` spans X already (in round 1 this holds for all).

    Args:
        components: Columns p of the frame.
        penalty_factor: beta_i starts at this multiple of ||S_i||_2, computed once by the client.
        adaptive: Raise beta_i while the gap to Z does not shrink (`faps.rules`).
        inner_rule: {"auto", "fixed", "change", "conditions"}: What ends the inner iterations
            (`faps.rules`).
        inner_steps: J of the fixed rule; 5 reproduces the round counts of the paper.
        inner_tolerance: epsilon_x, threshold of the rule "change".
        inner_decrease, inner_curvature, inner_residual: c_1, c_1' and delta, over its bound, of
            the rule "conditions".
        inner_limit: No rule but "fixed" makes more inner iterations than this.
        penalty_spread: Public bound on max beta_i / min beta_i that the rule "conditions" needs.
        private_start, private_penalty, random_inner_steps: Secrets of each client: a random first
            X_i; beta_i multiplied by a number in [1/2, 2]; J drawn anew in every round from 1 to
            ``inner_steps`` (in place of any rule).
    """

    title: ClassVar[str] = "FAPS"
    uploads: ClassVar[Uploads] = Uploads.UPDATE
    replayable: ClassVar[bool] = True
    near: ClassVar[str] = "multipliers"
    components: int = 5
    penalty_factor: float = 0.15
    adaptive: bool = True
    inner_rule: str = "auto"
    inner_steps: int = 5
    inner_tolerance: float = 1e-2
    inner_decrease: float = 0.25
    inner_curvature: float = 2.0
    inner_residual: float = 0.5
    inner_limit: int = 10
    penalty_spread: float = 2.0
    private_start: bool = False
    private_penalty: bool = False
    random_inner_steps: bool = False

    @property
    def idle(self) -> tuple[str, ...]:  # type: ignore[override]
        theory = ("inner_decrease", "inner_curvature", "inner_residual", "penalty_spread")
        if self.random_inner_steps:
            return ("inner_rule", "inner_tolerance", "inner_limit", *theory)
        tests = {"change": theory, "conditions": ("inner_tolerance",)}
        unused = tests.get(self.inner_rule, ("inner_tolerance", *theory))
        return (*unused, "inner_limit" if self.inner_rule == "fixed" else "inner_steps")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_choice("FAPS's inner rule", self.inner_rule, rules.INNER_RULES)
        for name in ("inner_steps", "inner_limit"):
            require_at_least(f"FAPS's {name.replace('_', ' ')}", getattr(self, name), 1)
        for name in ("penalty_factor", *(f"inner_{constant}" for constant in rules.CONSTANTS)):
            value, usual = getattr(self, name), getattr(FAPS, name)
            require_positive(f"FAPS's {name.replace('_', ' ')}", value, usual)
        require_at_least("FAPS's penalty spread", self.penalty_spread, 1)

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, _ = super().start(data, setting, streams)
        norms = shown = data.spectral_norms()  # shown to the penalty
        if self.private_penalty:
            shown = norms * streams.generator("private", 1).uniform(0.5, 2.0, len(norms))
        penalty = self.penalty_factor * shown
        frames = np.tile(server["frame"], (setting.clients, 1, 1))
        if self.private_start:
            hidden = streams.generator("private", 0).uniform(-1.0, 1.0, frames.shape)
            frames = orthonormalise(hidden)
        # From public counts: on real machines a node knows no data but its own.
        records = min(int(setting.samples.max()), setting.features)
        return server, ClientState.at_start(frames, norms, penalty, records).arrays()

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        received, state = plan.downlink["frame"], ClientState(**clients)
        join(data, state, None if self.private_start else received)
        solve(self.rule(data, state, plan, streams), data, state, received)
        product = answer(state, received)
        state.rounds = state.rounds + 1
        if self.adaptive:
            rules.adapt(state, received)
        return {"product": product}, state.arrays()

    def rule(
        self, data: ClientData, state: ClientState, plan: Plan, streams: Streams
    ) -> rules.InnerRule:
        most = np.full(data.clients, self.inner_limit)
        if self.random_inner_steps:
            # Drawn for all clients and indexed, so participation never shifts the stream.
            generator = streams.generator("private", 2, plan.round)
            drawn = generator.integers(1, self.inner_steps + 1, len(data.samples))
            rule = rules.InnerRule(drawn[plan.participants])
        elif self.inner_rule == "fixed":
            rule = rules.InnerRule(np.full(data.clients, self.inner_steps))
        elif self.inner_rule == "auto":
            rule = rules.InnerRule(rules.stable_budget(state, self.inner_limit), follow=True)
        elif self.inner_rule == "change":
            tolerance = self.inner_tolerance * np.sqrt(self.components)
            rule = rules.InnerRule(most, "change", tolerance)
        else:
            bound = rules.residual_bound(self.penalty_spread, data.weights)
            constants = self.inner_residual * bound, self.inner_decrease, self.inner_curvature
            rule = rules.InnerRule(most, "conditions", *constants)
        return rule.without(state.idle(self.private_start))

    def exposed(self, clients: Arrays) -> Arrays:
        return {"frame": clients["frame"], "penalty": clients["penalty"]}


METHODS = (
    Method(
        key="faps",
        stands_for="federated ADMM-like algorithm with projection splitting",
        algorithm=FAPS,
        look=Look("#0f766e", "#2dd4bf", "solid", "circle"),
        attacked=True,
        refusal="its multipliers are quadratic in Sᵢ, so the sensitivity of an upload is unknown",
    ),
)
