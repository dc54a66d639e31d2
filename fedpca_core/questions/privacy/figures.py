"""What the Privacy page shows: what runs promise, cost and leave, and what attackers get."""

import math
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.papers.fedpower import MODELS, figure
from fedpca_core.questions.privacy import attacks, build, study
from fedpca_core.questions.privacy.error_budget import ABLATION, ErrorParts, TheoryTerms
from fedpca_core.questions.privacy.guarantee import Accounts, Promises
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import plural, rough, short
from fedpca_core.study import parts
from fedpca_core.study.facts import EPSILON, NOTICED, meant
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Panel, plot
from fedpca_core.study.sweep import Swept

NAMES = parts.names("noise-names")
COLOURS = parts.names("noise-colours")
#: Each way to spend one ε.
WAY_COLOURS = parts.names("way-colours")
#: Noise at the source is let out whole, so its error may be smaller than that of messages.
FLAT = {"none": "messages without noise"}


# ------------------------------------------------------------------ what is promised


def guarantee(promises: Promises, settings: PrivacySettings) -> parts.Parts:
    """The guarantee with everything that must stand beside epsilon, or why there is none."""
    if promises.refusal:
        masked: parts.Protection = "heuristic" if settings.upload_noise > 0 else "none"
        yield parts.Framed("**No ε can be stated**", masked, [promises.refusal])
        return
    terms = pd.DataFrame([each.guarantee.terms() for each in promises.stated])
    alike = terms.nunique() == 1
    if len(terms) == 1:
        yield _cards(promises, settings)
    else:
        found = [each.guarantee for each in promises.stated]
        numbers = {
            "ε asked for": [short(each.asked) for each in promises.stated],
            "Guaranteed ε": [one.budget for one in found],
            "Noise ν": [short(one.noise, 3) if one.private else "off" for one in found],
            "Products released": [str(one.releases) for one in found],
        }
        labels = {"Curve": [each.label for each in promises.stated]}
        own = terms.loc[:, ~alike].rename(columns=str.capitalize)
        rows = pd.DataFrame(labels | numbers).join(own)
        yield parts.Table(rows, "What each curve guarantees", numbers=list(numbers))
    if promises.others:
        named = {text[:1].upper() + text[1:]: found for text, found in promises.others.items()}
        others = meant(named, "The same noise")[[EPSILON, "The same noise", NOTICED]]
        yield parts.Fold(
            "What this ε means towards others, for a person, a client, two runs",
            [parts.Table(others, "Other eyes", numbers=[EPSILON, NOTICED])],
            # A client that knows its own share of the noise is not protected as from the server.
            open=settings.trusted == "clients",
        )
    yield " · ".join(f"**{label}** {text}" for label, text in terms.loc[:, alike].iloc[0].items())
    if promises.record:
        yield parts.Note(promises.record)
    if promises.warning:
        yield parts.Note(promises.warning, kind="remedy")


def _cards(promises: Promises, settings: PrivacySettings) -> parts.Cards:
    found, said = promises.stated[0].guarantee, parts.names("privacy-card")
    published = settings.calibration == "published" and found.private
    at_source = settings.calibration == "source" and found.private
    together = bool(found.composition == 1 < found.releases)
    counted = "together" if together else "each"
    if at_source:
        counted = "source and mean" if found.releases > 1 else "source"
    return parts.Cards.of(
        "privacy-guarantee",
        budget=found.budget,
        asked=f"asked for: {settings.epsilon:g}" if published else "for the whole run",
        composed=said["published" if published else "exact"],
        noise=short(found.noise, 3) if found.private else "off",
        where="diagonal of a client's matrix" if at_source else "every entry of a product",
        sensitivity=short(found.sensitivity, 3),
        released="Releases" if at_source else "Products released",
        releases=found.releases,
        counted=said[counted],
        excess="–" if promises.excess is None else f"{promises.excess:.1f}×",
        orthogonal=", and it counts every product although the probes are orthogonal" * together,
    )


