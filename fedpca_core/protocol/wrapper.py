"""A method that changes part of another one and leaves the rest to it."""

from dataclasses import dataclass, field

from fedpca_core.arrays import Array, Arrays
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import (
    Algorithm,
    Inbox,
    Plan,
    Reply,
    ServerState,
    Setting,
    Start,
    Step,
    Uploads,
)
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class Wrapper(Algorithm):
    """Delegates every step to ``method``; subclasses override what they change."""

    method: Algorithm
    components: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", self.method.components)
        super().__post_init__()

    @property
    def unwrapped(self) -> Algorithm:
        return self.method.unwrapped

    @property
    def title(self) -> str:
        return self.method.title

    @property
    def uploads(self) -> Uploads:  # type: ignore[override]
        """As the method."""
        return self.method.uploads

    @property
    def replayable(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.replayable

    @property
    def needs_individual_uploads(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.needs_individual_uploads

    @property
    def reuses_uploads(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.reuses_uploads

    @property
    def agreed(self) -> tuple[str, ...]:  # type: ignore[override]
        """As the method."""
        return self.method.agreed

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.waits

    @property
    def indispensable(self) -> tuple[int, ...]:  # type: ignore[override]
        """As the method."""
        return self.method.indispensable

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        return self.method.start(data, setting, streams)

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return self.method.plan(server, round_, setting, streams)

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        return self.method.client(data, clients, plan, downlink, streams)

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return self.method.server(server, inbox, plan)

    def finish(self, data: ClientData, clients: Arrays, plan: Plan, feedback: Arrays) -> Arrays:
        return self.method.finish(data, clients, plan, feedback)

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return self.method.estimate(server, clients)

    def exposed(self, clients: Arrays) -> Arrays:
        return self.method.exposed(clients)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        return self.method.notes(setting)

    def check(self, setting: Setting) -> None:
        self.method.check(setting)
