"""The story in seven steps: what each sets, tells and asks, and the sentence in which it ends.

Every sentence is made of the tables of the run that is on show, whatever the reader has changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from fedpca_core.questions.home.settings import ALONE, SceneSettings
from fedpca_core.questions.home.words import angle, degrees, known, things, who, within
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Settings, plural, short
from fedpca_core.study.facts import Facts
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.preset import Preset

#: Degrees within which an answer counts as good, in the first step and in the last.
NEAR, FAIR = 1.0, 20.0
#: The guess that it does not happen, and all that one run can say of that.
NEVER = "not in this run"
Tables = Mapping[str, pd.DataFrame]
Ending = Callable[[Tables, SceneSettings, Facts | None], str]


@dataclass(frozen=True)
class Chapter:
    """One step."""

    #: In links: ``?step=2``.
    key: str
    title: str
    #: told, asked: With fields in braces that the settings of the run on show fill in.
    told: str
    asked: str
    #: Fields of `SceneSettings` that differ from the way the page opens.
    sets: Mapping[str, Any]
    #: The sentence that the run bears out, from its tables; facts know the client's name.
    ending: Ending
    #: door, opens: Where to go deeper: the words, and the settings of the other page.
    door: str
    opens: Callable[[SceneSettings], Settings]
    #: {"round", "epsilon"}: What is guessed: after which message, or from which ε on.
    guess: Literal["round", "epsilon"] = "round"
    #: What a right guess is, from the tables of the run; None if it does not happen.
    answer: Callable[[Tables], float | None] = lambda tables: known(tables["rounds"])
    #: What stands beside the records: a step before the attack is asked for does not show it.
    shows: Literal["attack", "answer"] = "attack"
    #: Terms that are used for the first time, each with a small picture.
    terms: tuple[str, ...] = ()

    @property
    def settings(self) -> SceneSettings:
        """The step as it opens."""
        return SceneSettings(**told(self), step=self.key)

    def options(self, settings: SceneSettings) -> tuple[str, ...]:
        """What may be guessed, in order; that it does not happen comes last."""
        if self.guess == "round":
            return (*map(str, range(1, settings.rounds + 1)), NEVER)
        return (*map(short, settings.parameters()["epsilon"].grid[:-1]), NEVER)

    def option(self, value: float | None) -> str:
        """A guess or the answer as `options` have it."""
        return NEVER if value is None else short(value)

    def filled(self, text: str, settings: SceneSettings, facts: Facts | None = None) -> str:
        """A text with the numbers of the settings, and the client's name where facts know it."""
        side = settings.resolution or 8
        return text.format(
            clients=settings.clients,
            records=short(settings.records_per_client),
            things=things(settings),
            who=who(settings, facts),
            components=settings.components,
            joined=settings.joined,
            pixels=f"{side} × {side}",
            epsilon=short(settings.epsilon),
        )


def told(chapter: Chapter) -> Mapping[str, Any]:
    """Every field that a step sets: it tells of one method."""
    return {"versus": ALONE, **chapter.sets}


def _attack(settings: SceneSettings, **changes: Any) -> AttackSettings:
    return replace(settings.carried(AttackSettings), attacked=(settings.method,), **changes)


