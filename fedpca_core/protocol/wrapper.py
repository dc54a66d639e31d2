"""A method that changes part of another one and leaves the rest to it."""

from dataclasses import dataclass, field
from typing import Any

from fedpca_core.protocol.algorithm import Algorithm


def _of_the_method(name: str) -> Any:
    """What the wrapped method has under this name: what it can do, or one of its steps."""
    return property(lambda wrapper: getattr(wrapper.method, name))


@dataclass(frozen=True)
class Wrapper(Algorithm):
    """Leaves every step to ``method``; subclasses override what they change."""

    method: Algorithm
    components: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", self.method.components)
        super().__post_init__()

    unwrapped = _of_the_method("unwrapped")
    title = _of_the_method("title")
    width = _of_the_method("width")
    uploads = _of_the_method("uploads")
    replayable = _of_the_method("replayable")
    needs_individual_uploads = _of_the_method("needs_individual_uploads")
    reuses_uploads = _of_the_method("reuses_uploads")
    agreed = _of_the_method("agreed")
    waits = _of_the_method("waits")
    indispensable = _of_the_method("indispensable")
    public_clients = _of_the_method("public_clients")

    start = _of_the_method("start")
    plan = _of_the_method("plan")
    client = _of_the_method("client")
    server = _of_the_method("server")
    finish = _of_the_method("finish")
    estimate = _of_the_method("estimate")
    exposed = _of_the_method("exposed")
    notes = _of_the_method("notes")
    check = _of_the_method("check")
