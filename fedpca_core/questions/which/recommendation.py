"""Which method to use: every candidate run as it would be deployed, judged by explicit rules.

Data, starts and noise are drawn from several seeds; the rules judge medians, and every seed by
itself says which configurations are as good in it as the one that loses least. Of whom the seeds do
not tell, more are drawn.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.guarantee import in_words
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.questions.costs import ProblemSize
from fedpca_core.questions.which import frontier
from fedpca_core.questions.which.frontier import NOTHING, Front, Frontier, Unattacked
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import plural, short, size
from fedpca_core.steps import Run
from fedpca_core.study import Cost, InPieces, OwnData
from fedpca_core.study.build import public_of
from fedpca_core.study.facts import Facts
from fedpca_core.study.parts import names, words

# ---------------------------------------------------------------------- the rules
#: A run, or a configuration: its numbers by name.
Row = Mapping[str, Any]
#: Who loses least leaves room up to what may be lost; who stays within this share of it is as good,
#: or within `NOTHING` of the whole variance. Without a limit, the same share of the loss itself.
ALIKE = 0.5
#: Share of the seeds in which a configuration passes, at least, to be advised; in which it is as
#: good, more than which puts it into the first group.
SURE, HALF = 0.7, 0.5
#: Columns with such shares.
SHARES = ("alike", "passes")
#: Chance that a share is decided wrongly, over all times that seeds are asked.
WRONG = 0.05
#: What is decided of a configuration: that it passes and is as good, or not even that by the seeds.
GOOD, EDGE = "as good", "on the edge"
_TITLES, _DEMANDS = names("which-rule-titles"), names("which-rule-demands")
_REASONS = names("which-rule-fails")


@dataclass(frozen=True)
class Rule:
    """One reason to leave a configuration out; its sentences stand in `words.toml`."""

    key: str
    #: What is asked for with these settings, in words; empty: nothing.
    asks: Callable[[FrontierSettings], str]
    #: Whether a row of the table passes.
    keeps: Callable[[Row, FrontierSettings], bool]
    #: What a row has instead, in words.
    has: Callable[[Row], str]

    @property
    def title(self) -> str:
        return _TITLES[self.key]

    def demand(self, settings: FrontierSettings) -> str:
        """The rule in words, for these settings; empty where it asks for nothing."""
        asked = self.asks(settings)
        return _DEMANDS[self.key].format(asked) if asked else ""

    def reason(self, row: Row) -> str:
        """Why a row that does not pass is left out."""
        return _REASONS[self.key].format(self.has(row))


def rounds(count: float) -> str:
    return plural(np.round(count), "round")


def share(part: float) -> str:
    """A share in words: two digits of a per cent."""
    return f"{float(f'{100 * part:.2g}'):g}%" if part >= 1e-5 else "below 0.001%"


def _at_most(key: str, limit: str, column: str, said: Callable[[float], str]) -> Rule:
    """That a number of a row is no more than the settings have."""

    most = attrgetter(limit)
    return Rule(
        key,
        lambda c: "" if math.isinf(most(c)) else said(most(c)),
        lambda row, c: bool(row[column] <= most(c)),
        lambda row: said(row[column]),
    )


RULES: tuple[Rule, ...] = (
    Rule(
        "epsilon",
        lambda c: "" if math.isinf(c.needed_epsilon) else short(c.needed_epsilon),
        lambda row, c: (
            math.isinf(c.needed_epsilon) or bool(row["epsilon"] <= c.needed_epsilon * (1 + 1e-9))
        ),
        lambda row: "no ε" if math.isnan(row["epsilon"]) else f"ε = {row['epsilon']:.3g}",
    ),
    Rule(
        "server",
        lambda c: "" if c.server == "trusted" else c.server,
        lambda row, c: c.server == "trusted" or bool(row["sums"] or row["noise"]),
        lambda row: str(row["finding"]),
    ),
    _at_most("bytes", "budget_bytes", "bytes_client", size),
    _at_most("rounds", "budget_rounds", "rounds", rounds),
    _at_most("lost", "most_lost", "unexplained", share),
    Rule(
        "sure",
        lambda c: share(SURE),
        lambda row, c: row.get("passes", 1.0) >= SURE,  # a run by itself has no share
        lambda row: share(row["passes"]),
    ),
)
#: Rules that hang on what is lost: who fails them in a seed may be as good as the first in it.
BY_LOSS = ("", "lost", "sure")


def slack(least: pd.Series, most: float) -> pd.Series:
    """How much more than the least loss is as good, where ``most`` may be lost."""
    room = least if math.isinf(most) else most - least
    return (ALIKE * room).clip(lower=NOTHING)


def ended(table: pd.DataFrame, paths: pd.DataFrame, settings: FrontierSettings) -> pd.DataFrame:
    """Runs of one seed as they are where the budgets end them.

    ``table``: One run a row, with a column ``run``.
    ``paths``: Their rounds, with the same column; see `PATH`.
    """
    rounds = paths[paths["round"] > 0]
    paid = rounds["round"] <= settings.budget_rounds
    paid &= rounds["bytes_client"] <= settings.budget_bytes
    # Where not even one round can be paid, its price is what is told.
    paid |= rounds["round"] == 1
    last = rounds[paid].groupby("run", sort=False).tail(1).set_index("run")
    costs = [name for name in frontier.PATH if name not in ("method", "seed")]
    known = last.loc[table["run"], costs].rename(columns={"round": "rounds"})
    return table.assign(**{str(name): known[name].to_numpy(dtype=float) for name in known})


def left_out(table: pd.DataFrame, settings: FrontierSettings) -> pd.DataFrame:
    """The table with ``excluded`` (key of the first rule that fails, or empty), ``reason``."""
    excluded, reasons = [], []
    rows: list[Any] = table.to_dict("records")
    for row in rows:
        failed = next((rule for rule in RULES if not rule.keeps(row, settings)), None)
        excluded.append("" if failed is None else failed.key)
        reasons.append("" if failed is None else failed.reason(row))
    return table.assign(excluded=excluded, reason=reasons)


def share_interval(share: Array, count: Array, looks: int) -> tuple[Array, Array]:
    """Wilson's intervals for shares of ``count`` draws each, which hold over all ``looks``."""
    square = norm.isf(WRONG / 2 / looks) ** 2 / count
    middle = (share + square / 2) / (1 + square)
    half = np.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return middle - half, middle + half


