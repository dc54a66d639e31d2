"""Drawing the leak check: what is open, how it is known, and what stops it at which cost."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from fedpca_core.settings import short
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.shares import SURE, Share, counted
from fedpca_core.studies.check.study import Checked, Verdict
from fedpca_core.studies.check.trial import TARGETS, meant
from fedpca_core.studies.frontier.rules import size

EVIDENCE = {
    "rule": "a count",
    "run": "runs at this size",
    "both": "a count and runs",
    "caution": "a count that does not decide",
}
#: Errors below this are rounding, and which rounding is of no interest.
EXACT = 1e-6
SHORT = {
    "covariance": "covariance",
    "leading": "leading space",
    "records": "records",
    "membership": "membership",
    "newcomer": "who joined",
}
ANSWERS = {
    "open": "open",
    "partly": "in part",
    "depends": "counting does not decide",
    "closed": "not by the attacks tried",
}
#: How the sentence begins that names what is open.
OPEN = (
    ("open", "Open"),
    ("split", "Open on some data"),
    ("partly", "Open in part"),
    ("depends", "To be taken for open"),
)


def draw(found: Checked, settings: CheckSettings) -> None:
    """The answer in a sentence, target by target, and the defences."""
    layout.sentence(sentence(found), kind="remedy" if found.open else "note")
    table = pd.DataFrame([_row(one) for one in found.verdicts])
    layout.small_table(table, label="What an attack gets")
    with st.expander("Why: the rules"):
        st.markdown("\n".join(f"- **{TARGETS[one.target]}:** {one.why}." for one in found.verdicts))
        st.caption(
            "How often the check is right, on random deployments attacked as often once more: "
            "`python -m bench check`."
        )
    if not found.draws:
        st.caption(
            "Too large to be run here: the answers come from counting alone. Where counting does "
            "not decide, take it for open."
        )
    else:
        st.caption(
            f"Tried on {found.draws} random sets of records of these sizes, never on your data: "
            "real records may be easier or harder. **Open**: in at least nine sets of ten an "
            "attack gets the better part. **In part**: it gets something, but hardly ever the "
            "better part. Where the sets differ, their share is given, and in brackets where the "
            f"share of {found.draws} other sets would lie ({SURE:.1%} sure). Where all agree, up "
            f"to {_others(found.draws)} of {found.draws} other sets may still differ. **Ranked "
            "right**: how often a member of the data is ranked above a stranger; by chance, half "
            "of the time."
        )
    if settings.formal:
        st.caption(
            "With noise at the source the server may hold the noisy matrix and even be close to "
            "the true one when there are many records; what ε protects is every single record."
        )
    if len(found.defences):
        layout.section(
            "What stops it, at which cost",
            "The same deployment with one thing changed, attacked again in every way; how far its "
            "own answer is off (sine of the largest angle), and what a client sends and receives.",
        )
        layout.small_table(
            _defences(found.defences), label="Defences", numbers=["Off by", "Each client"]
        )
    if settings.formal or any("ε" in name for name in found.defences.get("defence", ())):
        st.caption(meant(settings))


def _others(draws: int) -> int:
    """How many further draws may differ from all that were seen."""
    return round(draws * counted([0.0] * draws).high)


def sentence(found: Checked) -> str:
    """What an attack gets, or that none of those tried got anything."""
    if not found.open:
        return (
            "None of the attacks of this laboratory gets any of these here. That is no proof: only "
            "an ε is one."
        )
    said = []
    for answer, words in OPEN:
        names = [
            TARGETS[one.target].lower() + (f" ({_share(one.got)})" if answer == "split" else "")
            for one in found.open
            if one.answer == answer
        ]
        if names:
            said.append(f"{words}: {'; '.join(names)}.")
    return " ".join(said)


def _share(share: Share | None) -> str:
    """A share of draws and its interval."""
    if share is None:
        return ""
    seen, low, high = (f"{100 * one:.0f}" for one in (share.seen, share.low, share.high))
    return f"in {seen}% of draws, {low}–{high}%"


def _row(one: Verdict) -> dict[str, str]:
    return {
        "What": TARGETS[one.target],
        "Answer": _answer(one),
        "Attack": one.attack or "–",
        "Figure": _figure(one),
        "Known from": EVIDENCE[one.evidence],
    }


def _answer(one: Verdict) -> str:
    if one.answer == "split":
        return f"open {_share(one.got)}"
    differ = one.got is not None and one.got.of == "draws" and 0 < one.got.seen < 1
    return ANSWERS[one.answer] + (f" ({_share(one.got)})" if differ else "")


def _figure(one: Verdict) -> str:
    """The median, and in brackets the span over the draws; of membership that of the average."""
    if math.isnan(one.figure):
        return "–"
    if one.target == "membership" and one.got is not None:
        low, high = 100 * one.got.low, 100 * one.got.high
        return f"ranked right {100 * one.got.seen:.0f}% ({low:.0f}–{high:.0f})"
    if one.target == "records":
        some = f"{one.figure:.0f} exact"
        return some if one.least == one.most else f"{some} ({one.least:.0f}–{one.most:.0f})"
    name = "error" if one.target == "covariance" else "sine"
    if one.most < EXACT:
        return f"{name} below {short(EXACT)}"
    return f"{name} {short(one.figure, 2)} ({short(one.least, 2)}–{short(one.most, 2)})"


def _defences(table: pd.DataFrame) -> pd.DataFrame:
    targets = [name for name in TARGETS if name in table]
    rows = []
    for _, row in table.iterrows():
        if row["refusal"]:
            left, off, sent = str(row["refusal"]), "–", "–"
        else:
            names = [
                SHORT[name] + " in part" * (row[name] != "open")
                for name in targets
                if row[name] != "closed"
            ]
            left = ", ".join(names) or "nothing, by the attacks tried"
            off, sent = short(row["sine"], 2), size(row["bytes_client"])
        rows.append(
            {"Changed": row["defence"], "Still open": left, "Off by": off, "Each client": sent}
        )
    return pd.DataFrame(rows)