def protection(promises: Promises, settings: PrivacySettings) -> parts.Parts:
    """Who sees what, what the guarantee covers and what it leaves open."""
    private, made = promises.private, build.plain(settings)
    masked = bool(promises.refusal) and settings.upload_noise > 0
    of_sums = private and settings.trusted == "clients"
    seen = "the sum of all uploads in each round, and nothing else"
    if not of_sums:
        travels = made.plans_products and made.needs_individual_uploads
        own = " (with the client's own basis, where gaps are longer than one)"
        seen = "every upload of every client, one by one" + own * travels
    seen += "".join(f"; all records of client {one} are public" for one in made.public_clients)
    gets = "whatever the messages say; nothing is promised"
    left = "**Protected**\n\n- Nothing formally."
    if private:
        found = promises.stated[0].guarantee
        epsilon, power = found.epsilon, found.epsilon / math.log(10)
        factor = short(math.exp(epsilon), 3) if epsilon < 20 else f"10^{power:.0f}"
        told = {"unit": found.unit, "delta": short(found.delta)}
        gets = parts.words("privacy-gets", factor=factor, **told)
        left = parts.words("privacy-whether", unit=found.unit.split(",")[0].split(":")[0])
        left += "\n" + parts.words("privacy-of-sums" if of_sums else "privacy-of-uploads")
    protected: parts.Protection = "formal" if private else "heuristic" if masked else "none"
    whose = parts.names("privacy-whose")[settings.unit]
    yield parts.FactsCard.of("privacy-server", protected, seen=seen, whose=whose, gets=gets)
    yield parts.Beside([[left], [parts.words("privacy-open")]])


#: How the noise follows from the budget, and what the distance is.
READING = parts.About.of("privacy-noise")


# ------------------------------------------------------------------ the run as it is set


def private_run(result: study.PrivateRuns, settings: PrivacySettings) -> parts.Parts:
    """Projection distance against communications, with quartile bands."""
    yield run_verdict(result, settings)
    floor = result.floor
    panel = Panel.of(
        "distance",
        tuple(_repeated(NAMES[kind], run, COLOURS[kind]) for kind, run in result.runs.items()),
        baselines=() if floor is None else (_level("predicted floor", floor),),
    )
    rounds = max(len(run.times) for run in result.runs.values()) - 1
    yield parts.Chart("privacy_run", [panel], rounds=rounds, round_label="communication")
    if result.spending is not None:
        yield from _spending(result.spending, settings)


def _level(name: str, value: float, simulation_only: bool = True) -> Baseline:
    return Baseline(f"{name} {short(value, 2)}", value, simulation_only=simulation_only)


def _repeated(name: str, run: study.Repeated, colour: str) -> Curve:
    middle, low, high = (np.maximum(one, ROUNDING) for one in (run.middle, *run.quartiles))
    look: dict[str, Any] = {"colour": colour, "marker": True, "simulation_only": True}
    return Curve(name, np.arange(len(middle)), middle, lower=low, upper=high, **look)


def run_verdict(result: study.PrivateRuns, settings: PrivacySettings) -> str:
    """One line on where the run ends and what noise has cost."""
    (first, run), *others = result.runs.items()
    budget = f"ε = {short(settings.epsilon)}, " if first in ("exact", "published", "source") else ""
    low, high = (short(float(one[-1]), 3) for one in run.quartiles)
    text = (
        f"**{METHODS[settings.method].title}** ends at distance **{short(run.final, 2)}** "
        f"({budget}{NAMES[first]}; quartiles {low} and {high}) after {len(run.middle) - 1} "
        f"communications and {run.bytes_up[-1] / 1e3:,.0f} kB up"
    )
    for kind, other in others:
        text += f"; {NAMES[kind]}: {short(other.final, 2)}"
    if budget and run.final > 0.5:
        text += ". That is hardly better than a random guess: allow a larger ε, or more samples"
    return text + "."


def _spending(spending: pd.DataFrame, settings: PrivacySettings) -> parts.Parts:
    yield parts.Section("What each client has really spent", parts.words("privacy-spending"))
    clients, releases = list(spending["client"]), spending["releases"]
    who = f"{clients[0]} is the reference and always uploads"
    if settings.public_reference:
        who = "without the reference, whose records are public"
    panel = Panel.of(
        "spending",
        (Curve("true ε of the client", clients, spending["epsilon"], colour="formal"),),
        x_title=f"client ({who})",
        y_title=f"true ε at δ = {short(settings.delta)}",
    )
    yield parts.Chart("privacy_spending", [panel])
    told = {"clip": build.treatment(settings)[1], "fewest": releases.min(), "most": releases.max()}
    yield parts.Caption(parts.words("privacy-spent", settings=settings, **told))


