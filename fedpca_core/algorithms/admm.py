"""What FedPE and FedPG share: consensus ADMM with client sampling (Nguyen et al., FedPCA for IoT).

``min sum_i f_i(U_i)`` subject to ``U_i = Z``, with ``f_i(U) = ||(I - U U^T) A_i||_F^2 / m_i``, a
function of S_i alone. Corrected here: f_i is divided by m_i, penalty and steps are multiples of the
clients' own curvature, so no position of a parameter diverges; the server averages the U_i alone,
since ``sum_i Y_i`` vanishes at the solution only over *all* clients and adding a sample's
``Y_i/penalty`` leaves a noise floor; the model is the polar factor of Z, an average, not a frame.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require, require_at_least, require_choice, require_positive
from fedpca_core.linalg.stiefel import polar, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class ConsensusADMM(Algorithm):
    """Rounds and dual bookkeeping; subclasses give the local step.

    A round: Z down, C local steps, U_i up, the average down, ``Y_i += penalty (U_i - Z)`` with
    the Z of that very round, which keeps ``sum_i Y_i = 0``.

    Wire, each participant and round: ``frame`` (Z) and ``penalty`` (one number) down, one matrix
    up, the new ``frame`` down. The upload is ``frame``, U_i itself, or ``shifted``,
    ``U_i + Y_i/penalty`` (averages "printed" and "memory"); each matrix is features x components.
    Before the first round each client sends one number, ||S_i||_2.
    """

    #: Rank k; place it at an eigengap of S.
    components: int = 5
    #: r > 0 in ``penalty = r * mean_i ||S_i||_2``; the descent condition asks for r >= 4.
    penalty_factor: float = 4.0
    #: s in (0, 1], the share of the safe step.
    step_factor: float = 1.0
    #: C, gradient steps before an upload.
    local_steps: int = 10
    #: {"mean", "printed", "memory", "polar"}: Z is the mean of the participants' U_i; of their U_i
    #: + Y_i/penalty (paper, eq. 8); of that over all clients' last uploads (exact, slower); of the
    #: uploads' polar factors (weakens forged ones). The last two read single uploads.
    average: str = "mean"
    #: {"own", "consensus"}: Local steps begin at the client's last U_i or at the polar factor of Z.
    local_start: str = "own"
    #: {"random", "round robin"}: Drawn afresh each round, or in turn along shuffled lists:
    #: everybody within two passes.
    sampling: str = "random"
    #: {"orthonormal", "uniform"}: First Z: QR of a Gaussian matrix, or the authors' uniform [0, 1).
    initial: str = "orthonormal"
    #: Round from which Y_i = 0 starts afresh (the cure for a corrupted upload); 0 for never.
    dual_reset: int = 0

    uploads: ClassVar[Uploads] = Uploads.FRAMES
    public_duals: ClassVar[bool] = True
    reuses_uploads: ClassVar[bool] = False
    agreed: ClassVar[tuple[str, ...]] = ("spectral_norms",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("The penalty factor", self.penalty_factor, 4)
        require(
            0 < self.step_factor <= 1,
            f"The step factor must lie in (0, 1], not {self.step_factor}; "
            "1 is the longest step that is safe.",
        )
        reset = self.dual_reset
        require_at_least("The number of local steps", self.local_steps, 1, "10 suits most data")
        require(reset >= 0, f"Duals are reset at round 1, 2, ..., or never (0), not {reset}.")
        require_choice("The server's average", self.average, ("mean", "printed", "memory", "polar"))
        require_choice("The local start", self.local_start, ("own", "consensus"))
        require_choice("The sampling", self.sampling, ("random", "round robin"))
        require_choice("The first frame", self.initial, ("orthonormal", "uniform"))

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        shape, generator = (setting.features, self.components), streams.generator("start")
        at_random = self.initial == "uniform"
        frame = generator.uniform(0, 1, shape) if at_random else uniform_frame(generator, *shape)
        scale = setting.clients * setting.weights  # then plain means have the target S
        norms = scale * data.spectral_norms()
        penalty = self.penalty_factor * float(norms.mean())
        clients = {
            "frame": np.tile(self.first_local(frame), (setting.clients, 1, 1)),
            "dual": np.zeros((setting.clients, *shape)),
            "scale": scale,
            "norm": norms,
            "penalty": np.full(setting.clients, penalty),
            "reset": np.zeros(setting.clients),
        }
        memory = {"memory": clients["frame"]} if self.average == "memory" else {}
        return {"frame": frame, "penalty": penalty, **memory}, clients

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        turns = self.sampling == "round robin"
        present = setting.in_turn(round_, streams) if turns else plan.participants
        weights = np.full(len(present), 1.0 / len(present))
        return replace(plan, participants=present, weights=weights, local_steps=self.local_steps)

    def broadcast(self, server: ServerState) -> Arrays:
        return {"frame": server["frame"], "penalty": np.array(server["penalty"])}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        state = {**clients, "penalty": np.full(data.clients, float(plan.downlink["penalty"]))}
        if self.dual_reset and plan.round >= self.dual_reset:
            state["dual"] = np.where((state["reset"] == 0)[:, None, None], 0.0, state["dual"])
            state["reset"] = np.ones(data.clients)
        consensus = plan.downlink["frame"]
        if self.local_start == "consensus":
            state["frame"] = np.tile(polar(consensus), (data.clients, 1, 1))
        state["frame"] = self.descend(data, state, consensus)
        if self.average in ("printed", "memory"):
            shifted = state["frame"] + state["dual"] / state["penalty"][:, None, None]
            return {"shifted": shifted}, state
        return {"frame": state["frame"]}, state

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        state = dict(server)
        if self.average == "memory":
            state["memory"] = server["memory"].copy()
            state["memory"][inbox.participants] = inbox.individual("shifted")
            state["frame"] = state["memory"].mean(axis=0)
        elif self.average == "polar":
            state["frame"] = polar(inbox.individual("frame")).mean(axis=0)
        else:
            state["frame"] = inbox.mean("shifted" if self.average == "printed" else "frame")
        return Reply(state, feedback={"frame": state["frame"]})

    def finish(self, data: ClientData, clients: Arrays, plan: Plan, feedback: Arrays) -> Arrays:
        return self.dual_step(clients, feedback["frame"])

    def dual_step(self, clients: Arrays, consensus: Array) -> Arrays:
        """Client state with ``Y_i += penalty (U_i - Z)``; public, so attacks replay it."""
        penalty = clients["penalty"][:, None, None]
        return {**clients, "dual": clients["dual"] + penalty * (clients["frame"] - consensus)}

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return polar(server["frame"])

    def exposed(self, clients: Arrays) -> Arrays:
        return {name: clients[name] for name in ("frame", "dual", "reset")}

    def seen(self, data: ClientData) -> ClientData:
        return data

    def constraint(self, clients: Arrays, penalty: float) -> tuple[Array, Array]:
        """Value and gradient of what keeps frames near the manifold, for each client."""
        return np.zeros(len(clients["frame"])), np.zeros(1)

    def project(self, frames: Array, slope: Array) -> Array:
        return slope

    def descend(self, data: ClientData, clients: Arrays, consensus: Array) -> Array:
        """C local steps from ``clients["frame"]``, (clients, features, components)."""
        data, frames = self.seen(data), clients["frame"]
        scale, penalty = clients["scale"][:, None, None], clients["penalty"][:, None, None]
        for _ in range(self.local_steps):
            slope = smooth_gradient(scale * data.apply(frames), frames)
            slope = slope + clients["dual"] + penalty * (frames - consensus)
            frames = self.step(frames, slope, clients)
        return frames

    @abstractmethod
    def step(self, frames: Array, slope: Array, clients: Arrays) -> Array:
        """U_i after one step along ``f_i(U) + <Y_i, U - Z> + penalty/2 ||U - Z||^2``'s gradient."""

    def first_local(self, frame: Array) -> Array:
        return frame


def smooth_gradient(products: Array, frames: Array) -> Array:
    """Gradient of f_i at any U: ``-4 SU + 2 SU (U^T U) + 2 U (U^T S U)``, with ``products`` SU."""
    gram = frames.mT @ frames
    return -4.0 * products + 2.0 * products @ gram + 2.0 * frames @ (frames.mT @ products)
