"""What the runs of a view guarantee, and one budget in the eyes of several accountants."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.errors import InvalidInput, require
from fedpca_core.guarantee import meanings
from fedpca_core.papers import fedpower
from fedpca_core.privacy import Guarantee, account, calibration
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.steps import Run, Step
from fedpca_core.study import Cost, OwnData, Study
from fedpca_core.study.facts import counted


@dataclass(frozen=True)
class StatedGuarantee:
    #: Of the curve it belongs to, where a view has several.
    label: str
    #: Epsilon that was asked for; published noise gives a smaller one.
    asked: float
    guarantee: Guarantee


@dataclass(frozen=True)
class Promises:
    #: Empty where no epsilon can be stated.
    stated: tuple[StatedGuarantee, ...]
    #: Why not.
    refusal: str = ""
    #: Published noise over exact noise for the same budget.
    excess: float | None = None
    #: What is wrong with delta, if anything.
    warning: str = ""
    #: What a record is, where that needs saying.
    record: str = ""
    #: What the same noise means for other units and towards other adversaries.
    others: Mapping[str, Guarantee] = field(default_factory=dict)
    #: How much was read or drawn.
    read: str = ""

    @property
    def private(self) -> bool:
        """Whether any epsilon is finite."""
        return any(each.guarantee.private for each in self.stated)


class Promise(Study[PrivacySettings, Promises]):
    """The guarantee, or why there is none; needs no data and takes a moment."""

    key = "guarantee"
    title = "What is guaranteed"
    most = Cost(megabytes=50, seconds=10)
    reads = frozenset(PrivacySettings.parameters())

    def wanted(self, settings: PrivacySettings) -> bool:
        return settings.view != "ways"  # each way states its own beside its run

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Promises]:
        yield Step(0.0, "Accounting")
        return promised(settings, data)

    def tables(self, result: Promises, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        if result.refusal:
            return {"guarantee": pd.DataFrame([{"epsilon": math.nan, "refusal": result.refusal}])}
        rows = [
            {"run": each.label, "asked_epsilon": each.asked, **each.guarantee.row()}
            for each in result.stated
        ]
        return {"guarantee": pd.DataFrame(rows)}


def promised(settings: PrivacySettings, data: OwnData | None = None) -> Promises:
    """What the open view guarantees.

    Raises InvalidInput: raw records with noise on, or a run that cannot be made.
    """
    if settings.view == "figures":
        return _of_a_figure(settings)
    c, found, public = settings, build.stated(settings, data), build.public_setting(settings, data)
    few, most = int(public.samples.min()), int(public.samples.max())
    read = counted(public.features, public.clients, few, most)
    if found.reason:
        return Promises((), found.reason, read=read)
    found, record = found.stated(), fedpower.ROW_OF_A_NETWORK if c.problem == "blocks" else ""
    promises = Promises((StatedGuarantee("", c.epsilon, found),), record=record, read=read)
    if not found.private:
        return promises
    excess = None
    if c.trusted == "nobody" and c.calibration != "source":
        published, exact = (build.noise_for(c, kind, data=data) for kind in ("published", "exact"))
        excess = published / exact
    warning = calibration.warn_delta(c.delta, public.samples) or ""
    return replace(promises, excess=excess, warning=warning, others=_others(c, data, found))


def _others(c: PrivacySettings, data: OwnData | None, found: Guarantee) -> dict[str, Guarantee]:
    """The same noise in the eyes of each adversary, and for each unit."""
    trust, public = build.trust(c), build.public_setting(c, data)
    # At the source every client's noise is enough for it, also that of a public one.
    samples = public.samples if c.calibration == "source" else build.protected(c, public)
    neighbour = found
    if trust is not None and not trust.colluding:
        # One who knows its own share of the noise is left with that of one client fewer.
        curious = replace(trust, colluding=1)
        left = math.sqrt(curious.honest(public.clients) / trust.honest(public.clients))
        towards = curious.sentence(public.clients)
        neighbour = replace(found, noise=left * found.noise, towards=towards)

    def units_at(count: int) -> dict[str, Guarantee]:
        """What the same noise means for every unit at a client of so many records."""
        return meanings(found.of_one_record(build.unit(c), count), count)

    units = units_at(int(samples.max()))
    if c.calibration == "source" and trust is None:
        # Noise that fits each client's own unit: one record of a small client has more to lose.
        small = units_at(int(samples.min()))
        everything = list(small.values())[-1]
        units = {
            label: max(row, small.get(label, everything), key=lambda each: each.mu)
            for label, row in units.items()
        }
    return {
        "towards the server": found,
        "towards another client, which knows its own noise": neighbour,
        **units,
    }


def _of_a_figure(c: PrivacySettings) -> Promises:
    entry = fedpower.figure(c.figure)
    model = fedpower.MODELS[entry.model]
    size = model.sizes["paper" if c.paper_size else "live"]
    setting = build.even_setting(size.features, fedpower.CLIENTS, size.samples, 1.0)
    stated = []
    for variant in entry.variants:
        run = fedpower.algorithm(entry, variant, size.samples)
        found = account(run, setting, delta=fedpower.DELTA, clip_norm=1.0).stated()
        stated.append(StatedGuarantee(variant.label, variant.epsilon, found))
    promises = Promises(tuple(stated), record=model.record)
    warning = calibration.warn_delta(fedpower.DELTA, setting.samples) if promises.private else None
    return replace(promises, warning=warning or "")


@dataclass(frozen=True, eq=False)
class Accounts:
    #: Columns accountant, multiplier (noise over sensitivity), sensitivity, noise, ratio (to the
    #: exact noise), true_epsilon (by exact sensitivity and composition).
    table: pd.DataFrame
    #: Products that count at full sensitivity.
    counted: int
    #: given_noise, given_epsilon: The other way round: nu of the multiplier that is set, and the
    #: epsilon it means.
    given_noise: float
    given_epsilon: float
    #: The same noise on sums of the clients that a secret coin chooses: its epsilon, and that
    #: without the coin, for a client added or removed. None: no coin is asked about.
    by_coin: tuple[float, float] | None = None


class Accountants(Study[PrivacySettings, Accounts]):
    """Every accountant's noise for the budget, dp-accounting's included."""

    key = "accountants"
    title = "Accountants"
    opened_by = ("view", "accountants")
    most = Cost(megabytes=100, seconds=60)
    #: Of the view only what is accounted the other way round is read.
    reads = frozenset(
        {"multiplier", "coin"}
        | {name for name, p in PrivacySettings.parameters().items() if not p.view}
    )

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Accounts]:
        c = settings
        if not build.accountable(c):
            raise InvalidInput(build.refusal(c).reason)
        build.require_bound(c)
        build.require_single_uploads(c)
        require(math.isfinite(c.epsilon), build.REFUSED["no noise"])
        yield Step(0.1, "Asking every accountant")
        public, bought = build.public_setting(c, data), build.budget(c)
        width, norm, records = build.columns(c), bought.clip, float(public.samples.mean())
        several = build.several(c, public)
        # Releases at full sensitivity: one at the source and of orthogonal probes.
        one = c.calibration == "source" or build.method(c, 0.0).one_release
        counted = 1 if one else c.products
        if counted < c.products:
            width = max(2, width)  # all probes side by side, or the whole matrix
        exact = several * calibration.exact_sensitivity(width, records, norm)
        published = several * calibration.published_sensitivity(build.columns(c), records, norm)
        left = bought.for_products
        table = calibration.comparison(left, c.delta, counted)
        # The paper's theorem has its own sensitivity, and counts every product.
        table.loc[0, "multiplier"] = calibration.published_multiplier(left, c.delta, c.products)
        table["sensitivity"] = np.where(np.arange(len(table)) == 0, published, exact)
        table["noise"] = table["multiplier"] * table["sensitivity"]
        table["ratio"] = table["noise"] / table["noise"].iloc[-1]
        release = counted, width, records, norm
        table["true_epsilon"] = calibration.true_epsilon(
            table["noise"].to_numpy() / several, c.delta, *release
        )
        given = c.multiplier * float(exact)
        back = float(calibration.true_epsilon(given / several, c.delta, *release))
        coin = None
        if c.coin < 1 and "coin" not in c.idle():
            # One that comes or goes moves a sum by C² at the most; orthogonal probes save nothing.
            alone = given / (several * norm**2 / records)
            plain = float(gaussian.epsilon_of(math.sqrt(c.products) / alone, c.delta))
            coin = calibration.by_coin(alone, c.coin, c.delta, c.products), plain
        return Accounts(table, counted, given, back, coin)

    def tables(self, result: Accounts, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        back = {
            "multiplier": settings.multiplier,
            "noise": result.given_noise,
            "epsilon": result.given_epsilon,
            "epsilon_by_coin": math.nan if result.by_coin is None else result.by_coin[0],
        }
        return {"noise": result.table, "back": pd.DataFrame([back])}
