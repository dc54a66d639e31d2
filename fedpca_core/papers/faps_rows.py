"""FAPS's tables and figures: the rows of the Papers page, and the experiments behind them."""

from __future__ import annotations

import pandas as pd

from fedpca_core.papers.experiment import Experiment
from fedpca_core.papers.faps import QUOTED
from fedpca_core.papers.faps_leaks import LONGEST, Recovered
from fedpca_core.papers.faps_runs import MATCHED, PRINTED_AS, Convergence
from fedpca_core.papers.row import (
    Ours,
    Row,
    above,
    at_least,
    at_most,
    averaged,
    largest_over_parts,
    number,
    usually_at_least,
    within_factor,
)

FIVE, PRINTED = "FAPS, 5 inner steps", "FAPS, as printed"

#: Experiments with one part, and those that vary something.
_SINGLE = ("table-1", "uneven")
_VARIED = ("vary-features", "vary-samples", "vary-components", "vary-decay", "rates", "images")
EXPERIMENTS: tuple[Experiment, ...] = (
    *(Convergence(name) for name in (*_SINGLE, *_VARIED)),
    Recovered("figure-1a", "Figure 1(a): recovered before converged", growing=False),
    Recovered("figure-1b", "Figure 1(b): recovery against convergence", growing=True),
)
_TITLES = {one.key: one.title for one in EXPERIMENTS}
_PLACES = {"table-1": "Table 1", "images": "Experiments, image data sets"}

_STEPS = "Five inner steps a round, where the text prints a stopping rule for them."
_WHY_STEPS = (
    "Near the end the printed rule takes a single inner step a round; the printed count needs "
    "about five."
)
_INNER_STEPS = (
    "import fedpca_core as fp; data = fp.problems.decay_spectrum(50, [1000] * 20, 1.03)\n"
    "for rule in ('fixed', 'change'): print(rule, fp.metrics.first_reached(fp.metrics.frame("
    "fp.simulate(data, fp.FAPS(5, inner_rule=rule), rounds=150), data), 'relative_error', 1e-7))"
)
_SUBSETS = (
    "The average is over complete data sets, CIFAR-100 among them; subsets of three are here, so "
    "that only who leads is judged."
)
_FEW_RECORDS = (
    "Here a client has 188 to 625 images, fewer than features, and in the paper 3,125 or 3,750: "
    "FAPS depends on many records a client."
)
_WHY_STOP = (
    "Rule (27) with the printed tolerance goes on beyond the printed error. Near the end error and "
    "relative change fall in proportion, so that a tolerance looser by as much would give the "
    "printed one; the text states none."
)
_WHY_KKT = (
    "The paper prints averages over the values only. Ours is read where each run passes the "
    "averaged error, and the steepest spectrum makes most of the average."
)
_WHY_ONE_START = (
    "Ours is one start, and for FAPS the violation at a given error depends on it: at 2,000 "
    "features, which is Table 1, this one has 2.6e-6 and two others 1.7e-6 and 1.8e-6."
)
_WHY_STEEP = (
    "Where the spectrum is steepest everybody is quick and LocalPower is a little ahead; the "
    "flatter it is, the larger is FAPS's lead."
)
#: Why the violation may differ, by experiment and method.
_WHYS_KKT = {
    **{("vary-decay", method): _WHY_KKT for method in PRINTED_AS},
    ("vary-features", "faps"): _WHY_ONE_START,
}
_TABLE_1 = {one.name.split("/")[2]: one for one in QUOTED if one.name.endswith("/rounds")}
_WHY_SAVING = (
    "The same start and the same accuracy for both; counting to where rule (27) stops each saves "
    f"no more. The paper's own Table 1 has {_TABLE_1['ssi'].text} rounds against "
    f"{_TABLE_1['faps'].text}, a factor of "
    f"{_TABLE_1['ssi'].value / _TABLE_1['faps'].value:.1f}."
)
#: A lead of so much in the median start is one; counts depend strongly on the start.
LEAD = 1.05


def _place(key: str) -> str:
    return _PLACES.get(key, f"Experiments: {_TITLES[key].lower()}")


def _counted() -> list[Row]:
    """Table 1: rounds."""
    rows = []
    for quoted in (one for one in QUOTED if one.measure == "rounds"):
        method = quoted.name.split("/")[2]
        variants = (
            [(FIVE, _STEPS, ""), (PRINTED, "", _WHY_STEPS)]
            if method == "faps"
            else [(PRINTED_AS[method], "", "Counted where the relative error falls to that of the "
                   "table, since the stopping rule ends elsewhere.")]
        )  # fmt: skip
        rows += [
            Row(
                f"faps-table-1-{series}",
                "faps",
                quoted.place,
                f"{series} needs {quoted.text} rounds.",
                quoted=quoted,
                experiment="table-1",
                ours=number(series, "rounds"),
                agreement=within_factor(1.25),
                correction=correction,
                why=why,
                demonstration=_INNER_STEPS if series == PRINTED else "",
            )
            for series, correction, why in variants
        ]
    return rows