def standing(table: pd.DataFrame, looks: int) -> Array:
    """`GOOD`, `EDGE`, or empty where it is decided that a configuration is neither, (rows,).

    A median of losses is within the margin where the share of the seeds that stay within it is
    above one half; its interval is that of a test of equivalence by signs.
    """
    seeds = table["seeds"].to_numpy(dtype=float)
    (low, high), (weak, strong) = (
        share_interval(table[name].to_numpy(dtype=float), seeds, looks) for name in SHARES
    )
    # Few seeds decide nothing about 70%; that none of them speaks against it is taken for a yes.
    passes = (table["excluded"] == "") & ((weak > SURE) | (table["passes"] == 1))
    may = table["excluded"].isin(BY_LOSS) & (high >= HALF) & (strong >= SURE)
    return np.where(passes & (low > HALF), GOOD, np.where(may, EDGE, ""))


def judged(table: pd.DataFrame, settings: FrontierSettings, looks: int = 1) -> pd.DataFrame:
    """The table with what is `left_out`, ``standing`` and ``rank``, the recommended row first.

    ``table``: One configuration a row, with the shares of its ``seeds`` in which it is ``alike``
        the one that loses least, and ``passes``.
    ``looks``: How often seeds are asked, at the most.
    """
    result = left_out(table, settings)
    result["standing"] = standing(result, looks)
    left, good, near = result["excluded"] == "", result["standing"] == GOOD, result["alike"] >= HALF
    far = result["unexplained"].where(~near, 0.0)
    result = result.assign(left=left, good=good, near=near, far=far).sort_values(
        ["left", "good", "near", "far", "rounds", "bytes_client", "unexplained"],
        ascending=[False, False, False, True, True, True, True],
        kind="stable",
        ignore_index=True,
    )
    result = result.drop(columns=["good", "near", "far"])
    places = np.arange(1.0, len(result) + 1)
    return result.assign(rank=np.where(result.pop("left"), places, np.nan))


# ---------------------------------------------------------------------- the runs they judge
#: What the clients' noise and the server's view are called together.
WAYS: Mapping[tuple[bool, bool], str] = {
    (False, False): "without noise",
    (True, False): "without noise, under secure sums",
    (False, True): "on a private source",
    (True, True): "with shared noise under secure sums",
}
#: Seeds over which an advice is given, up to so many entries of all clients' matrices: the first,
#: and of whom they do not tell whether he is as good, more. A long run allows few.
SEEDS = ((20_000, (12, 24, 48, 96, 192, 384)), (500_000, (12,)), (math.inf, (5,)))
#: What docs/protocol.md takes, with shared noise under secure sums.
PROTOCOL = "block_krylov"
#: How many of the first group a sentence names; a table has all.
NAMED = 4
#: What identifies a configuration.
CONFIGURATION = ["method", "way", "sums", "noise"]


