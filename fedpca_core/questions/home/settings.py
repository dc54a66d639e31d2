"""The settings of the front page: every parameter of the experiment, one method at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.settings import parameter
from fedpca_core.study.pca_settings import IMAGES, ConvergeSettings, narrowed

#: What a lecturer may take off the screen.
HIDDEN = {
    "parameters": "Parameters",
    "clients": "Clients and server",
    "truth": "Private records",
    "held": "What the server holds",
    "error": "Error",
    "bytes": "Bytes",
    "answer": "Curve of the answer",
    "attack": "Curve of the attack",
    "sentence": "Sentence",
    "bar": "Play bar",
    "story": "Story",
}
SECTIONS = {"scene": "Picture", "story": "Story", "doors": "Pages", "presets": "Experiments"}
#: Keys of the steps of the story; the first is none of them.
FREE = "0"
STEPS = tuple("1234567")


@dataclass(frozen=True)
class SceneSettings(ConvergeSettings):
    """The settings of Converge for one method, on images of which each client holds few."""

    kind: ClassVar[str] = "scene"
    former_kinds: ClassVar[tuple[str, ...]] = ()
    #: What the steps of the story set; the story fills it in (a link may name the step alone).
    story: ClassVar[dict[str, Mapping[str, Any]]] = {}

    problem: str = narrowed("problem", default="digits")
    clients: int = narrowed("clients", default=8, high=40)
    records_per_client: float = narrowed("records_per_client", default=30.0)
    components: int = narrowed("components", default=10)
    rounds: int = narrowed("rounds", default=20, grid=(10, 20, 30, 50, 75, 100))
    starts: int = narrowed("starts", default=1)
    client: int = narrowed("client", default=3, high=39)
    method: str = parameter(
        "ssi",
        key="algorithm",
        label="Method",
        help="How the clients find their common subspace. All of them send matrices and no record; "
        "what the server makes of the matrices is another matter.",
        choices=COMPARED,
    )
    unmask: bool = narrowed("unmask", default=False, view=False)
    joined: int = narrowed("joined", default=0, view=False)
    price: bool = parameter(
        False,
        key="price",
        label="Error at every ε",
        help="Run once more at every budget ε and draw the error of the answer against it.",
    )
    # ---------------------------------------------------------------- how it is shown
    step: str = parameter(
        FREE,
        key="step",
        label="Step of the story",
        help="A story in seven steps. A link that names the step alone opens it as it is told.",
        choices={FREE: "Explore", **{step: step for step in STEPS}},
        view=True,
    )
    shown: bool = parameter(
        False,
        key="shown",
        label="Shown",
        help="The step has asked, and the run is shown.",
        view=True,
    )
    lecture: bool = parameter(
        False,
        key="lecture",
        label="Lecture",
        help="Picture first, large type. Space plays wherever you are, the arrows step, n and p "
        "go to the next and the previous step of the story.",
        view=True,
    )
    hidden: tuple[str, ...] = parameter(
        (),
        key="hide",
        label="Hide",
        help="What is left out of the picture.",
        choices=HIDDEN,
        view=True,
    )
    round: int = parameter(
        0,
        key="round",
        label="Begin at round",
        help="The round that is shown first.",
        low=0,
        high=100,
        step=1,
        view=True,
    )
    autoplay: bool = parameter(
        True,
        key="autoplay",
        label="Play when it opens",
        help="Off: it stands at the chosen round until somebody plays.",
        view=True,
    )
    section: str = parameter(
        "scene",
        key="section",
        label="Open at",
        help="The part of the page that is in sight when it opens.",
        choices=SECTIONS,
        view=True,
    )

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def idle(self) -> Mapping[str, str]:
        method = METHODS[self.method]
        searched = {"replay", "stationary"} & set(method.attacks)
        why = f"No attack on {method.title} has to search."
        return {**super().idle(), **({} if searched else {"unmask": why})}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.problem in IMAGES:  # the last client where there are fewer
            object.__setattr__(self, "client", min(self.client, self.clients - 1))

    @classmethod
    def _modernised(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super()._modernised(values)
        described = cls.parameters()
        told = cls.story.get(str(values.get("step", FREE)), {})
        of_the_run = [name for name in values if name in described and not described[name].view]
        return values if of_the_run else {**told, **values}
