"""What the leak check shows: what is known of every target, and what stops it at which cost."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fedpca_core.algorithms.registry import ATTACKABLE, METHODS
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.findings import TARGETS, Finding, Status, priced
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import DEFENCES, Checked, LeakCheck, meant
from fedpca_core.questions.which.figures import trusted
from fedpca_core.settings import Settings, plural, short, size
from fedpca_core.shares import SURE
from fedpca_core.study.panels import Curve, Panel
from fedpca_core.study.parts import Caption, Chart, Link, Note, Parts, Section, Table, names, words
from fedpca_core.study.pca_settings import AttackSettings

#: Targets as the columns of the table of defences.
SHORT = names("target-columns")
#: Which series a status has the colour of: open is red, and closed green.
COLOURS = dict(zip(Status, (0, 4, 1, 3, 9), strict=True))
#: From this sine on an answer is of no use: four fifths (its square) of a direction are lost.
LOST = 0.9


def checked(found: Checked, settings: Settings) -> Parts:
    """The answer target by target, and the defences; these alone beside a run that was opened."""
    deployment = found.settings
    if settings.kind == deployment.kind:
        yield from _answered(found, deployment)
    if len(found.defences) == len(LeakCheck().pieces(deployment)) and leaks(found.findings):
        yield Note(stopped(found.defences, deployment), kind="remedy")
    if len(found.defences):
        yield Chart("leak_check_view", [left(found.defences)])
        table = _defences(found.defences)
        yield Table(table, "Defences", ["Off by", "Each client"], [*map(str, table)][3:])
    if deployment.formal or any("ε" in name for name in found.defences.get("defence", ())):
        yield Caption(meant(deployment))


def _answered(found: Checked, settings: CheckSettings) -> Parts:
    yield Note(sentence(found.findings), kind="remedy" if leaks(found.findings) else "note")
    rows = [
        {
            "What": TARGETS[one.target],
            "Status": str(one.status),
            "The server": one.words,
            "Attack": ATTACKS[one.attack].title if one.attack else "–",
        }
        for one in found.findings
    ]
    yield Table(pd.DataFrame(rows), "What is known of every target")
    if not found.draws:
        yield Caption(words("check-too-large"))
    else:
        told = {"draws": found.draws, "sure": SURE, "others": found.others}
        yield Caption(words("check-attacked", **told))
    yield from _to_be_tried(found, settings)
    if settings.formal:
        yield Caption(words("check-formal"))
    if len(found.defences):
        yield Section("What stops it, at which cost", words("check-defences"))


def sentence(findings: Sequence[Finding]) -> str:
    """All findings in a line, by status, the worst first."""
    said = []
    for status, lead in names("finding-leads").items():
        targets = [TARGETS[one.target].lower() for one in findings if str(one.status) == status]
        if targets:
            said.append(f"{lead}: {'; '.join(targets)}.")
    return " ".join(said)


def leaks(findings: Sequence[Finding]) -> bool:
    """Whether any target is open, whole or in part."""
    return any(one.status in (Status.OPEN, Status.PARTLY) for one in findings)


def stopped(table: pd.DataFrame, settings: CheckSettings) -> str:
    """The changes that leave nothing open, the one whose answer is least off first."""
    as_it_is, *changes = table.to_dict("records")
    leaking = {str(one) for one in (Status.OPEN, Status.PARTLY, Status.NOT_TRIED)}
    tight = [one for one in changes if not one["refusal"] and leaking.isdisjoint(one.values())]
    useful = sorted((one for one in tight if one["sine"] < LOST), key=lambda one: one["sine"])
    lost = " and ".join(f"**{one['defence']}**" for one in tight if one["sine"] >= LOST)
    told = [] if useful else [words("check-stops-none")]
    for one in useful:
        there = replace(settings, **DEFENCES[one["defence"]])
        # Noise at the source is every node's own: then nobody is trusted, with sums or without.
        sums = there.secure_aggregation and not there.formal
        trusts = trusted({"sums": sums, "noise": there.formal})
        now, before = (
            {"off": short(row["sine"], 2), "bytes": size(row["bytes_client"])}
            for row in (one, as_it_is)
        )
        told.append(words("check-stops", one=one, now=now, before=before, trusts=trusts))
    return " ".join([*told, *([words("check-stops-all", lost=lost, least=LOST)] if lost else [])])


def _to_be_tried(found: Checked, settings: CheckSettings) -> Parts:
    """The price of what was not tried, and where it runs; nothing where all was."""
    waiting = [one for one in found.findings if one.status is Status.NOT_TRIED and one.seconds]
    if not waiting or settings.method not in ATTACKABLE:
        return
    longest = max(waiting, key=lambda one: one.seconds)
    yield Note(words("check-untried", attacks=longest.basis, price=priced(longest.seconds)))
    there = settings.carried(AttackSettings)
    replayed = METHODS[settings.method].algorithm.replayable
    there = replace(there, attacked=(settings.method,), replay=replayed)
    size = f"{plural(there.clients, 'client')}, {plural(there.samples, 'record')} each"
    yield Link(there, f"Try it on {size}, {plural(there.features, 'feature')}")


def left(table: pd.DataFrame) -> Panel:
    """Of how many targets what is known, with each defence."""
    run = table[table["refusal"] == ""]
    known = run[[name for name in SHORT if name in run]]
    counted = {one: (known == str(one)).sum(axis=1) for one in Status}
    defences = run["defence"].str.replace(" in every round", "").to_list()
    curves = [
        Curve(str(one).capitalize(), defences, many, colour=f"series {COLOURS[one]}")
        for one, many in counted.items()
        if many.any()
    ]
    return Panel.of("leak_check", curves)


def _defences(table: pd.DataFrame) -> pd.DataFrame:
    # Room is scarce: a status that no target has is left out.
    seen = [one for one in Status if one is Status.OPEN or (table == str(one)).any(axis=None)]
    rows = []
    for _, row in table.iterrows():
        ran = not row["refusal"]
        told = {"Changed": row["defence"], "Off by": short(row["sine"], 2) if ran else "–"}
        told["Each client"] = size(row["bytes_client"]) if ran else "–"
        for status in seen:
            targets = [SHORT[name] for name in SHORT if name in table and row[name] == status]
            told[str(status).capitalize()] = ", ".join(targets) or "–"
        told["Open"] = row["refusal"] or told["Open"]
        rows.append(told)
    return pd.DataFrame(rows)