# ------------------------------------------------------------------ the price


def price_of_budget(result: Swept, settings: PrivacySettings) -> parts.Parts:
    yield parts.Section("Against the budget")
    curves = _by_noise(result, "sin_theta", "none", least=ROUNDING, simulation_only=True)
    if not curves:
        return
    quiet = study.last_value(result, "none")
    axis = f"budget ε (δ = {short(settings.delta)}, T = {settings.products})"
    lines = (_level("without noise", quiet),) if quiet is not None and quiet > 1e-5 else ()
    panel = Panel.of("privacy-price", curves, x_title=axis, baselines=lines)
    yield parts.Chart("privacy_price", [panel])
    unit, repetitions = build.unit(settings), plural(settings.repetitions, "repetition")
    yield parts.Caption(parts.words("privacy-price", unit=unit, repetitions=repetitions))


def price_of_products(result: Swept, settings: PrivacySettings) -> parts.Parts:
    yield parts.Section("Against the number of products")
    axis = f"local products T (ε = {short(settings.epsilon)}, δ = {short(settings.delta)})"
    curves = _by_noise(result, "sin_theta", least=ROUNDING, simulation_only=True)
    yield parts.Chart("privacy_length", [Panel.of("privacy-length", curves, x_title=axis)])
    yield _advice(result, settings)


def _by_noise(result: Swept, measure: str, but: str = "", **look: Any) -> tuple[Curve, ...]:
    """What is measured along a sweep, a curve for each kind of noise."""
    look |= {"names": {kind: NAMES[kind] for kind in result.series if kind in {*NAMES} - {but}}}
    look |= {"colours": COLOURS, "marker": True}
    return plot(result.of(measure), "value", "result", "series", **look)


def _advice(result: Swept, settings: PrivacySettings) -> str:
    said = parts.names("privacy-lengths")
    if "none" in result.series:
        return said["none"]
    if METHODS[settings.method].accounts == "orthogonal":
        return said["orthogonal"]
    if settings.calibration == "source":
        return said["source"]
    best = study.best_length(result, settings.calibration)
    if best is None:
        return said["spread"]
    length, at_the_edge = best
    told = {"epsilon": short(settings.epsilon), "noise": settings.calibration, "length": length}
    why = said["edge" if at_the_edge else "within"]
    return f"{said['spread']} {said['best'].format(why=why, **told)}"


# ------------------------------------------------------------------ ways to spend one ε


def ways(result: study.Ways, settings: PrivacySettings) -> parts.Parts:
    """Distance against rounds and bytes, with the guarantee of every way."""
    yield ways_verdict(result, settings)
    refused = [parts.Note("\n\n".join(parts.named_once(result.refusals)))] * bool(result.refusals)
    if not result.spent:
        yield from refused
        return
    tables = study.WaysToSpend().tables(result, settings)
    curves, ends = tables["curves"], tables["ways"]
    look: dict[str, Any] = {"names": dict(zip(ends["way"], ends["title"], strict=True))}
    look |= {"colours": WAY_COLOURS, "least": ROUNDING, "spread": False, "marker": True}
    sent = curves[curves["communication"] > 0]
    sent = sent.assign(bytes_up=sent["bytes_up"] / result.clients)
    panels = [
        Panel.of("ways-rounds", plot(curves, "communication", "median", "way", **look)),
        Panel.of("ways-bytes", plot(sent, "bytes_up", "median", "way", **look)),
    ]
    rows = {
        "Way": ends["title"],
        "Final distance": [short(one, 2) for one in ends["median"]],
        "Rounds": ends["communications"].astype(str),
        "kB up, one client": [f"{one / 1e3:,.1f}" for one in ends["bytes_up"]],
        "Guaranteed ε": [rough(one) for one in ends["epsilon"]],
        "Noise ν": [short(one, 2) for one in ends["noise"]],
    }
    yield parts.Chart("privacy_ways", panels)
    yield parts.Table(pd.DataFrame(rows), "Ways to spend ε")
    yield from refused
    # What is released and towards whom its ε holds, said once for all ways that have it alike.
    yield "\n".join(
        f"- **{'; '.join(some['title'])}:** {released}. Holds towards {towards}."
        for (released, towards), some in ends.groupby(["released", "towards"], sort=False)
    )
    starts = plural(settings.repetitions, "start")
    yield parts.Caption(parts.words("privacy-ways", terms=ends.iloc[0], starts=starts))