def _ended() -> list[Row]:
    """Where runs end: relative errors at the stopping rule, and KKT violations at those errors."""
    rows = []
    for quoted in (one for one in QUOTED if one.measure != "rounds"):
        key, method = quoted.name.split("/")[1:3]
        series = PRINTED_AS[method]
        error = quoted.measure == "relative_error"
        rows.append(
            Row(
                f"{quoted.name.replace('/', '-')}",
                "faps",
                quoted.place,
                f"{quoted.row} ends at a relative error of {quoted.text} by rule (27)."
                if error
                else f"{quoted.row} ends at a scaled KKT violation of {quoted.text}.",
                quoted=quoted,
                experiment=key,
                ours=averaged(series, "stop_relative_error" if error else "kkt"),
                agreement=within_factor(1.25),
                correction=""
                if error
                else "Read where the relative error passes the printed one, not at rule (27).",
                why=_WHY_STOP if error else _WHYS_KKT.get((key, method), ""),
                out_of_scope=_SUBSETS if key == "images" else "",
            )
        )
    return rows


def fewest(rivals: tuple[str, ...], of: str = FIVE) -> Ours:
    """The fewest rounds of the rivals over those of a method, the least favourable part."""

    def ours(cells: pd.DataFrame) -> pd.Series[float]:
        rounds = cells[cells["measure"] == "rounds"].pivot_table(
            index=["seed", "part"], columns="series", values="result"
        )
        if not {of, *rivals} <= set(rounds.columns):
            return pd.Series(dtype=float)
        compared = (rounds[list(rivals)].min(axis=1) / rounds[of]).dropna()
        return compared.groupby("seed").min()

    return ours


def recovered_first(cells: pd.DataFrame) -> pd.Series[float]:
    """SSI's rounds to converge over those to recover a client, the least favourable part.

    0 where it is never recovered; a run that never converges counts with the rounds it had.
    """
    kept = cells[cells["x"].isna() & (cells["series"] == "SSI")]
    table = kept.pivot_table(
        index=["seed", "part"], columns="measure", values="result", dropna=False
    ).reindex(columns=["converged", "recovered"])
    lead = table["converged"].fillna(LONGEST) / table["recovered"]
    return lead.fillna(0.0).groupby("seed").min()


def spread_of_lead(cells: pd.DataFrame) -> pd.Series[float]:
    """How much SSI's rounds over those of FAPS vary over the parts: largest over smallest."""
    rounds = cells[cells["measure"] == "rounds"].pivot_table(
        index=["seed", "part"], columns="series", values="result"
    )
    if not {"SSI", FIVE} <= set(rounds.columns):
        return pd.Series(dtype=float)
    lead = (rounds["SSI"] / rounds[FIVE]).dropna().groupby("seed")
    return lead.max() / lead.min()


def largest_saving(cells: pd.DataFrame) -> pd.Series[float]:
    """SSI's rounds over those of FAPS at the best value of the best experiment, for each seed."""
    saving = largest_over_parts(("SSI", "rounds"), (FIVE, "rounds"))
    found = [saving(each) for _, each in cells.groupby("experiment")]
    return pd.concat(found, axis=1).max(axis=1)


def _fewest(key: str, part: str = "", title: str = "") -> Row:
    """Whether FAPS leads, for every value that varies or at one of them."""
    leads = fewest(("SSI", "LocalPower"))
    return Row(
        f"faps-{key}-fewest" + f"-{part}" * bool(part),
        "faps",
        _place(key) + f": {title}" * bool(part),
        "FAPS needs the fewest rounds of the three methods"
        + (", for every value that varies." if not part else "."),
        experiment=key,
        ours=(lambda cells: leads(cells[cells["part"] == part])) if part else leads,
        unit="times FAPS's rounds",
        agreement=usually_at_least(LEAD),
        correction=_STEPS,
        why=_FEW_RECORDS if part else _WHY_STEEP if key == "vary-decay" else "",
        kind="fewer records" if part else "differs as described",
        scale_free=not part,
    )


