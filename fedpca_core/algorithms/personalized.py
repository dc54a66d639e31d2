"""PerPCA: alternating gradient descent on the manifold, one model for each client.

One round: the server broadcasts the common frame V; every client moves its own frame U_i along the
gradient of its likelihood plus the pull towards V, and uploads ``V - centre_step h_i`` where h_i is
its gradient in V; the server averages and retracts. The U_i never leave the clients, but each
upload determines U_i up to finitely many branches (`fedpca_core.attacks.personal`), so uploads are
not private without secure aggregation. (PerPCA, Ozkara, Huang and Diggavi; gradient corrected here,
see `fedpca_core.problems.personal_model.data_scale`.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require, require_choice, require_positive
from fedpca_core.linalg.stiefel import orthonormalise, polar, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import (
    GRADIENTS,
    PRIORS,
    centre_gradient,
    data_scale,
    frame_gradient,
    prior_variance,
)
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams

STARTS = ("independent", "common", "pooled")


@dataclass(frozen=True)
class PersonalizedPCA(Algorithm):
    """Personalised PCA with a common frame.

    Wire, each client and round: ``centre`` (V) down and ``moved_centre`` (V - centre_step h_i) up,
    features x components each; the server needs only their mean.

    Args:
        components: Columns r of every frame.
        spread: The clients' heterogeneity as the paper quotes it; `prior` says how it is read.
        noise_variance: Variance of the measurement noise (known to the algorithm; data variance is
            1).
        prior: {"std", "literal", "calibrated"}: See `prior_variance`.
        gradient: {"exact", "printed"}: The printed data gradient is half the true one.
        step: Of the clients. None: 1/(c max_i lambda_1(S_i) + 1/prior variance), for which each
            client sends one number before the first round, lambda_1(S_i).
        centre_step: Of the server. None: the prior variance. With both the objective decreases in
            every round.
        pace: Factor on the default steps. The objective is only certain to decrease at 1; 2 arrives
            about twice as fast, 2.5 and more gets worse.
        start_from: {"independent", "common", "pooled"}: Uniform frames for V and every U_i; all
            clients at V; everybody at the leading space of the pooled covariance (a warm start for
            parameter sweeps, whose cost is not counted).
    """

    title: ClassVar[str] = "PersonalizedPCA"
    uploads: ClassVar[Uploads] = Uploads.CENTRES
    reuses_uploads: ClassVar[bool] = False  # an old upload moves from an old centre
    agreed: ClassVar[tuple[str, ...]] = ("spectral_norms",)
    components: int = 10
    spread: float = 0.2
    noise_variance: float = 0.5
    prior: str = "std"
    gradient: str = "exact"
    step: float | None = None
    centre_step: float | None = None
    pace: float = 1.0
    start_from: str = "independent"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_positive("The noise variance", self.noise_variance, 0.5)
        require(
            np.isfinite(self.spread) and self.spread > 0,
            f"The spread of the clients must be positive, not {self.spread}; "
            "use global averaging for clients that are all alike.",
        )
        require_choice("The prior", self.prior, PRIORS)
        require_choice("The gradient", self.gradient, GRADIENTS)
        steps = {"step": self.step, "step of the centre": self.centre_step, "pace": self.pace}
        for name, value in steps.items():
            require(
                value is None or (np.isfinite(value) and value > 0),
                f"The {name} must be positive, not {value}; leave it out for the safe value.",
            )
        require_choice("The start", self.start_from, STARTS)
        records = int(setting.samples.sum())
        require(
            self.start_from != "pooled" or records > self.components,
            f"With {records} records in all and {self.components} components the pooled start "
            "is stationary, so nothing would move; start from 'independent' frames.",
        )

    def variance(self, features: int) -> float:
        return prior_variance(self.spread, self.prior, features, self.components)

    def prepared(self, data: ClientData) -> PersonalizedPCA:
        """The same algorithm with its data-dependent default steps written out."""
        variance = self.variance(data.features)
        scale = data_scale(data.samples, self.noise_variance, self.gradient)[:, 0, 0]
        largest = float((scale[data.members] * data.spectral_norms()).max())
        return replace(
            self,
            step=self.step or self.pace / (largest + 1.0 / variance),
            centre_step=self.centre_step or self.pace * variance,
        )

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        shape = (setting.clients, setting.features, self.components)
        steps = self.prepared(data)
        if self.start_from == "pooled":
            centre = np.linalg.eigh(data.mean())[1][:, : -self.components - 1 : -1]
        else:
            centre = uniform_frame(streams.generator("start"), *shape[1:])
        if self.start_from == "independent":
            frames = orthonormalise(streams.generator("private").standard_normal(shape))
        else:
            frames = np.broadcast_to(centre, shape).copy()
        steps_taken = np.broadcast_to([[steps.step, steps.centre_step]], (setting.clients, 2))
        return {"centre": centre}, {"frame": frames, "steps": steps_taken.astype(float)}

    def broadcast(self, server: ServerState) -> Arrays:
        return {"centre": server["centre"]}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        centre, frames = plan.downlink["centre"], clients["frame"]
        step, centre_step = clients["steps"][:, 0, None, None], clients["steps"][:, 1, None, None]
        variance = self.variance(data.features)
        scale = data_scale(data.samples[data.members], self.noise_variance, self.gradient)
        slope = frame_gradient(frames, data.apply(frames), centre, scale, variance)
        frames = polar(frames - step * slope)
        moved = centre - centre_step * centre_gradient(frames, centre, variance)
        return {"moved_centre": moved}, {**clients, "frame": frames}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        # Float32 or noise may leave the tangent space; the polar factor returns to the manifold.
        return Reply({"centre": polar(inbox.mean("moved_centre"))})

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return clients["frame"]


METHODS = (
    Method(
        key="personalized",
        title="Personalised PCA",
        algorithm=PersonalizedPCA,
        made=lambda settings: settings.personalised(),
        look=Look("#7a5c00", "#e8c54a", "longdashdot", "hexagon"),
        compared=False,
        refusal="an upload is made of a frame that remembers all earlier products, which carry no "
        "noise, and orthonormalising it has no bounded sensitivity",
    ),
)
