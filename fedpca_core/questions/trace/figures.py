"""What an opened run shows: what is known of the client, the rounds, the records, the facts."""

import numpy as np
import pandas as pd

from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.findings import TARGETS, Status, Target
from fedpca_core.questions.trace.opened import Opened, OpenedSettings
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.panels import ROUNDING, Curve, Images, Panel, to_uint8

#: Clients up to which a table lists all at once.
LISTED = 20


def opened(found: Opened, settings: OpenedSettings) -> parts.Parts:
    """The verdict, the rounds to play, the recovered records and the run's facts."""
    yield verdict(found, settings)
    if found.note:
        yield parts.Note(found.note)
    first = found.findings[0]
    if first.status is Status.NOT_TRIED and first.seconds:
        yield parts.Note(parts.words("opened-waiting", method=found.facts["Method"]))
    table = found.rounds
    directions = Curve("directions", table["round"], table["directions_held"])
    span = (0.0, float(len(found.components)))
    yield parts.Chart(
        "opened_view",
        [Panel.of("directions", (directions,), y_range=span), _progress(table), _bytes(table)],
        [[_matrix(found, settings)]],
        rounds=len(table) - 1,
    )
    if first.attack == "replay":
        yield parts.Caption(parts.words("opened-replayed"))
    yield parts.GuaranteeOf(found)
    if len(found.clients) > 1:
        yield parts.Section("Every client", parts.words("opened-clients"))
        every = found.clients.rename(columns={"client": "Client"})
        few = len(every) <= LISTED
        yield parts.Table(every, "Every client", numbers=()) if few else parts.Rows(every)
    if found.records is not None:
        yield parts.Section("The records", parts.words("opened-records"))
        yield parts.Rows(found.records)
    facts = pd.DataFrame({"What": found.facts.keys(), "Of this run": found.facts.values()})
    yield parts.Fold("Facts of the run", (parts.Table(facts, "Facts of the run", numbers=()),))


def verdict(found: Opened, settings: OpenedSettings) -> str:
    """What is known of the client from this file, target by target."""
    noisy = ", as it was released, with noise" if found.guarantee else ""
    lines = []
    for one in found.findings:
        what = f"{TARGETS[one.target]}**{noisy if one.target is Target.COVARIANCE else ''}"
        holder = "whoever holds this file " * (one.status is not Status.NOT_TRIED)
        known = one.status is Status.OPEN and one.attack in ATTACKS
        how = f", read by {ATTACKS[one.attack].title.lower()}" if known else ""
        lines.append(f"- **{what}: {holder}{one.words}{how}.")
    if len(every := found.clients) > 1:
        target = TARGETS[found.findings[0].target]
        statuses = every[target].str.split(":").str[0].value_counts()
        told = ", ".join(f"{status} for {many}" for status, many in statuses.items())
        lines.append(f"- **{target}, of {len(every)} clients**: {told}.")
    values = settings.parameters()["grid"].text(settings.grid)
    lead = f"Of client {settings.client}, whose records are taken for “{values.lower()}”:"
    return "\n".join([lead, *lines])


def _matrix(found: Opened, settings: OpenedSettings) -> Images:
    top = float(np.abs(found.matrices[-1]).max()) or 1.0
    first = found.findings[0]
    whose = "all clients" if first.target is Target.SUM else f"client {settings.client}"
    masked = first.status in (Status.NOT_OPENED, Status.NOT_TRIED)
    title = "Masked messages of {}, read as products" if masked else "The server's matrix of {}"
    return Images(
        title=title.format(whose),
        frames=to_uint8(found.matrices, -top, top),
        low=-top,
        high=top,
        palette="diverging",
        captions=[plural(held, "direction") for held in found.rounds["directions_held"]],
        description=f"Heat map of what the messages of {whose} give, round by round.",
    )


def _progress(table: pd.DataFrame) -> Panel:
    x, moved = table["round"], table["moved_sine"].clip(ROUNDING)
    left = table["sine_to_last"][:-1].clip(ROUNDING)  # the last answer is no distance from itself
    curves = Curve("from the round before", x, moved), Curve("from the last answer", x[:-1], left)
    return Panel.of("movement", curves)


def _bytes(table: pd.DataFrame) -> Panel:
    curves = [Curve(way, table["round"], table[f"bytes_{way}"] / 1e3) for way in ("up", "down")]
    sent = short(float(table["bytes_up"].iloc[-1]))
    told = f"Bytes so far over all clients; {sent} up at the end."
    return Panel.of("bytes", curves, description=told)