def ways_over_budget(result: Swept, settings: PrivacySettings) -> parts.Parts:
    yield parts.Section("The same, against ε")
    names = {key: study.WAYS[key].title(settings) for key in result.series}
    look: dict[str, Any] = {"names": names, "colours": WAY_COLOURS, "least": ROUNDING}
    axes = "value", "result", "series"
    curves = plot(result.of("sin_theta"), *axes, spread=False, marker=True, **look)
    axis = f"budget ε (δ = {short(settings.delta)})"
    description = f"Largest angle of every way to spend one budget, by {axis}; median."
    panel = Panel.of("ways-budget", curves, x_title=axis, description=description)
    yield parts.Chart("privacy_ways_budget", [panel])
    yield parts.Caption(f"Medians of at most {study.RUNS} runs at each budget.")


def ways_verdict(result: study.Ways, settings: PrivacySettings) -> str:
    """Which way ends closest, with and without trust."""
    text = f"One budget, ε = {short(settings.epsilon)} for every record. "
    for trusting, said in (
        (False, "Trusting nobody, **{}** ends closest: {}. "),
        (True, "If clients share the noise and the server sees sums only, **{}** does: {}."),
    ):
        if (key := result.best(trusting=trusting)) is not None:
            one, rounds = result.spent[key], plural(len(result.spent[key].times) - 1, "round")
            sent = f"{one.bytes_up[-1] / result.clients / 1e3:,.1f} kB from each client"
            ends = f"distance {short(one.final, 2)} after {rounds} and {sent}"
            text += said.format(study.WAYS[key].title(settings), ends)
    return text


# ------------------------------------------------------------------ where the error comes from


def error_budget(result: ErrorParts, settings: PrivacySettings) -> parts.Parts:
    """Stacked areas of the ablation, the identity's norms, and the terms."""
    colours = parts.names("effect-colours")
    axes = "communication", "share", "effect"
    effects = plot(result.ablation, *axes, colours=colours, truths=ABLATION, spread=False)
    panels = [Panel.of("ablation", effects)]
    lines = () if result.identity is None else _lines(result.identity)
    if lines:
        panels.append(Panel.of("identity", lines))
    yield parts.Chart("privacy_budget", panels)
    taken = -float(result.ablation["added_squared_sine"].min())
    told = {
        "first": short(result.squared[0], 2),
        "last": short(result.squared[-1], 2),
        "lowest": f" (largest here: {short(taken, 2)})" if taken > 5e-4 else "",
    }
    yield parts.Caption(parts.words("privacy-error", repetitions=result.repetitions, **told))
    if result.identity is not None and not lines:
        yield parts.Caption(
            "Every term of the identity is zero here: no noise, no sampling, no gaps."
        )
    if result.terms is not None:
        yield from _terms(result.terms, settings)


def _lines(identity: pd.DataFrame) -> tuple[Curve, ...]:
    """Terms of the identity that are not zero throughout, with gaps where they are."""
    tidy = identity.melt("communication")
    tidy["value"] = tidy["value"].where(tidy["value"] > 1e-14)
    tidy = tidy.groupby("variable").filter(lambda rows: rows["value"].notna().any())
    look: dict[str, Any] = {"spread": False, "marker": True, "simulation_only": True}
    look |= {"names": parts.names("error-terms"), "colours": parts.names("error-colours")}
    return plot(tidy, "communication", "value", "variable", **look)


def _terms(terms: TheoryTerms, settings: PrivacySettings) -> parts.Parts:
    """I1, I2, I3, eta and rho as cards, vacuous where they say nothing."""
    lead = parts.words("privacy-orders", theorem=9 if settings.draws else 7)
    vacuous = " " + parts.words("privacy-vacuous") if terms.vacuous else ""
    yield parts.Section("What theory says", lead + vacuous)
    noise, drift, sampling = (
        "vacuous" if term is None else short(term, 2)
        for term in (terms.noise, terms.drift, terms.sampling)
    )
    total = sum(term or 0.0 for term in (terms.noise, terms.drift, terms.sampling))
    enough = not terms.vacuous and total <= terms.allowed
    yield parts.Cards.of(
        "privacy-theory",
        noise=noise,
        drift=drift,
        sampling=sampling if settings.draws else "none",
        drawn=f"K = {settings.draws}" if settings.draws else "everybody takes part",
        allowed=short(terms.allowed, 2),
        met="met" if enough else "not met: nothing is promised",
        eta=short(terms.eta, 2),
        rho=short(terms.rho, 2),
        floor=short(terms.floor, 2) if terms.floor > 0 else "none",
    )


