"""What a server makes of records: of one client, of the one that joined, and which are at risk."""

from functools import partial
from typing import Any

import numpy as np

from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.arrays import AnyArray
from fedpca_core.findings import Finding, Status, in_short
from fedpca_core.questions.attack.differencing import NewcomersRead, OneMoreRecord
from fedpca_core.questions.attack.records import at_risk
from fedpca_core.questions.attack.records.pictures import SHOWN
from fedpca_core.questions.attack.records.study import MethodRecords, RecordsTaken, stand_in
from fedpca_core.questions.attack.sent_models import FromModels
from fedpca_core.questions.home.story import things
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.panels import Baseline, Curve, Heat, Images, Panel, plot
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import lasting, row, sheet
from fedpca_core.study.sweep import Swept

#: The title of what became of the messages.
MADE = "What the server made of it"


def records(result: RecordsTaken, settings: AttackSettings) -> parts.Parts:
    for text in parts.refusals(result.refusals):
        yield parts.Note(text)
    if not result.found:
        return
    yield "  \n".join(headline(m, result, settings) for m in result.found)
    rounds = max(len(one.directions) for one in result.found.values()) - 1
    pictured = result.rows is None
    for method, one in result.found.items():
        if one.table is not None:
            yield (
                f"**Rows recovered from {METHODS[method].title}** (green: the client's own value, "
                "which only a simulation can tell)"
            )
            yield parts.Rows(one.table, one.exact_cells)
    yield parts.Chart(
        "records_view",
        [panel(result, settings)],
        rows(result, settings, rounds) if pictured else [],
        rounds=rounds,
        autoplay=pictured,
    )
    full = "\n\n".join(_verdict(method, one, result) for method, one in result.found.items())
    yield parts.Fold("In full: what it has, why it can be sure, what stood in the way", [full])


def headline(method: str, result: RecordsTaken, settings: AttackSettings) -> str:
    """One line a method, above the pictures: the finding after the last round."""
    one, title = result.found[method], METHODS[method].title
    matrix, records = one.findings[-1]
    if records.status is not Status.OPEN:
        of_matrix = f"; the matrix: {matrix.words}" if matrix is not records else ""
        return f"**{title}**: the records: {records.words}{of_matrix}."
    taken = one.taken
    what = "every difference between the" if taken.differences else "all"
    whose = "that joined" if settings.joined else f"of {result.facts.client(settings.client)}"
    guess = (
        "" if taken.step is None else f", the step of its grid, {taken.step:.4g}, found by trial"
    )
    return (
        f"**{title}**: after round {taken.round} the server has **{what} {result.records} "
        f"{things(stand_in(settings))} {whose}**, certified{guess}; in truth "
        f"{one.exact} of {result.records} are exact."
    )


def _verdict(method: str, one: MethodRecords, result: RecordsTaken) -> str:
    matrix, records = one.findings[-1]
    less = one.taken.differences and one.taken.certified
    common = " " + parts.words("records-differences") if less else ""
    price = f" The price: the answer is off by a sine of {short(one.answer, 2)} (simulation only)."
    return (
        f"**{METHODS[method].title}**, the matrix: {matrix.words}. The records: {records.words}. "
        f"{_obstacle(one, result)}{common}{price * (result.facts.guarantee is not None)}"
    )


def _obstacle(one: MethodRecords, result: RecordsTaken) -> str:
    """What stood in the way, where the finding does not say it, and what to try."""
    if one.taken.round is not None:
        return ""
    if result.facts.guarantee is not None:
        epsilon = short(round(result.facts.guarantee.epsilon, 3))
        return f"The matrix carries noise at the source, ε = {epsilon}."
    if result.records > result.facts.features:
        return parts.words("records-many", result=result)
    return one.taken.note


def rows(result: RecordsTaken, settings: AttackSettings, rounds: int) -> list[list[Images]]:
    """What every method's server received, what it made of it, and the truth, round by round."""
    return [lasting(_row(method, result, settings), rounds) for method in result.found]


def _came(number: int, columns: int, whose: str) -> str:
    """What one round brought of the client, in words."""
    if columns == 0:
        return "nothing yet" if number == 0 else "nothing in this round"
    shown = f"the first {SHOWN} of its {columns}" if columns > SHOWN else "its"
    return f"message {number}, {whose}: {shown} columns as pictures"