def _needs(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    found, size = within(rounds, NEAR), rounds["bytes_up"].iloc[-1] / settings.clients
    if found is None:
        return (
            f"After {plural(len(rounds) - 1, 'message')} and {size / 1e3:.3g} kB from each client "
            f"the answer is still off by {angle(rounds['sin_theta'].iloc[-1])}; no record was sent."
        )
    size = rounds["bytes_up"].iloc[found] / settings.clients
    return (
        f"{plural(found, 'message')}, {size / 1e3:.3g} kB from each client, and the answer is "
        f"within {NEAR:g}°. Nobody has sent a record; now look at what the server holds."
    )


def _knows(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    found, last = known(rounds), len(rounds) - 1
    if found is None:
        held = int(rounds["directions_held"].iloc[-1])
        return (
            f"After {plural(last, 'message')} it has {plural(held, 'direction')} of "
            f"{who(settings, facts)}; no attack of ours has made a record of them."
        )
    count = int(rounds["records_held"].iloc[-1])
    off = angle(rounds["sin_theta"].iloc[found])
    return (
        f"After message {found} of {last} it has all {count} {things(settings)} of "
        f"{who(settings, facts)}, exactly, while the answer is still off by {off}."
    )


def _masked(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    if known(rounds) is not None:
        return _knows(tables, settings, facts)
    return (
        f"Read as products, {len(rounds) - 1} masked messages give none of the records of "
        f"{who(settings, facts)}. A replay of the update has not been tried yet."
    )


def _replayed(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    if known(rounds) is None:
        return (
            f"Replayed, {len(rounds) - 1} messages of this run did not give the records within the "
            "work allowed; that is no proof that they cannot."
        )
    return (
        f"Replayed, the same {len(rounds) - 1} messages give all "
        f"{int(rounds['records_held'].iloc[-1])} {things(settings)} of "
        f"{who(settings, facts)}, exactly: masking is not privacy."
    )


def _summed(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    if known(rounds) is not None:
        return _knows(tables, settings, facts)
    # Sums over changing clients are told apart, as far as that goes.
    whose = f"all {settings.clients} clients together" if settings.participation == 1 else "them"
    return (
        f"{len(rounds) - 1} sums leave the server with {int(rounds['directions_held'].iloc[-1])} "
        f"directions of {whose}; none of our attacks has made a record of "
        f"{who(settings, facts)} of them, which proves nothing."
    )


def _newcomers(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    rounds = tables["rounds"]
    found = known(rounds)
    if found is None:
        return f"Both runs together, {len(rounds) - 1} sums each, did not give the newcomers."
    return (
        f"After message {found} of both runs the server has all "
        f"{int(rounds['records_held'].iloc[-1])} {things(settings)} that joined, exactly, from "
        "sums alone."
    )


def _priced(tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
    if "prices" not in tables:
        label = settings.parameters()["price"].label
        return f"Switch on “{label}” among the parameters, and the price is drawn."
    prices = tables["prices"].set_index("epsilon")["sin_theta"]
    good = fair(tables["prices"])
    off = (
        f"with ε = {short(prices.index[0])} it is off by {angle(prices.iloc[0])}, without noise by "
        f"{angle(prices.iloc[-1])}"
    )
    if good is None:
        return f"No ε on offer brings the answer within {FAIR:g}°: {off}."
    return f"From ε = {short(good)} on the answer is within {FAIR:g}°: {off}."


def fair(prices: pd.DataFrame) -> float | None:
    """The smallest ε from which on the answer stays within `FAIR` degrees; None if none."""
    far = prices["sin_theta"].map(degrees) > FAIR
    good = prices["epsilon"][~far[::-1].cummax()[::-1]]
    return float(good.iloc[0]) if len(good) else None


#: Of the seeds 0 to 5 the replay has its end at all but 0, as chapter 4 says; at this one soonest.
_MASKED: Mapping[str, Any] = {
    "method": "faps",
    "seed": 4,
    "clients": 5,
    "records_per_client": 15.0,
    "resolution": 6,
    "components": 6,
    "rounds": 10,
}

STORY: tuple[Chapter, ...] = (
    Chapter(
        "1",
        "What does the server need?",
        "{clients} clients keep their {things} to themselves: a **federation**. Together they look "
        "for the **leading directions**, along which all {things} vary most. Each round, the "
        "server sends its answer so far, every client returns a small matrix, its **message**, and "
        "their average is the next answer.",
        f"After how many messages is the answer within {NEAR:g}° of the true directions?",
        {},
        _needs,
        "Which method needs fewest?",
        lambda settings: settings.carried(ConvergeSettings),
        answer=lambda tables: within(tables["rounds"], NEAR),
        shows="answer",
        terms=("federation", "directions"),
    ),
    Chapter(
        "2",
        "When does the server know all?",
        "The server sends a **basis** of {components} directions; the message is the client's "
        "**covariance** times that basis. So each message tells {components} more directions of "
        "the covariance, and {records} {things} span no more than {records}. Grey levels are whole "
        "numbers: that leads from the covariance back to the {things}.",
        "After which message does the server know all {records} {things} of {who}?",
        {},
        _knows,
        "See how the records are found",
        _attack,
        terms=("basis", "covariance"),
    ),
    Chapter(
        "3",
        "Does masking help?",
        "The method FAPS masks the messages: a client takes a step of its own towards the common "
        "answer and sends where it arrives, not covariance times basis. Here {clients} clients "
        "hold {records} {things} of {pixels} pixels each.",
        "If the server reads messages as before: after which one does it know the {things} of "
        "{who}?",
        _MASKED,
        _masked,
        "Compare it with a plain run",
        _attack,
    ),
    Chapter(
        "4",
        "And if the server replays?",
        "How a client takes its step is public, only its data are not. So the server makes up a "
        "covariance, takes the step with it, compares the result with the message it received, and "
        "improves the covariance until both agree. As this step opens, that ended so for five "
        "of the seeds 0 to 5.",
        "After which message does it know the {things} of {who} now?",
        {**_MASKED, "unmask": True},
        _replayed,
        "Defences against a replay",
        lambda settings: _attack(settings, unmask=True),
    ),
    Chapter(
        "5",
        "Secure sums",
        "With **secure aggregation** the messages are added up on their way: the server sees the "
        "sum over all {clients} clients, never the message of one.",
        "After which message does the server know the {things} of {who}?",
        {"secure_aggregation": True},
        _summed,
        "What sums give away",
        lambda settings: _attack(settings, attack="pooled"),
    ),
    Chapter(
        "6",
        "Somebody joins",
        "{joined} more {things} come to {who}, and the federation runs again, still with sums "
        "only. The server has kept the sums of the first run and subtracts.",
        "After which message of both runs does it know the {joined} that joined?",
        {"secure_aggregation": True, "joined": 8},
        _newcomers,
        "Compare two runs",
        lambda settings: _attack(settings, attack="pooled", joined=settings.joined),
    ),
    Chapter(
        "7",
        "What does ε buy, and what does it cost?",
        "With **differential privacy** every client adds noise to its covariance before anything "
        "is sent. A number ε bounds how much any one record can show: the smaller ε, the more "
        "noise. Here {clients} clients share all 1,797 {things}; the run below has "
        "ε = {epsilon}.",
        f"From which ε on is the answer within {FAIR:g}° of the truth?",
        {
            "clients": 2,
            "records_per_client": float("inf"),
            "components": 3,
            "epsilon": 10.0,
            "clip_norm": 4.0,
            "client": 1,
            "price": True,
        },
        _priced,
        "Spend a budget",
        lambda settings: settings.carried(PrivacySettings),
        guess="epsilon",
        answer=lambda tables: fair(tables["prices"]) if "prices" in tables else None,
    ),
)
CHAPTERS: Mapping[str, Chapter] = {chapter.key: chapter for chapter in STORY}
SceneSettings.story.update({chapter.key: told(chapter) for chapter in STORY})

PRESETS: tuple[Preset, ...] = tuple(
    Preset(f"story-{chapter.key}", chapter.title, chapter.filled(chapter.asked, chapter.settings),
           chapter.settings)
    for chapter in STORY
)  # fmt: skip
