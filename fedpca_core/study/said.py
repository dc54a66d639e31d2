"""Findings as a page prints them: the same words, in the same order, everywhere."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.findings import TARGETS, Finding, Status, in_short
from fedpca_core.settings import plural
from fedpca_core.study.parts import Table, names

#: How the sentence begins that names targets of a status, the worst first.
LEADS = names("finding-leads")


def sentence(findings: Sequence[Finding]) -> str:
    """All findings in a line, by status."""
    said = []
    for status, lead in LEADS.items():
        names = [TARGETS[one.target].lower() for one in findings if str(one.status) == status]
        if names:
            said.append(f"{lead}: {'; '.join(names)}.")
    return " ".join(said)


def table(findings: Sequence[Finding], label: str) -> Table:
    """One row a target: its status, the words of the finding, the attack behind it."""
    rows = [
        {
            "What": TARGETS[one.target],
            "Status": str(one.status),
            "The server": one.words,
            "Attack": ATTACKS[one.attack].title if one.attack else "–",
        }
        for one in findings
    ]
    return Table(pd.DataFrame(rows), label)


def leaks(findings: Sequence[Finding]) -> bool:
    """Whether any target is open, whole or in part."""
    return any(one.status in (Status.OPEN, Status.PARTLY) for one in findings)


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