def _leads() -> list[Row]:
    """Who leads, in every experiment."""
    compared = [key for key in (*_SINGLE, *_VARIED) if key != "images"]
    return [
        *(_fewest(key) for key in compared),
        *(
            _fewest("images", part, title)
            for part, title in (
                ("mnist", "MNIST"), ("fashion_mnist", "Fashion-MNIST"), ("cifar10", "CIFAR-10")
            )
        ),
        *(
            Row(
                f"faps-{key}-local-power",
                "faps",
                _place(key),
                "LocalPower needs fewer rounds than SSI, for every value that varies.",
                experiment=key,
                ours=fewest(("SSI",), "LocalPower"),
                unit="times LocalPower's rounds",
                agreement=usually_at_least(LEAD),
                why="After its first rounds LocalPower is SSI: its lead is small, and from single "
                "starts it is behind." + f" {_FEW_RECORDS}" * (key == "images"),
                kind="fewer records" if key == "images" else "differs as described",
                scale_free=True,
            )
            for key in (*compared, "images")
        ),
        Row(
            "faps-magnitude",
            "faps",
            "Abstract and experiments",
            "FAPS saves up to one or two orders of magnitude of rounds over SSI: at least one, at "
            "the best value of the best experiment.",
            across=(*compared, "images"),
            ours=largest_saving,
            unit="times FAPS's rounds",
            agreement=usually_at_least(10.0),
            why=_WHY_SAVING,
            scale_free=True,
        ),
    ]  # fmt: skip


ROWS: tuple[Row, ...] = (
    *_counted(),
    *_ended(),
    *_leads(),
    *(
        Row(
            f"faps-rates-linear-{series}",
            "faps",
            _place("rates"),
            f"{series} converges linearly.",
            experiment="rates",
            ours=averaged(series, "linearity"),
            unit="R² of log error against rounds",
            agreement=at_least(0.95),
            correction=_STEPS if series == FIVE else "",
            scale_free=True,
        )
        for series in ("SSI", "LocalPower", FIVE)
    ),
    Row(
        "faps-rates-condition",
        "faps",
        _place("rates"),
        "FAPS's advantage does not depend on the condition number.",
        experiment="rates",
        ours=spread_of_lead,
        unit="largest over smallest lead",
        agreement=at_most(1.5),
        scale_free=True,
    ),
    Row(
        "faps-table-1-time",
        "faps",
        "Table 1 (ours)",
        "FAPS's time is little more than that of its bare products: a claim of ours.",
        experiment="table-1",
        ours=number(FIVE, "time_ratio"),
        unit="times its bare products",
        agreement=at_most(1.5),
    ),
    Row(
        "faps-figure-1a-ssi",
        "faps",
        "Figure 1(a)",
        "SSI's server holds a client's covariance to 1e-5 before SSI itself converges to 1e-5.",
        experiment="figure-1a",
        ours=recovered_first,
        unit="rounds to converge over rounds to recover",
        agreement=above(1.0),
        scale_free=True,
        explained="attack",
    ),
    Row(
        "faps-figure-1a-faps",
        "faps",
        "Section on privacy",
        "The linear attack does not recover a client of FAPS.",
        experiment="figure-1a",
        ours=number("FAPS", "least_error"),
        unit="least relative error of the last rounds",
        agreement=at_least(0.9),
        why="It ends near or above 1, the error of guessing zero. A server that replays FAPS's "
        "public update recovers the client all the same: the Attack page does.",
        scale_free=True,
        explained="attack",
    ),
    Row(
        "faps-figure-1b",
        "faps",
        "Figure 1(b)",
        "At every number of features SSI's client is recovered well before SSI converges.",
        experiment="figure-1b",
        ours=recovered_first,
        unit="rounds to converge over rounds to recover",
        agreement=above(1.0),
        scale_free=True,
        explained="attack",
    ),
    Row(
        "faps-tables-2-to-4",
        "faps",
        "Tables 2 to 4",
        "Which of these tables has which averages, and what Table 4 adds.",
        unreadable="The numbers above are quoted by experiment; their numbering, and Table 4, "
        "could not be read.",
    ),
    Row(
        "faps-figures-2-to-4",
        "faps",
        "Figures 2 to 4",
        "Which of these figures shows which experiment, and what its curves read.",
        unreadable="Curves without printed values, of unknown numbering. Ours, the error against "
        "rounds for all methods, stand with every experiment; what the text says of them is judged "
        "above.",
    ),
    Row(
        "faps-cifar-100",
        "faps",
        "Experiments, image data sets",
        "The averages over image data sets include CIFAR-100.",
        out_of_scope="CIFAR-100 is not among the data here, and CIFAR-10 is read in grey: 1,024 "
        "features for 3,072 in colour, which is not built. Shipped results are for subsets at full "
        "resolution: 5,000 images of MNIST and 10,000 of Fashion-MNIST (28 × 28), 3,000 of "
        "CIFAR-10 (32 × 32).",
    ),
)

#: Said with every count of rounds.
ACCURACY = f"Rounds until the relative error is at most {MATCHED:g}, from the same random starts."
