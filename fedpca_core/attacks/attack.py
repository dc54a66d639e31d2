"""What an attack is: a function of a transcript and of what everybody knows, with its conditions.

An attack says by counts and formats whether it fits a deployment (never by a method's name), about
what it takes, and what it makes of the messages. `registry` lists all of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fedpca_core.attacks.belief import Belief
from fedpca_core.attacks.deployment import Deployment
from fedpca_core.attacks.lattice.records import BUDGET, Records
from fedpca_core.findings import Target
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.steps import Part


@dataclass(frozen=True)
class Effort:
    """How much work a search may do: counts and not seconds, so that it ends alike everywhere."""

    #: Of a replay; one that succeeds takes 15 to 150, one that fails gets no nearer.
    evaluations: int = 200
    #: Whether a replay starts from what round 1 leaks.
    seeded: bool = True
    #: Of one lattice, in units of which the library does about 10^9 a second.
    work: float = BUDGET
    #: Whether what was believed after every round is wanted, and not the last belief alone.
    path: bool = False
    #: Seconds, by its own account, up to which an attack that searches is run; others wait.
    longest: float = math.inf
    #: Whether matrices are searched for at all.
    unmask: bool = True

    def leaves(self, attack: "Attack[Any]", seconds: float) -> bool:
        """Whether an attack that takes about so many seconds is left waiting."""
        masked = attack.target is Target.COVARIANCE and not self.unmask
        return attack.searches and (masked or seconds > self.longest)


#: What a trial does unless it is told otherwise.
USUAL = Effort()


R = TypeVar("R")


@dataclass(frozen=True)
class Attack(Generic[R]):
    #: key, title: ``key`` is in links and tables; ``title`` completes "… reads it".
    key: str
    title: str
    #: Of a deployment and the attacked client: why it does not fit, or nothing.
    fits: Callable[[Deployment, int], str]
    #: Of the same: about how many seconds it takes on one core.
    seconds: Callable[[Deployment, int], float]
    #: What it makes of the messages.
    read: R
    #: The client's covariance, its records, the record that joined between two runs, or the sum.
    target: Target = Target.COVARIANCE
    #: Whether it searches, which takes seconds and may end nowhere.
    searches: bool = False


#: Of a transcript, the deployment, the client and the effort: the belief after every round, the
#: start first. It may raise `InvalidInput` where messages are missing.
MatrixReading = Callable[[Transcript, Deployment, int, Effort], Part[list[Belief]]]
MatrixAttack = Attack[MatrixReading]
#: An attack on the records is given the beliefs of the best matrix attack too.
RecordsAttack = Attack[
    Callable[[Transcript, Deployment, int, Effort, Sequence[Belief]], Part[Records]]
]
