"""Rivals of personalised PCA: shared and unique components, training alone, one shared frame."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require, require_positive
from fedpca_core.linalg.stiefel import orthonormalise, polar, remove_span, tangent, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import euclidean_data_gradient
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class DecoupledPCA(Algorithm):
    """Decoupled PCA: some components are shared by all clients, the others are each client's own.

    A rival without a prior (Shi and Kontar, "Personalized PCA: Decoupling Shared and Unique
    Features", 2022). Client i explains its records by U and V_i together, V_i orthogonal to U, and
    all maximise ``sum_i w_i (tr(U^T S_i U) + tr(V_i^T S_i V_i))``. One round: the server broadcasts
    U; every client takes what lies along U out of its V_i, moves [U, V_i] along its gradient,
    retracts, and uploads its copy of U; the server averages and retracts. The V_i stay where they
    are.

    Wire, each client and round: ``frame`` (U) down, and up the client's moved copy of it, features
    x shared components each; the server needs only their mean.

    ``components``: Columns of [U, V_i] together.
    ``shared``: Columns of U; None: half of them, rounded up.
    ``step``: In units of 1/lambda_1(S_i), which each client computes from its own data.
    """

    title: ClassVar[str] = "DecoupledPCA"
    uploads: ClassVar[Uploads] = Uploads.FRAMES
    reuses_uploads: ClassVar[bool] = False  # an old copy moves from an old frame
    components: int = 10
    shared: int | None = None
    step: float = 1.0

    @property
    def common(self) -> int:
        return (self.components + 1) // 2 if self.shared is None else self.shared

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            1 <= self.common <= self.components,
            f"{self.common} shared components of {self.components} cannot be; choose between 1 and "
            f"{self.components}.",
        )
        require_positive("The step", self.step, 1.0)

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.common)
        shape = (setting.clients, setting.features, self.components - self.common)
        own = streams.generator("private").standard_normal(shape)
        return {"frame": frame}, {"own": _beside(own, frame), "step": _steps(data, self.step)}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        whole = _together(plan.downlink["frame"], clients["own"])
        moved = polar(whole + clients["step"][:, None, None] * tangent(whole, data.apply(whole)))
        mine, own = moved[..., : self.common], moved[..., self.common :]
        return {"frame": mine}, {**clients, "own": own}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply({"frame": polar(inbox.mean("frame"))})

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return _together(server["frame"], clients["own"])


def _steps(data: ClientData, factor: float) -> Array:
    """Each client's step, (clients,); without data there is nothing to climb, and any will do."""
    largest = data.spectral_norms()
    return factor / (largest + (largest == 0))


def _together(frame: Array, own: Array) -> Array:
    """[U, V_i] of every client, (clients, features, components)."""
    return np.concatenate([np.tile(frame, (len(own), 1, 1)), _beside(own, frame)], axis=-1)


def _beside(own: Array, frame: Array) -> Array:
    """The clients' own directions without what lies along the shared ones, orthonormal."""
    return orthonormalise(remove_span(own, frame)) if own.shape[-1] else own


@dataclass(frozen=True)
class LocalTraining(Algorithm):
    """Gradient ascent of tr(U_i^T S_i U_i) on the manifold, client by client; the wire is silent.

    The baseline without collaboration. Its limit is known in closed form: the leading eigenvectors
    of S_i (arbitrary beyond the client's number of samples).

    ``step``: In units of 1/lambda_1(S_i), which each client computes.
    ``alike``: All clients start from one frame.
    """

    title: ClassVar[str] = "LocalTraining"
    uploads: ClassVar[Uploads] = Uploads.NOTHING
    components: int = 10
    step: float = 1.0
    alike: bool = False

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        shape = (1 if self.alike else setting.clients, setting.features, self.components)
        frames = orthonormalise(streams.generator("private").standard_normal(shape))
        frames = frames.repeat(setting.clients // len(frames), axis=0)
        return {}, {"frame": frames, "step": _steps(data, self.step)}

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        frames = clients["frame"]
        products = data.apply(frames)
        moved = polar(frames + clients["step"][:, None, None] * remove_span(products, frames))
        return {}, {**clients, "frame": moved}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply(server)

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return clients["frame"]


@dataclass(frozen=True)
class GlobalAveraging(Algorithm):
    """One shared frame, fitted by manifold gradient descent with averaged likelihood gradients.

    The baseline that ignores differences between clients: each sends the ambient gradient of its
    data term at the shared frame; the server averages first, then projects on the tangent space and
    retracts. Its limit is the leading eigenspace of the pooled covariance.

    Wire, each client and round: ``frame`` down and ``gradient`` up, features x components each.
    Before the first round a Lanczos iteration, one column down and its product up at a time.

    ``noise_variance``: Variance of the measurement noise; data variance is 1.
    ``step``: In units of 1/(c lambda_1(S)), c the data weight and S the pooled covariance; that
        eigenvalue is found before the first round.
    """

    title: ClassVar[str] = "GlobalAveraging"
    uploads: ClassVar[Uploads] = Uploads.GRADIENTS
    reuses_uploads: ClassVar[bool] = False  # an old gradient belongs to an old frame
    agreed: ClassVar[tuple[str, ...]] = ("pooled_norm",)
    components: int = 10
    noise_variance: float = 0.5
    step: float = 1.0

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_positive("The noise variance", self.noise_variance, 0.5)

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.components)
        largest = data.pooled_norm()
        count = float(setting.weights @ setting.samples)
        scale = count / (self.noise_variance * (1.0 + self.noise_variance))
        return {"frame": frame, "step": self.step / (scale * largest)}, {}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        frame = plan.downlink["frame"]
        samples = data.samples[data.members]
        slope = euclidean_data_gradient(frame, data.apply(frame), samples, self.noise_variance)
        return {"gradient": slope}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        frame = server["frame"]
        descent = tangent(frame, inbox.mean("gradient"))
        return Reply({**server, "frame": polar(frame - server["step"] * descent)})


METHODS = (
    Method(
        key="decoupled",
        title="Shared and unique (Shi and Kontar)",
        algorithm=DecoupledPCA,
        made=lambda settings: DecoupledPCA(settings.components),
        look=Look("#3d5a80", "#98c1d9", "dashdot", "x"),
        compared=False,
        refusal="an upload is made of a frame that remembers all earlier products, which carry no "
        "noise, and orthonormalising it has no bounded sensitivity",
    ),
    Method(
        key="local_training",
        title="Training alone",
        algorithm=LocalTraining,
        made=lambda settings: LocalTraining(settings.components),
        look=Look("#7f3b52", "#e3a3b8", "dot", "square"),
        compared=False,
        refusal="it sends nothing that noise could cover",
    ),
    Method(
        key="global_averaging",
        title="Global averaging",
        algorithm=GlobalAveraging,
        look=Look("#2f5d50", "#93c7b4", "dash", "star"),
        compared=False,
        refusal="the largest eigenvalue of S is agreed on before the run, from products without "
        "noise",
    ),
)
