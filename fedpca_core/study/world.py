"""One world: the parameters that several pages share, each declared once.

Whatever page shows one of them, it has the same name, link key and meaning; a page may narrow its
range, change its default or say in other words what it is (`shared`). Those that describe who
takes part in what travel with the visitor from page to page.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from fedpca_core.settings import Settings, Value, choice, declared, number, scale, switch, text

#: Why parameters make no difference, on any page (`Settings.idle`).
NO_NOISE = "There is no noise at ε = ∞."
EVERYBODY = "Everybody takes part in every round."
CLIENTS_NAMED = "A column of the table says who the clients are."
EMPTY_IS_ZERO = "Under an ε an empty cell counts as 0."
NOT_CENTRED = "The records are not centred, so no mean is paid for."


@dataclass(frozen=True)
class World(Settings):
    """What any page may offer."""

    kind: ClassVar[str] = "world"

    problem: str = choice("decay_geometric", "Problem", travels=True)
    clients: int = number(10, "Clients", 2, 1000, travels=True)
    heterogeneity: float = number(0.0, "Heterogeneity", 0.0, 1.0, 0.05, travels=True)
    participation: float = number(1.0, "Participation", 0.02, 1.0, 0.02, travels=True)
    components: int = number(5, "Components", 1, 30, travels=True)
    seed: int = number(0, "Seed", 0, 99999, travels=True)
    epsilon: float = scale(math.inf, "Budget ε", travels=True)
    delta: float = scale(1e-6, "Failure probability δ", travels=True)
    clip_norm: float = scale(1.0, "Clip norm", key="clip")
    mean_share: float = scale(0.1, "Share for the mean")
    mean_clip: float = scale(50.0, "Clip norm for the mean")
    features: int = number(50, "Features", 2, 100_000)
    samples: int = number(1000, "Samples per client", 1, 100_000)
    records_per_client: float = scale(math.inf, "Records per client", key="perclient", travels=True)
    rounds: int = number(75, "Rounds", 1, 3000)
    penalty_factor: float = number(0.15, "Penalty factor", 0.0, 1e8, 0.01, key="penalty")
    local_steps: int = number(8, "Local steps", 1, 100)
    secure_aggregation: bool = switch(False, "Secure aggregation", key="secure", travels=True)
    upload_noise: float = scale(0.0, "Noise on uploads", key="noise")
    client: int = number(0, "Attacked client", 0, 299)
    client_column: str = text("", "Client column")
    columns: tuple[str, ...] = text((), "Columns")
    scaling: str = choice("standardise", "Scaling")
    missing: str = choice("drop", "Missing cells")


WORLD = World.parameters()
#: Where data come from, on any page.
PROBLEMS = WORLD["problem"].choices


def foreign(problem: str) -> str:
    """Why a parameter of other problems makes no difference."""
    return f"“{PROBLEMS[problem]}” has no such parameter."


def shared(name: str, default: Value | None = None, **narrower: Any) -> Any:
    """Field with the world's parameter of this name: the same, or narrower (`World`)."""
    return declared(WORLD[name], default, **narrower)