def _row(method: str, result: RecordsTaken, settings: AttackSettings) -> list[Images]:
    one, title = result.found[method], METHODS[method].title
    own = f"from {result.facts.client(settings.client)}"
    whose = "a sum over clients" if settings.secure_aggregation else own
    came = [_came(k, columns, whose) for k, columns in enumerate(one.columns)]
    said = [caption(*pair) for pair in one.findings]
    shows = f"The columns of what the server received under {title}, as pictures."
    made = "Directions of the client's matrix as pictures, or its records."
    return [
        sheet(f"{title}: received", one.received, came, shows),
        sheet(MADE, one.held, said, made),
        _private(result.truth, "never sent; their order is lost, so it is taken from here"),
    ]


def caption(matrix: Finding, records: Finding) -> str:
    """What a picture of the server's belief shows, from the findings of matrix and records."""
    if records.status is Status.OPEN and records.figure is not None:
        return f"certified: all {records.figure}"
    if matrix.status is Status.PROVED_CLOSED:
        return "nothing has been sent"
    if matrix.figure is not None:
        directions = f"{plural(np.round(matrix.figure.value), 'direction')}, drawn as pictures"
        return f"{directions}; records: {in_short(records)}"
    return f"read as products: a mask; records: {in_short(records)}"


def _private(truth: AnyArray, said: str) -> Images:
    side = "The client's private records side by side."
    return sheet("The private records", truth[None], [said], side, simulation_only=True)


def of_models(found: FromModels) -> parts.Parts:
    """From uploads that are models to the matrix, and from the matrix to the very records."""
    size = found.size
    yield f"**And on to the records**, on digits of {size.side} × {size.side} pixels"
    if found.recovered is None:
        yield parts.Note(f"The server has no record. {found.taken.note}")
        return
    uploads = "one upload" if size.rounds == 1 else f"{size.rounds} uploads"
    told = {"components": plural(size.components, "component"), "error": short(found.error, 1)}
    small = " " + parts.words("records-small") if size.rounds > 1 else ""
    yield parts.words("records-of-models", uploads=uploads, found=found, **told) + small
    side = "The client's records as the server found them, side by side."
    made = sheet(MADE, found.recovered[None], ["✓ certified"], side)
    yield parts.Chart("sent_records", images=[[made, _private(found.truth, "never sent")]])


def panel(result: RecordsTaken, settings: AttackSettings) -> Panel:
    """Directions that the server holds, round by round."""
    whose = "the sum of all clients" if settings.secure_aggregation else "the client"
    return Panel.of(
        "records_directions",
        tuple(
            Curve(METHODS[m].title, np.arange(len(one.directions)), one.directions, colour=m)
            for m, one in result.found.items()
        ),
        title=f"How much of {whose} the server holds",
        baselines=(Baseline(f"records to be found: {result.records}", float(result.records)),),
        description=f"How many directions of the matrix of {whose} the server holds after a round.",
    )


# ---------------------------------------------------------------------- the record that joined
#: Angles below this are rounding.
_SMALLEST = 1e-12


def joined_record(joined: NewcomersRead, settings: AttackSettings) -> parts.Parts:
    """The record beside what the server reads, how near it is, and how sure the server can be."""
    for refusal in parts.refusals(joined.refusals):
        yield parts.Note(refusal)
    if not joined.found:
        return
    yield joined_said(joined)
    found = OneMoreRecord().tables(joined, settings)["rounds"]
    drawn = partial(plot, found, "round", by="method", spread=False)
    panels = [
        Panel.of("newcomer_angle", drawn(y="sine", least=_SMALLEST)),
        Panel.of("newcomer_purity", drawn(y="purity", least=0.0)),
    ]
    if joined.pictures is None:
        panels.insert(0, _record_panel(joined))
    rounds = max(len(read.sines) for read in joined.found.values()) - 1
    yield parts.Chart("newcomer_view", panels, joined_rows(joined, rounds), rounds=rounds)