# ------------------------------------------------------------------ attackers


def reconstruction(result: Swept, settings: PrivacySettings) -> parts.Parts:
    """Error of one attacker against epsilon, with guesses that need no message."""
    yield reconstruction_verdict(result, settings)
    curves = _by_noise(result, "error", "none")
    if not curves:
        return
    flat = {name: study.last_value(result, name) for name in (attacks.PUBLIC, attacks.EVEN, "none")}
    lines = tuple(
        _level(f"{FLAT.get(name, name)}:", value, simulation_only=False)
        for name, value in flat.items()
        if value is not None and value > 1e-4
    )
    axis = f"budget ε (δ = {short(settings.delta)})"
    panel = Panel.of("reconstruction", curves, x_title=axis, baselines=lines)
    yield parts.Chart("privacy_reconstruction", [panel])
    told = {"client": attacks.attacked(settings), "runs": study.RUNS}
    yield parts.Caption(parts.words("privacy-reconstruction", **told))


def reconstruction_verdict(result: Swept, settings: PrivacySettings) -> str:
    """What the attacker gets without noise, and at the budgets that were tried."""
    guess = study.last_value(result, attacks.PUBLIC)
    assert guess is not None
    missed = f"{guess:.1%}" if guess >= 1e-3 else short(guess, 1)
    client = f"client {attacks.attacked(settings)}"
    text = f"Guessing that {client} is like the average misses Sᵢ by {missed}. "
    kind = "exact" if "exact" in result.series else "source"
    noise = "exact noise" if kind == "exact" else "noise at the source"
    for one, said in (("none", "Without noise the server"), (kind, f"With {noise} it")):
        if study.last_value(result, one) is not None:  # else it is computed still
            text += f"{said} {attacks.finding(result, one).words}. "
    if guess < 0.15 and settings.problem != "distinct":
        text += parts.words("privacy-alike")
    return text.strip()


# ---------------------------------------------------------------------- membership
def membership(result: attacks.Tested, settings: PrivacySettings) -> parts.Parts:
    seen = ", and p = 1: every answer is seen" * METHODS[settings.method].plans_products
    yield parts.Section("Is one record in the data?", parts.words("privacy-membership", seen=seen))
    if not result.tests:
        yield parts.Note(parts.words("privacy-decided"))
        return
    yield parts.Chart("privacy_membership", [_roc(result, settings), _areas(result, settings)])
    first = next(iter(result.tests.values()))
    counts = {"tests": attacks.TESTS, "draws": attacks.TESTS_AT_SOURCE}
    told = {"uncertainty": first.uncertainty, "delta": short(settings.delta), **counts}
    yield parts.Caption(parts.words("privacy-tested", **told))
    yield from _audits(result, settings)


def _audits(result: attacks.Tested, settings: PrivacySettings) -> parts.Parts:
    yield parts.Section("An audit beside the promise")
    audits = attacks.RecordMembership().tables(result, settings)["audits"]
    numbers = {
        "Promised ε": [short(one, 3) for one in audits["promised"]],
        "Proved: ε is at least": [short(one, 2) for one in audits["epsilon"]],
        "Confidence": [f"{one:.0%}" for one in audits["confidence"]],
        "Runs": audits["runs"].astype(str),
    }
    rows = pd.DataFrame({"Noise": audits["noise"].map(NAMES), **numbers, "By": audits["way"]})
    yield parts.Table(rows, "Audits", numbers=list(numbers))
    yield parts.Caption(parts.words("privacy-audit", delta=short(settings.delta)))


def _roc(result: attacks.Tested, settings: PrivacySettings) -> Panel:
    curves = [
        Curve(f"{NAMES[kind]}, area {test.auc:.2f}", *test.roc(), colour=COLOURS[kind])
        for kind, test in result.tests.items()
    ]
    curves += _ceilings(*(result.ceilings[one] for one in ("alarms", "gaussian", "permitted")))
    curves.append(Curve("coin toss", [0.0, 1.0], [0.0, 1.0], colour="guide", guide=True))
    title = f"Telling two neighbours apart at ε = {short(settings.epsilon)}"
    whole = (0.0, 1.0)
    return Panel.of("neighbours_roc", curves, key="roc", title=title, x_range=whole, y_range=whole)


