"""What the laboratory knows of a method besides its steps: its name, its looks, who attacks it.

Every file of algorithms ends with the methods it offers; `fedpca_core.algorithms.registry` lists
the files. Pages, links, files, colours and the command line read the registry and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fedpca_core.protocol.algorithm import Algorithm, Uploads


@dataclass(frozen=True)
class Look:
    """How a method is drawn: hex colours for light and dark paper, a dash and a marker."""

    light: str
    dark: str
    dash: str = "solid"
    marker: str = "circle"


@dataclass(frozen=True, kw_only=True)
class Method:
    #: In links, files and tables; never changes.
    key: str
    #: In legends; the algorithm's own unless it is given.
    title: str = ""
    algorithm: type[Algorithm]
    look: Look
    #: The parameters that make it this variant of the algorithm.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    #: What `make` gives where parameters are not called as in the settings.
    made: Callable[[Any], Algorithm] | None = None
    #: The same for the settings of the Privacy page, which have the number of products too; where
    #: it is left out `make` serves.
    make_private: Callable[[Any], Algorithm] | None = None
    #: Whether it seeks the pooled subspace, so that Converge can put it beside the others.
    compared: bool = True
    #: Whether the Attack page offers it: its uploads answer a known frame with a product.
    attacked: bool = False
    #: How noise on its products is accounted: "products" (each is a release), "orthogonal" (all of
    #: a run count as one), or "" where only noise at the source gives an ε.
    accounts: str = ""
    #: What the letters of its title stand for, where a reader may ask.
    stands_for: str = ""
    #: Where ``accounts`` is empty: why noise on its uploads gives no ε.
    refusal: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.algorithm(**self.fixed).title)

    def make(self, settings: Any) -> Algorithm:
        """The algorithm with those of its parameters that settings have under the same name."""
        if self.made is not None:
            return self.made(settings)
        names = [each.name for each in fields(self.algorithm)]  # type: ignore[arg-type]
        shared = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
        return self.algorithm(**{**shared, **self.fixed})

    @property
    def needs_individual_uploads(self) -> bool:
        return bool(self.algorithm.needs_individual_uploads)

    @property
    def searched(self) -> bool:
        """Whether the matrix behind its uploads has to be searched for."""
        return self.algorithm.replayable or self.algorithm.uploads is Uploads.FRAMES

    @property
    def plans_products(self) -> bool:
        return self.algorithm.plans_products

    def over_at_once(self, participation: float, absent: str) -> bool:
        """Whether a run ends after one round, however many are allowed."""
        waits = self.algorithm.waits and participation < 1 and absent == "memory"
        return self.algorithm.one_round and not waits
