"""Global averaging: one shared frame, fitted by averaged likelihood gradients.

The baseline of personalised PCA that ignores differences between clients: each sends the ambient
gradient of its data term at the shared frame; the server averages first, then projects on the
tangent space and retracts. Its limit is the leading eigenspace of the pooled covariance.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_positive
from fedpca_core.linalg.stiefel import polar, tangent, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import euclidean_data_gradient
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class GlobalAveraging(Algorithm):
    """Manifold gradient descent with averaged client gradients.

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

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        frame = downlink["frame"]
        samples = data.samples[data.members]
        slope = euclidean_data_gradient(frame, data.apply(frame), samples, self.noise_variance)
        return {"gradient": slope}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        frame = server["frame"]
        descent = tangent(frame, inbox.mean("gradient"))
        return Reply({**server, "frame": polar(frame - server["step"] * descent)})


METHODS = (
    Method(
        key="global_averaging",
        title="Global averaging",
        algorithm=GlobalAveraging,
        make=lambda settings: GlobalAveraging(
            settings.components, noise_variance=settings.noise_variance
        ),
        look=Look("#2f5d50", "#93c7b4", "dash", "star"),
        compared=False,
        refusal="the largest eigenvalue of S is agreed on before the run, from products without "
        "noise",
    ),
)
