"""What came, what the server made of it, and the records that nobody should see."""

import numpy as np

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import AnyArray
from fedpca_core.findings import Status
from fedpca_core.questions.attack.records.from_models import FromModels
from fedpca_core.questions.attack.records.pictures import SHOWN
from fedpca_core.questions.attack.records.study import MethodRecords, RecordsTaken, stand_in
from fedpca_core.questions.home.words import things
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.panels import Baseline, Curve, Images, Panel
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import lasting, sheet
from fedpca_core.study.said import caption

#: The title of what became of the messages.
MADE = "What the server made of it"


def records(result: RecordsTaken, settings: AttackSettings) -> parts.Parts:
    """What is said of it, and the rounds to play."""
    for text in parts.refusals(result.refusals):
        yield parts.Note(text)
    if not result.found:
        return
    yield "  \n".join(headline(m, result, settings) for m in result.found)
    rounds = max(len(one.directions) for one in result.found.values()) - 1
    pictured = result.rows is None
    if not pictured:
        yield from _tables(result)
    yield parts.Chart(
        "records_view",
        [panel(result, settings)],
        rows(result, settings, rounds) if pictured else [],
        rounds=rounds,
        plays=pictured,
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
    what = "every difference between the" if one.differences else "all"
    whose = "that joined" if settings.joined else f"of {result.facts.client(settings.client)}"
    guess = "" if one.step is None else f", the step of its grid, {one.step:.4g}, found by trial"
    return (
        f"**{title}**: after round {one.certified} the server has **{what} {result.records} "
        f"{things(stand_in(settings))} {whose}**, certified{guess}; in truth "
        f"{one.exact} of {result.records} are exact."
    )


def _verdict(method: str, one: MethodRecords, result: RecordsTaken) -> str:
    matrix, records = one.findings[-1]
    common = " " + parts.words("records-differences") if one.differences else ""
    return (
        f"**{METHODS[method].title}**, the matrix: {matrix.words}. The records: {records.words}. "
        f"{_obstacle(one, result)}{common}{_price(one, result)}"
    )


def _obstacle(one: MethodRecords, result: RecordsTaken) -> str:
    """What stood in the way, where the finding does not say it, and what to try."""
    if one.certified is not None:
        return ""
    if result.facts.guarantee is not None:
        epsilon = short(round(result.facts.guarantee.epsilon, 3))
        return f"The matrix carries noise at the source, ε = {epsilon}."
    if result.records > result.facts.features:
        return (
            f"The client holds {result.records:,} records of {result.facts.features} features; "
            "with fewer records than features a lattice may follow."
        )
    return one.note


def _price(one: MethodRecords, result: RecordsTaken) -> str:
    if result.facts.guarantee is None:
        return ""
    return f" The price: the answer is off by a sine of {short(one.answer, 2)} (simulation only)."


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
    whose = (
        "a sum over clients"
        if settings.secure_aggregation
        else f"from {result.facts.client(settings.client)}"
    )
    came = [_came(k, columns, whose) for k, columns in enumerate(one.columns)]
    said = [caption(*pair) for pair in one.findings]
    shows = f"The columns of what the server received under {title}, as pictures."
    made = "Directions of the client's matrix as pictures, or its records."
    return [
        sheet(f"{title}: received", one.received, came, shows),
        sheet(MADE, one.held, said, made),
        _private(result.truth, "never sent; their order is lost, so it is taken from here"),
    ]


def _private(truth: AnyArray, said: str) -> Images:
    side = "The client's private records side by side."
    return sheet("The private records", truth[None], [said], side, simulation_only=True)


def of_models(found: FromModels) -> parts.Parts:
    """From uploads that are models to the matrix, and from the matrix to the very records."""
    size = found.size
    yield f"**And on to the records**, on digits of {size.side} × {size.side} pixels"
    if found.recovered is None:
        yield parts.Note(f"The server has no record. {found.note}")
        return
    uploads = "one upload" if size.rounds == 1 else f"{size.rounds} uploads"
    dense = size.rounds > 1
    yield (
        f"From {uploads} of {plural(size.components, 'component')} the server gets the client's "
        f"matrix, to {short(found.error, 1)} (simulation only), and takes it apart into **all "
        f"{size.records} pictures of the client**. {found.note} In truth {found.exact} of "
        f"{size.records} are exact, to the last grey level (simulation only)."
        + " The pictures are small because every entry is an unknown of one dense solve."
        * dense
    )
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


def _tables(result: RecordsTaken) -> parts.Parts:
    """The recovered rows, exact cells marked."""
    for method, one in result.found.items():
        if one.table is not None:
            yield (
                f"**Rows recovered from {METHODS[method].title}** (green: the client's own value, "
                "which only a simulation can tell)"
            )
            yield parts.Rows(one.table, one.exact_cells)