def _ceilings(x: Any, gaussian: Any, permitted: Any) -> list[Curve]:
    """The most that noise of this kind lets through, and that its guarantee does."""
    return [
        Curve("most with Gaussian noise", x, gaussian, colour="text", guide=True),
        Curve("most that (ε, δ) permits", x, permitted, colour="accent", guide=True),
    ]


def _areas(result: attacks.Tested, settings: PrivacySettings) -> Panel:
    areas = result.areas
    budgets = areas["epsilon"]
    curves = [
        Curve(f"{NAMES[kind]}, expected", budgets, areas[f"expected_{kind}"], colour=COLOURS[kind])
        for kind in result.promised
    ]
    for kind, test in result.tests.items():
        at, look = [settings.epsilon], COLOURS[kind]
        curves.append(Curve(f"{NAMES[kind]}, measured", at, [test.auc], colour=look, marker=True))
    curves += _ceilings(budgets, areas["gaussian_ceiling"], areas["permitted"])
    return Panel.of("auc", curves, x_title=f"budget ε (δ = {short(settings.delta)})")


# ------------------------------------------------------------------ accountants and figures


def accountants(result: Accounts, settings: PrivacySettings) -> parts.Parts:
    """The table, both sensitivities, and the other way round."""
    together, unit = result.counted < settings.products, build.unit(settings)
    columns = {
        "Accountant": result.table["accountant"],
        "Noise over sensitivity": [f"{value:.4f}" for value in result.table["multiplier"]],
        "Noise ν": [short(value, 4) for value in result.table["noise"]],
        "Times the exact one": [f"{value:.3f}×" for value in result.table["ratio"]],
        "ε this noise really gives": [f"{value:.4g}" for value in result.table["true_epsilon"]],
    }
    budget = {"epsilon": short(settings.epsilon), "delta": short(settings.delta)}
    products = plural(settings.products, "product")
    yield (
        parts.words("privacy-accountants", products=products, **budget)
        + (" " + parts.words("privacy-together")) * together
    )
    yield parts.Table(pd.DataFrame(columns), "Noise by accountant")
    sensitivity, clip = result.table["sensitivity"], build.treatment(settings)[1]
    ends = {"published": short(sensitivity.iloc[0], 4), "exact": short(sensitivity.iloc[-1], 4)}
    told = {"unit": unit, "clip": clip, "columns": build.columns(settings), **ends}
    yield parts.Caption(parts.words("privacy-sensitivity", **told))
    yield parts.Section("And back: what does a given noise mean?")
    yield parts.words(
        "privacy-given",
        epsilon=result.given_epsilon,
        settings=settings,
        products=products,
        noise=short(result.given_noise, 3),
        clip=clip,
        together=", which count as one," * together,
        delta=short(settings.delta),
        unit=unit,
    )
    if result.by_coin is not None:
        epsilon, plain = (short(value, 4) for value in result.by_coin)
        yield parts.words(
            "privacy-coin", settings=settings, products=products, epsilon=epsilon, plain=plain
        )


def paper_figure(result: study.Curves, settings: PrivacySettings) -> parts.Parts:
    entry = figure(settings.figure)
    yield entry.verdict
    panel = Panel.of(
        "figure",
        [_repeated(name, run, f"series {at}") for at, (name, run) in enumerate(result.items())],
        title=entry.title,
        axes_id=f"{settings.figure}-{settings.paper_size}",
        description=f"{entry.title}: median and quartiles of {settings.repetitions} repetitions.",
    )
    yield parts.Chart("privacy_figure", [panel])
    ends = ", ".join(f"{label}: {short(run.final, 3)}" for label, run in result.items())
    yield f"Plateaus here: {ends}."
    size = "the paper's size" if settings.paper_size else "live size (same noise over the gap)"
    of = {"title": MODELS[entry.model].title, "calibration": entry.calibration}
    starts = plural(settings.repetitions, "start")
    yield parts.Caption(parts.words("privacy-figure", size=size, starts=starts, **of))
