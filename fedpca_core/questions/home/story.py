"""How the live picture speaks, and the story in seven steps: what each sets, tells and asks, and
the sentence in which it ends.

Every sentence is made of the tables of the run that is on show, whatever the reader has changed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import pandas as pd

from fedpca_core.questions.home.settings import ALONE, SceneSettings
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Settings, plural, said_in, short
from fedpca_core.study.facts import Facts
from fedpca_core.study.parts import names, words
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.preset import Preset

#: Degrees within which an answer counts as good, in the first step and in the last.
NEAR, FAIR = 1.0, 20.0
#: The guess that it does not happen, and all that one run can say of that.
NEVER = "not in this run"
_THINGS = {"digits": "digits", "fashion_mnist": "garments", "olivetti": "faces", "table": "rows"}
Tables = Mapping[str, pd.DataFrame]
Opens = Callable[[SceneSettings], Settings]


def things(settings: ConvergeSettings) -> str:
    return _THINGS.get(settings.problem, "images")


def who(settings: ConvergeSettings, facts: Facts | None = None) -> str:
    """The client under attack, counted from 0 as in settings; with its name where facts know it."""
    return f"client {settings.client}" if facts is None else facts.client(settings.client)


def degrees(sine: float) -> float:
    return math.degrees(math.asin(min(max(sine, 0.0), 1.0)))


def angle(sine: float) -> str:
    """The largest angle to the true subspace, in degrees while one can see it."""
    found = degrees(sine)
    return f"{found:.1f}°" if found >= 0.05 else f"{short(found, 1)}°"


def within(table: pd.DataFrame, limit: float, column: str = "round") -> float | None:
    """From which round, or ε, on the answer stays within so many degrees; None if from none."""
    far = table["sin_theta"].map(degrees) > limit
    near = table[column][~far[::-1].cummax()[::-1]]
    return near.iloc[0].item() if len(near) else None


def known(tables: Tables) -> float | None:
    """The first round after which the server has every record; None if none."""
    rounds = tables["rounds"]
    return next(iter(rounds["round"][rounds["records_held"] > 0]), None)


def fair(tables: Tables) -> float | None:
    """From which ε on the answer is fair; None if from none, or where no prices were asked for."""
    return within(tables["prices"], FAIR, "epsilon") if "prices" in tables else None


@dataclass(frozen=True)
class Chapter:
    #: In links: ``?step=2``.
    key: str
    #: The settings of the other page where to go deeper.
    opens: Opens
    #: As `words.toml` has them, with fields in braces that the run on show fills in. ``found`` and
    #: ``missed`` end the step: by whether what is asked for happens.
    title: str
    told: str
    asked: str
    door: str
    found: str = words("story-found")
    missed: str = ""
    #: Fields of `SceneSettings` that differ from the way the page opens: it tells of one method.
    sets: Mapping[str, Any] = field(default_factory=dict)
    #: {"round", "epsilon"}: What is guessed: after which message, or from which ε on.
    guess: Literal["round", "epsilon"] = "round"
    #: What a right guess is, from the tables of the run; None if it does not happen.
    answer: Callable[[Tables], float | None] = known
    #: What stands beside the records: a step before the attack is asked for does not show it.
    shows: Literal["attack", "answer"] = "attack"
    #: Terms that are used for the first time, each with a small picture.
    terms: Sequence[str] = ()

    @property
    def settings(self) -> SceneSettings:
        """The step as it opens."""
        return SceneSettings(**self.sets, step=self.key)

    def options(self, settings: SceneSettings) -> tuple[str, ...]:
        """What may be guessed, in order; that it does not happen comes last."""
        if self.guess == "round":
            return (*map(str, range(1, settings.rounds + 1)), NEVER)
        return (*map(short, settings.parameters()["epsilon"].grid[:-1]), NEVER)

    def answered(self, tables: Tables) -> str:
        """The answer as `options` have it."""
        value = self.answer(tables)
        return NEVER if value is None else short(value)

    def ending(self, tables: Tables, settings: SceneSettings, facts: Facts | None = None) -> str:
        """The sentence that the run bears out, from its tables."""
        if self.guess == "epsilon":
            return _priced(tables, settings)
        rounds, found = tables["rounds"], self.answer(tables)
        end = rounds.iloc[-1 if found is None else int(found)]
        everybody = f"all {settings.clients} clients together"
        return self.filled(
            self.missed if found is None else self.found,
            settings,
            facts,
            found=found,
            last=len(rounds) - 1,
            messages=plural(int(end["round"]), "message"),
            size=f"{end['bytes_up'] / settings.clients / 1e3:.3g}",
            off=angle(end["sin_theta"]),
            directions=plural(int(end["directions_held"]), "direction"),
            count=int(rounds["records_held"].iloc[-1]),
            # Sums over changing clients are told apart, as far as that goes.
            whose=everybody if settings.participation == 1 else "them",
        )

    def filled(
        self, text: str, settings: SceneSettings, facts: Facts | None = None, **run: Any
    ) -> str:
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
            near=short(NEAR),
            fair=short(FAIR),
            **run,
        )


def _attack(settings: SceneSettings, **changes: Any) -> AttackSettings:
    return replace(settings.carried(AttackSettings), attacked=(settings.method,), **changes)


def _priced(tables: Tables, settings: SceneSettings) -> str:
    said = names("story-prices")
    if "prices" not in tables:
        return said["off"].format(label=settings.parameters()["price"].label)
    prices, good = tables["prices"].set_index("epsilon")["sin_theta"], fair(tables)
    told = {"least": short(prices.index[0]), "fair": f"{FAIR:g}"}
    told |= {"first": angle(prices.iloc[0]), "last": angle(prices.iloc[-1])}
    if good is None:
        return said["none"].format(**told)
    return said["from"].format(good=short(good), **told)


#: Where each step goes deeper.
_OPENS: Mapping[str, Opens] = {
    "story-1": lambda settings: settings.carried(ConvergeSettings),
    "story-2": _attack,
    "story-3": _attack,
    "story-4": partial(_attack, unmask=True),
    "story-5": partial(_attack, attack="pooled"),
    "story-6": partial(_attack, attack="pooled"),
    "story-7": lambda settings: settings.carried(PrivacySettings),
}
#: What a right guess is, but where it is when the records are known.
_ANSWERS: Mapping[str, Callable[[Tables], float | None]] = {
    "story-1": lambda tables: within(tables["rounds"], NEAR),
    "story-7": fair,
}


def _chapter(name: str) -> Chapter:
    """A step as `words.toml` has it: its sentences, and the fields that it sets."""
    changes = {key: one for key, one in said_in("words")[name].items() if not isinstance(one, str)}
    answer = {"answer": _ANSWERS[name]} if name in _ANSWERS else {}
    texts = {**names(name)}
    sets = {"versus": ALONE, **changes.pop("sets", {})}
    return Chapter(name.removeprefix("story-"), _OPENS[name], **texts | changes | answer, sets=sets)


STORY = tuple(map(_chapter, _OPENS))
CHAPTERS: Mapping[str, Chapter] = {chapter.key: chapter for chapter in STORY}
SceneSettings.story.update({chapter.key: chapter.sets for chapter in STORY})

PRESETS: tuple[Preset, ...] = tuple(
    Preset(f"story-{chapter.key}", chapter.title, chapter.filled(chapter.asked, chapter.settings),
           chapter.settings)
    for chapter in STORY
)  # fmt: skip
