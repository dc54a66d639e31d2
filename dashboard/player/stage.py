"""The stage: clients with their private records, the messages of a round, and the server."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpca_core.errors import require


def plain(of: object, fields: str) -> dict[str, Any]:
    """Fields as they are, as the browser calls them: ``x_title`` is its xTitle."""
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): getattr(of, name)
        for name in fields.split()
    }


@dataclass(frozen=True)
class PlayedRun:
    """What tells a run from the one before: ``identity`` to the program, ``label`` to a reader."""

    identity: str
    label: str


@dataclass(frozen=True)
class Lecture:
    """How a scene is shown to a room, or by a link."""

    #: Keys act wherever the focus is: space plays, arrows step, n and p press the buttons with the
    #: keys ``story_next`` and ``story_back``.
    on: bool = False
    #: What is left out: clients, truth, held, error, bytes, sentence, bar, and keys of curves.
    hide: Sequence[str] = ()
    #: The part of the page (a container with the key ``section_…``) to bring into sight.
    section: str = ""
    #: The names of the curves that a link can hide, by what ``hide`` calls them.
    curves: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Side:
    """One of two methods that are compared: what it sends, and what its answer is."""

    #: title, colour: Its name, and its key in the palette.
    title: str
    colour: str
    #: kind, help: What its message is and how large; what shows when the pointer rests on that.
    kind: str
    help: str
    #: As of the stage.
    protection: str
    #: message, components: (rounds + 1, rows, columns): the message of the attacked client, and
    #: what is learnt.
    message: NDArray[np.uint8]
    components: NDArray[np.uint8]
    #: (rounds + 1, records, 2): records of all clients along the first two of these.
    places: NDArray[np.uint8]
    #: How far off the answer is, for each round.
    off: Sequence[str]
    #: stamp, note: What is stamped on the records that the server has from round ``since`` on.
    stamp: str = ""
    note: str = ""
    since: int | None = None
    #: What it takes to run an attack that was left waiting; empty where none was.
    attack: str = ""


@dataclass(frozen=True, eq=False)
class Stage:
    """What happens in each round, as a scene above the charts."""

    #: (clients, rows, columns): a picture of each client's private records (simulation only).
    thumbnails: NDArray[np.uint8]
    #: Of the clients.
    names: Sequence[str]
    #: (rounds + 1, clients): who sends a message in a round; nobody in round 0.
    present: NDArray[np.bool_]
    #: The client whose data the server is after.
    attacked: int
    #: What the clients send ("messages of 5.12 kB →").
    message: str
    #: What the server holds in each round, a line break where a new line is to begin.
    server: Sequence[str]
    #: What the server sends them; empty where it sends nothing.
    answer: str = ""
    #: Whether only the sum of the messages arrives.
    summed: bool = False
    #: {"", "sums", "noise", "mask"}: What lies between clients and server: nothing, secure
    #: aggregation, accounted noise, or masking by the method. They are told apart by shape and
    #: word, not by colour alone.
    protection: str = ""
    #: protection_label, protection_help: Its name on the scene, and what shows when the pointer
    #: rests on it.
    protection_label: str = ""
    protection_help: str = ""
    #: Two of them make a duel: their messages stand in the place of the server.
    sides: Sequence[Side] = ()
    #: Whose the records of their places are.
    owners: NDArray[np.uint8] | None = None
    #: How far off the attacked client's own answer is, without the others.
    alone: str = ""
    #: What is said on the right once the left has its stamp and the right has none.
    invitation: str = ""
    #: Rows and columns of one record in the pictures below, a line between them included.
    tile: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        clients = self.thumbnails.shape[0]
        require(
            self.thumbnails.dtype == np.uint8 and self.thumbnails.ndim == 3,
            f"The stage's thumbnails are {self.thumbnails.dtype} of shape "
            f"{self.thumbnails.shape}; give bytes (clients, rows, columns).",
        )
        require(
            len(self.names) == clients and self.present.shape[1:] == (clients,),
            f"The stage has {clients} thumbnails, {len(self.names)} names and a table of presence "
            f"of shape {self.present.shape}; give one of each for every client.",
        )
        require(
            len(self.server) == len(self.present),
            f"The stage has {len(self.server)} lines about the server for {len(self.present)} "
            "rounds; give one each, the start included.",
        )

    def described(self, rounds: int) -> dict[str, Any]:
        """The plain part of the header; the thumbnails are stored as a block by the encoder."""
        require(
            len(self.present) == rounds + 1,
            f"The stage shows {len(self.present) - 1} rounds of {rounds}; give them all.",
        )
        same = "names attacked message answer server summed alone invitation tile"
        return plain(self, f"{same} protection protection_label protection_help") | {
            "rows": self.thumbnails.shape[1],
            "columns": self.thumbnails.shape[2],
            "present": ["".join("1" if here else "0" for here in row) for row in self.present],
        }