@dataclass(frozen=True, eq=False)
class Advice:
    """Every candidate in every way of running it, judged.

    ``table``: A row a configuration: medians over the seeds of the frontier's columns, with
        ``sums``, ``noise``, ``way``, ``excluded``, ``reason``, ``standing`` and ``rank`` by the
        rules, how many ``seeds`` it was run from, and the shares of these in which it is ``alike``
        the ``reference``, who loses least, and ``passes``; the recommended one first.
    ``seeds``: Seeds so far; who is decided is not run from the last ones.
    ``runs``, ``paths``: A row a run, and a row a round of it; see `ended`. What the rules
        judge: other budgets are judged from the same runs.
    ``facts``: Of the problem at the size that was run.
    """

    table: pd.DataFrame
    seeds: int
    refusals: Mapping[str, str]
    runs: pd.DataFrame
    paths: pd.DataFrame
    facts: Facts

    def place(self, rank: int) -> pd.Series | None:
        found = self.table[self.table["rank"] == rank]
        return None if found.empty else found.iloc[0]

    @property
    def group(self) -> pd.DataFrame:
        """The first group: what is decided to pass and to be as good."""
        return self.table[self.table["standing"] == GOOD]

    @property
    def edge(self) -> pd.DataFrame:
        """The configurations of which seeds do not tell whether they pass and are as good."""
        return self.table[self.table["standing"] == EDGE]

    @property
    def other_server(self) -> pd.Series | None:
        """The best configuration that does without secure sums, where the best needs them."""
        best = self.place(1)
        left = self.table[self.table["rank"].notna() & ~self.table["sums"]]
        return None if best is None or not best["sums"] or left.empty else left.iloc[0]


