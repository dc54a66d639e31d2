"""The settings of the front page: every parameter of the experiment, one method at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.settings import choice, number, switch
from fedpca_core.study.pca_settings import IMAGES, ConvergeSettings, narrowed

#: Keys of the steps of the story; the first is none of them.
FREE = "0"
#: No second method.
ALONE = "off"
STEPS = tuple("1234567")


@dataclass(frozen=True)
class SceneSettings(ConvergeSettings):
    """The settings of Converge for one method, on images of which each client holds few."""

    kind: ClassVar[str] = "scene"
    #: What the steps of the story set; the story fills it in (a link may name the step alone).
    story: ClassVar[dict[str, Mapping[str, Any]]] = {}

    problem: str = narrowed("problem", "digits")
    clients: int = narrowed("clients", 8, high=40)
    records_per_client: float = narrowed("records_per_client", 30.0)
    components: int = narrowed("components", 10)
    rounds: int = narrowed("rounds", 20)
    starts: int = narrowed("starts", 1)
    client: int = narrowed("client", 3, high=39)
    method: str = choice("ssi", "Method", COMPARED)
    versus: str = choice("faps", "Compared with", {ALONE: "Off", **COMPARED})
    unmask: bool = narrowed("unmask", False, view=False)
    joined: int = narrowed("joined", 0, view=False)
    price: bool = switch(False, "Error at every ε")
    # ---------------------------------------------------------------- how it is shown
    step: str = choice(
        FREE, "Step of the story", {FREE: "Explore", **{step: step for step in STEPS}}, view=True
    )
    shown: bool = switch(False, "Shown", view=True)
    lecture: bool = switch(False, "Lecture", view=True)
    hide: tuple[str, ...] = choice((), "Hide", view=True)
    round: int = number(0, "Begin at round", 0, 100, view=True)
    autoplay: bool = switch(True, "Play when it opens", view=True)
    section: str = choice("scene", "Open at", view=True)

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method, *([] if self.opponent is None else [self.opponent]))

    @property
    def opponent(self) -> str | None:
        """The method beside the first; None where there is none."""
        return None if self.versus in (ALONE, self.method) else self.versus

    def side(self, method: str) -> SceneSettings:
        """The same for one method alone."""
        return replace(self, method=method, versus=ALONE)

    def idle(self) -> Mapping[str, str]:
        methods = [METHODS[key] for key in self.compared]
        searched = any(one.searched for one in methods)
        why = f"No attack on {' or '.join(one.title for one in methods)} has to search."
        return super().idle() if searched else {**super().idle(), "unmask": why}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.problem in IMAGES:  # the last client where there are fewer
            object.__setattr__(self, "client", min(self.client, self.clients - 1))

    @classmethod
    def _filled(cls, values: dict[str, Any]) -> dict[str, Any]:
        described = cls.parameters()
        told = cls.story.get(str(values.get("step", FREE)), {})
        of_the_run = [name for name in values if name in described and not described[name].view]
        if of_the_run and told:  # a step shows one method, as links of steps always did
            return {"versus": ALONE, **values}
        return {**told, **values}
