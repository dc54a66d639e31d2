"""What the laboratory knows of a method besides its steps: its name, its looks, who attacks it.

Every file of algorithms ends with the methods it offers; `fedpca_core.algorithms.registry` lists
the files. Pages, links, files, colours and the command line read the registry and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from fedpca_core.protocol.algorithm import Algorithm, Uploads


def by_name(algorithm: type[Algorithm], **fixed: Any) -> Callable[[Any], Algorithm]:
    """`Method.make` where parameters are called as in the settings, as far as these have them."""
    names = [each.name for each in fields(algorithm) if each.name not in fixed]  # type: ignore[arg-type]
    return lambda settings: algorithm(
        **{name: getattr(settings, name) for name in names if hasattr(settings, name)}, **fixed
    )


@dataclass(frozen=True)
class Look:
    """How a method is drawn: hex colours for light and dark paper, a dash and a marker."""

    light: str
    dark: str
    dash: str = "solid"
    marker: str = "circle"


@dataclass(frozen=True)
class Method:
    #: In links, files and tables; never changes.
    key: str
    #: In legends.
    title: str
    algorithm: type[Algorithm]
    #: The algorithm for settings that have the shared parameters (components, penalty_factor,
    #: local_steps, ...); it reads only those it needs.
    make: Callable[[Any], Algorithm]
    look: Look
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

    @property
    def needs_individual_uploads(self) -> bool:
        return bool(self.algorithm.needs_individual_uploads)

    @property
    def searched(self) -> bool:
        """Whether the matrix behind its uploads has to be searched for."""
        return self.algorithm.replayable or self.algorithm.uploads is Uploads.FRAMES

    @property
    def heeds_absence(self) -> bool:
        """Whether the rule for absent clients makes a difference to it."""
        return self.algorithm.reuses_uploads or self.algorithm.waits

    @property
    def plans_products(self) -> bool:
        return self.algorithm.plans_products

    def over_at_once(self, participation: float, absent: str) -> bool:
        """Whether a run ends after one round, however many are allowed."""
        waits = self.algorithm.waits and participation < 1 and absent == "memory"
        return self.algorithm.one_round and not waits