class Recommendation(InPieces[FrontierSettings, Advice]):
    """Run what the visitor could deploy, and choose by the rules."""

    key = "recommendation"
    title = "What to use"
    seconds = 300.0
    reads = frozenset(
        name for name, p in FrontierSettings.parameters().items() if not p.view
    ) - {"vary", "epsilon", "secure_aggregation", "shared_noise"} | {
        "budget_bytes", "budget_rounds", "server", "needed_epsilon", "most_lost"
    }  # fmt: skip

    def ways(self, settings: FrontierSettings) -> list[FrontierSettings]:
        """The settings of every way of running all candidates, from the first seed."""
        base = replace(
            settings, vary="none", seeds=1, starts=1, epsilon=settings.needed_epsilon,
            shared_noise=False, secure_aggregation=False, searches=False,
        )  # fmt: skip
        if settings.server != "sums":
            return [base]
        noisy = not math.isinf(settings.needed_epsilon)
        return [base, replace(base, secure_aggregation=True, shared_noise=noisy)]

    def run_piece(
        self, settings: FrontierSettings, which: FrontierSettings, data: OwnData | None
    ) -> Run[Front]:
        return self._front(settings, which).run(which, data)

    def piece_identity(
        self, settings: FrontierSettings, which: FrontierSettings, data: OwnData | None
    ) -> Hashable:
        return self._front(settings, which).identity(which, data)

    def _front(self, settings: FrontierSettings, which: FrontierSettings) -> Frontier:
        """What leaks is told from the first seed."""
        return Frontier() if which.seed == settings.seed else Unattacked()

    def pieces(self, settings: FrontierSettings) -> list[FrontierSettings]:
        """Every way from every seed, and what attacks must search for from the first."""
        return _pieces(settings, seed_counts(settings))

    def stages(self, settings: FrontierSettings) -> list[int]:
        ways, whole = len(self.ways(settings)), len(self.pieces(settings))
        counts = seed_counts(settings)
        return [whole - ways * (counts[-1] - count) for count in counts]

    def narrowed(
        self, settings: FrontierSettings, which: FrontierSettings, before: Advice
    ) -> FrontierSettings:
        """Who is on the edge, and who loses least, to be told from."""
        table = before.table
        needed = table[(table["standing"] == EDGE) | table["reference"]]
        here = needed[needed["way"] == WAYS[_kind(which)]]
        some = set((needed if here.empty else here)["method"])
        return replace(which, candidates=tuple(key for key in which.candidates if key in some))

    def enough(self, settings: FrontierSettings, result: Advice | None) -> bool:
        return result is not None and result.edge.empty

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        """Of the first stage, and of two candidates from the seeds beyond."""
        pieces, first = self.pieces(settings), self.stages(settings)[0]
        every = [Frontier().cost(piece, data) for piece in pieces[:first]]
        two = replace(pieces[-1], candidates=settings.candidates[:2])
        later = Frontier().cost(two, data).seconds * (len(pieces) - first)
        return Cost(max(one.megabytes for one in every), later + sum(one.seconds for one in every))

    def gathered(self, settings: FrontierSettings, found: Sequence[Front]) -> Advice | None:
        """The first seed as it grows, then whole ones; later whole stages, which differ less."""
        first, *later = self.stages(settings)
        ways, number = len(self.ways(settings)), len(found)
        if number > first:  # all pieces of a way and a stage are of the same candidates
            told = number in later and _answered(found[-1]) == _answered(found[-1 - ways])
        else:  # half a seed more changes nothing, and to judge costs as much as a short run
            asked = self.pieces(settings)[number - 1].candidates
            told = number <= ways or _answered(found[-1]) == len(asked)
        return self.advice(settings, found) if told else None

    def advice(self, settings: FrontierSettings, found: Sequence[Front]) -> Advice:
        refusals: dict[str, str] = {}
        done: Counter[int] = Counter()
        kinds = []
        first = self.stages(settings)[0]
        for number, (way, front) in enumerate(zip(self.pieces(settings), found, strict=False)):
            kinds.append((*_kind(way), WAYS[_kind(way)]))
            refusals |= {f"{name} {kinds[-1][-1]}": why for name, why in front.refusals.items()}
            # See `gathered`.
            done[way.seed] += number >= first or _answered(front) == len(way.candidates)
        every, paths = (_numbered([getattr(one, of) for one in found]) for of in ("table", "paths"))
        every = every.join(pd.DataFrame(kinds, columns=["sums", "noise", "way"]), on="piece")
        every = frontier.told_once(every, [*CONFIGURATION, "seed"])
        whole_seeds = [seed for seed, pieces in done.items() if pieces >= len(self.ways(settings))]
        every = every[every["seed"].isin(whole_seeds or list(done)[:1])]
        return advised(every, paths, settings, refusals, found[0].facts)

    def tables(self, result: Advice, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        shown = [
            *("rank", "method", "way", "unexplained", "worst_client", "sin_theta", "rounds"),
            *("bytes_client", "epsilon", "finding", "seeds", *SHARES, "standing"),
        ]
        asked = [(rule.title, rule.demand(settings)) for rule in RULES]
        return {
            "advice": pd.DataFrame({"advice": sentences(result, settings)}),
            "judged": result.table[[*shown, "excluded", "reason"]],
            "rules": pd.DataFrame(asked, columns=["rule", "demand"]),
        }


def _answered(front: Front) -> int:
    """How many candidates ran or were refused."""
    return len(front.table) + len(front.refusals)


def _numbered(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other, with the piece that each is from and a name for every run."""
    every = dict(enumerate(tables))
    filled = {piece: table for piece, table in every.items() if len(table)}
    whole = pd.concat(filled or every, names=["piece"]).reset_index("piece").reset_index(drop=True)
    return whole.assign(run=whole["method"] + "-" + whole["piece"].astype(str))


def advised(
    runs: pd.DataFrame,
    paths: pd.DataFrame,
    settings: FrontierSettings,
    refusals: Mapping[str, str],
    facts: Facts,
) -> Advice:
    """Runs judged by the rules, seed by seed and in the middle."""
    seeds = max(runs["seed"].nunique(), 1)
    if runs.empty:
        judged_by = ("seeds", *SHARES, "rank", "excluded", "reason", "standing")
        nothing = runs.reindex(columns=[*runs.columns, *judged_by])
        return Advice(nothing, seeds, refusals, runs, paths, facts)
    every = left_out(ended(runs, paths, settings), settings).reset_index(drop=True)
    every = every.assign(
        alike=False, passes=every["excluded"] == "", stage=_stage(every["seed"], settings)
    )
    # Who ran in a stage was asked from all of its seeds.
    asked = every.drop_duplicates([*CONFIGURATION, "stage"]).set_index(CONFIGURATION)["stage"]
    asked = asked.map(every.groupby("stage")["seed"].nunique()).groupby(level=CONFIGURATION).sum()
    able = every[every["excluded"].isin(BY_LOSS)]
    often = able.groupby(CONFIGURATION)["unexplained"].agg(["median", "size"])
    often = often[(often["size"] >= seeds / 2) & (asked.loc[often.index] == seeds)]
    if len(often):
        best = able.set_index(CONFIGURATION).loc[[often["median"].idxmin()]]
        least = able["seed"].map(best.set_index("seed")["unexplained"])
        near = able["unexplained"] <= least + slack(least, settings.most_lost)
        every.loc[near[near].index, "alike"] = True
    every = every.astype(dict.fromkeys(SHARES, float))
    groups = every.groupby(CONFIGURATION, sort=False)
    numbers = every.select_dtypes(float).columns.difference([*SHARES], sort=False)
    spans = [
        groups[list(numbers)].median(),
        groups[["unexplained", "worst_client"]].min().add_suffix("_low"),
        groups[["unexplained", "worst_client"]].max().add_suffix("_high"),
        groups[list(SHARES)].sum().div(asked, axis=0),
        groups[["protection", "searched", "note", "finding"]].first(),
        asked.rename("seeds"),
    ]
    table = pd.concat(spans, axis=1).assign(reference=False)
    if len(often):
        table.loc[[often["median"].idxmin()], "reference"] = True
    table = table.reset_index()
    table["rounds"] = np.ceil(table["rounds"])
    table = judged(table, settings, len(seed_counts(settings)))
    return Advice(table, seeds, refusals, runs, paths, facts)


def rejudged(advice: Advice, settings: FrontierSettings) -> Advice:
    """The same runs by other budgets, of the seeds from which all were run."""
    runs = advice.runs[_stage(advice.runs["seed"], settings) == 0]
    return advised(runs, advice.paths, settings, advice.refusals, advice.facts)


def seed_counts(settings: FrontierSettings) -> tuple[int, ...]:
    """The counts of seeds after which it is asked whether they tell."""
    of = ProblemSize.of(settings)  # of a table, what its page says
    counts = next(counts for most, counts in SEEDS if of.features**2 * of.clients <= most)
    first = max(settings.seeds, counts[0])
    return first, *(count for count in counts if count > first)


def _stage(seeds: pd.Series, settings: FrontierSettings) -> IntArray:
    """With which of the counts every seed came."""
    return np.searchsorted(seed_counts(settings), (seeds - settings.seed) % 100_000, side="right")


def _kind(settings: FrontierSettings) -> tuple[bool, bool]:
    """Whether there are sums, and noise."""
    return settings.secure_aggregation, not math.isinf(settings.epsilon)


@lru_cache(maxsize=32)
def _pieces(settings: FrontierSettings, counts: Sequence[int]) -> list[FrontierSettings]:
    """The pieces of an advice; nobody changes the list."""
    ways, seeds = Recommendation().ways(settings), range(settings.seed, settings.seed + counts[-1])
    first = counts[0] * len(ways)
    plain = [replace(way, seed=seed % 100_000) for seed in seeds for way in ways]
    searching: list[FrontierSettings] = []
    if settings.searches and math.isinf(settings.needed_epsilon):
        some = (key for key in settings.candidates if frontier.searched(key, ways[0]))
        searching = [replace(ways[0], candidates=(key,), searches=True) for key in some]
    return [*plain[:first], *searching, *plain[first:]]


# ---------------------------------------------------------------------- the answer in words
def titled(method: str, noise: bool) -> str:
    """What a candidate is called here: who sends matrices computes nothing."""
    if METHODS[method].algorithm.uploads is Uploads.MATRIX:
        return "Noisy covariance" if noise else "The covariances themselves"
    return METHODS[method].title


def named(row: pd.Series) -> str:
    """A configuration in words: method, way, rounds."""
    title = titled(row["method"], row["noise"])
    rounds = "one round" if row["rounds"] == 1 else f"{row['rounds']:.0f} rounds"
    protocol = row["method"] == PROTOCOL and row["sums"] and row["noise"]
    return f"{'The protocol: ' * bool(protocol)}{title} {row['way']}, {rounds}"


def meant(settings: FrontierSettings) -> str:
    """What every ε of these runs means: it never stands alone."""
    given = in_words(settings.delta, f"norm {short(settings.clip_norm)}", public_of(settings))
    return f"{given} " + words("which-shared")


def wish(settings: FrontierSettings) -> str:
    c = settings
    finite = {
        f"≤ {size(c.budget_bytes)} a client": c.budget_bytes,
        f"≤ {rounds(c.budget_rounds)}": c.budget_rounds,
        f"ε ≤ {short(c.needed_epsilon)}": c.needed_epsilon,
        f"≤ {share(c.most_lost)} of the variance lost": c.most_lost,
    }
    server = c.parameters()["server"].choices[c.server].lower()
    return ", ".join(
        [f"Server {server}", *(text for text, most in finite.items() if most < math.inf)]
    )


def often(row: pd.Series, column: str) -> str:
    """A share of the seeds of a configuration in words."""
    return f"{round(row[column] * row['seeds'])} of {row['seeds']:.0f}"


def lost(row: pd.Series) -> str:
    """What a configuration misses, in words (simulation only)."""
    span = [share(row["unexplained_low"]), share(row["unexplained_high"])]
    between = f" ({span[0]}–{span[1]})" if span[0] != span[1] else ""
    return (
        f"loses {share(row['unexplained'])}{between} of the variance, "
        f"{share(row['worst_client'])} at the worst client"
    )


def _why(advice: Advice) -> str:
    """How sure the choice is: who is as good, and in how many seeds."""
    some = [f"{named(row)} (in {often(row, 'alike')} seeds)" for _, row in advice.group.iterrows()]
    more = [f"and {len(some) - NAMED} more"] * (len(some) > NAMED)
    left, of = advice.table["rank"].notna().sum(), len(advice.table)
    said = names("which-why")["none" if not some else "one" if len(some) == 1 else "many"]
    return said.format(left=left, of=of, many=len(some), names="; ".join([*some[:NAMED], *more]))


def _protocol(advice: Advice, best: pd.Series, settings: FrontierSettings) -> str:
    """Where the protocol of docs/protocol.md stands and what puts it there; empty where it is first
    or was not asked about."""
    if PROTOCOL not in settings.candidates or math.isinf(settings.needed_epsilon):
        return ""
    said, table = names("which-protocol"), advice.table
    if settings.server != "sums":
        return said["open"]
    own = table[(table["method"] == PROTOCOL) & table["sums"] & table["noise"]]
    if own.empty or own["rank"].iloc[0] == 1:  # a refusal is told beside the rules
        return ""
    row = own.iloc[0]
    if row["excluded"]:
        return said["out"].format(row=row)
    takes, other = (
        f"{rounds(float(one['rounds']))}, {size(one['bytes_client'])}" for one in (row, best)
    )
    told = {"row": row, "lost": lost(row), "alike": often(row, "alike")}
    return said["place"].format(takes=takes, other=other, **told)


def sentences(advice: Advice, settings: FrontierSettings) -> list[str]:
    """What was asked and what does it, why, what would do without secure sums, the next best."""
    best, second, open_ = advice.place(1), advice.place(2), advice.other_server
    if advice.table.empty:
        whys = " ".join(f"{name}: {why}" for name, why in advice.refusals.items())
        return [f"{wish(settings)}: no candidate could be run. {whys}"]
    wanted, *_ = seed_counts(settings)
    so_far = "" if advice.seeds >= wanted else f" (so far, from {advice.seeds} of {wanted} seeds)"
    edge = "; ".join(
        f"{named(row)} (as good in {often(row, 'alike')} seeds, passes in {often(row, 'passes')})"
        for _, row in advice.edge.iterrows()
    )
    edge = names("which-why")["edge"].format(names=edge) if edge and not so_far else ""
    if best is None:
        nothing = f"{wish(settings)}: nothing that was run here does all of it{so_far}."
        return [nothing, *filter(None, [edge])]
    budget = f", ε = {short(round(best['epsilon'], 3))}" if best["noise"] else ""
    sent = f"{size(best['bytes_client'])} a client"
    named_already = len(advice.group) > 1 or edge or (open_ is not None and open_["rank"] == 2)
    said = [
        f"{wish(settings)}: **{named(best)}**, {lost(best)}, {sent}{budget}{so_far}.",
        _why(advice),
        edge,
        words("which-twice") if best["sums"] and not best["noise"] else "",
        "" if open_ is None else f"Without secure sums: {named(open_)} ({lost(open_)}).",
        "" if second is None or named_already else f"Next best: {named(second)} ({lost(second)}).",
        _protocol(advice, best, settings),
    ]
    return [one for one in said if one]