def joined_said(joined: NewcomersRead) -> str:
    """What came of it, method by method, and whose record it is."""
    said: list[str] = []
    for method, read in joined.found.items():
        name, best = METHODS[method].title, read.best
        which = "newcomer-read" if read.sure else "newcomer-unsure"
        said.append(parts.words(which, name=name, best=best, read=read, share=read.purity[best]))
    if joined.guarantee is not None:
        given, both = joined.guarantee, short(joined.guarantee.epsilon, 3)
        told = {"epsilon": both, "delta": short(given.delta), "unit": given.unit}
        said.append(parts.words("newcomer-guarantee", **told))
    elif joined.from_sums:
        said.append("It saw sums only: they hide whose record this is, not the record.")
    elif masked := [m for m in joined.found if replayable(m) and not joined.found[m].sure]:
        said.append(parts.words("newcomer-masked", name=METHODS[masked[0]].title))
    return " ".join(said)


def joined_rows(joined: NewcomersRead, rounds: int) -> list[list[Images]]:
    """The record beside what was read from each method, where records are pictures."""
    if joined.pictures is None:
        return []
    shown = row(
        joined.pictures,
        truth="The record that joined",
        caption="nobody should see it",
        titles={method: f"Read from {METHODS[method].title}" for method in joined.found},
        captions={
            method: [f"sine of the angle {short(sine, 2)}" for sine in read.sines]
            for method, read in joined.found.items()
        },
    )
    return [lasting(shown, rounds)]


def _record_panel(joined: NewcomersRead) -> Panel:
    tall = 1.5 * float(np.abs(joined.record).max())  # wrong guesses may be larger than the page
    names: Any = list(joined.features) or np.arange(1, len(joined.record) + 1)
    look: dict[str, Any] = {"colour": "simulation", "simulation_only": True}
    curves = [Curve("the record that joined", names, joined.record, **look)]
    curves += [
        Curve(METHODS[method].title, names, read.records, colour=method, marker=True)
        for method, read in joined.found.items()
    ]
    return Panel.of("newcomer_record", curves, y_range=(-tall, tall))


# ---------------------------------------------------------------------- which are at risk
#: Why a row of the map ends, and what varies along it.
BOUNDARY = dict(zip(at_risk.OBSTACLES, parts.names("risk-ends").values(), strict=True))
VARIED = {"records_per_client": "records per client", "upload_noise": "relative noise on uploads"}


def risk_map(swept: Swept, settings: AttackSettings) -> parts.Parts:
    """Share of clients whose records are certified, and why it ends where it ends.

    The map has all its cells from the beginning, so that nothing moves while they fill.
    """
    varied, kinds, key = VARIED[swept.parameter], list(at_risk.ROWS), f"at_risk_{swept.parameter}"
    columns = np.sort(dict([at_risk.AtRisk.along, at_risk.NoiseAtRisk.along])[swept.parameter])
    middle = swept.of("recovered").groupby(["series", "value"])["result"].median().unstack()
    values = middle.reindex(index=kinds, columns=columns).to_numpy(dtype=float)
    heat = Heat.of(
        "at-risk",
        *(values, kinds, [short(value) for value in columns]),
        key=key,
        title=f"Share of clients whose records are all certified, by {varied}",
        x_title=varied,
        height=90 + 44 * len(kinds),
        description="For every kind of data, the share of clients whose records the "
        f"attack certifies, by {varied}.",
    )
    yield parts.Chart(key, [heat])
    yield "\n".join(f"- {boundary(swept, name, varied)}" for name in swept.series)


def boundary(swept: Swept, name: str, varied: str) -> str:
    """Where a row of the map ends, and what ends it."""
    recovered, why = swept.band(name, "recovered"), swept.band(name, "obstacle")
    ends = np.flatnonzero(recovered.middle < 1.0)
    if not len(ends):
        return f"**{name}**: all of them, up to {short(recovered.x[-1])} {varied}."
    first = int(ends[0])
    where = f"at {short(recovered.x[first])}"
    if first > 0:
        where = f"between {short(recovered.x[first - 1])} and {short(recovered.x[first])}"
    return f"**{name}** ends {where} {varied}: {BOUNDARY[int(why.middle[first])]}."
